//! Deleted messages, with their descendants. They are hidden for a while, so that deletion can be undone.
//!
//! Every hidden message has a row here: hidden messages are found without a walk up the tree, and without reading past
//! long texts.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rusqlite::OptionalExtension;
use serde::Serialize;

use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::id::{ChatId, MessageId};
use crate::table::message::MessageTable;

pub(crate) const STEPS: &[Step] = &[Step {
    version: 4,
    sql: "CREATE TABLE deleted_message (
              message    INTEGER PRIMARY KEY REFERENCES message (id) ON DELETE CASCADE,
              -- The message that was deleted; this one follows it, or is it.
              root       INTEGER NOT NULL,
              deleted_at INTEGER NOT NULL
          ) STRICT;
          CREATE INDEX deleted_message_root ON deleted_message (root);
          CREATE INDEX deleted_message_at ON deleted_message (deleted_at);",
}];

/// Result of [`MessageTable::purge`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Chats with purged messages.
    pub chats: BTreeSet<ChatId>,
    /// True if there is more.
    pub more: bool,
}

/// A deleted message of a chat that is not deleted. Its descendants are deleted with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct DeletedMessage {
    /// Its id.
    pub id: MessageId,
    /// Its chat.
    pub chat: ChatId,
    /// The chat's title.
    pub title: String,
    /// Beginning of its text.
    pub text: String,
    /// Unix seconds.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub deleted_at: i64,
}

/// Condition for a deleted message that can be restored by itself, as its parent is there.
const CAN_BE_RESTORED: &str =
    "deleted_message.message = deleted_message.root AND chat.deleted_at IS NULL
     AND (message.parent IS NULL OR message.parent NOT IN (SELECT message FROM deleted_message))";

