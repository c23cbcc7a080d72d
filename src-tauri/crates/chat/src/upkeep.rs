//! Work on the stores for which nobody waits: the purge, the indexing of messages, and the time of the daily copy.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::civil::Date;
use store::{ChatId, Purged, Store, StoreError};

use crate::bin;
use crate::daily::Daily;
use crate::stores::Stores;
use crate::timing::Timing;

/// Time limit of a step of the purge, which blocks others, and the pause before the next.
const PURGING: Duration = Duration::from_millis(50);
const PURGE_PAUSE: Duration = Duration::from_millis(200);
/// Time limit and pause for the indexing of messages.
const INDEXING: Duration = Duration::from_millis(50);
const INDEX_PAUSE: Duration = Duration::from_millis(50);
/// Multiple of the usual pause after which failed work is retried: as a rule the disk was full, or the file in use.
const RETRY: u32 = 12;

pub(crate) struct Upkeep {
    purging: Daily,
    copying: Daily,
    /// Time of the next attempt to empty the WAL; `None` if no purged content is in it.
    wal_due: Option<Instant>,
    /// Time of the next indexing step; `None` if the index is complete.
    index_due: Option<Instant>,
    timing: Timing,
}

/// Result of a step of the purge.
#[derive(Default)]
pub(crate) struct PurgeStep {
    /// Temporary chats that cannot be restored any more.
    pub gone: Vec<ChatId>,
    /// Chats that lost messages; `None` if no cache is to be erased yet.
    pub changed: Option<BTreeSet<ChatId>>,
}

impl Upkeep {
    pub fn new(timing: Timing) -> Upkeep {
        Upkeep {
            purging: Daily::after(timing.purge_after),
            copying: Daily::after(timing.copy_after),
            wal_due: None,
            index_due: Some(Instant::now() + timing.purge_after),
            timing,
        }
    }

    /// Resets the work that belongs to the former file of the store.
    pub fn begin_again(&mut self) {
        let copying = std::mem::replace(self, Upkeep::new(self.timing)).copying;
        self.copying = copying;
    }

    /// Schedules a purge: there is something to purge.
    pub fn purge_soon(&mut self) {
        self.purging = Daily::after(Duration::ZERO);
    }

    /// Returns the times at which work is due.
    pub fn due(&self, may_purge: bool, may_copy: bool) -> impl Iterator<Item = Instant> + use<> {
        let purge = may_purge.then(|| self.purging.due());
        let copy = may_copy.then(|| self.copying.due());
        let due = [purge, self.wal_due, self.index_due, copy];
        due.into_iter().flatten()
    }

    /// Purges some of the expired chats and messages, if that is due.
    pub fn purge(&mut self, stores: &Stores, now: i64, today: Date) -> Option<PurgeStep> {
        if !self.purging.is_due(today) {
            return None;
        }
        let mut step = PurgeStep::default();
        match purge_some(stores, now, &mut step) {
            Ok(true) => {
                self.purging = Daily::after(PURGE_PAUSE);
                return Some(step);
            }
            Ok(false) => {
                if let Err(error) = stores.disk.compact() {
                    tracing::warn!(%error, "the file did not become smaller");
                }
                self.purging.done_for(today);
                self.wal_due = Some(Instant::now());
            }
            // With a full disk the chats can still be read.
            Err(error) => {
                tracing::warn!(%error, "what expired was not purged");
                self.purging = Daily::after(RETRY * self.timing.retry_after);
            }
        }
        step.changed.get_or_insert_default();
        Some(step)
    }

    /// Empties the WAL after a purge, if that is due.
    pub fn empty_wal(&mut self, store: &Store) {
        if self.wal_due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        let emptied = store.empty_wal().unwrap_or_else(|error| {
            tracing::warn!(%error, "purged content is still in the WAL");
            false
        });
        // Else another process uses the file.
        self.wal_due = (!emptied).then(|| Instant::now() + RETRY * self.timing.retry_after);
    }

    /// Indexes some of the messages that the search lacks after an upgrade, if that is due.
    pub fn index(&mut self, store: &Store) {
        if self.index_due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        let pause = match store.search().index_older(INDEXING) {
            Ok(true) => Some(INDEX_PAUSE),
            Ok(false) => None,
            // The disk may be full.
            Err(error) => {
                tracing::warn!(%error, "older messages were not indexed");
                Some(RETRY * self.timing.retry_after)
            }
        };
        self.index_due = pause.map(|pause| Instant::now() + pause);
    }

    /// Returns whether today's copy is due, and notes that it is made: a failed one is retried the next day.
    pub fn begin_copy(&mut self, today: Date) -> bool {
        let is_due = self.copying.is_due(today);
        if is_due {
            self.copying.done_for(today);
        }
        is_due
    }
}

