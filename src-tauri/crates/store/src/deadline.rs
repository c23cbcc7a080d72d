//! A time limit for statements: the thread that owns the store has other requests to serve.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

/// Instructions of SQLite's virtual machine between two checks of the time: some microseconds.
const INSTRUCTIONS: i32 = 500;
const NONE: u64 = u64::MAX;
/// Time to wait for another process that holds the file, such as a backup tool.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Interrupts statements of a connection that exceed it.
#[derive(Clone)]
pub(crate) struct Deadline(Arc<AtomicU64>);

impl Deadline {
    pub(crate) fn install(db: &mut Connection) -> rusqlite::Result<Deadline> {
        let deadline = Deadline(Arc::new(AtomicU64::new(NONE)));
        let at = Arc::clone(&deadline.0);
        db.progress_handler(INSTRUCTIONS, Some(move || has_passed(&at)))?;
        Ok(deadline)
    }

    /// Runs `act`, whose statements fail with [`is_over`] after `limit`.
    pub(crate) fn within<T>(&self, limit: Duration, act: impl FnOnce() -> T) -> T {
        let limit = u64::try_from(limit.as_micros()).unwrap_or(NONE);
        self.0
            .store(elapsed().saturating_add(limit), Ordering::Relaxed);
        let result = act();
        self.0.store(NONE, Ordering::Relaxed);
        result
    }
}

fn has_passed(deadline: &AtomicU64) -> bool {
    match deadline.load(Ordering::Relaxed) {
        NONE => false,
        at => at <= elapsed(),
    }
}

/// Returns whether a statement exceeded its time limit.
pub(crate) fn is_over(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}

/// Returns the microseconds since the first call.
fn elapsed() -> u64 {
    u64::try_from(START.elapsed().as_micros()).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::in_memory;

    #[test]
    fn a_statement_ends_at_its_deadline() -> rusqlite::Result<()> {
        let mut db = in_memory()?;
        let deadline = Deadline::install(&mut db)?;
        let count = |to: u32| {
            let sql =
                "WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
                       SELECT count(*) FROM n";
            db.query_row(sql, [to], |row| row.get::<_, u32>(0))
        };
        let late = deadline.within(Duration::from_millis(1), || count(u32::MAX));
        assert!(late.is_err_and(|error| is_over(&error)));
        let in_time = deadline.within(Duration::from_secs(3600), || count(10_000));
        assert_eq!(in_time?, 10_000);
        assert_eq!(count(100_000)?, 100_000, "it is over with what it was for");
        Ok(())
    }
}
