//! Distance between two sets of logits.

use serde::{Deserialize, Serialize};

/// Distance of logits from those that they are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distance {
    /// Root mean square of the difference over the root mean square of the other logits.
    pub relative_error: f64,
    /// Mean Kullback–Leibler divergence from the other distribution, in nats.
    pub mean_kl: f64,
    /// Share of the positions at which the likeliest token is the same, from 0 to 1.
    pub top1: f64,
}

impl Distance {
    /// Returns the distance of logits `[positions][vocab]` from others of the same shape.
    pub fn between(logits: &[Vec<f32>], others: &[Vec<f32>]) -> Distance {
        let mut sum = DistanceSum::default();
        for (logits, others) in logits.iter().zip(others) {
            sum.add(logits, others);
        }
        sum.distance()
    }
}

/// Running sum of a [`Distance`], position by position.
#[derive(Clone, Copy, Debug, Default)]
pub struct DistanceSum {
    error: f64,
    norm: f64,
    kl: f64,
    same: usize,
    positions: usize,
}

impl DistanceSum {
    /// Adds the logits `[vocab]` of one position and those that they are compared with.
    pub fn add(&mut self, logits: &[f32], others: &[f32]) {
        for (&a, &b) in logits.iter().zip(others) {
            self.error += f64::from(a - b).powi(2);
            self.norm += f64::from(b).powi(2);
        }
        self.kl += divergence(&log_softmax(others), &log_softmax(logits));
        self.same += usize::from(TopToken::of(logits).id == TopToken::of(others).id);
        self.positions += 1;
    }

    /// Returns the distance so far; NaN if there is no position, or a logit is NaN or infinite.
    pub fn distance(&self) -> Distance {
        let positions = self.positions as f64;
        Distance {
            relative_error: (self.error / self.norm).sqrt(),
            mean_kl: self.kl / positions,
            top1: self.same as f64 / positions,
        }
    }
}

/// The likeliest token of a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopToken {
    /// Its id.
    pub id: u32,
    /// Its probability at temperature 1.
    pub probability: f64,
}

impl TopToken {
    /// Returns the likeliest token by logits `[vocab]`, the last one of a tie.
    pub fn of(logits: &[f32]) -> TopToken {
        let ids = 0u32..;
        let likeliest = ids.zip(logits).max_by(|(_, a), (_, b)| a.total_cmp(b));
        let (id, &top) = likeliest.unwrap_or((0, &f32::NAN));
        let sum: f64 = logits.iter().map(|&it| f64::from(it - top).exp()).sum();
        TopToken {
            id,
            probability: 1.0 / sum,
        }
    }
}

/// Returns the log-probabilities of logits `[vocab]`.
pub fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let peak = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let shifted = logits.iter().map(|&logit| f64::from(logit - peak));
    let log_sum = shifted.clone().map(f64::exp).sum::<f64>().ln();
    shifted.map(|logit| logit - log_sum).collect()
}

/// Returns the Kullback–Leibler divergence of `q` from `p`, both as logarithms.
fn divergence(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(p, q)| p.exp() * (p - q)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_logits_are_not_apart() {
        let logits = [vec![0.5, -1.0, 3.0], vec![2.0, 1.0, 0.0]];
        let distance = Distance::between(&logits, &logits);
        assert_eq!((distance.relative_error, distance.top1), (0.0, 1.0));
        assert!(distance.mean_kl.abs() < 1e-15);
    }

    #[test]
    fn a_distance_is_what_its_definition_says() {
        // Probabilities 1/2 and 1/2 against 3/4 and 1/4.
        let (even, odd) = (vec![0.0, 0.0], vec![3f32.ln(), 0.0]);
        let distance = Distance::between(&[even], &[odd]);
        let kl = 0.75 * (0.75f64 / 0.5).ln() + 0.25 * (0.25f64 / 0.5).ln();
        assert!((distance.mean_kl - kl).abs() < 1e-7, "{distance:?}");
        assert!((distance.relative_error - 1.0).abs() < 1e-7);
        // In a tie the last one is taken.
        assert_eq!(distance.top1, 0.0);
    }

    #[test]
    fn what_is_not_finite_is_close_to_nothing() {
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let distance = Distance::between(&[vec![wrong, 1.0]], &[vec![0.0, 1.0]]);
            assert!(!distance.relative_error.is_finite(), "{distance:?}");
        }
        assert!(Distance::between(&[], &[]).relative_error.is_nan());
    }

    #[test]
    fn the_likeliest_token_has_its_probability() {
        let top = TopToken::of(&[0.0, 3f32.ln(), f32::NEG_INFINITY]);
        assert_eq!(top.id, 1);
        assert!((top.probability - 0.75).abs() < 1e-7);
        assert!(
            TopToken::of(&[]).probability.is_infinite() || TopToken::of(&[]).probability.is_nan()
        );
    }
}
