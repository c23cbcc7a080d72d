//! Retry policy: time limits of the network, and numbers of attempts.

use std::time::Duration;

use crate::test_setting::test_setting;

/// Attempts that reach the server and bring no further byte, until a download fails.
const TRIES: u32 = 8;
/// Attempts to reach a server that never answered: nobody waits for an address that does not exist.
const FIRST_TRIES: u32 = 3;
/// Attempts to reach a server that has sent bytes of the file: for an hour, in which a network may come back.
const UNREACHABLE_TRIES: u32 = 126;
/// Maximum pause between two attempts, in units.
const LONGEST_PAUSE: u32 = 30;
/// Longest pause requested by a server that is granted, in units.
const LONGEST_RETRY_AFTER: u32 = 120;
/// Setting of tests in milliseconds: the unit of all times, in place of a second.
const UNIT: &str = "GOLDCREST_FETCH_UNIT";

/// Counter of attempts without progress.
#[derive(Debug)]
pub struct Retries {
    /// Attempts that reached the server.
    failed: u32,
    unreachable: u32,
    most: u64,
}

impl Retries {
    /// Makes a counter for a download that begins with this number of bytes.
    pub fn new(done: u64) -> Self {
        Self {
            failed: 0,
            unreachable: 0,
            most: done,
        }
    }

    /// Returns the pause before the next attempt; `None` to give up. `done` are the bytes received, and `retry_after`
    /// the pause that the server requests, in units.
    pub fn next(
        &mut self,
        done: u64,
        has_answered: bool,
        retry_after: Option<u32>,
    ) -> Option<Duration> {
        if done > self.most {
            *self = Self::new(done);
        }
        let (failed, tries) = match (has_answered, self.most, self.failed) {
            (true, _, _) => (&mut self.failed, TRIES),
            (false, 0, 0) => (&mut self.unreachable, FIRST_TRIES),
            (false, 0, _) => (&mut self.unreachable, TRIES),
            (false, _, _) => (&mut self.unreachable, UNREACHABLE_TRIES),
        };
        *failed += 1;
        let pause = 1_u32 << (*failed - 1).min(5);
        let pause = retry_after.unwrap_or(0).max(pause.min(LONGEST_PAUSE));
        (*failed < tries && pause <= LONGEST_RETRY_AFTER).then(|| units(pause))
    }
}

/// Returns this number of seconds, less in a test.
pub fn units(number: u32) -> Duration {
    number * test_setting(UNIT).map_or(Duration::from_secs(1), Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_without_a_byte_end_and_a_byte_begins_again() {
        let mut retries = Retries::new(0);
        let first = (0..20).take_while(|_| retries.next(0, false, None).is_some());
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
        // Bytes that were lost and received again are no progress.
        assert_eq!(retries.next(50, true, None), None);
    }

    #[test]
    fn a_network_that_is_gone_is_waited_for_an_hour_once_bytes_have_come() {
        let hour = Duration::from_secs(3600);
        let wait = |retries: &mut Retries| -> Duration {
            std::iter::from_fn(|| retries.next(10, false, None)).sum()
        };
        // A resume has them already.
        let mut retries = Retries::new(10);
        let waited = wait(&mut retries);
        assert!(waited > hour && waited < hour + hour / 20, "{waited:?}");
        let mut retries = Retries::new(0);
        assert!(retries.next(10, true, None).is_some());
        for _ in 0..50 {
            assert!(retries.next(10, false, None).is_some());
        }
        // A server that is reachable again and sends nothing is given up as before, and a byte resets the counter.
        assert_eq!(retries.next(10, true, None), Some(Duration::from_secs(2)));
        assert_eq!(retries.next(11, false, None), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_server_is_left_alone_as_long_as_it_asks_for_within_bounds() {
        let next = |seconds| Retries::new(0).next(0, true, Some(seconds));
        assert_eq!(next(20), Some(Duration::from_secs(20)));
        assert_eq!(next(0), Some(Duration::from_secs(1)));
        assert_eq!(next(3600), None);
    }
}
