//! Time in the bin. A clock may be wrong by years for a while: deleted items must be neither lost because of that nor
//! kept forever.
//!
//! The clock is read whenever something is deleted or purged, and the store keeps the last two readings that are far
//! enough apart.
//!
//! - Only items that had expired at the reading before the last are purged. A clock that is ahead at one start purges
//!   nothing.
//! - Between two readings at most a week passes. If the clock advanced by more, the dates in the bin move with it: it
//!   may have been wrong, now or at the deletion.
//! - A date in the future becomes today's.

use serde::{Deserialize, Serialize};
use store::{Store, StoreError};

/// Seconds for which deleted items can be restored.
pub(crate) const BIN: i64 = 30 * 24 * 60 * 60;

/// Row of the clock readings.
const SIGHTINGS: &str = "app.clock";

/// Minimum seconds between two readings: those of the same start do not confirm one another.
const APART: i64 = 12 * 60 * 60;
/// Maximum seconds that pass between two readings.
const MOST: i64 = 7 * 24 * 60 * 60;

/// Seconds for which deleted items of temporary chats stay in memory.
const IN_MEMORY: i64 = 24 * 60 * 60;

/// Clock readings, in Unix seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Sightings {
    last: i64,
    /// Reading before the last, at least [`APART`] earlier.
    before: Option<i64>,
}

impl Sightings {
    /// Returns the readings after one more, and the shift of the dates in the bin.
    fn after(sightings: Option<Sightings>, now: i64) -> (Sightings, Option<i64>) {
        let Some(Sightings { last, before }) = sightings else {
            let before = None;
            return (Sightings { last: now, before }, None);
        };
        let passed = now.saturating_sub(last);
        if passed >= APART {
            let moved = (passed - MOST).max(0);
            let before = Some(last + moved);
            return (Sightings { last: now, before }, Some(moved));
        }
        if passed > -APART {
            return (Sightings { last, before }, None);
        }
        // It was ahead then, or is behind now.
        let before = before.map(|before| before.min(now));
        (Sightings { last: now, before }, None)
    }

    /// Returns the cutoff: items deleted before this time have expired.
    fn expired(self) -> i64 {
        // Values below 1 are no dates.
        self.before.map_or(1, |before| (before - BIN).max(1))
    }
}

/// Returns the date of a deletion now.
pub(crate) fn deletion_date(store: &Store, now: i64) -> i64 {
    sight_clock(store, now);
    date(now)
}

/// Returns the cutoff: items deleted before this time are purged.
pub(crate) fn cutoff(store: &Store, now: i64) -> i64 {
    sight_clock(store, now).map_or(1, Sightings::expired)
}

/// Returns the cutoff of temporary chats, which only undo restores.
pub(crate) fn cutoff_in_memory(now: i64) -> i64 {
    (date(now) - IN_MEMORY).max(1)
}

/// Returns a date; values below 1 are none.
fn date(now: i64) -> i64 {
    now.max(1)
}

fn sight_clock(store: &Store, now: i64) -> Option<Sightings> {
    sighted(store, date(now))
        .inspect_err(|error| tracing::warn!(%error, "the clock of the bin was not kept"))
        .ok()
}

