//! Messages: the tree of each chat.
//!
//! Nothing is overwritten: an edit or another answer is a sibling. Only continuing an answer
//! changes a complete text, and undo restores the former one. `chat.leaf` is the end of the shown
//! branch, and every message stores in `shown` which of its children was shown last, so that
//! returning to a branch returns to its leaf.

use inference::Role;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::id::{ChatId, MessageId};

// No cascade along `parent`: SQLite would recurse once per message, and only up to 1,000 times. Messages are deleted
// with their chat, and the key is checked then.
pub(crate) const STEPS: &[Step] = &[CREATE, CONTEXT, LENGTH, MOMENT, GUIDE];

const CREATE: Step = Step {
    version: 1,
    sql: "CREATE TABLE message (
              id               INTEGER PRIMARY KEY AUTOINCREMENT,
              chat             INTEGER NOT NULL REFERENCES chat (id) ON DELETE CASCADE,
              parent           INTEGER REFERENCES message (id) DEFERRABLE INITIALLY DEFERRED,
              shown            INTEGER REFERENCES message (id) DEFERRABLE INITIALLY DEFERRED,
              role             TEXT    NOT NULL CHECK (role IN ('user', 'assistant')),
              state            TEXT    NOT NULL CHECK (state IN
                                   ('writing', 'done', 'stopped', 'interrupted', 'limit', 'failed')),
              text             TEXT    NOT NULL,
              thinks           INTEGER NOT NULL,
              thinking         TEXT,
              thinking_ms      INTEGER,
              tokens           BLOB    NOT NULL DEFAULT x'',
              model            TEXT,
              stats            TEXT,
              error_code       TEXT,
              error_message    TEXT,
              kept_from        INTEGER,
              thinking_from    INTEGER,
              omitted_messages INTEGER NOT NULL DEFAULT 0,
              omitted_thinking INTEGER NOT NULL DEFAULT 0,
              created_at       INTEGER NOT NULL
          ) STRICT;
          CREATE INDEX message_of_chat ON message (chat, parent);
          CREATE INDEX message_parent ON message (parent);
          CREATE INDEX message_shown ON message (shown);
          CREATE INDEX chat_leaf ON chat (leaf);
          CREATE INDEX message_writing ON message (id) WHERE state = 'writing';",
};

// `prompt_leaf` refers to another chat, which may be purged: an id is never given twice.
const CONTEXT: Step = Step {
    version: 4,
    sql: "ALTER TABLE message ADD COLUMN prompt_leaf INTEGER;
          ALTER TABLE message ADD COLUMN read_again INTEGER NOT NULL DEFAULT 0;",
};

const LENGTH: Step = Step {
    version: 4,
    sql: "ALTER TABLE message ADD COLUMN length_wish TEXT CHECK (length_wish IN ('shorter', 'longer'));",
};

const GUIDE: Step = Step {
    version: 6,
    sql: "ALTER TABLE message ADD COLUMN guide TEXT;",
};

/// Position of a message in time among all others, whatever the order of writing: imports and copies bring old ones.
/// The indices of the search name messages by it, because they give the last first without sorting.
///
/// It is a number for 16 seconds, or the next free one: close numbers keep the indices small. A message without a free
/// number nearby comes before all others.
const MOMENT: Step = Step {
    version: 4,
    sql: "ALTER TABLE message ADD COLUMN moment INTEGER;
          UPDATE message SET moment = placed.moment FROM (
              SELECT id, place + max((created_at >> 4) - place) OVER (ORDER BY place) AS moment
              FROM (SELECT id, created_at, row_number() OVER (ORDER BY created_at, id) AS place FROM message)
          ) AS placed WHERE placed.id = message.id;
          CREATE UNIQUE INDEX message_moment ON message (moment);
          CREATE TRIGGER message_gets_moment AFTER INSERT ON message BEGIN
              UPDATE message SET moment = (
                  SELECT coalesce(min(next), (SELECT min(moment) - 1 FROM message)) FROM (
                      SELECT time + width AS beyond, coalesce(
                          (SELECT max(moment) + 1 FROM message WHERE moment >= time AND moment < time + width), time
                      ) AS next
                      FROM (SELECT new.created_at >> 4 AS time),
                           (SELECT column1 AS width FROM (VALUES (1), (16), (256), (4096), (65536), (1048576)))
                  ) WHERE next < beyond
              ) WHERE id = new.id;
          END;",
};

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum MessageState {
    /// It is in progress or queued.
    Writing,
    /// It is complete.
    Done,
    /// The user stopped it.
    Stopped,
    /// The process ended during the answer.
    Interrupted,
    /// The token limit, or the end of the context, was reached.
    Limit,
    /// It failed.
    Failed,
}

