//! From logits to the next token: suppressed tokens → penalties → temperature → top-k → top-p → min-p → seeded choice.
//!
//! Only what is kept is sorted. Every filter after the temperature keeps the likeliest tokens down to some bound, so
//! it is enough to gather the tokens above a threshold, lower it until they suffice, and select among those.

use crate::random::Random;

/// How the next token is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Flattens (above 1) or sharpens the distribution; 0, and all below 0.001, always takes the likeliest token.
    pub temperature: f32,
    /// Keep this many of the likeliest tokens; 0 keeps all.
    pub top_k: usize,
    /// Keep the likeliest tokens that together have this probability; 1 keeps all.
    pub top_p: f32,
    /// Keep tokens at least this likely relative to the likeliest; 0 keeps all.
    pub min_p: f32,
    /// Divides the logits of recent tokens (multiplies negative ones); 1 for none.
    pub repeat_penalty: f32,
    /// How many recent tokens the penalty looks at.
    pub repeat_last_n: usize,
    /// Makes answers repeatable; `None` draws a fresh one.
    pub seed: Option<u64>,
}

/// Below this temperature only the likeliest token is left, and 1/T grows beyond what an f32 holds.
const LEAST_TEMPERATURE: f32 = 1e-3;

impl Sampling {
    /// Whether the likeliest token is always taken.
    pub(crate) fn is_greedy(&self) -> bool {
        self.temperature.is_nan() || self.temperature < LEAST_TEMPERATURE
    }

    /// Whether recent tokens are made less likely.
    pub(crate) fn penalises(&self) -> bool {
        #[expect(clippy::float_cmp, reason = "exactly 1 means none")]
        let none = self.repeat_penalty == 1.0;
        !none && self.repeat_penalty > 0.0
    }
}

impl Default for Sampling {
    /// What SmolLM3's makers recommend.
    fn default() -> Self {
        Sampling {
            temperature: 0.6,
            top_k: 0,
            top_p: 0.95,
            min_p: 0.0,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            seed: None,
        }
    }
}

/// Logits further below the best than this weigh less than a rounding error, all 128,256 of them together.
const NEGLIGIBLE: f32 = 28.0;

/// The chain with its random numbers and scratch.
pub struct Sampler {
    sampling: Sampling,
    random: Random,
    /// Tokens that are never chosen.
    suppressed: Vec<u32>,
    candidates: Vec<Candidate>,
}

#[derive(Clone, Copy)]
struct Candidate {
    id: u32,
    /// Relative to the best token's, so at most 0.
    logit: f32,
    /// Relative to the best token's.
    weight: f32,
}

