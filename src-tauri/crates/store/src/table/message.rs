//! Messages: the tree of each chat.
//!
//! Nothing is overwritten: an edit or another answer is a sibling. Only continuing an answer
//! changes a complete text, and undo restores the former one. `chat.leaf` is the end of the shown
//! branch, and every message stores in `shown` which of its children was shown last, so that
//! returning to a branch returns to its leaf.

mod steps;

use inference::{Parts, Role};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StoreError;
use crate::table::id::{ChatId, MessageId};
use crate::table::part;

pub(crate) use steps::STEPS;

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
pub struct NewMessage {
    /// The chat.
    pub chat: ChatId,
    /// Message that it follows.
    pub parent: Option<MessageId>,
    /// Its author.
    pub role: Role,
    /// Its state.
    pub state: MessageState,
    /// Its parts so far.
    pub parts: Parts,
    /// True if thinking is requested.
    pub thinks: bool,
    /// Unix seconds.
    pub created_at: i64,
}

/// The part of an answer's row that is journaled while it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The parts.
    pub parts: Parts,
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

const COLUMNS: &str = "message.id AS id, message.chat AS chat, message.parent AS parent, role, state, \
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
    fn read(db: &Connection, row: &Row<'_>) -> rusqlite::Result<MessageRow> {
        let id = |column: &str| {
            row.get::<_, Option<i64>>(column)
                .map(|id| id.map(MessageId))
        };
        let code: Option<String> = row.get("error_code")?;
        let cause: Option<String> = row.get("error_message")?;
        let message = MessageId(row.get("id")?);
        Ok(MessageRow {
            id: message,
            chat: ChatId(row.get("chat")?),
            parent: id("parent")?,
            role: Role::from_name(row.get_ref("role")?.as_str()?)
                .ok_or(FromSqlError::InvalidType)?,
            state: row.get("state")?,
            progress: Progress {
                parts: part::of_message(db, message)?,
                thinking_ms: row.get("thinking_ms")?,
                tokens: unpack(row.get_ref("tokens")?.as_blob()?),
                model: row.get("model")?,
                guide: row.get("guide")?,
            },
            thinks: row.get("thinks")?,
            length: row.get("length_wish")?,
            stats: row
                .get::<_, Option<String>>("stats")?
                .and_then(|json| serde_json::from_str(&json).ok()),
            error: code
                .zip(cause)
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

/// Runs statements in a transaction: that which is open, or one of their own.
fn atomically<T>(
    db: &Connection,
    act: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let own = db
        .is_autocommit()
        .then(|| db.unchecked_transaction())
        .transpose()?;
    let made = act()?;
    own.map_or(Ok(()), rusqlite::Transaction::commit)?;
    Ok(made)
}

/// Ends a message that was added, unless it is in progress.
pub(crate) fn set_state(
    db: &Connection,
    message: MessageId,
    state: MessageState,
) -> rusqlite::Result<()> {
    if state != MessageState::Writing {
        db.prepare_cached("UPDATE message SET state = ?2 WHERE id = ?1")?
            .execute((message.0, state))?;
    }
    Ok(())
}

/// Gives a copy in progress the parts and the state of a message.
pub(crate) fn copy_parts(
    from: &Connection,
    message: MessageId,
    to: &Connection,
    copy: MessageId,
) -> rusqlite::Result<()> {
    part::set(to, copy, &part::of_message(from, message)?)?;
    let mut state = from.prepare_cached("SELECT state FROM message WHERE id = ?1")?;
    let state = state.query_row([message.0], |row| row.get(0))?;
    set_state(to, copy, state)
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
            .query_row([message.0], |row| MessageRow::read(self.db, row))
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
        let rows = read.query_map((leaf.0, after.map(|id| id.0)), |row| {
            MessageRow::read(self.db, row)
        })?;
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
    pub fn add(&self, message: &NewMessage) -> Result<MessageId, StoreError> {
        let NewMessage {
            chat,
            parent,
            role,
            state,
            parts,
            thinks,
            created_at,
        } = message;
        atomically(self.db, || {
            self.db
                .prepare_cached(
                    "INSERT INTO message (chat, parent, role, state, thinks, created_at)
                     VALUES (?1, ?2, ?3, 'writing', ?4, ?5)",
                )?
                .execute((
                    chat.0,
                    parent.map(|id| id.0),
                    role.name(),
                    thinks,
                    created_at,
                ))?;
            let id = MessageId(self.db.last_insert_rowid());
            part::set(self.db, id, parts)?;
            set_state(self.db, id, *state)?;
            self.show(id)?;
            Ok(id)
        })
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

    /// Journals an answer in progress. It is an error if it has ended.
    pub fn journal(&self, message: MessageId, progress: &Progress) -> Result<(), StoreError> {
        atomically(self.db, || {
            self.db
                .prepare_cached(
                    "UPDATE message SET thinking_ms = ?2, tokens = ?3, model = ?4, guide = ?5 WHERE id = ?1",
                )?
                .execute((
                    message.0,
                    progress.thinking_ms,
                    pack(&progress.tokens),
                    &progress.model,
                    &progress.guide,
                ))?;
            Ok(part::set(self.db, message, &progress.parts)?)
        })
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
        atomically(self.db, || {
            self.reopen(row.id)?;
            self.journal(row.id, &row.progress)?;
            self.db
                .prepare_cached("UPDATE message SET stats = NULL WHERE id = ?1")?
                .execute([row.id.0])?;
            self.end(row.id, row.state, row.stats.as_ref(), row.error.as_ref())?;
            self.omit(row.id, &row.omitted)
        })
    }

    /// Copies a message into another chat, below `parent`. The parts that its prompt left out refer to messages of its
    /// own chat: [`MessageTable::omit`] sets them.
    pub fn copy(
        &self,
        message: MessageId,
        chat: ChatId,
        parent: Option<MessageId>,
    ) -> Result<MessageId, StoreError> {
        atomically(self.db, || {
            let copied = self
                .db
                .prepare_cached(&format!(
                    "INSERT INTO message (chat, parent, role, state, thinks, thinking_ms, tokens, model,
                         stats, error_code, error_message, omitted_messages, omitted_thinking, created_at, length_wish,
                         prompt_leaf, read_again, guide)
                     SELECT ?2, ?3, role, 'writing', thinks, thinking_ms, tokens, model,
                         stats, error_code, error_message, omitted_messages, omitted_thinking, created_at, length_wish,
                         prompt_leaf, read_again, guide
                     FROM message WHERE id = ?1 AND NOT {IS_DELETED}"
                ))?
                .execute((message.0, chat.0, parent.map(|id| id.0)))?;
            if copied == 0 {
                return Err(StoreError::NotFound("message"));
            }
            let copy = MessageId(self.db.last_insert_rowid());
            copy_parts(self.db, message, self.db, copy)?;
            Ok(copy)
        })
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
