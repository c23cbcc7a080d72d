//! Chats. A deleted chat is kept, hidden, for a while, so that deleting can be undone.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::id::{ChatId, MessageId};

// AUTOINCREMENT: the id of a chat that was purged is never given to another.
pub(crate) const STEPS: &[Step] = &[CREATE, CONTINUES];

const CREATE: Step = Step {
    version: 1,
    sql: "CREATE TABLE chat (
              id         INTEGER PRIMARY KEY AUTOINCREMENT,
              title      TEXT    NOT NULL,
              today      TEXT    NOT NULL,
              leaf       INTEGER REFERENCES message (id) DEFERRABLE INITIALLY DEFERRED,
              created_at INTEGER NOT NULL,
              updated_at INTEGER NOT NULL,
              deleted_at INTEGER
          ) STRICT;
          CREATE INDEX chat_latest ON chat (updated_at DESC, id DESC) WHERE deleted_at IS NULL;",
};

// The other chat may be purged.
const CONTINUES: Step = Step {
    version: 4,
    sql: "ALTER TABLE chat ADD COLUMN continues INTEGER;",
};

/// A chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatRow {
    /// Its id.
    pub id: ChatId,
    /// Its title.
    pub title: String,
    /// The ISO date that the model sees in this chat.
    pub today: String,
    /// The last message of the shown branch.
    pub leaf: Option<MessageId>,
    /// Unix seconds.
    pub created_at: i64,
    /// Unix seconds of the last message.
    pub updated_at: i64,
    /// The chat of which it began with a summary.
    pub continues: Option<ChatId>,
}

const COLUMNS: &str = "id, title, today, leaf, created_at, updated_at, continues";

impl ChatRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<ChatRow> {
        Ok(ChatRow {
            id: ChatId(row.get(0)?),
            title: row.get(1)?,
            today: row.get(2)?,
            leaf: row.get::<_, Option<i64>>(3)?.map(MessageId),
            created_at: row.get(4)?,
            updated_at: row.get(5)?,
            continues: row.get::<_, Option<i64>>(6)?.map(ChatId),
        })
    }
}

/// Has what was purged leave the WAL too.
pub(super) fn empty_wal(db: &Connection) {
    // While another connection reads, this does nothing, and closing the file does it.
    let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// The chats.
pub struct ChatTable<'s> {
    pub(crate) db: &'s Connection,
}

impl ChatTable<'_> {
    /// Creates a chat.
    pub fn create(&self, title: &str, today: &str, at: i64) -> Result<ChatId, StoreError> {
        self.db
            .prepare_cached(
                "INSERT INTO chat (title, today, created_at, updated_at) VALUES (?1, ?2, ?3, ?3)",
            )?
            .execute((title, today, at))?;
        Ok(ChatId(self.db.last_insert_rowid()))
    }

    /// A chat that is not deleted.
    pub fn get(&self, chat: ChatId) -> Result<ChatRow, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM chat WHERE id = ?1 AND deleted_at IS NULL");
        let row = self
            .db
            .prepare_cached(&sql)?
            .query_row([chat.0], ChatRow::read)
            .optional()?;
        row.ok_or(StoreError::NotFound("chat"))
    }

    /// All chats that are not deleted, the latest first.
    pub fn list(&self) -> Result<Vec<ChatRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM chat WHERE deleted_at IS NULL ORDER BY updated_at DESC, id DESC"
        );
        let mut read = self.db.prepare_cached(&sql)?;
        let rows = read.query_map([], ChatRow::read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether a chat was ever created, deleted ones included.
    pub fn any(&self) -> Result<bool, StoreError> {
        Ok(self
            .db
            .query_row("SELECT EXISTS (SELECT 1 FROM chat)", [], |row| row.get(0))?)
    }

    /// The ids of all chats, deleted ones included.
    pub fn ids_of_all(&self) -> Result<Vec<ChatId>, StoreError> {
        let mut query = self.db.prepare_cached("SELECT id FROM chat")?;
        let ids = query.query_map([], |row| row.get(0).map(ChatId))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Renames a chat.
    pub fn rename(&self, chat: ChatId, title: &str) -> Result<(), StoreError> {
        self.change(
            "UPDATE chat SET title = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            chat,
            title,
        )
    }

    /// Says that a chat begins with a summary of another one.
    pub fn set_continues(&self, chat: ChatId, of: ChatId) -> Result<(), StoreError> {
        self.change("UPDATE chat SET continues = ?2 WHERE id = ?1", chat, of.0)
    }

    /// Moves a chat to the top of the list.
    pub fn touch(&self, chat: ChatId, at: i64) -> Result<(), StoreError> {
        self.change(
            "UPDATE chat SET updated_at = max(updated_at, ?2) WHERE id = ?1",
            chat,
            at,
        )
    }

    /// Marks a chat as deleted.
    pub fn delete(&self, chat: ChatId, at: i64) -> Result<(), StoreError> {
        self.change(
            "UPDATE chat SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            chat,
            at,
        )
    }

    /// Restores a deleted chat. One that is not deleted stays as it is.
    pub fn restore(&self, chat: ChatId) -> Result<(), StoreError> {
        self.change(
            "UPDATE chat SET deleted_at = ?2 WHERE id = ?1",
            chat,
            None::<i64>,
        )
    }

    /// Purges the chats that were deleted before a moment, with their messages, from the WAL too, for at most the given
    /// time: the search indices take at least ten milliseconds per message. Returns whether there is more.
    pub fn purge(&self, deleted_before: i64, within: Duration) -> Result<bool, StoreError> {
        let end = Instant::now() + within;
        let transaction = self.db.unchecked_transaction()?;
        let expired = self.ids("SELECT id FROM chat WHERE deleted_at < ?1", deleted_before)?;
        for chat in &expired {
            // Nothing may refer to what is removed. The last message goes first, as each refers to one before it.
            for unlink in [
                "UPDATE chat SET leaf = NULL WHERE id = ?1",
                "UPDATE message SET shown = NULL WHERE chat = ?1 AND shown IS NOT NULL",
            ] {
                self.db.prepare_cached(unlink)?.execute([chat])?;
            }
            let messages = "SELECT id FROM message WHERE chat = ?1 ORDER BY id DESC";
            for message in self.ids(messages, *chat)? {
                self.db
                    .prepare_cached("DELETE FROM message WHERE id = ?1")?
                    .execute([message])?;
                if Instant::now() >= end {
                    transaction.commit()?;
                    return Ok(true);
                }
            }
            self.db
                .prepare_cached("DELETE FROM chat WHERE id = ?1")?
                .execute([chat])?;
        }
        transaction.commit()?;
        if !expired.is_empty() {
            empty_wal(self.db);
        }
        Ok(false)
    }

    fn ids(&self, sql: &str, parameter: i64) -> Result<Vec<i64>, StoreError> {
        let mut query = self.db.prepare_cached(sql)?;
        let ids = query.query_map([parameter], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    fn change(
        &self,
        sql: &str,
        chat: ChatId,
        value: impl rusqlite::ToSql,
    ) -> Result<(), StoreError> {
        match self.db.prepare_cached(sql)?.execute((chat.0, value))? {
            0 => Err(StoreError::NotFound("chat")),
            _ => Ok(()),
        }
    }
}
