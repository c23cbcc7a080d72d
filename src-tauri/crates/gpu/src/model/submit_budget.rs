//! Amount of work in one submit: little enough that the desktop keeps drawing and no driver resets the device, however
//! slow it is.

use std::time::Duration;

use crate::plan::tiling::MIN_PASS_TOKENS;

/// Time that one submit may take: half of a frame at 60 Hz.
const SUBMIT_LIMIT: Duration = Duration::from_millis(8);

/// The measured speed of a device, and the amount of work that fits in a submit. Work is counted in multiply–adds.
#[derive(Default)]
pub(crate) struct SubmitBudget {
    /// Seconds of one multiply–add; `None` before the first measurement.
    seconds: Option<f64>,
}

impl SubmitBudget {
    /// Records the time that `work` multiply–adds took.
    pub(crate) fn record(&mut self, work: f64, took: Duration) {
        if work > 0.0 {
            let now = took.as_secs_f64() / work;
            // A slower device counts at once, a faster one gradually.
            self.seconds = Some(match self.seconds {
                Some(before) if now < before => 0.8 * before + 0.2 * now,
                _ => now,
            });
        }
    }

    /// Number of pieces of `work` multiply–adds each that fit in one submit; 1 before the first measurement.
    pub(crate) fn pieces(&self, work: f64) -> usize {
        let fits = self
            .seconds
            .map_or(1.0, |seconds| SUBMIT_LIMIT.as_secs_f64() / (seconds * work));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and a thousand"
        )]
        {
            fits.clamp(1.0, 1000.0) as usize
        }
    }

    /// Tokens of a pass whose smallest piece takes `work` multiply–adds a token.
    pub(crate) fn tokens(&self, work: f64) -> usize {
        let tiles = self.pieces(work * MIN_PASS_TOKENS as f64);
        tiles * MIN_PASS_TOKENS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submit_holds_what_the_device_does_within_the_limit() {
        let mut budget = SubmitBudget::default();
        assert_eq!((budget.pieces(1e9), budget.tokens(1e9)), (1, 64));
        budget.record(1e9, Duration::from_millis(1));
        assert_eq!((budget.pieces(1e9), budget.pieces(1e11)), (8, 1));
        assert_eq!((budget.tokens(1e6), budget.tokens(3e7)), (8000, 256));
        budget.record(1e9, Duration::from_millis(100));
        assert_eq!(budget.pieces(1e9), 1);
    }
}
