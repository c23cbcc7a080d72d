//! Room on the disk, and in the file: an import leaves some of the one, and a large purge gives some of the other back.

use std::time::Duration;

use rusqlite::Row;

use crate::error::StoreError;
use crate::table::chat::empty_wal;
use crate::{Store, deadline};

/// Bytes of a disk that an import leaves to other programs, and to the chats.
const RESERVE: u64 = 128 << 20;
/// Bytes of a file that are empty before it is made smaller; they are at least a third of it, too.
const WORTH: u64 = 16 << 20;
/// Bytes of content with which a file is still made smaller: SQLite holds them in memory.
const LARGEST: u64 = 128 << 20;
/// Limit of its time: nobody is served meanwhile.
const LIMIT: Duration = Duration::from_secs(2);

impl Store {
    /// Fails where the disk of the file has less free space than is to be left on it.
    pub fn check_room(&self) -> Result<(), StoreError> {
        match self.free_bytes() {
            Some(free) if free < RESERVE => Err(StoreError::LittleRoom {
                free,
                reserve: RESERVE,
            }),
            // Where the system does not say it, the write does.
            _ => Ok(()),
        }
    }

    /// Makes the file smaller where a purge has left much of it empty. What is not done within two seconds stays as it is:
    /// new messages go there.
    pub fn compact(&self) -> Result<(), StoreError> {
        let page = self.number("page_size")?;
        let bytes = page * self.number("page_count")?;
        let free = page * self.number("freelist_count")?;
        // A file with more than that in its pages has too much content, which would take long to find out.
        let is_large = bytes.saturating_sub(free) > 3 * LARGEST;
        if free < WORTH / 4 || is_large {
            return Ok(());
        }
        let vacuum = || {
            // Pages of the search indices are not empty once their words are gone, but nearly so.
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
        empty_wal(&self.db);
        Ok(())
    }

    fn number(&self, pragma: &str) -> rusqlite::Result<u64> {
        let number = |row: &Row<'_>| row.get::<_, u32>(0).map(u64::from);
        self.db.pragma_query_value(None, pragma, number)
    }

    /// Bytes that are free on the disk of the file; `None` in memory, and where the system does not say it.
    fn free_bytes(&self) -> Option<u64> {
        let folder = self.path.as_deref()?.parent()?;
        fs4::available_space(folder).ok()
    }
}
