//! Daily work, scheduled by the date: a clock that counts seconds stops while the computer sleeps.

use std::time::{Duration, Instant};

use jiff::civil::Date;

/// Maximum interval between two checks of the date while nothing happens.
const LOOK_AFTER: Duration = Duration::from_secs(10 * 60);

pub(crate) struct Daily {
    /// Earliest time.
    from: Instant,
    /// Day for which it was done last.
    done: Option<Date>,
}

impl Daily {
    /// Schedules work after this delay.
    pub fn after(wait: Duration) -> Daily {
        Daily {
            from: Instant::now() + wait,
            done: None,
        }
    }

    pub fn is_due(&self, today: Date) -> bool {
        self.from <= Instant::now() && self.done != Some(today)
    }

    /// Returns the time of the next check.
    pub fn due(&self) -> Instant {
        match self.done {
            Some(_) => Instant::now() + LOOK_AFTER,
            None => self.from,
        }
    }

    pub fn done_for(&mut self, day: Date) {
        self.done = Some(day);
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn it_is_due_once_for_each_date_whichever_comes_next() {
        let mut daily = Daily::after(Duration::ZERO);
        for day in [date(2026, 3, 5), date(2026, 3, 6), date(2026, 3, 1)] {
            assert!(daily.is_due(day));
            daily.done_for(day);
            assert!(!daily.is_due(day));
            let pause = daily.due().saturating_duration_since(Instant::now());
            assert!(pause > LOOK_AFTER / 2, "an idle app does nothing");
        }
        let later = Daily::after(LOOK_AFTER);
        assert!(!later.is_due(date(2026, 3, 7)));
    }
}