impl MessageTable<'_> {
    /// Returns the messages that can be restored, the last deleted first, at most `limit`.
    pub fn deleted(&self, limit: u32) -> Result<Vec<DeletedMessage>, StoreError> {
        let mut read = self.db.prepare_cached(&format!(
            "SELECT message.id, chat.id, chat.title,
                 coalesce((SELECT substr(part.text, 1, 200) FROM part WHERE part.message = message.id
                           ORDER BY kind <> 'text', place LIMIT 1), ''), deleted_message.deleted_at
             FROM deleted_message
             JOIN message ON message.id = deleted_message.message JOIN chat ON chat.id = message.chat
             WHERE {CAN_BE_RESTORED} ORDER BY deleted_message.deleted_at DESC, message.id DESC LIMIT ?1"
        ))?;
        let rows = read.query_map([limit], |row| {
            Ok(DeletedMessage {
                id: MessageId(row.get(0)?),
                chat: ChatId(row.get(1)?),
                title: row.get(2)?,
                text: row.get(3)?,
                deleted_at: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the chat of a message that can be restored.
    pub fn chat_of_deleted(&self, message: MessageId) -> Result<ChatId, StoreError> {
        let chat = self
            .db
            .prepare_cached(&format!(
                "SELECT chat.id FROM deleted_message
                 JOIN message ON message.id = deleted_message.message JOIN chat ON chat.id = message.chat
                 WHERE message.id = ?1 AND {CAN_BE_RESTORED}"
            ))?
            .query_row([message.0], |row| row.get(0).map(ChatId))
            .optional()?;
        chat.ok_or(StoreError::NotFound("message"))
    }

    /// Hides a message and its descendants. If it was shown, the version before it is shown, else the next one, else
    /// the branch ends with its parent.
    pub fn delete(&self, message: MessageId, at: i64) -> Result<(), StoreError> {
        let row = self.get(message)?;
        self.db
            .prepare_cached(
                "WITH RECURSIVE down (id) AS (
                     SELECT ?1
                     UNION ALL
                     SELECT message.id FROM down JOIN message ON message.parent = down.id
                     WHERE message.id NOT IN (SELECT message FROM deleted_message)
                 )
                 INSERT INTO deleted_message (message, root, deleted_at) SELECT id, ?1, ?2 FROM down",
            )?
            .execute((message.0, at))?;
        self.db
            .prepare_cached("UPDATE message SET shown = NULL WHERE id = ?1 AND shown = ?2")?
            .execute((row.parent.map(|id| id.0), message.0))?;
        if !self.shows_deleted(row.chat)? {
            return Ok(());
        }
        let others = self.children(row.chat, row.parent)?;
        let before = others.iter().rfind(|other| **other < message);
        match before.or(others.first()) {
            Some(other) => self.show(*other),
            None => {
                self.db
                    .prepare_cached("UPDATE chat SET leaf = ?2 WHERE id = ?1")?
                    .execute((row.chat.0, row.parent.map(|id| id.0)))?;
                Ok(())
            }
        }
    }

    /// Reverts [`MessageTable::delete`], without showing the message.
    pub fn undelete(&self, message: MessageId) -> Result<(), StoreError> {
        let restored = self
            .db
            .prepare_cached("DELETE FROM deleted_message WHERE root = ?1")?
            .execute([message.0])?;
        match restored {
            0 => Err(StoreError::NotFound("message")),
            _ => Ok(()),
        }
    }

    fn shows_deleted(&self, chat: ChatId) -> Result<bool, StoreError> {
        let shown = self
            .db
            .prepare_cached(
                "SELECT 1 FROM chat JOIN deleted_message ON deleted_message.message = chat.leaf WHERE chat.id = ?1",
            )?
            .query_row([chat.0], |_| Ok(()))
            .optional()?;
        Ok(shown.is_some())
    }

    /// Shifts the dates of deletion of messages, but not beyond `now`.
    pub fn move_deleted(&self, by: i64, now: i64) -> Result<(), StoreError> {
        self.db.execute(
            "UPDATE deleted_message SET deleted_at = min(min(deleted_at, ?2) + ?1, ?2)",
            [by, now],
        )?;
        Ok(())
    }

    /// Purges the messages that were deleted before this time, with their descendants, within the time limit. The WAL
    /// still holds them until [`Store::empty_wal`].
    pub fn purge(&self, deleted_before: i64, within: Duration) -> Result<Purged, StoreError> {
        let end = Instant::now() + within;
        let transaction = self.db.unchecked_transaction()?;
        let mut next = transaction.prepare_cached(
            "SELECT message FROM deleted_message WHERE deleted_at < ?1 ORDER BY message DESC LIMIT 1",
        )?;
        let mut purged = Purged::default();
        while let Some(message) = next
            .query_row([deleted_before], |row| row.get(0))
            .optional()?
        {
            for (message, chat) in self.below(message)? {
                purged.more = Instant::now() >= end;
                if purged.more {
                    break;
                }
                purged.chats.insert(chat);
                for sql in [
                    "UPDATE message SET shown = NULL WHERE shown = ?1",
                    "DELETE FROM message WHERE id = ?1",
                ] {
                    transaction.prepare_cached(sql)?.execute([message])?;
                }
            }
            if purged.more {
                break;
            }
        }
        drop(next);
        transaction.commit()?;
        Ok(purged)
    }

    /// Returns a message with its descendants, the last one first: those that were deleted at a later date go with it.
    fn below(&self, message: i64) -> Result<Vec<(i64, ChatId)>, StoreError> {
        let mut read = self.db.prepare_cached(
            "WITH RECURSIVE down (id) AS (
                 SELECT ?1
                 UNION ALL
                 SELECT message.id FROM down JOIN message ON message.parent = down.id
             )
             SELECT message.id, message.chat FROM down JOIN message ON message.id = down.id ORDER BY message.id DESC",
        )?;
        let rows = read.query_map([message], |row| Ok((row.get(0)?, ChatId(row.get(1)?))))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
