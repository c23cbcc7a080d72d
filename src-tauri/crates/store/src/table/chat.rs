//! Chats. A deleted chat is hidden for a while, so that deletion can be undone; one whose `deleted_at` is 0 is being
//! purged, and cannot be restored any more. Below 0 it is a mark: the chat is being written, and is not in the bin.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Params, Row};

use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::id::{ChatId, FolderId, MessageId};
use crate::table::json::json;

// AUTOINCREMENT: the id of a purged chat is never reused.
pub(crate) const STEPS: &[Step] = &[CREATE, CONTINUES, ORDER, UID];

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

const ORDER: Step = Step {
    version: 4,
    sql: "ALTER TABLE chat ADD COLUMN folder INTEGER REFERENCES folder (id);
          ALTER TABLE chat ADD COLUMN pinned_at INTEGER;
          ALTER TABLE chat ADD COLUMN archived_at INTEGER;",
};

/// A uid that a chat keeps when it moves to another database.
const UID: Step = Step {
    version: 4,
    sql: "ALTER TABLE chat ADD COLUMN uid TEXT;
          UPDATE chat SET uid = lower(hex(randomblob(16)));
          CREATE INDEX chat_uid ON chat (uid);
          CREATE TRIGGER chat_gets_uid AFTER INSERT ON chat WHEN new.uid IS NULL BEGIN
              UPDATE chat SET uid = lower(hex(randomblob(16))) WHERE id = new.id;
          END;",
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
    /// Chat whose summary this one began with.
    pub continues: Option<ChatId>,
    /// Folder that contains it.
    pub folder: Option<FolderId>,
    /// Unix seconds; `None` if it is not pinned.
    pub pinned_at: Option<i64>,
    /// Unix seconds; `None` if it is not archived.
    pub archived_at: Option<i64>,
    /// Unix seconds; `None` if it is not deleted.
    pub deleted_at: Option<i64>,
}

const COLUMNS: &str = "id, title, today, leaf, created_at, updated_at, folder, pinned_at, archived_at, deleted_at, continues";

/// Fields that can be set for several chats at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatField {
    /// [`ChatRow::folder`]. A folder that no longer exists counts as none.
    Folder,
    /// [`ChatRow::pinned_at`].
    Pinned,
    /// [`ChatRow::archived_at`].
    Archived,
    /// [`ChatRow::deleted_at`].
    Deleted,
}

/// Value of `deleted_at` for a hidden chat. An import has a mark of its own, below that.
pub(crate) const HIDDEN: i64 = -1;

/// Chats, each with the value of one field.
pub type ChatValues = Vec<(ChatId, Option<i64>)>;