fn sighted(store: &Store, now: i64) -> Result<Sightings, StoreError> {
    let row = store.settings().get(SIGHTINGS)?;
    let known = row.and_then(|row| serde_json::from_value::<Sightings>(row).ok());
    let (sightings, moved) = Sightings::after(known, now);
    if known == Some(sightings) {
        return Ok(sightings);
    }
    let row = serde_json::json!(sightings);
    store.transaction(|store| {
        if let Some(by) = moved {
            store.chats().move_deleted(by, now)?;
            store.messages().move_deleted(by, now)?;
        }
        store.settings().set(SIGHTINGS, &row)
    })?;
    Ok(sightings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 60 * 60;
    const NOW: i64 = 20_000 * DAY;

    /// Returns whether an item deleted at this time is purged at the last of these readings.
    fn is_purged(deleted: i64, sightings: &[i64]) -> bool {
        let (mut date, mut known) = (deleted, None);
        let mut purged = false;
        for now in sightings {
            let (next, moved) = Sightings::after(known, *now);
            known = Some(next);
            if let Some(by) = moved {
                date = (date + by).min(*now);
            }
            purged |= date < next.expired();
        }
        purged
    }

    fn every(days: i64, until: i64) -> Vec<i64> {
        (0..=until / days).map(|at| NOW + at * days * DAY).collect()
    }

    #[test]
    fn what_is_deleted_is_purged_after_30_days() {
        for days in [1, 2, 7] {
            assert!(!is_purged(NOW, &every(days, 30)), "every {days} days");
            assert!(is_purged(NOW, &every(days, 45)), "every {days} days");
        }
        // With regular use it is seldom kept longer, and never forever.
        assert!(!is_purged(NOW, &every(60, 120)));
        assert!(is_purged(NOW, &every(60, 360)));
    }

    #[test]
    fn a_clock_that_is_ahead_at_one_start_purges_nothing() {
        for ahead in [1, 5, 31, 400, 100_000] {
            for (deleted, days) in [(0, 1), (20, 1), (29, 7)] {
                let mut starts = every(days, 28);
                starts.push(NOW + (28 + ahead) * DAY);
                // Again within that start.
                starts.push(NOW + (28 + ahead) * DAY + 60);
                starts.push(NOW + 28 * DAY + 60);
                starts.push(NOW + 29 * DAY);
                assert!(
                    !is_purged(NOW + deleted * DAY, &starts),
                    "{ahead} days ahead, deleted on day {deleted}"
                );
                let later = (30..90).map(|day| NOW + day * DAY);
                starts.extend(later);
                assert!(is_purged(NOW + deleted * DAY, &starts), "but later");
            }
        }
    }

    #[test]
    fn a_clock_that_was_behind_when_it_was_deleted_leaves_it_most_of_its_time() {
        for behind in [31, 3650, 19_999] {
            let wrong = NOW - behind * DAY;
            let days = |until| (0..until).map(|day| NOW + day * DAY);
            // Also if the clock was right before.
            for first in [vec![wrong], vec![NOW - DAY, wrong]] {
                let starts: Vec<_> = first.iter().copied().chain(days(22)).collect();
                assert!(!is_purged(wrong, &starts), "{behind} days behind");
                let starts: Vec<_> = first.into_iter().chain(days(40)).collect();
                assert!(is_purged(wrong, &starts), "{behind} days behind");
            }
        }
    }

    #[test]
    fn a_clock_that_was_ahead_when_it_was_deleted_does_not_keep_it() {
        let wrong = NOW + 3650 * DAY;
        let starts = |until| {
            let right = (0..until).map(|day| NOW + day * DAY);
            [NOW - DAY, wrong]
                .into_iter()
                .chain(right)
                .collect::<Vec<_>>()
        };
        assert!(!is_purged(wrong, &starts(30)));
        assert!(is_purged(wrong, &starts(35)));
    }

    #[test]
    fn a_clock_that_is_behind_at_one_start_purges_nothing() {
        let mut starts = every(1, 10);
        starts.push(NOW - 3650 * DAY);
        starts.extend((11..30).map(|day| NOW + day * DAY));
        assert!(!is_purged(NOW, &starts));
        starts.extend((30..60).map(|day| NOW + day * DAY));
        assert!(is_purged(NOW, &starts));
    }

    #[test]
    fn no_time_overflows() {
        for last in [1, NOW, i64::MAX / 4] {
            for now in [1, NOW, i64::MAX / 4] {
                let before = Some(last);
                let (next, _) = Sightings::after(Some(Sightings { last, before }), now);
                assert!(next.expired() >= 1);
            }
        }
    }

    #[test]
    fn dates_in_the_bin_move_with_the_clock() -> Result<(), StoreError> {
        let store = Store::in_memory()?;
        let chat = store.chats().create("Deleted", "2026-03-05", NOW)?;
        store.chats().delete(chat, deletion_date(&store, NOW))?;
        let later = NOW + 100 * DAY;
        assert!(cutoff(&store, later) <= later - BIN);
        let deleted = store.chats().get_with_deleted(chat)?.deleted_at;
        assert_eq!(deleted, Some(later - MOST));
        Ok(())
    }
}