macro_rules! stored_by_name {
    ($type:ident { $($variant:ident = $name:literal),+ }) => {
        impl $type {
            /// Returns the stored name.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.name().into())
            }
        }

        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                match value.as_str()? { $($name => Ok($type::$variant),)+ _ => Err(FromSqlError::InvalidType) }
            }
        }
    };
}

stored_by_name!(MessageState {
    Writing = "writing",
    Done = "done",
    Stopped = "stopped",
    Interrupted = "interrupted",
    Limit = "limit",
    Failed = "failed"
});

/// Requested length of an answer, beside its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum LengthWish {
    /// Shorter than usual.
    Shorter,
    /// Longer than usual.
    Longer,
}

stored_by_name!(LengthWish {
    Shorter = "shorter",
    Longer = "longer"
});

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageRow {
    /// Its id.
    pub id: MessageId,
    /// Its chat.
    pub chat: ChatId,
    /// Message that it follows.
    pub parent: Option<MessageId>,
    /// Its author.
    pub role: Role,
    /// Its state.
    pub state: MessageState,
    /// Progress so far.
    pub progress: Progress,
    /// True if thinking was requested.
    pub thinks: bool,
    /// Requested length.
    pub length: Option<LengthWish>,
    /// Statistics of the generation, as JSON.
    pub stats: Option<Value>,
    /// Reason for a failure.
    pub error: Option<ErrorRow>,
    /// Parts that its prompt left out.
    pub omitted: OmittedRow,
    /// Leaf of the source branch in another chat, if it is a question whose answers are given from there.
    pub prompt_leaf: Option<MessageId>,
    /// True if the next answer reads the parts that its prompt left out.
    pub read_again: bool,
    /// Unix seconds.
    pub created_at: i64,
}

/// A message to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage<'a> {
    /// The chat.
    pub chat: ChatId,
    /// Message that it follows.
    pub parent: Option<MessageId>,
    /// Its author.
    pub role: Role,
    /// Its state.
    pub state: MessageState,
    /// Its text so far.
    pub text: &'a str,
    /// True if thinking is requested.
    pub thinks: bool,
    /// Unix seconds.
    pub created_at: i64,
}

/// The part of an answer's row that is journaled while it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The text.
    pub text: String,
    /// The thinking.
    pub thinking: Option<String>,
    /// Milliseconds of thinking.
    pub thinking_ms: Option<u32>,
    /// Generated ids, thinking and tags included.
    pub tokens: Vec<u32>,
    /// Fingerprint of the model that generated them.
    pub model: Option<String>,
    /// Id of the guide's topic that the text is taken from, if no model wrote it.
    pub guide: Option<String>,
}

/// Reason for the failure of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRow {
    /// A code.
    pub code: String,
    /// The cause in words.
    pub message: String,
}

/// Parts of the conversation that an answer's prompt left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OmittedRow {
    /// First message that was sent; `None`: all were.
    pub kept_from: Option<MessageId>,
    /// First message that was sent with its thinking; `None`: all were.
    pub thinking_from: Option<MessageId>,
    /// Messages left out.
    pub messages: u32,
    /// Answers sent without their thinking.
    pub thinking: u32,
}

const COLUMNS: &str = "message.id AS id, message.chat AS chat, message.parent AS parent, role, state, text, thinking, \
     thinking_ms, tokens, model, thinks, stats, error_code, error_message, kept_from, thinking_from, omitted_messages, \
     omitted_thinking, message.created_at AS created_at, prompt_leaf, read_again, length_wish, guide";

