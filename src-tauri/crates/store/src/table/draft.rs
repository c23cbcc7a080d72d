//! Drafts: typed, pasted or queued text that is not sent, for each chat and for a new chat.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::id::ChatId;
use crate::table::json::{json, listed};

// The new chat's draft is the row 0: a rowid is never 0 for a chat. Pasted text is long, so that it
// is not rewritten with each typed word.
pub(crate) const STEPS: &[Step] = &[
    Step {
        version: 1,
        sql: "CREATE TABLE draft (
              chat INTEGER PRIMARY KEY,
              text TEXT NOT NULL
          ) STRICT;
          CREATE TRIGGER chat_drops_draft AFTER DELETE ON chat BEGIN
              DELETE FROM draft WHERE chat = old.id;
          END;",
    },
    Step {
        version: 2,
        sql: "CREATE TABLE paste (
                  chat  INTEGER PRIMARY KEY,
                  texts TEXT NOT NULL
              ) STRICT;
              CREATE TRIGGER chat_drops_paste AFTER DELETE ON chat BEGIN
                  DELETE FROM paste WHERE chat = old.id;
              END;
              CREATE TABLE queue (
                  chat     INTEGER PRIMARY KEY,
                  messages TEXT NOT NULL
              ) STRICT;
              CREATE TRIGGER chat_drops_queue AFTER DELETE ON chat BEGIN
                  DELETE FROM queue WHERE chat = old.id;
              END;",
    },
];

/// Text that is not sent yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct Draft {
    /// Typed text.
    pub text: String,
    /// Long texts that were pasted, to be sent with it.
    pub pastes: Vec<String>,
    /// Messages to be sent after the current answer, in order.
    pub queue: Vec<QueuedMessage>,
}

/// A message that waits for the answer before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(deny_unknown_fields)]
pub struct QueuedMessage {
    /// Typed text.
    pub text: String,
    /// Long texts that were pasted, to be sent with it.
    pub pastes: Vec<String>,
    /// True if its answer is to be thought about.
    pub thinking: bool,
}

/// Owner of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftPlace {
    /// A new chat.
    NewChat,
    /// An existing chat.
    Chat(ChatId),
}

impl DraftPlace {
    pub(crate) fn row(self) -> i64 {
        match self {
            DraftPlace::NewChat => 0,
            DraftPlace::Chat(chat) => chat.0,
        }
    }
}

/// The drafts.
pub struct DraftTable<'s> {
    pub(crate) db: &'s Connection,
}

impl DraftTable<'_> {
    /// Returns a draft; empty if there is none.
    pub fn get(&self, place: DraftPlace) -> Result<Draft, StoreError> {
        let text = self.column("SELECT text FROM draft WHERE chat = ?1", place)?;
        let pastes: Option<String> =
            self.column("SELECT texts FROM paste WHERE chat = ?1", place)?;
        let queue: Option<String> =
            self.column("SELECT messages FROM queue WHERE chat = ?1", place)?;
        Ok(Draft {
            text: text.unwrap_or_default(),
            pastes: listed(pastes)?,
            queue: listed(queue)?,
        })
    }

    /// Stores the typed text. An empty text removes it.
    pub fn set(&self, place: DraftPlace, text: &str) -> Result<(), StoreError> {
        if text.is_empty() {
            self.remove("DELETE FROM draft WHERE chat = ?1", place)
        } else {
            self.keep(
                "INSERT INTO draft (chat, text) VALUES (?1, ?2) ON CONFLICT (chat) DO UPDATE SET text = excluded.text",
                place,
                text,
            )
        }
    }

    /// Stores the pasted texts.
    pub fn set_pastes(&self, place: DraftPlace, pastes: &[String]) -> Result<(), StoreError> {
        if pastes.is_empty() {
            self.remove("DELETE FROM paste WHERE chat = ?1", place)
        } else {
            self.keep(
                "INSERT INTO paste (chat, texts) VALUES (?1, ?2) ON CONFLICT (chat) DO UPDATE SET texts = excluded.texts",
                place,
                &json(pastes)?,
            )
        }
    }

    /// Stores the queued messages.
    pub fn set_queue(&self, place: DraftPlace, queue: &[QueuedMessage]) -> Result<(), StoreError> {
        if queue.is_empty() {
            self.remove("DELETE FROM queue WHERE chat = ?1", place)
        } else {
            self.keep(
                "INSERT INTO queue (chat, messages) VALUES (?1, ?2)
                 ON CONFLICT (chat) DO UPDATE SET messages = excluded.messages",
                place,
                &json(queue)?,
            )
        }
    }

    /// Replaces a whole draft.
    pub fn put(&self, place: DraftPlace, draft: &Draft) -> Result<(), StoreError> {
        self.set(place, &draft.text)?;
        self.set_pastes(place, &draft.pastes)?;
        self.set_queue(place, &draft.queue)
    }

    fn column<T: FromSql>(&self, sql: &str, place: DraftPlace) -> Result<Option<T>, StoreError> {
        let mut read = self.db.prepare_cached(sql)?;
        Ok(read.query_row([place.row()], |row| row.get(0)).optional()?)
    }

    fn keep(&self, sql: &str, place: DraftPlace, value: &str) -> Result<(), StoreError> {
        self.db.prepare_cached(sql)?.execute((place.row(), value))?;
        Ok(())
    }

    fn remove(&self, sql: &str, place: DraftPlace) -> Result<(), StoreError> {
        self.db.prepare_cached(sql)?.execute([place.row()])?;
        Ok(())
    }
}
