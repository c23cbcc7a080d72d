//! Clocks: one that stands still, one that a test sets, one that advances when it is read; and the timing of the tests.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chat::{Clock, Timing};

pub struct FixedClock(pub &'static str);

impl Clock for FixedClock {
    fn now(&self) -> jiff::ZonedDateTime {
        self.0.parse().unwrap()
    }
}

/// Clock that a test sets.
#[derive(Clone)]
pub struct SetClock(Arc<Mutex<jiff::ZonedDateTime>>);

impl SetClock {
    pub fn at(now: &str) -> SetClock {
        SetClock(Arc::new(Mutex::new(now.parse().unwrap())))
    }

    pub fn set(&self, now: &str) {
        *self.0.lock().unwrap() = now.parse().unwrap();
    }
}

impl Clock for SetClock {
    fn now(&self) -> jiff::ZonedDateTime {
        self.0.lock().unwrap().clone()
    }
}

/// Clock that advances by a second with each reading.
#[derive(Default)]
pub struct SteppingClock(AtomicI64);

impl Clock for SteppingClock {
    fn now(&self) -> jiff::ZonedDateTime {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        let begin: jiff::ZonedDateTime = TODAY.parse().unwrap();
        begin
            .checked_add(jiff::Span::new().seconds(seconds))
            .unwrap()
    }
}

pub const TODAY: &str = "2026-03-05T12:00:00+00:00[UTC]";

/// No copies, and no long waits.
pub const TIMING: Timing = Timing {
    purge_after: Duration::ZERO,
    copy_after: Duration::from_secs(3600),
    journal_after: Duration::from_millis(250),
    retry_after: Duration::from_millis(20),
    minute: Duration::from_secs(3600),
    idle_after: Duration::from_millis(20),
    close_within: Duration::from_secs(5),
};