impl ChatRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<ChatRow> {
        Ok(ChatRow {
            id: ChatId(row.get("id")?),
            title: row.get("title")?,
            today: row.get("today")?,
            leaf: row.get::<_, Option<i64>>("leaf")?.map(MessageId),
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
            folder: row.get::<_, Option<i64>>("folder")?.map(FolderId),
            pinned_at: row.get("pinned_at")?,
            archived_at: row.get("archived_at")?,
            deleted_at: row.get("deleted_at")?,
            continues: row.get::<_, Option<i64>>("continues")?.map(ChatId),
        })
    }
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

    /// Returns a chat that is not deleted.
    pub fn get(&self, chat: ChatId) -> Result<ChatRow, StoreError> {
        self.one("id = ?1 AND deleted_at IS NULL", chat)
    }

    /// Returns a chat, which may be deleted.
    pub fn get_with_deleted(&self, chat: ChatId) -> Result<ChatRow, StoreError> {
        self.one("id = ?1 AND deleted_at IS NOT 0", chat)
    }

    fn one(&self, condition: &str, chat: ChatId) -> Result<ChatRow, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM chat WHERE {condition}");
        let row = self
            .db
            .prepare_cached(&sql)?
            .query_row([chat.0], ChatRow::read)
            .optional()?;
        row.ok_or(StoreError::NotFound("chat"))
    }

    /// Returns all chats that are not deleted, the latest first.
    pub fn list(&self) -> Result<Vec<ChatRow>, StoreError> {
        self.rows("deleted_at IS NULL ORDER BY updated_at DESC, id DESC", ())
    }

    /// Returns all deleted chats, the last deleted first.
    pub fn deleted(&self) -> Result<Vec<ChatRow>, StoreError> {
        self.rows("deleted_at > 0 ORDER BY deleted_at DESC, id DESC", ())
    }

    /// Returns the chats that were deleted before this time, and can be restored.
    pub fn deleted_before(&self, moment: i64) -> Result<Vec<ChatId>, StoreError> {
        let sql = "SELECT id FROM chat WHERE deleted_at > 0 AND deleted_at < ?1";
        Ok(self.ids(sql, moment)?.into_iter().map(ChatId).collect())
    }

    /// Returns the chats among these that are not deleted.
    pub fn some(&self, chats: &[ChatId]) -> Result<Vec<ChatRow>, StoreError> {
        self.rows(
            "id IN (SELECT value FROM json_each(?1)) AND deleted_at IS NULL",
            [json(chats)?],
        )
    }

    fn rows(&self, condition: &str, parameters: impl Params) -> Result<Vec<ChatRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM chat WHERE {condition}");
        let mut read = self.db.prepare_cached(&sql)?;
        let rows = read.query_map(parameters, ChatRow::read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the chats in a folder, deleted ones included.
    pub fn in_folder(&self, folder: FolderId) -> Result<Vec<ChatId>, StoreError> {
        let ids = self.ids("SELECT id FROM chat WHERE folder = ?1", folder.0)?;
        Ok(ids.into_iter().map(ChatId).collect())
    }

    /// Returns whether a chat was ever created, deleted ones included.
    pub fn any(&self) -> Result<bool, StoreError> {
        Ok(self
            .db
            .query_row("SELECT EXISTS (SELECT 1 FROM chat)", [], |row| row.get(0))?)
    }

    /// Returns the ids of all chats, deleted ones included as long as they can be restored.
    pub fn ids_of_all(&self) -> Result<Vec<ChatId>, StoreError> {
        let mut query = self
            .db
            .prepare_cached("SELECT id FROM chat WHERE deleted_at IS NOT 0")?;
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

    /// Records that a chat begins with a summary of another one.
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

    /// Hides an incomplete chat until it is restored; a purge removes it.
    pub fn hide(&self, chat: ChatId) -> Result<(), StoreError> {
        self.change(
            "UPDATE chat SET deleted_at = ?2 WHERE id = ?1",
            chat,
            HIDDEN,
        )
    }

    /// Restores a deleted chat. One that is not deleted stays as it is.
    pub fn restore(&self, chat: ChatId) -> Result<(), StoreError> {
        self.change(
            "UPDATE chat SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NOT 0",
            chat,
            None::<i64>,
        )
    }

    /// Sets a field of several chats, in one statement, and returns the former values, with which it can be undone.
    /// Chats that no longer exist are skipped; it is an error if none exists.
    pub fn set(&self, field: ChatField, values: &ChatValues) -> Result<ChatValues, StoreError> {
        let (column, value) = match field {
            ChatField::Folder => ("folder", "(SELECT id FROM folder WHERE id = new.value)"),
            ChatField::Pinned => ("pinned_at", "new.value"),
            ChatField::Archived => ("archived_at", "new.value"),
            ChatField::Deleted => ("deleted_at", "new.value"),
        };
        let new = "(SELECT value ->> 0 AS id, value ->> 1 AS value FROM json_each(?1)) AS new";
        let values = json(values)?;
        let mut read = self.db.prepare_cached(&format!(
            "SELECT chat.id, chat.{column} FROM {new} CROSS JOIN chat ON chat.id = new.id WHERE deleted_at IS NOT 0"
        ))?;
        let before = read
            .query_map([&values], |row| Ok((ChatId(row.get(0)?), row.get(1)?)))?
            .collect::<rusqlite::Result<ChatValues>>()?;
        self.db
            .prepare_cached(&format!(
                "UPDATE chat SET {column} = {value} FROM {new} WHERE chat.id = new.id AND deleted_at IS NOT 0"
            ))?
            .execute([&values])?;
        match before.is_empty() {
            true => Err(StoreError::NotFound("chat")),
            false => Ok(before),
        }
    }

    /// Makes the next purge remove the deleted ones of these chats, and returns them. They cannot be restored any more.
    pub fn expire(&self, chats: &[ChatId]) -> Result<Vec<ChatId>, StoreError> {
        let mut expire = self.db.prepare_cached(
            "UPDATE chat SET deleted_at = 0
             WHERE deleted_at > 0 AND id IN (SELECT value FROM json_each(?1)) RETURNING id",
        )?;
        let expired = expire.query_map([json(chats)?], |row| row.get(0).map(ChatId))?;
        Ok(expired.collect::<rusqlite::Result<_>>()?)
    }

    /// Shifts the dates of deletion of chats, but not beyond `now`.
    pub fn move_deleted(&self, by: i64, now: i64) -> Result<(), StoreError> {
        self.db.execute(
            "UPDATE chat SET deleted_at = min(min(deleted_at, ?2) + ?1, ?2) WHERE deleted_at > 0",
            [by, now],
        )?;
        Ok(())
    }

    /// Purges the chats that were deleted before this time, with their messages, within the time limit: the search
    /// indices take at least ten milliseconds per message. Returns whether there is more. The WAL still holds them until
    /// [`Store::empty_wal`].
    pub fn purge(&self, deleted_before: i64, within: Duration) -> Result<bool, StoreError> {
        let end = Instant::now() + within;
        let transaction = self.db.unchecked_transaction()?;
        let expired = self.ids("SELECT id FROM chat WHERE deleted_at < ?1", deleted_before)?;
        for chat in &expired {
            // Nothing may refer to a removed row. The last message goes first, as each refers to an earlier one.
            for unlink in [
                "UPDATE chat SET leaf = NULL, deleted_at = 0 WHERE id = ?1",
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