impl Sampler {
    /// A sampler with the seed that `sampling` names, or else `fresh`.
    pub fn new(sampling: Sampling, fresh: u64) -> Sampler {
        let random = Random::new(sampling.seed.unwrap_or(fresh));
        Sampler {
            sampling,
            random,
            suppressed: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// The sampler with tokens that it never chooses.
    #[must_use]
    pub fn suppressing(mut self, ids: &[u32]) -> Sampler {
        self.suppressed = ids.to_vec();
        self.suppressed.sort_unstable();
        self
    }

    /// How tokens are chosen.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Tokens that are never chosen, in ascending order.
    pub fn suppressed(&self) -> &[u32] {
        &self.suppressed
    }

    /// Chooses a token; `recent` are the tokens before it. The penalties are applied to `logits` in place.
    pub fn sample(&mut self, logits: &mut [f32], recent: &[u32]) -> u32 {
        let noise = self.noise();
        self.sample_with(logits, recent, noise)
    }

    /// What picks one token, in 0..1; at temperature 0 nothing is picked.
    pub fn noise(&mut self) -> f64 {
        if self.sampling.is_greedy() {
            0.0
        } else {
            self.random.unit()
        }
    }

    /// Chooses as [`Sampler::sample`] does, by noise that was drawn before.
    pub fn sample_with(&mut self, logits: &mut [f32], recent: &[u32], noise: f64) -> u32 {
        self.suppress(logits);
        self.penalise(logits, recent);
        let peak = maximum(logits);
        let chosen = if peak == f32::NEG_INFINITY {
            None
        } else if self.sampling.is_greedy() {
            first(logits, peak)
        } else {
            self.keep(logits, peak);
            self.draw(noise)
        };
        chosen.unwrap_or_else(|| self.first_allowed())
    }

    fn suppress(&self, logits: &mut [f32]) {
        for &id in &self.suppressed {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit = f32::NEG_INFINITY;
            }
        }
    }

    /// What is chosen where no logit is a number.
    fn first_allowed(&self) -> u32 {
        (0..)
            .find(|id| self.suppressed.binary_search(id).is_err())
            .unwrap_or(0)
    }

    fn penalise(&self, logits: &mut [f32], recent: &[u32]) {
        let penalty = self.sampling.repeat_penalty;
        if !self.sampling.penalises() {
            return;
        }
        let first = recent.len().saturating_sub(self.sampling.repeat_last_n);
        let recent = &recent[first..];
        for (at, &id) in recent.iter().enumerate() {
            let Some(logit) = logits.get_mut(id as usize) else {
                continue;
            };
            if !recent[..at].contains(&id) {
                *logit = if *logit > 0.0 {
                    *logit / penalty
                } else {
                    *logit * penalty
                };
            }
        }
    }

    /// Leaves in `candidates` what all filters keep, likeliest first.
    fn keep(&mut self, logits: &[f32], peak: f32) {
        let Sampling {
            temperature,
            top_k,
            top_p,
            min_p,
            ..
        } = self.sampling;
        let scale = Scale {
            peak,
            by: temperature.recip(),
        };
        let limited = top_k > 0 && top_k < logits.len();
        let nucleus = top_p < 1.0;
        let floor = if min_p > 0.0 {
            min_p.min(1.0).ln()
        } else {
            -NEGLIGIBLE
        };
        // Without top-k the nucleus is measured against the whole vocabulary.
        let whole = if nucleus && !limited {
            scale.mass(logits)
        } else {
            0.0
        };
        let mut threshold = if limited || nucleus { -4.0f32 } else { floor };
        loop {
            threshold = threshold.max(floor);
            scale.gather(logits, threshold, &mut self.candidates);
            let enough = if limited {
                self.candidates.len() >= top_k
            } else {
                !nucleus || mass(&self.candidates) >= top_p * whole
            };
            if enough || threshold <= floor {
                break;
            }
            threshold *= 2.0;
        }
        if limited && self.candidates.len() > top_k {
            self.candidates.select_nth_unstable_by(top_k - 1, likelier);
            self.candidates.truncate(top_k);
        }
        if nucleus {
            let whole = if limited {
                mass(&self.candidates)
            } else {
                whole
            };
            self.cut_nucleus(top_p * whole);
        }
        if limited || nucleus {
            self.candidates.sort_unstable_by(likelier);
        }
    }

    /// Keeps of the candidates the fewest likeliest that together weigh at least `least`.
    fn cut_nucleus(&mut self, least: f32) {
        /// So few are sorted sooner than halved.
        const FEW: usize = 32;
        // Those before `low` stay and weigh `sum`; those from `high` on go.
        let (mut low, mut high, mut sum) = (0, self.candidates.len(), 0.0);
        while high - low > FEW {
            let half = (high - low) / 2;
            self.candidates[low..high].select_nth_unstable_by(half, likelier);
            let upper = mass(&self.candidates[low..low + half]);
            if sum + upper >= least {
                high = low + half;
            } else {
                sum += upper;
                low += half;
            }
        }
        self.candidates[low..high].sort_unstable_by(likelier);
        let last = self.candidates[low..high].iter().position(|candidate| {
            sum += candidate.weight;
            sum >= least
        });
        self.candidates
            .truncate(last.map_or(high, |last| low + last + 1));
    }

    fn draw(&self, noise: f64) -> Option<u32> {
        let total: f64 = self
            .candidates
            .iter()
            .map(|candidate| f64::from(candidate.weight))
            .sum();
        let mut left = noise * total;
        for candidate in &self.candidates {
            left -= f64::from(candidate.weight);
            if left < 0.0 {
                return Some(candidate.id);
            }
        }
        self.candidates.last().map(|candidate| candidate.id)
    }
}

/// The likeliest first; ties by id, so that the order is the same everywhere.
fn likelier(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

fn mass(candidates: &[Candidate]) -> f32 {
    candidates.iter().map(|candidate| candidate.weight).sum()
}

/// As many logits at a time as let the compiler use whole vectors on any machine.
const LANES: usize = 16;

/// Logits relative to the best, as the temperature has them.
#[derive(Clone, Copy)]
struct Scale {
    peak: f32,
    by: f32,
}

impl Scale {
    fn of(self, logit: f32) -> f32 {
        (logit - self.peak) * self.by
    }

    /// What the whole vocabulary weighs.
    fn mass(self, logits: &[f32]) -> f32 {
        let mut sums = [0.0; LANES];
        let (chunks, rest) = logits.as_chunks::<LANES>();
        for chunk in chunks {
            for (sum, &logit) in sums.iter_mut().zip(chunk) {
                *sum += exp(self.of(logit));
            }
        }
        let rest = rest.iter().map(|&logit| exp(self.of(logit)));
        sums.into_iter().chain(rest).sum()
    }

    /// The tokens down to `threshold`, in the order of their ids.
    fn gather(self, logits: &[f32], threshold: f32, candidates: &mut Vec<Candidate>) {
        candidates.clear();
        let above = |logit: f32| self.of(logit) >= threshold;
        for (at, chunk) in logits.chunks(LANES).enumerate() {
            // Most chunks have none; asking all lanes at once costs less than asking each.
            if !chunk.iter().fold(false, |any, &logit| any | above(logit)) {
                continue;
            }
            for (lane, &logit) in chunk.iter().enumerate() {
                if above(logit) {
                    let logit = self.of(logit);
                    candidates.push(Candidate {
                        id: id(at * LANES + lane),
                        logit,
                        weight: exp(logit),
                    });
                }
            }
        }
    }
}

/// The largest logit; NaN is never the largest.
fn maximum(logits: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = logits.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &logit) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, logit);
        }
    }
    lanes
        .into_iter()
        .chain(rest.iter().copied())
        .fold(f32::NEG_INFINITY, larger)
}

