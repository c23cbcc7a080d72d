//! How much work goes to the device at once: little enough that the desktop keeps drawing and no driver loses
//! patience, whatever the card.

use std::time::Duration;

/// What one submit may take: half of a frame at 60 a second.
const LIMIT: Duration = Duration::from_millis(8);
/// Tokens of a pass, at least and at most.
const LEAST_TOKENS: usize = 64;
pub(crate) const MOST_TOKENS: usize = 512;

/// Seconds that work has taken on this device.
#[derive(Default)]
pub(crate) struct SubmitBudget {
    /// For a unit, which is a product of a weight, or of two activations, and a sum.
    seconds: Option<f64>,
}

impl SubmitBudget {
    /// So much took so long.
    pub(crate) fn learn(&mut self, units: f64, took: Duration) {
        if units > 0.0 {
            let now = took.as_secs_f64() / units;
            // What is slower counts at once, what is faster slowly.
            self.seconds = Some(match self.seconds {
                Some(before) if now < before => 0.8 * before + 0.2 * now,
                _ => now,
            });
        }
    }

    /// How many pieces of so many units each may go at once; one until it is known how long they take.
    pub(crate) fn pieces(&self, units: f64) -> usize {
        let fits = self
            .seconds
            .map_or(1.0, |seconds| LIMIT.as_secs_f64() / (seconds * units));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and a thousand"
        )]
        {
            fits.clamp(1.0, 1000.0) as usize
        }
    }

    /// Tokens of a pass whose smallest piece takes `units` a token.
    pub(crate) fn tokens(&self, units: f64) -> usize {
        let tiles = self.pieces(units * LEAST_TOKENS as f64);
        (tiles * LEAST_TOKENS).min(MOST_TOKENS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_cut_to_what_the_device_does_in_time() {
        let mut pace = SubmitBudget::default();
        assert_eq!((pace.pieces(1e9), pace.tokens(1e9)), (1, 64));
        pace.learn(1e9, Duration::from_millis(1));
        assert_eq!((pace.pieces(1e9), pace.pieces(1e11)), (8, 1));
        assert_eq!((pace.tokens(1e6), pace.tokens(3e7)), (512, 256));
        pace.learn(1e9, Duration::from_millis(100));
        assert_eq!(pace.pieces(1e9), 1);
    }
}
