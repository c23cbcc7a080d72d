//! Copies of a chat in another store, by which a temporary chat is kept.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use crate::Store;
use crate::error::StoreError;
use crate::table::draft::DraftPlace;
use crate::table::id::{ChatId, MessageId};
use crate::table::message::{MessageState, copy_parts};

/// Columns of a message that name an earlier message of its chat.
const EARLIER: [&str; 3] = ["parent", "kept_from", "thinking_from"];

/// An id that no message has: SQLite counts from 1.
pub(crate) const NO_MESSAGE: i64 = 0;

/// Pointers that are set between two checks of the clock.
const LINKS: usize = 64;

/// A chat that is partly copied into another store. It is hidden until it is complete: the rest of an error or a crash
/// is purged. Until then none of its messages may change.
pub struct ChatCopy {
    chat: ChatId,
    copy: ChatId,
    /// The messages of the chat, in the order in which they were written.
    messages: Vec<i64>,
    /// Ids of the copies so far.
    ids: HashMap<i64, i64>,
    /// Number of copies with their pointer to the next one.
    linked: usize,
}

impl ChatCopy {
    /// Returns whether all messages are copied.
    pub fn is_whole(&self) -> bool {
        self.linked == self.messages.len()
    }

    /// Copies messages until the time limit, in one transaction. After an error the copy cannot continue.
    ///
    /// A text is indexed in one go, so that a long one may take longer.
    pub fn go_on(mut self, from: &Store, to: &Store, within: Duration) -> Result<Self, StoreError> {
        let start = Instant::now();
        let is_over = || start.elapsed() >= within;
        to.transaction(|to| {
            while let Some(message) = self.messages.get(self.ids.len()).copied() {
                let copied = self.copy_row(&from.db, &to.db, "message", "id", message)?;
                let id = copied.ok_or(StoreError::NotFound("message"))?;
                copy_parts(&from.db, MessageId(message), &to.db, MessageId(id))?;
                self.ids.insert(message, id);
                if is_over() {
                    return Ok(());
                }
            }
            while let Some(message) = self.messages.get(self.linked).copied() {
                self.link(message, &from.db, &to.db)?;
                self.linked += 1;
                if self.linked.is_multiple_of(LINKS) && is_over() {
                    return Ok(());
                }
            }
            Ok::<_, StoreError>(())
        })?;
        Ok(self)
    }

    /// Publishes the copy, with the present state of its chat beside the messages, and returns its id. It is in no
    /// folder.
    pub fn finish(self, from: &Store, to: &Store) -> Result<ChatId, StoreError> {
        let (chat, copy) = (self.chat, self.copy);
        let row = from.chats().get(chat)?;
        let draft = from.drafts().get(DraftPlace::Chat(chat))?;
        let preset = from.presets().of(DraftPlace::Chat(chat))?;
        to.transaction(|to| {
            for message in &self.messages {
                self.copy_row(&from.db, &to.db, "deleted_message", "message", *message)?;
            }
            to.chats().restore(copy)?;
            to.chats().rename(copy, &row.title)?;
            to.chats().touch(copy, row.updated_at)?;
            let leaf = row.leaf.and_then(|leaf| self.ids.get(&leaf.0));
            to.db
                .execute("UPDATE chat SET leaf = ?2 WHERE id = ?1", (copy.0, leaf))?;
            to.drafts().put(DraftPlace::Chat(copy), &draft)?;
            to.presets()
                .choose(DraftPlace::Chat(copy), preset.as_ref())?;
            Ok(copy)
        })
    }

    /// Copies the row of `message` in a table with all of its columns, if there is one. Returns the row's id.
    fn copy_row(
        &self,
        from: &Connection,
        to: &Connection,
        table: &str,
        key: &str,
        message: i64,
    ) -> Result<Option<i64>, StoreError> {
        let mut read = from.prepare_cached(&format!("SELECT * FROM {table} WHERE {key} = ?1"))?;
        let columns: Vec<String> = read.column_names().map(str::to_owned).collect();
        let row = read.query_row([message], |row| {
            let values = columns.iter().enumerate();
            let values = values.map(|(at, column)| Ok(self.value_in_copy(column, row.get(at)?)));
            values.collect::<rusqlite::Result<Vec<_>>>()
        });
        let Some(row) = row.optional()? else {
            return Ok(None);
        };
        let places: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
        to.prepare_cached(&format!(
            "INSERT INTO {table} ({}) VALUES ({})",
            columns.join(", "),
            places.join(", ")
        ))?
        .execute(params_from_iter(row))?;
        Ok(Some(to.last_insert_rowid()))
    }

    fn value_in_copy(&self, column: &str, value: Value) -> Value {
        match (column, value) {
            ("chat", _) => Value::Integer(self.copy.0),
            // The copy gets its own id and moment, and is linked when the next one exists.
            ("id" | "moment" | "shown", _) => Value::Null,
            // It ends once it has its parts.
            ("state", _) => Value::Text(MessageState::Writing.name().to_owned()),
            // The other chat stays in memory, and its ids are reused.
            ("prompt_leaf", Value::Integer(leaf))
                if MessageId(leaf).is_temporary() && !self.copy.is_temporary() =>
            {
                Value::Integer(NO_MESSAGE)
            }
            (column, Value::Integer(id))
                if EARLIER.contains(&column) || ["message", "root"].contains(&column) =>
            {
                self.ids
                    .get(&id)
                    .copied()
                    .map_or(Value::Null, Value::Integer)
            }
            (_, value) => value,
        }
    }

    fn link(&self, message: i64, from: &Connection, to: &Connection) -> Result<(), StoreError> {
        let shown: Option<i64> = from
            .prepare_cached("SELECT shown FROM message WHERE id = ?1")?
            .query_row([message], |row| row.get(0))?;
        if let Some(shown) = shown.and_then(|shown| self.ids.get(&shown)) {
            to.prepare_cached("UPDATE message SET shown = ?2 WHERE id = ?1")?
                .execute((self.ids.get(&message), shown))?;
        }
        Ok(())
    }
}

impl Store {
    /// Begins to copy a chat with all of its messages, its draft and its preset into another store.
    pub fn begin_copy(&self, chat: ChatId, to: &Store) -> Result<ChatCopy, StoreError> {
        let row = self.chats().get(chat)?;
        let mut read = self
            .db
            .prepare_cached("SELECT id FROM message WHERE chat = ?1 ORDER BY id")?;
        let messages = read.query_map([chat.0], |row| row.get(0))?;
        let messages = messages.collect::<rusqlite::Result<_>>()?;
        let copy = to.transaction(|to| {
            let chats = to.chats();
            let copy = chats.create(&row.title, &row.today, row.created_at)?;
            chats.hide(copy)?;
            Ok::<_, StoreError>(copy)
        })?;
        Ok(ChatCopy {
            chat,
            copy,
            messages,
            ids: HashMap::new(),
            linked: 0,
        })
    }
}