/// Condition for a row of `message` that was deleted, or whose ancestor was.
pub(crate) const IS_DELETED: &str =
    "EXISTS (SELECT 1 FROM deleted_message WHERE deleted_message.message = message.id)";

/// Query from a message down to the leaf that was shown last, or along the latest messages.
const DOWN: &str = "WITH RECURSIVE down (id, depth) AS (
         SELECT ?1, 0
         UNION ALL
         SELECT coalesce(shown, (SELECT max(id) FROM message AS child WHERE child.parent = message.id
                                 AND id NOT IN (SELECT message FROM deleted_message))),
                depth + 1
         FROM down JOIN message ON message.id = down.id
     )";
const LEAF: &str = "SELECT id FROM down WHERE id IS NOT NULL ORDER BY depth DESC LIMIT 1";

impl MessageRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
        let id = |column: &str| {
            row.get::<_, Option<i64>>(column)
                .map(|id| id.map(MessageId))
        };
        let code: Option<String> = row.get("error_code")?;
        let message: Option<String> = row.get("error_message")?;
        Ok(MessageRow {
            id: MessageId(row.get("id")?),
            chat: ChatId(row.get("chat")?),
            parent: id("parent")?,
            role: Role::from_name(row.get_ref("role")?.as_str()?)
                .ok_or(FromSqlError::InvalidType)?,
            state: row.get("state")?,
            progress: Progress {
                text: row.get("text")?,
                thinking: row.get("thinking")?,
                thinking_ms: row.get("thinking_ms")?,
                tokens: unpack(row.get_ref("tokens")?.as_blob()?),
                model: row.get("model")?,
                guide: row.get("guide")?,
            },
            thinks: row.get("thinks")?,
            length: row.get("length_wish")?,
            stats: row
                .get::<_, Option<String>>(11)?
                .and_then(|json| serde_json::from_str(&json).ok()),
            error: code
                .zip(message)
                .map(|(code, message)| ErrorRow { code, message }),
            omitted: OmittedRow {
                kept_from: id("kept_from")?,
                thinking_from: id("thinking_from")?,
                messages: row.get("omitted_messages")?,
                thinking: row.get("omitted_thinking")?,
            },
            created_at: row.get("created_at")?,
            prompt_leaf: id("prompt_leaf")?,
            read_again: row.get("read_again")?,
        })
    }
}

/// Packs ids into four bytes each, little endian.
pub(crate) fn pack(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

pub(crate) fn unpack(bytes: &[u8]) -> Vec<u32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|id| u32::from_le_bytes(*id))
        .collect()
}

/// The messages.
pub struct MessageTable<'s> {
    pub(crate) db: &'s Connection,
}

