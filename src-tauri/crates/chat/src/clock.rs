//! The time of day, which tests set themselves.

use jiff::ZonedDateTime;

/// Tells the time where the user is.
pub trait Clock: Send {
    /// Now, in local time.
    fn now(&self) -> ZonedDateTime;
}

/// The system's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> ZonedDateTime {
        ZonedDateTime::now()
    }
}
