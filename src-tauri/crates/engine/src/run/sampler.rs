//! The sampler chain: suppressed tokens → repeat penalty → temperature → top-k → top-p → min-p → seeded draw.
//!
//! Only the candidates are sorted. Every filter after the temperature keeps the likeliest tokens down to some bound: the
//! tokens above a threshold are gathered, the threshold is lowered until they suffice, and the filters select among them.

use std::collections::VecDeque;

use inference::Sampling;

use crate::run::random::Random;

/// Distance below the largest logit from which all 128,256 tokens together have less probability than a rounding error.
const NEGLIGIBLE: f32 = 28.0;

/// The sampler chain with its random generator and scratch.
pub struct Sampler {
    sampling: Sampling,
    random: Random,
    /// Draws of tokens that the device samples ahead.
    ahead: VecDeque<f64>,
    /// Tokens that are never sampled.
    suppressed: Vec<u32>,
    candidates: Vec<Candidate>,
}

#[derive(Clone, Copy)]
struct Candidate {
    id: u32,
    /// Relative to the likeliest token's, so at most 0.
    logit: f32,
    /// Probability relative to the likeliest token's.
    weight: f32,
}

impl Sampler {
    /// Makes a sampler with the seed of `sampling`, else `seed`.
    pub fn new(sampling: Sampling, seed: u64) -> Sampler {
        let random = Random::new(sampling.seed.unwrap_or(seed));
        Sampler {
            sampling,
            random,
            ahead: VecDeque::new(),
            suppressed: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// Returns the sampler with tokens that it never samples.
    #[must_use]
    pub fn with_suppressed(mut self, ids: &[u32]) -> Sampler {
        self.suppressed = ids.to_vec();
        self.suppressed.sort_unstable();
        self
    }

    /// Never samples this token from now on.
    pub fn suppress(&mut self, id: u32) {
        if let Err(at) = self.suppressed.binary_search(&id) {
            self.suppressed.insert(at, id);
        }
    }

    /// The parameters of sampling.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Tokens that are never sampled, in ascending order.
    pub fn suppressed(&self) -> &[u32] {
        &self.suppressed
    }

    /// Samples a token; `recent` are the tokens before it. The repeat penalty is applied to `logits` in place.
    pub fn sample(&mut self, logits: &mut [f32], recent: &[u32]) -> u32 {
        let u = self.uniform();
        self.sample_with(logits, recent, u)
    }

    /// The uniform draw in 0..1 for one token; at temperature 0, 0 without a draw.
    pub fn uniform(&mut self) -> f64 {
        let ahead = self.ahead.pop_front();
        ahead.unwrap_or_else(|| self.next_uniform())
    }

    /// The draw of the token after `ahead` others, which is not used up.
    pub(crate) fn uniform_ahead(&mut self, ahead: usize) -> f64 {
        while self.ahead.len() <= ahead {
            let draw = self.next_uniform();
            self.ahead.push_back(draw);
        }
        self.ahead[ahead]
    }

    fn next_uniform(&mut self) -> f64 {
        if self.sampling.is_greedy() {
            0.0
        } else {
            self.random.uniform()
        }
    }

    /// Samples like [`Sampler::sample`], with a uniform draw that was made before.
    pub fn sample_with(&mut self, logits: &mut [f32], recent: &[u32], u: f64) -> u32 {
        suppress(logits, &self.suppressed);
        self.penalise(logits, recent);
        let peak = maximum(logits);
        let chosen = if peak == f32::NEG_INFINITY {
            None
        } else if self.sampling.is_greedy() {
            first_with(logits, peak)
        } else {
            self.filter(logits, peak);
            self.draw(u)
        };
        chosen.unwrap_or_else(|| self.first_allowed())
    }

    /// The first token that is not suppressed, for logits that are all NaN or −∞.
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
        let start = recent.len().saturating_sub(self.sampling.repeat_last_n);
        let recent = &recent[start..];
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

    /// Leaves in `candidates` the tokens that pass all filters, likeliest first.
    fn filter(&mut self, logits: &[f32], peak: f32) {
        let Sampling {
            temperature,
            top_k,
            top_p,
            min_p,
            ..
        } = self.sampling;
        let scale = Scale {
            peak,
            inverse_temperature: temperature.recip(),
        };
        let limited = top_k > 0 && top_k < logits.len();
        let nucleus = top_p < 1.0;
        let floor = if min_p > 0.0 {
            min_p.min(1.0).ln()
        } else {
            -NEGLIGIBLE
        };
        // Without top-k the nucleus is a share of the whole vocabulary.
        let total = if nucleus && !limited {
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
                !nucleus || mass(&self.candidates) >= top_p * total
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
            let total = if limited {
                mass(&self.candidates)
            } else {
                total
            };
            self.truncate_nucleus(top_p * total);
        }
        if limited || nucleus {
            self.candidates.sort_unstable_by(likelier);
        }
    }

    /// Keeps the fewest of the likeliest candidates whose weights add up to at least `least`.
    fn truncate_nucleus(&mut self, least: f32) {
        /// Up to this number, sorting is faster than another partition.
        const FEW: usize = 32;
        // Candidates before `low` stay, with the total weight `sum`; those from `high` on are dropped.
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

    fn draw(&self, u: f64) -> Option<u32> {
        let total: f64 = self
            .candidates
            .iter()
            .map(|candidate| f64::from(candidate.weight))
            .sum();
        let mut left = u * total;
        for candidate in &self.candidates {
            left -= f64::from(candidate.weight);
            if left < 0.0 {
                return Some(candidate.id);
            }
        }
        self.candidates.last().map(|candidate| candidate.id)
    }
}

/// Prevents `ids` from being sampled from these logits.
pub(crate) fn suppress(logits: &mut [f32], ids: &[u32]) {
    for &id in ids {
        if let Some(logit) = logits.get_mut(id as usize) {
            *logit = f32::NEG_INFINITY;
        }
    }
}

/// The likeliest first; ties by id, so that the order is the same everywhere.
fn likelier(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

fn mass(candidates: &[Candidate]) -> f32 {
    candidates.iter().map(|candidate| candidate.weight).sum()
}

/// Logits per iteration, so that the compiler uses whole vectors on any machine.
const LANES: usize = 16;

/// Logits relative to the largest, divided by the temperature.
#[derive(Clone, Copy)]
struct Scale {
    peak: f32,
    inverse_temperature: f32,
}

impl Scale {
    fn of(self, logit: f32) -> f32 {
        (logit - self.peak) * self.inverse_temperature
    }

    /// The total weight of the whole vocabulary.
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
            // Most chunks have none: one test of all lanes costs less than a test of each.
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
fn first_with(logits: &[f32], peak: f32) -> Option<u32> {
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
    // Unlike `f32::max`, a comparison is one instruction; NaN gets no weight.
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
mod tests;