impl MessageTable<'_> {
    /// Returns a message that is not deleted, nor its chat.
    pub fn get(&self, message: MessageId) -> Result<MessageRow, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM message JOIN chat ON chat.id = message.chat
             WHERE message.id = ?1 AND chat.deleted_at IS NULL AND NOT {IS_DELETED}"
        );
        let row = self
            .db
            .prepare_cached(&sql)?
            .query_row([message.0], MessageRow::read)
            .optional()?;
        row.ok_or(StoreError::NotFound("message"))
    }

    /// Returns the messages from the root down to this one.
    pub fn path(&self, leaf: MessageId) -> Result<Vec<MessageRow>, StoreError> {
        self.path_after(None, leaf)
    }

    /// Returns the messages below `after`, an ancestor, down to this one; `None`: from the root.
    pub fn path_after(
        &self,
        after: Option<MessageId>,
        leaf: MessageId,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let sql = format!(
            "WITH RECURSIVE up (id, next, depth) AS (
                 SELECT id, parent, 0 FROM message WHERE id = ?1
                 UNION ALL
                 SELECT message.id, message.parent, depth + 1 FROM up JOIN message ON message.id = up.next
                 WHERE up.next IS NOT ?2
             )
             SELECT {COLUMNS} FROM up JOIN message ON message.id = up.id ORDER BY depth DESC"
        );
        let mut read = self.db.prepare_cached(&sql)?;
        let rows = read.query_map((leaf.0, after.map(|id| id.0)), MessageRow::read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the children of `parent` in a chat, oldest first; `None`: the messages that begin it.
    pub fn children(
        &self,
        chat: ChatId,
        parent: Option<MessageId>,
    ) -> Result<Vec<MessageId>, StoreError> {
        let mut read = self.db.prepare_cached(&format!(
            "SELECT id FROM message WHERE chat = ?1 AND parent IS ?2 AND NOT {IS_DELETED} ORDER BY id"
        ))?;
        let rows = read.query_map((chat.0, parent.map(|id| id.0)), |row| {
            row.get(0).map(MessageId)
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns every message of a chat with its parent, oldest first: the shape of the tree, without deleted messages
    /// and their descendants.
    pub fn tree(&self, chat: ChatId) -> Result<Vec<(MessageId, Option<MessageId>)>, StoreError> {
        let mut read = self.db.prepare_cached(&format!(
            "SELECT id, parent FROM message WHERE chat = ?1 AND NOT {IS_DELETED} ORDER BY id"
        ))?;
        let rows = read.query_map([chat.0], |row| {
            Ok((
                MessageId(row.get(0)?),
                row.get::<_, Option<i64>>(1)?.map(MessageId),
            ))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Adds a message and shows it.
    pub fn add(&self, message: &NewMessage<'_>) -> Result<MessageId, StoreError> {
        let NewMessage {
            chat,
            parent,
            role,
            state,
            text,
            thinks,
            created_at,
        } = message;
        self.db
            .prepare_cached(
                "INSERT INTO message (chat, parent, role, state, text, thinks, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((
                chat.0,
                parent.map(|id| id.0),
                role.name(),
                state,
                text,
                thinks,
                created_at,
            ))?;
        let id = MessageId(self.db.last_insert_rowid());
        self.show(id)?;
        Ok(id)
    }

    /// Shows the branch through this message, down to the leaf that was shown last, or to its latest message.
    pub fn show(&self, message: MessageId) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "WITH RECURSIVE up (id, parent) AS (
                     SELECT id, parent FROM message
                     WHERE id = ?1 AND id NOT IN (SELECT message FROM deleted_message)
                     UNION ALL
                     SELECT message.id, message.parent FROM up JOIN message ON message.id = up.parent
                 )
                 UPDATE message SET shown = up.id FROM up WHERE message.id = up.parent AND shown IS NOT up.id",
            )?
            .execute([message.0])?;
        let shown = self
            .db
            .prepare_cached(&format!(
                "{DOWN} UPDATE chat SET leaf = ({LEAF})
                 WHERE id = (SELECT chat FROM message WHERE id = ?1 AND NOT {IS_DELETED})"
            ))?
            .execute([message.0])?;
        if shown == 0 {
            Err(StoreError::NotFound("message"))
        } else {
            Ok(())
        }
    }

    /// Returns the leaf that [`MessageTable::show`] would show. Nothing is written.
    pub fn leaf_below(&self, message: MessageId) -> Result<MessageId, StoreError> {
        let leaf = self
            .db
            .prepare_cached(&format!("{DOWN} {LEAF}"))?
            .query_row([message.0], |row| row.get(0))?;
        Ok(MessageId(leaf))
    }

    /// Journals an answer in progress.
    pub fn journal(&self, message: MessageId, progress: &Progress) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "UPDATE message SET text = ?2, thinking = ?3, thinking_ms = ?4, tokens = ?5, model = ?6, guide = ?7
                 WHERE id = ?1",
            )?
            .execute((
                message.0,
                &progress.text,
                &progress.thinking,
                progress.thinking_ms,
                pack(&progress.tokens),
                &progress.model,
                &progress.guide,
            ))?;
        Ok(())
    }

    /// Sets the end of an answer. `None` keeps the statistics.
    pub fn end(
        &self,
        message: MessageId,
        state: MessageState,
        stats: Option<&Value>,
        error: Option<&ErrorRow>,
    ) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "UPDATE message SET state = ?2, stats = coalesce(?3, stats), error_code = ?4, error_message = ?5
                 WHERE id = ?1",
            )?
            .execute((
                message.0,
                state,
                stats.map(Value::to_string),
                error.map(|error| &error.code),
                error.map(|error| &error.message),
            ))?;
        Ok(())
    }

    /// Marks an answer as in progress again.
    pub fn reopen(&self, message: MessageId) -> Result<(), StoreError> {
        self.end(message, MessageState::Writing, None, None)
    }

    /// Stores the requested length of an answer.
    pub fn set_length(&self, message: MessageId, length: LengthWish) -> Result<(), StoreError> {
        self.db
            .prepare_cached("UPDATE message SET length_wish = ?2 WHERE id = ?1")?
            .execute((message.0, length))?;
        Ok(())
    }

    /// Restores the former content of an answer that was continued.
    pub fn put_back(&self, row: &MessageRow) -> Result<(), StoreError> {
        self.journal(row.id, &row.progress)?;
        self.db
            .prepare_cached("UPDATE message SET stats = NULL WHERE id = ?1")?
            .execute([row.id.0])?;
        self.end(row.id, row.state, row.stats.as_ref(), row.error.as_ref())?;
        self.omit(row.id, &row.omitted)
    }

    /// Copies a message into another chat, below `parent`. The parts that its prompt left out refer to messages of its
    /// own chat: [`MessageTable::omit`] sets them.
    pub fn copy(
        &self,
        message: MessageId,
        chat: ChatId,
        parent: Option<MessageId>,
    ) -> Result<MessageId, StoreError> {
        let copied = self
            .db
            .prepare_cached(&format!(
                "INSERT INTO message (chat, parent, role, state, text, thinks, thinking, thinking_ms, tokens, model,
                     stats, error_code, error_message, omitted_messages, omitted_thinking, created_at, length_wish,
                     prompt_leaf, read_again, guide)
                 SELECT ?2, ?3, role, state, text, thinks, thinking, thinking_ms, tokens, model,
                     stats, error_code, error_message, omitted_messages, omitted_thinking, created_at, length_wish,
                     prompt_leaf, read_again, guide
                 FROM message WHERE id = ?1 AND NOT {IS_DELETED}"
            ))?
            .execute((message.0, chat.0, parent.map(|id| id.0)))?;
        if copied == 0 {
            return Err(StoreError::NotFound("message"));
        }
        Ok(MessageId(self.db.last_insert_rowid()))
    }

    /// Stores the parts that an answer's prompt left out.
    pub fn omit(&self, message: MessageId, omitted: &OmittedRow) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "UPDATE message SET kept_from = ?2, thinking_from = ?3, omitted_messages = ?4, omitted_thinking = ?5
                 WHERE id = ?1",
            )?
            .execute((
                message.0,
                omitted.kept_from.map(|id| id.0),
                omitted.thinking_from.map(|id| id.0),
                omitted.messages,
                omitted.thinking,
            ))?;
        Ok(())
    }

    /// Sets the branch of another chat that the answers to a question are given from.
    pub fn set_prompt_leaf(&self, question: MessageId, leaf: MessageId) -> Result<(), StoreError> {
        self.db
            .prepare_cached("UPDATE message SET prompt_leaf = ?2 WHERE id = ?1")?
            .execute((question.0, leaf.0))?;
        Ok(())
    }

    /// Sets whether the next answer reads the parts that this one's prompt left out.
    pub fn set_read_again(&self, answer: MessageId, again: bool) -> Result<(), StoreError> {
        self.db
            .prepare_cached("UPDATE message SET read_again = ?2 WHERE id = ?1")?
            .execute((answer.0, again))?;
        Ok(())
    }

    /// Returns the answers that are in progress, or were when their process ended.
    pub fn writing(&self) -> Result<Vec<(ChatId, MessageId)>, StoreError> {
        let mut read = self
            .db
            .prepare("SELECT chat, id FROM message WHERE state = 'writing' ORDER BY id")?;
        let rows = read.query_map([], |row| Ok((ChatId(row.get(0)?), MessageId(row.get(1)?))))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Marks the unfinished answers of an earlier process as interrupted. Returns their number.
    pub(crate) fn interrupt_writing(&self) -> Result<usize, StoreError> {
        Ok(self.db.execute(
            "UPDATE message SET state = 'interrupted' WHERE state = 'writing'",
            [],
        )?)
    }
}
