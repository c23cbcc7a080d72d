//! A clock that stands still, and one that goes on when it is looked at.

use std::sync::atomic::{AtomicI64, Ordering};

use chat::Clock;

pub struct FixedClock(pub &'static str);

impl Clock for FixedClock {
    fn now(&self) -> jiff::Zoned {
        self.0.parse().unwrap()
    }
}

/// Each time it is looked at, a second has gone by.
#[derive(Default)]
pub struct SteppingClock(AtomicI64);

impl Clock for SteppingClock {
    fn now(&self) -> jiff::Zoned {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        let begin: jiff::Zoned = TODAY.parse().unwrap();
        begin
            .checked_add(jiff::Span::new().seconds(seconds))
            .unwrap()
    }
}

pub const TODAY: &str = "2026-03-05T12:00:00+00:00[UTC]";
