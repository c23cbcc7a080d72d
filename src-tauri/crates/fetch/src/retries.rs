//! How long the network is waited for, and how often a connection is tried.

use std::time::Duration;

/// Tries without a further byte until a download fails, once the server has answered.
const TRIES: u32 = 8;
/// The same before it ever has: nobody waits for an address that does not exist.
const FIRST_TRIES: u32 = 3;
/// Units between two tries, at most.
const LONGEST_PAUSE: u32 = 30;
/// A server that wants to be left alone for longer is not waited for, in units.
const LONGEST_RETRY_AFTER: u32 = 120;
/// Tests set it to a number of milliseconds: the unit of all times, in place of a second.
const UNIT: &str = "GOLDCREST_FETCH_UNIT";

/// Counts tries that brought nothing.
#[derive(Debug)]
pub struct Retries {
    failed: u32,
    most: u64,
    has_answered: bool,
}

impl Retries {
    /// For a download that begins with this number of bytes.
    pub fn new(done: u64) -> Self {
        Self {
            failed: 0,
            most: done,
            has_answered: false,
        }
    }

    /// How long to wait before the next try, or `None` where it is given up. `done` are the bytes that are there, and
    /// `retry_after` what the server asked for, in units.
    pub fn next(
        &mut self,
        done: u64,
        has_answered: bool,
        retry_after: Option<u32>,
    ) -> Option<Duration> {
        self.has_answered |= has_answered;
        if done > self.most {
            self.has_answered = true;
            self.most = done;
            self.failed = 0;
        }
        self.failed += 1;
        let tries = if self.has_answered {
            TRIES
        } else {
            FIRST_TRIES
        };
        let pause = 1_u32 << (self.failed - 1).min(5);
        let pause = retry_after.unwrap_or(0).max(pause.min(LONGEST_PAUSE));
        (self.failed < tries && pause <= LONGEST_RETRY_AFTER).then(|| units(pause))
    }
}

/// This number of seconds, in a test less.
pub fn units(number: u32) -> Duration {
    let unit = if cfg!(debug_assertions) {
        let set = std::env::var(UNIT).ok();
        set.and_then(|it| it.parse().ok())
    } else {
        None
    };
    number * unit.map_or(Duration::from_secs(1), Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_without_a_byte_end_and_a_byte_begins_again() {
        let mut retries = Retries::new(10);
        let first = (0..20).take_while(|_| retries.next(10, false, None).is_some());
        assert_eq!(first.count(), 2);
        let mut retries = Retries::new(0);
        for done in 1..100 {
            let pause = retries.next(done, true, None);
            assert_eq!(pause, Some(Duration::from_secs(1)), "{done}");
        }
        let pauses: Vec<u64> = std::iter::from_fn(|| retries.next(99, true, None))
            .map(|pause| pause.as_secs())
            .collect();
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30]);
        // Bytes that were lost and came again are no progress.
        assert_eq!(retries.next(50, true, None), None);
    }

    #[test]
    fn a_server_is_left_alone_as_long_as_it_asks_for_within_bounds() {
        let next = |seconds| Retries::new(0).next(0, true, Some(seconds));
        assert_eq!(next(20), Some(Duration::from_secs(20)));
        assert_eq!(next(0), Some(Duration::from_secs(1)));
        assert_eq!(next(3600), None);
    }
}
