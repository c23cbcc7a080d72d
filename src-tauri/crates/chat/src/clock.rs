//! The time of day, which tests set themselves.

use jiff::Zoned;

/// Tells the time where the user is.
pub trait Clock: Send {
    /// Now, in local time.
    fn now(&self) -> Zoned;
}

/// The system's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Zoned {
        Zoned::now()
    }
}
