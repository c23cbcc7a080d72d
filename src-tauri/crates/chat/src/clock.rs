//! The time of day, which tests set themselves.

use jiff::ZonedDateTime;
pub use tools::now;

/// Clock with the user's time zone.
pub trait Clock: Send {
    /// Returns the local time.
    fn now(&self) -> ZonedDateTime;
}

/// The system's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> ZonedDateTime {
        now()
    }
}