/// Returns whether there is more.
fn purge_some(stores: &Stores, now: i64, step: &mut PurgeStep) -> Result<bool, StoreError> {
    let (expired, in_memory) = (bin::cutoff(&stores.disk, now), bin::cutoff_in_memory(now));
    step.gone = stores.temporary.chats().deleted_before(in_memory)?;
    for (store, before) in [(&stores.disk, expired), (&stores.temporary, in_memory)] {
        if store.chats().purge(before, PURGING)? {
            return Ok(true);
        }
        let Purged { chats, more } = store.messages().purge(before, PURGING)?;
        if !chats.is_empty() {
            step.changed.get_or_insert_default().extend(chats);
        }
        if more {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::civil::date;
    use store::faults;

    use super::*;

    const DAY: i64 = 24 * 60 * 60;
    const TODAY: Date = date(2026, 3, 5);

    fn due_at_once() -> Upkeep {
        let (purge_after, copy_after) = (Duration::ZERO, Duration::ZERO);
        Upkeep::new(Timing {
            purge_after,
            copy_after,
            ..Timing::default()
        })
    }

    #[test]
    fn an_expired_chat_is_purged_and_reported_once() -> Result<(), StoreError> {
        let stores = Stores::new(Store::in_memory()?)?;
        let chats = stores.temporary.chats();
        let gone = chats.create("Expired", "2026-03-01", 1)?;
        chats.delete(gone, 1)?;
        let mut upkeep = due_at_once();
        let step = upkeep.purge(&stores, 3 * DAY, TODAY);
        let step = step.expect("a purge that is due");
        assert_eq!(step.gone, [gone]);
        assert_eq!(step.changed, Some(BTreeSet::new()));
        assert!(chats.ids_of_all()?.is_empty());
        assert!(upkeep.purge(&stores, 3 * DAY, TODAY).is_none());
        upkeep.purge_soon();
        let again = upkeep.purge(&stores, 3 * DAY, TODAY);
        assert!(again.expect("a purge that is due").gone.is_empty());
        Ok(())
    }

    #[test]
    fn a_failed_purge_is_retried_after_a_while() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("goldcrest.db");
        let stores = Stores::new(Store::open(&file)?)?;
        let chat = stores.disk.chats().create("Expired", "2026-03-01", 1)?;
        stores.disk.chats().delete(chat, 1)?;
        stores.disk.chats().expire(&[chat])?;
        faults::refuse_writes(&file, &["chat"])?;
        let mut upkeep = due_at_once();
        assert!(upkeep.purge(&stores, DAY, TODAY).is_some());
        let due = upkeep.due(true, false).next().expect("the next purge");
        assert!(due > Instant::now() + Timing::default().retry_after);
        faults::allow_writes(&file)?;
        upkeep.purge_soon();
        upkeep.purge(&stores, DAY, TODAY);
        assert!(stores.disk.chats().ids_of_all()?.is_empty());
        Ok(())
    }

    #[test]
    fn purged_content_leaves_the_wal_once_no_other_reads_the_file()
    -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("goldcrest.db");
        let wal_bytes =
            || Ok::<_, std::io::Error>(fs::metadata(file.with_extension("db-wal"))?.len());
        let stores = Stores::new(Store::open(&file)?)?;
        let chat = stores.disk.chats().create("Expired", "2026-03-01", 1)?;
        stores.disk.chats().delete(chat, 1)?;
        stores.disk.chats().expire(&[chat])?;
        let mut upkeep = due_at_once();
        let reading = faults::read_on(&file)?;
        assert!(upkeep.purge(&stores, DAY, TODAY).is_some());
        upkeep.empty_wal(&stores.disk);
        assert!(stores.disk.chats().ids_of_all()?.is_empty());
        assert!(wal_bytes()? > 0, "the other reads it");
        assert!(upkeep.purge(&stores, DAY, TODAY).is_none(), "it is done");
        let retry = Timing::default().retry_after;
        assert!(
            upkeep
                .wal_due
                .is_some_and(|due| due > Instant::now() + retry)
        );
        drop(reading);
        upkeep.wal_due = Some(Instant::now());
        upkeep.empty_wal(&stores.disk);
        assert_eq!((wal_bytes()?, upkeep.wal_due), (0, None));
        Ok(())
    }

    #[test]
    fn what_may_not_be_done_now_is_not_due() -> Result<(), StoreError> {
        let mut upkeep = due_at_once();
        upkeep.index(&Store::in_memory()?);
        assert_eq!(upkeep.due(false, false).count(), 0);
        assert_eq!(upkeep.due(true, true).count(), 2);
        assert!(upkeep.begin_copy(TODAY));
        assert!(!upkeep.begin_copy(TODAY), "a failed one is not retried");
        Ok(())
    }
}