/// The first token with the logit `peak`.
fn first(logits: &[f32], peak: f32) -> Option<u32> {
    #[expect(clippy::float_cmp, reason = "the maximum is one of them")]
    let at = logits.iter().position(|&logit| logit == peak);
    at.map(id)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "vocabularies are counted in u32"
)]
fn id(at: usize) -> u32 {
    at as u32
}

/// eˣ for x ≤ 0, in f32 arithmetic without branches, so that a loop over the vocabulary vectorises.
fn exp(x: f32) -> f32 {
    let scaled = x * std::f32::consts::LOG2_E;
    // Unlike `f32::max`, a comparison is one instruction; NaN weighs nothing.
    let scaled = if scaled > -126.0 { scaled } else { -126.0 };
    // Adding 1.5 · 2²³ rounds to the nearest integer and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let shifted = scaled + ROUND;
    let fraction = (scaled - (shifted - ROUND)) * std::f32::consts::LN_2;
    let mut series = 1.0 / 720.0;
    for term in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * fraction + term;
    }
    let exponent = shifted
        .to_bits()
        .wrapping_sub(ROUND.to_bits())
        .wrapping_add(127)
        << 23;
    series * f32::from_bits(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greedy() -> Sampling {
        Sampling {
            temperature: 0.0,
            ..Sampling::default()
        }
    }

    /// Logits of the size of SmolLM3's vocabulary, roughly as peaked as a trained model's.
    fn logits(seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed);
        (0..128_256)
            .map(|_| {
                let sum: f64 = (0..4).map(|_| random.unit()).sum();
                (sum * 8.0 - 16.0) as f32
            })
            .collect()
    }

    /// The chain as the papers state it: everything sorted, probabilities exact.
    fn kept_by_sorting(logits: &[f32], sampling: &Sampling) -> Vec<u32> {
        let scaled: Vec<f64> = logits
            .iter()
            .map(|&l| f64::from(l) / f64::from(sampling.temperature))
            .collect();
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| scaled[b].total_cmp(&scaled[a]).then(a.cmp(&b)));
        if sampling.top_k > 0 {
            order.truncate(sampling.top_k);
        }
        let peak = scaled[order[0]];
        let weights: Vec<f64> = order.iter().map(|&id| (scaled[id] - peak).exp()).collect();
        let total: f64 = weights.iter().sum();
        let (mut sum, mut kept) = (0.0, Vec::new());
        for (&id, weight) in order.iter().zip(weights) {
            if sum >= f64::from(sampling.top_p) * total || weight < f64::from(sampling.min_p) {
                break;
            }
            sum += weight;
            kept.push(id as u32);
        }
        kept
    }

    #[test]
    fn the_filters_keep_what_sorting_everything_would_keep() {
        let cases = [
            (0, 0.95, 0.0),
            (40, 0.9, 0.0),
            (40, 1.0, 0.0),
            (0, 0.5, 0.1),
            (5, 0.3, 0.2),
            (0, 0.999, 0.01),
        ];
        for (case, (top_k, top_p, min_p)) in cases.into_iter().enumerate() {
            let sampling = Sampling {
                top_k,
                top_p,
                min_p,
                ..Sampling::default()
            };
            let mut logits = logits(case as u64);
            let expected = kept_by_sorting(&logits, &sampling);
            let mut sampler = Sampler::new(sampling, 1);
            sampler.sample(&mut logits, &[]);
            let kept: Vec<u32> = sampler
                .candidates
                .iter()
                .map(|candidate| candidate.id)
                .collect();
            // The last of the nucleus may fall to either side of the bound by rounding; where the bound lies exactly,
            // the next test says.
            let shorter = kept.len().min(expected.len());
            assert!(kept.len().max(expected.len()) <= shorter + 1, "case {case}");
            assert!(shorter >= 1, "case {case}: nothing to compare");
            assert_eq!(kept[..shorter], expected[..shorter], "case {case}");
        }
    }

    /// Logits whose weights are exactly ⅛, ½, ⅛ and ¼ of the whole, and of many others that are none.
    fn exact() -> Vec<f32> {
        let mut logits = vec![-200.0; 50];
        for (at, halvings) in [(3, 2.0), (11, 0.0), (20, 2.0), (40, 1.0)] {
            logits[at] = -halvings * std::f32::consts::LN_2;
        }
        logits
    }

    /// Ids that are kept, the likeliest first where a filter sorts them.
    fn kept(sampling: Sampling) -> Vec<u32> {
        let mut sampler = Sampler::new(sampling, 1);
        sampler.sample(&mut exact(), &[]);
        sampler.candidates.iter().map(|it| it.id).collect()
    }

    #[test]
    fn filters_keep_exactly_what_reaches_their_bounds() {
        let all = Sampling {
            temperature: 1.0,
            top_p: 1.0,
            ..Sampling::default()
        };
        assert_eq!(kept(all.clone()), [3, 11, 20, 40], "by their ids, unsorted");
        for (top_p, expected) in [
            (0.01, &[11][..]),
            (0.5, &[11]),
            (0.51, &[11, 40]),
            (0.75, &[11, 40]),
            (0.76, &[11, 40, 3]),
            (0.875, &[11, 40, 3]),
            (0.88, &[11, 40, 3, 20]),
        ] {
            let sampling = Sampling {
                top_p,
                ..all.clone()
            };
            assert_eq!(kept(sampling), expected, "top_p {top_p}");
        }
        for (top_k, expected) in [
            (1, &[11][..]),
            (2, &[11, 40]),
            // Of two equal ones the first.
            (3, &[11, 40, 3]),
            (4, &[11, 40, 3, 20]),
            (0, &[3, 11, 20, 40]),
        ] {
            let sampling = Sampling {
                top_k,
                ..all.clone()
            };
            assert_eq!(kept(sampling), expected, "top_k {top_k}");
        }
        for (min_p, expected) in [
            (1.0, &[11][..]),
            (0.6, &[11]),
            (0.5, &[11, 40]),
            (0.3, &[11, 40]),
            (0.25, &[3, 11, 20, 40]),
        ] {
            let sampling = Sampling {
                min_p,
                ..all.clone()
            };
            assert_eq!(kept(sampling), expected, "min_p {min_p}");
        }
        // Together: the nucleus is measured against what top-k has left, min-p drops from it.
        let sampling = Sampling {
            top_k: 2,
            top_p: 0.6,
            ..all.clone()
        };
        assert_eq!(kept(sampling), [11], "half of all, two thirds of the two");
        let sampling = Sampling {
            top_p: 0.9,
            min_p: 0.5,
            ..all.clone()
        };
        assert_eq!(kept(sampling), [11, 40]);
        // Half the temperature squares the weights: 16, 4, 1 and 1 of 22.
        for (top_p, expected) in [(0.72, &[11][..]), (0.73, &[11, 40]), (0.92, &[11, 40, 3])] {
            let sampling = Sampling {
                temperature: 0.5,
                top_p,
                ..all.clone()
            };
            assert_eq!(kept(sampling), expected, "top_p {top_p}");
        }
    }

    #[test]
    fn what_is_drawn_is_the_token_that_the_noise_falls_on() {
        let all = Sampling {
            temperature: 1.0,
            top_p: 1.0,
            ..Sampling::default()
        };
        let drawn = |sampling: &Sampling, noise| {
            Sampler::new(sampling.clone(), 1).sample_with(&mut exact(), &[], noise)
        };
        for (noise, expected) in [
            (0.0, 3),
            (0.124, 3),
            (0.125, 11),
            (0.624, 11),
            (0.625, 20),
            (0.749, 20),
            (0.75, 40),
            (0.999, 40),
        ] {
            assert_eq!(drawn(&all, noise), expected, "{noise}");
        }
        let nucleus = Sampling { top_p: 0.75, ..all };
        for (noise, expected) in [(0.0, 11), (0.66, 11), (0.67, 40), (0.999, 40)] {
            assert_eq!(drawn(&nucleus, noise), expected, "{noise} of a nucleus");
        }
    }

    #[test]
    fn suppressed_tokens_are_never_chosen() {
        for temperature in [0.0, 1.0] {
            let sampling = Sampling {
                temperature,
                top_p: 1.0,
                ..Sampling::default()
            };
            let sampler = || Sampler::new(sampling.clone(), 1).suppressing(&[40, 11, 99]);
            assert_eq!(sampler().suppressed(), [11, 40, 99]);
            for step in 0..20 {
                let noise = f64::from(step) / 20.0;
                let found = sampler().sample_with(&mut exact(), &[], noise);
                assert!([3, 20].contains(&found), "{found} at {temperature}");
            }
            // Not even where no logit is a number.
            for nothing in [f32::NAN, f32::NEG_INFINITY] {
                let sampler = Sampler::new(sampling.clone(), 1).suppressing(&[0, 1, 3]);
                assert_eq!({ sampler }.sample(&mut [nothing; 5], &[]), 2);
            }
        }
    }

    /// At such a temperature 1/T is beyond what an f32 holds.
    #[test]
    fn hardly_any_temperature_is_none() {
        for temperature in [0.0, -1.0, 1e-45, 1e-39, 9e-4, f32::NAN] {
            let sampling = Sampling {
                temperature,
                ..Sampling::default()
            };
            let mut sampler = Sampler::new(sampling, 1);
            for _ in 0..20 {
                assert_eq!(sampler.sample(&mut exact(), &[]), 11, "{temperature}");
            }
        }
        let warm = Sampling {
            temperature: 1e-3,
            ..Sampling::default()
        };
        assert!(!warm.is_greedy());
        assert_eq!(Sampler::new(warm, 1).sample(&mut exact(), &[]), 11);
    }

    #[test]
    fn without_filters_draws_follow_the_probabilities() {
        let plain = Sampling {
            temperature: 1.0,
            top_p: 1.0,
            seed: Some(7),
            ..Sampling::default()
        };
        let mut sampler = Sampler::new(plain, 0);
        let mut counts = [0u32; 3];
        for _ in 0..30_000 {
            let mut logits = [0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
            counts[sampler.sample(&mut logits, &[]) as usize] += 1;
        }
        for (count, expected) in counts.into_iter().zip([15_000, 9_000, 6_000]) {
            assert!(count.abs_diff(expected) < 400, "{counts:?}");
        }
    }

    #[test]
    fn zero_temperature_takes_the_first_best() {
        let mut sampler = Sampler::new(greedy(), 1);
        assert_eq!(sampler.sample(&mut [f32::NAN, 1.0, 3.0, 3.0], &[]), 2);
    }

    #[test]
    fn the_penalty_reaches_back_as_far_as_it_is_told() {
        let sampling = Sampling {
            repeat_penalty: 2.0,
            repeat_last_n: 2,
            ..greedy()
        };
        let mut sampler = Sampler::new(sampling, 1);
        assert_eq!(
            sampler.sample(&mut [3.0, 2.0, -1.0], &[0, 2, 2]),
            0,
            "0 is out of reach"
        );
        let mut logits = [3.0, 2.0, -1.0];
        assert_eq!(sampler.sample(&mut logits, &[0, 2]), 1);
        assert_eq!(logits, [1.5, 2.0, -2.0]);
    }

    #[test]
    fn the_same_seed_gives_the_same_tokens() {
        let run = |seed| {
            let mut sampler = Sampler::new(
                Sampling {
                    seed,
                    ..Sampling::default()
                },
                99,
            );
            (0..20)
                .map(|step| sampler.sample(&mut logits(step), &[]))
                .collect::<Vec<_>>()
        };
        assert_eq!(run(Some(5)), run(Some(5)));
        assert_ne!(run(Some(5)), run(Some(6)));
        assert_eq!(run(None), run(Some(99)));
    }

    #[test]
    fn the_fast_exponential_is_exact_enough() {
        for step in 0..8700 {
            let x = -step as f32 / 100.0;
            let error = (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs();
            // Rounding x · log₂e costs in proportion to it.
            assert!(error < 2e-7 * f64::from(4.0 - x), "{x}: {error}");
        }
    }
}
