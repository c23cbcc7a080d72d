//! Free space: an import leaves some on the disk, and a large purge returns some of the file.

use std::time::Duration;

use rusqlite::Row;

use crate::deadline::BUSY;
use crate::error::StoreError;
use crate::{Store, deadline};

/// Bytes of the disk that an import leaves to other programs, and to the chats.
const RESERVE: u64 = 128 << 20;
/// Minimum empty bytes of a file to compact it; they must also be a third of it.
const WORTH: u64 = 16 << 20;
/// Maximum bytes of content to compact: SQLite holds them in memory.
const LARGEST: u64 = 128 << 20;
/// Time limit of a compaction, which blocks the actor.
const LIMIT: Duration = Duration::from_secs(2);

impl Store {
    /// Fails if the disk has less free space than the reserve.
    pub fn check_room(&self) -> Result<(), StoreError> {
        match self.free_bytes() {
            Some(free) if free < RESERVE => Err(StoreError::LittleRoom {
                free,
                reserve: RESERVE,
            }),
            // If the system does not report it, the write shows it.
            _ => Ok(()),
        }
    }

    /// Compacts the file if a purge has left much of it empty. The rest after two seconds stays as it is: new messages
    /// reuse it.
    pub fn compact(&self) -> Result<(), StoreError> {
        let page = self.number("page_size")?;
        let bytes = page * self.number("page_count")?;
        let free = page * self.number("freelist_count")?;
        // A file with more than that in its pages has too much content, and the exact size would take long to
        // determine.
        let is_large = bytes.saturating_sub(free) > 3 * LARGEST;
        if free < WORTH / 4 || is_large {
            return Ok(());
        }
        let vacuum = || {
            // Pages of the search indices are not empty after a purge, but nearly so.
            let content = "SELECT sum(payload) FROM dbstat('main', 1)";
            let content: i64 = self.db.query_row(content, [], |row| row.get(0))?;
            let content = content.unsigned_abs();
            let empty = bytes.saturating_sub(content);
            let is_worth_it = empty >= WORTH && empty >= bytes / 3;
            let has_room = self.free_bytes().is_some_and(|free| free >= 2 * content);
            if is_worth_it && content <= LARGEST && has_room {
                self.db.execute_batch("VACUUM")?;
            }
            Ok(())
        };
        match self.deadline.within(LIMIT, vacuum) {
            Err(error) if deadline::is_over(&error) => {}
            vacuumed => vacuumed?,
        }
        Ok(())
    }

    /// Empties the WAL, so that purged content leaves it, too. Returns whether it did: it cannot while another
    /// connection uses the file, and waiting for that one would block everything else.
    pub fn empty_wal(&self) -> Result<bool, StoreError> {
        self.db.busy_timeout(Duration::ZERO)?;
        let busy = self
            .db
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        self.db.busy_timeout(BUSY)?;
        Ok(!busy?)
    }

    fn number(&self, pragma: &str) -> rusqlite::Result<u64> {
        let number = |row: &Row<'_>| row.get::<_, u32>(0).map(u64::from);
        self.db.pragma_query_value(None, pragma, number)
    }

    /// Returns the free bytes on the file's disk; `None` in memory, or if the system does not report it.
    fn free_bytes(&self) -> Option<u64> {
        let folder = self.path.as_deref()?.parent()?;
        fs4::available_space(folder).ok()
    }
}
