//! Progress of prefill, with an estimate of the time left.

use std::time::{Duration, Instant};

/// Progress of a prefill, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Tokens in the cache.
    pub done: usize,
    /// Tokens of the prompt.
    pub total: usize,
    /// Tokens that were in the cache before.
    pub cached: usize,
    /// Estimated time for the rest, once a rate was measured.
    pub left: Option<Duration>,
}

/// Measures the prefill rate.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ReadingRate {
    /// Start of the current prefill, and the tokens that were in the cache then.
    began: Option<(Instant, usize)>,
    /// Tokens per second, of this prompt or the one before.
    per_second: Option<f64>,
}

impl ReadingRate {
    /// Returns the rate for the next prompt.
    pub fn restarted(self) -> ReadingRate {
        ReadingRate {
            began: None,
            ..self
        }
    }

    /// Records that `done` of `total` tokens are in the cache now, `cached` of which were there before.
    pub fn progress(&mut self, at: Instant, done: usize, total: usize, cached: usize) -> Reading {
        // Until then the cache is being restored.
        let (began, first) = match self.began.filter(|_| done > cached) {
            Some(began) => began,
            None => *self.began.insert((at, done)),
        };
        let seconds = at.saturating_duration_since(began).as_secs_f64();
        if done > first && seconds > 0.0 {
            self.per_second = Some((done - first) as f64 / seconds);
        }
        let left = |rate: f64| (total.saturating_sub(done)) as f64 / rate;
        Reading {
            done,
            total,
            cached,
            left: self
                .per_second
                .and_then(|rate| Duration::try_from_secs_f64(left(rate)).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_measured_rate() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut rate = ReadingRate::default();
        let left = |reading: Reading| reading.left.map(|left| left.as_secs());
        // 1,000 cached tokens say nothing about the rate.
        assert_eq!(left(rate.progress(after(0), 500, 2000, 500)), None);
        assert_eq!(left(rate.progress(after(0), 1000, 2000, 1000)), None);
        assert_eq!(left(rate.progress(after(2), 1200, 2000, 1000)), Some(8));
        assert_eq!(left(rate.progress(after(10), 1400, 2000, 1000)), Some(15));
        // The next prompt begins with the rate of the last one.
        rate = rate.restarted();
        assert_eq!(left(rate.progress(after(60), 0, 400, 0)), Some(10));
        assert_eq!(left(rate.progress(after(61), 200, 400, 0)), Some(1));
        assert_eq!(left(rate.progress(after(62), 400, 400, 0)), Some(0));
    }
}
