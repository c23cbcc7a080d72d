//! The time of day.

use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

/// Returns the local time by the system's clock. A time beyond the year 9999 is clamped: jiff's own `now` panics.
#[must_use]
pub fn now() -> ZonedDateTime {
    local(SystemTime::now())
}

fn local(time: SystemTime) -> ZonedDateTime {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
    time.to_zoned_datetime(TimeZone::system())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_clock_beyond_the_year_9999_shows_its_end() {
        let year = |seconds| {
            local(UNIX_EPOCH + Duration::from_secs(seconds))
                .date()
                .year()
        };
        assert_eq!(year(1_772_712_000), 2026);
        for seconds in [253_402_300_800, 1 << 40, 1 << 62] {
            assert_eq!(year(seconds), 9999);
        }
    }
}
