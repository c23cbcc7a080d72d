//! What was typed and not sent: for each chat, and for the chat that is not begun yet.

use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::chat::ChatId;

// The new chat's draft is the row 0: a rowid is never 0 for a chat.
pub(crate) const STEPS: &[Step] = &[Step {
    version: 1,
    sql: "CREATE TABLE draft (
              chat INTEGER PRIMARY KEY,
              text TEXT NOT NULL
          ) STRICT;
          CREATE TRIGGER chat_drops_draft AFTER DELETE ON chat BEGIN
              DELETE FROM draft WHERE chat = old.id;
          END;",
}];

/// Where a draft stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftPlace {
    /// Where a new chat begins.
    NewChat,
    /// In a chat.
    Chat(ChatId),
}

impl DraftPlace {
    fn row(self) -> i64 {
        match self {
            DraftPlace::NewChat => 0,
            DraftPlace::Chat(chat) => chat.0,
        }
    }
}

/// The drafts.
pub struct Drafts<'s> {
    pub(crate) db: &'s Connection,
}

impl Drafts<'_> {
    /// The draft of a place; empty where there is none.
    pub fn get(&self, place: DraftPlace) -> Result<String, StoreError> {
        let mut read = self
            .db
            .prepare_cached("SELECT text FROM draft WHERE chat = ?1")?;
        Ok(read
            .query_row([place.row()], |row| row.get(0))
            .optional()?
            .unwrap_or_default())
    }

    /// Keeps a draft. An empty text removes it.
    pub fn set(&self, place: DraftPlace, text: &str) -> Result<(), StoreError> {
        if text.is_empty() {
            self.db
                .prepare_cached("DELETE FROM draft WHERE chat = ?1")?
                .execute([place.row()])?;
        } else {
            self.db
                .prepare_cached(
                    "INSERT INTO draft (chat, text) VALUES (?1, ?2) ON CONFLICT (chat) DO UPDATE SET text = excluded.text",
                )?
                .execute((place.row(), text))?;
        }
        Ok(())
    }
}
