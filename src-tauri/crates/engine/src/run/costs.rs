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

fn lower_with_drift(before: Option<f64>, now: f64) -> f64 {
    before.map_or(now, |before| now.min(DRIFT * before))
}
