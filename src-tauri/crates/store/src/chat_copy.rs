//! A chat in another store: how a temporary one is kept.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::Store;
use crate::error::StoreError;
use crate::table::draft::DraftPlace;
use crate::table::id::{ChatId, MessageId};

/// Columns of a message that name another message of its chat.
const REFERENCES: [&str; 4] = ["parent", "shown", "kept_from", "thinking_from"];

/// The id that no message has: SQLite counts from 1.
pub(crate) const NO_MESSAGE: i64 = 0;

impl Store {
    /// Copies a chat with all of its messages, its draft and its preset into another store, and returns its id there. It is in no folder
    /// there. All or nothing.
    pub fn copy_chat(&self, chat: ChatId, to: &Store) -> Result<ChatId, StoreError> {
        let row = self.chats().get(chat)?;
        let draft = self.drafts().get(DraftPlace::Chat(chat))?;
        let preset = self.presets().of(DraftPlace::Chat(chat))?;
        let messages = Rows::read(&self.db, "message", "chat = ?1 ORDER BY id", chat.0)?;
        let of_chat = "message IN (SELECT id FROM message WHERE chat = ?1)";
        let deleted = Rows::read(&self.db, "deleted_message", of_chat, chat.0)?;
        to.transaction(|to| {
            let copy = to.chats().create(&row.title, &row.today, row.created_at)?;
            to.chats().touch(copy, row.updated_at)?;
            let ids = messages.new_ids(&to.db)?;
            messages.insert(&to.db, |column, value| match (column, &value) {
                ("chat", _) => Value::Integer(copy.0),
                // It gets one of its own.
                ("moment", _) => Value::Null,
                // The other chat stays in memory, and its ids are given again.
                ("prompt_leaf", Value::Integer(leaf))
                    if MessageId(*leaf).is_temporary() && !copy.is_temporary() =>
                {
                    Value::Integer(NO_MESSAGE)
                }
                (_, Value::Integer(id)) if column == "id" || REFERENCES.contains(&column) => {
                    ids.get(id).copied().map_or(Value::Null, Value::Integer)
                }
                _ => value,
            })?;
            deleted.insert(&to.db, |column, value| match value {
                Value::Integer(id) if column != "deleted_at" => {
                    ids.get(&id).copied().map_or(Value::Null, Value::Integer)
                }
                value => value,
            })?;
            if let Some(leaf) = row.leaf.and_then(|leaf| ids.get(&leaf.0)) {
                to.db
                    .execute("UPDATE chat SET leaf = ?2 WHERE id = ?1", (copy.0, leaf))?;
            }
            to.drafts().put(DraftPlace::Chat(copy), &draft)?;
            to.presets()
                .choose(DraftPlace::Chat(copy), preset.as_ref())?;
            Ok(copy)
        })
    }
}

/// Rows of a table, with all of its columns.
struct Rows {
    table: &'static str,
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    /// The rows for which `condition` holds, in which `?1` is `value`.
    fn read(
        db: &Connection,
        table: &'static str,
        condition: &str,
        value: i64,
    ) -> Result<Rows, StoreError> {
        let mut read = db.prepare(&format!("SELECT * FROM {table} WHERE {condition}"))?;
        let columns: Vec<String> = read.column_names().map(str::to_owned).collect();
        let rows = read.query_map([value], |row| {
            (0..columns.len()).map(|column| row.get(column)).collect()
        })?;
        let rows = rows.collect::<rusqlite::Result<_>>()?;
        Ok(Rows {
            table,
            columns,
            rows,
        })
    }

    /// For the id of each row one that no row has had in `db`.
    fn new_ids(&self, db: &Connection) -> Result<HashMap<i64, i64>, StoreError> {
        let used: i64 = db.query_row(
            "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?1), 0)",
            [self.table],
            |row| row.get(0),
        )?;
        let at = self.columns.iter().position(|column| column == "id");
        let ids = self.rows.iter().filter_map(|row| match row.get(at?) {
            Some(Value::Integer(id)) => Some(*id),
            _ => None,
        });
        Ok(ids.zip(used + 1..).collect())
    }

    /// Inserts the rows, with each value as `change` makes it of its column and what it is here.
    fn insert(
        self,
        db: &Connection,
        change: impl Fn(&str, Value) -> Value,
    ) -> Result<(), StoreError> {
        let places: Vec<String> = (1..=self.columns.len())
            .map(|at| format!("?{at}"))
            .collect();
        let mut insert = db.prepare(&format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.table,
            self.columns.join(", "),
            places.join(", ")
        ))?;
        for row in self.rows {
            let values = self.columns.iter().zip(row);
            let values = values.map(|(column, value)| change(column, value));
            insert.execute(params_from_iter(values))?;
        }
        Ok(())
    }
}
