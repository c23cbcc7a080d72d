//! The measured cost of a pass over a few tokens.

/// Tokens of the drafts that are made; a pass over a draft reads one token more.
pub(crate) const DRAFTS: [usize; 3] = [1, 3, 7];

/// How many times as long as over one token a pass over draft `i` takes where memory bandwidth is the only limit.
pub(crate) fn assumed_ratio(i: usize) -> f64 {
    1.0 + 0.06 * DRAFTS[i] as f64
}

/// What disturbs a measurement makes it longer, so that the shortest counts; and by this factor it is held to be out
/// of date with every measurement that comes after it.
const DRIFT: f64 = 1.05;

/// The passes of a session, answer after answer.
#[derive(Debug, Default)]
pub(crate) struct PassCosts {
    /// Seconds for one token.
    single: Option<f64>,
    /// How many times as long each draft takes.
    ratios: [Option<f64>; DRAFTS.len()],
}

impl PassCosts {
    /// Takes record that a pass over so many tokens has taken so long.
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

    /// How many times as long as over one token a pass over draft `i` takes. Before there was one, the next shorter
    /// one tells what a token adds; where there is none, all but the shortest are feared to save nothing at all.
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

fn lower_with_drift(before: Option<f64>, now: f64) -> f64 {
    before.map_or(now, |before| now.min(DRIFT * before))
}
