//! The measured cost of a pass over a few tokens.

/// Lengths of drafts in tokens; a pass over a draft evaluates one token more.
pub(crate) const DRAFTS: [usize; 3] = [1, 3, 7];

/// Expected cost of a pass over draft `i`, in single-token passes, if memory bandwidth is the only limit.
pub(crate) fn assumed_ratio(i: usize) -> f64 {
    1.0 + 0.06 * DRAFTS[i] as f64
}

/// Growth of the shortest measured time with every later measurement. Disturbances only lengthen a measurement, so that
/// the shortest counts; the growth adapts it to a machine that has become slower.
const DRIFT: f64 = 1.05;

/// Measured costs of the passes of a session.
#[derive(Debug, Default)]
pub(crate) struct PassCosts {
    /// Seconds of a single-token pass.
    single: Option<f64>,
    /// Cost of each draft, in single-token passes.
    ratios: [Option<f64>; DRAFTS.len()],
}

impl PassCosts {
    /// Records the time of a pass over this number of tokens.
    pub fn record(&mut self, tokens: usize, seconds: f64) {
        if tokens == 1 {
            self.single = Some(lower_with_drift(self.single, seconds));
        } else if let Some(single) = self.single
            && let Some(i) = DRAFTS.iter().position(|draft| draft + 1 == tokens)
        {
            self.ratios[i] = Some(lower_with_drift(
                self.ratios[i],
                (seconds / single).max(1.0),
            ));
        }
    }

    /// Cost of a pass over draft `i`, in single-token passes. Without a measurement it is extrapolated from the next
    /// shorter one; without any, all but the shortest are assumed to save nothing.
    pub fn ratio(&self, i: usize) -> f64 {
        let shorter = || (0..i).rev().find_map(|j| Some((j, self.ratios[j]?)));
        match (self.ratios[i], shorter()) {
            (Some(ratio), _) => ratio,
            (None, Some((j, ratio))) => 1.0 + (ratio - 1.0) * DRAFTS[i] as f64 / DRAFTS[j] as f64,
            (None, None) if i == 0 => assumed_ratio(0),
            (None, None) => 1.0 + DRAFTS[i] as f64,
        }
    }
}

/// Largest pass for several requests whose time counts.
const LARGEST_SHARED: usize = 8;

/// Measured times of the small passes for several requests, in seconds, by their number of tokens.
#[derive(Debug, Default)]
pub(crate) struct SharedCosts([Option<f64>; LARGEST_SHARED + 1]);

impl SharedCosts {
    /// Records the time of a pass over this number of tokens.
    pub fn record(&mut self, tokens: usize, seconds: f64) {
        if let Some(cost) = self.0.get_mut(tokens) {
            *cost = Some(lower_with_drift(*cost, seconds));
        }
    }

    /// Returns the number of tokens of a prompt to read beside `answers` answers, `free` at most, so that these keep a
    /// share `kept` of their speed; at least one. A size without a measurement is tried.
    pub fn tokens_beside(&mut self, answers: usize, free: usize, kept: f64) -> usize {
        /// A size that is too slow is tried again after a while.
        const FORGOTTEN: f64 = 0.999;
        let known = self.0.iter().take(answers + 1).rev().flatten();
        let Some(most) = known.copied().next().map(|alone| alone / kept) else {
            return free;
        };
        for tokens in (2..=free).rev() {
            match self.0.get_mut(answers + tokens) {
                Some(Some(cost)) if *cost > most => *cost *= FORGOTTEN,
                _ => return tokens,
            }
        }
        free.min(1)
    }
}

fn lower_with_drift(before: Option<f64>, now: f64) -> f64 {
    before.map_or(now, |before| now.min(DRIFT * before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_beside_answers_has_as_many_tokens_as_leave_them_their_speed() {
        let mut costs = SharedCosts::default();
        assert_eq!(costs.tokens_beside(1, 7, 0.6), 7, "nothing is known");
        costs.record(1, 1.0);
        costs.record(8, 2.0);
        assert_eq!(costs.tokens_beside(1, 7, 0.6), 6, "eight are too many");
        for (tokens, seconds) in [(7, 1.8), (6, 1.6), (4, 1.2)] {
            costs.record(tokens, seconds);
        }
        assert_eq!(costs.tokens_beside(1, 7, 0.6), 5);
        assert_eq!(costs.tokens_beside(1, 7, 0.4), 7);
        assert_eq!(costs.tokens_beside(4, 4, 0.7), 2);
        assert_eq!(costs.tokens_beside(7, 1, 0.99), 1, "it goes on");
        assert_eq!(costs.tokens_beside(8, 0, 0.6), 0);
        let later = (0..1000).find(|_| costs.tokens_beside(1, 7, 0.6) == 7);
        assert!(later.is_some_and(|n| n > 100), "{later:?}");
    }
}
