//! Positions and sizes of the windows.

use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;
use crate::migrate::Step;

pub(crate) const STEPS: &[Step] = &[Step {
    version: 1,
    sql: "CREATE TABLE window (
              label     TEXT PRIMARY KEY,
              x         INTEGER NOT NULL,
              y         INTEGER NOT NULL,
              width     INTEGER NOT NULL,
              height    INTEGER NOT NULL,
              maximised INTEGER NOT NULL
          ) STRICT, WITHOUT ROWID;",
}];

/// A window's position and size, in physical pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRow {
    /// Distance from the left.
    pub x: i32,
    /// Distance from the top.
    pub y: i32,
    /// Its inner width.
    pub width: u32,
    /// Its inner height.
    pub height: u32,
    /// True if it is maximised; the other fields are its restored position.
    pub maximised: bool,
}

/// The windows.
pub struct WindowTable<'s> {
    pub(crate) db: &'s Connection,
}

impl WindowTable<'_> {
    /// Returns the last position of the window with this label.
    pub fn get(&self, label: &str) -> Result<Option<WindowRow>, StoreError> {
        let mut read = self
            .db
            .prepare_cached("SELECT x, y, width, height, maximised FROM window WHERE label = ?1")?;
        let row = read.query_row([label], |row| {
            Ok(WindowRow {
                x: row.get(0)?,
                y: row.get(1)?,
                width: row.get(2)?,
                height: row.get(3)?,
                maximised: row.get(4)?,
            })
        });
        Ok(row.optional()?)
    }

    /// Stores the position of the window with this label.
    pub fn set(&self, label: &str, window: &WindowRow) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "INSERT OR REPLACE INTO window (label, x, y, width, height, maximised) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute((label, window.x, window.y, window.width, window.height, window.maximised))?;
        Ok(())
    }
}
