//! Folders, in which the user puts chats. A chat is in one at most.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::id::FolderId;

pub(crate) const STEPS: &[Step] = &[Step {
    version: 4,
    sql: "CREATE TABLE folder (
              id         INTEGER PRIMARY KEY AUTOINCREMENT,
              name       TEXT    NOT NULL,
              position   INTEGER NOT NULL,
              collapsed  INTEGER NOT NULL DEFAULT 0,
              created_at INTEGER NOT NULL
          ) STRICT;",
}];

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderRow {
    /// Its id.
    pub id: FolderId,
    /// Its name.
    pub name: String,
    /// True if the list hides its chats.
    pub collapsed: bool,
    /// Unix seconds.
    pub created_at: i64,
}

impl FolderRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<FolderRow> {
        Ok(FolderRow {
            id: FolderId(row.get("id")?),
            name: row.get("name")?,
            collapsed: row.get("collapsed")?,
            created_at: row.get("created_at")?,
        })
    }
}

/// The folders.
pub struct FolderTable<'s> {
    pub(crate) db: &'s Connection,
}

impl FolderTable<'_> {
    /// Creates a folder after all others.
    pub fn create(&self, name: &str, at: i64) -> Result<FolderId, StoreError> {
        self.db
            .prepare_cached(
                "INSERT INTO folder (name, position, created_at)
                 VALUES (?1, (SELECT coalesce(max(position), 0) + 1 FROM folder), ?2)",
            )?
            .execute((name, at))?;
        Ok(FolderId(self.db.last_insert_rowid()))
    }

    /// Restores a removed folder, after all others.
    pub fn put_back(&self, folder: &FolderRow) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "INSERT INTO folder (id, name, position, collapsed, created_at)
                 VALUES (?1, ?2, (SELECT coalesce(max(position), 0) + 1 FROM folder), ?3, ?4)",
            )?
            .execute((
                folder.id.0,
                &folder.name,
                folder.collapsed,
                folder.created_at,
            ))?;
        Ok(())
    }

    /// Returns a folder.
    pub fn get(&self, folder: FolderId) -> Result<FolderRow, StoreError> {
        let row = self
            .db
            .prepare_cached("SELECT id, name, collapsed, created_at FROM folder WHERE id = ?1")?
            .query_row([folder.0], FolderRow::read)
            .optional()?;
        row.ok_or(StoreError::NotFound("folder"))
    }

    /// Returns all folders in the user's order.
    pub fn list(&self) -> Result<Vec<FolderRow>, StoreError> {
        let mut read = self.db.prepare_cached(
            "SELECT id, name, collapsed, created_at FROM folder ORDER BY position, id",
        )?;
        let rows = read.query_map([], FolderRow::read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Renames a folder.
    pub fn rename(&self, folder: FolderId, name: &str) -> Result<(), StoreError> {
        self.change("UPDATE folder SET name = ?2 WHERE id = ?1", folder, name)
    }

    /// Collapses or expands a folder in the list.
    pub fn collapse(&self, folder: FolderId, collapsed: bool) -> Result<(), StoreError> {
        self.change(
            "UPDATE folder SET collapsed = ?2 WHERE id = ?1",
            folder,
            collapsed,
        )
    }

    /// Moves a folder to the position `to` among the others, from 0; one beyond the end is the end.
    pub fn place(&self, folder: FolderId, to: usize) -> Result<(), StoreError> {
        let mut order: Vec<FolderId> = self.list()?.into_iter().map(|row| row.id).collect();
        order.retain(|id| *id != folder);
        order.insert(to.min(order.len()), folder);
        for (position, id) in (0_i64..).zip(order) {
            self.change(
                "UPDATE folder SET position = ?2 WHERE id = ?1",
                id,
                position,
            )?;
        }
        Ok(())
    }

    /// Removes an empty folder.
    pub fn remove(&self, folder: FolderId) -> Result<(), StoreError> {
        let removed = self
            .db
            .prepare_cached("DELETE FROM folder WHERE id = ?1")?
            .execute([folder.0])?;
        found(removed)
    }

    fn change(
        &self,
        sql: &str,
        folder: FolderId,
        value: impl rusqlite::ToSql,
    ) -> Result<(), StoreError> {
        found(self.db.prepare_cached(sql)?.execute((folder.0, value))?)
    }
}

fn found(rows: usize) -> Result<(), StoreError> {
    match rows {
        0 => Err(StoreError::NotFound("folder")),
        _ => Ok(()),
    }
}
