//! Presets, and the choice of each chat: one of them, and instructions of its own.

use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::draft::DraftPlace;
use crate::table::id::{ChatId, PresetId};
use crate::table::json::json;

/// Schema version that introduced presets.
pub(crate) const SINCE: u32 = 4;

// As with drafts, row 0 belongs to the new chat. A chat whose preset was deleted keeps its number, which is never
// reused, so that the deletion can be undone; temporary chats are in a store without presets.
pub(crate) const STEPS: &[Step] = &[CREATE, TOOLS];

const CREATE: Step = Step {
    version: SINCE,
    sql: "CREATE TABLE preset (
              id           INTEGER PRIMARY KEY AUTOINCREMENT,
              name         TEXT    NOT NULL,
              instructions TEXT    NOT NULL,
              thinking     INTEGER,
              sampling     TEXT    NOT NULL CHECK (json_valid(sampling))
          ) STRICT;
          CREATE TABLE chat_preset (
              chat         INTEGER PRIMARY KEY,
              preset       INTEGER,
              instructions TEXT    NOT NULL
          ) STRICT;
          CREATE TRIGGER chat_drops_preset AFTER DELETE ON chat BEGIN
              DELETE FROM chat_preset WHERE chat = old.id;
          END;",
};

/// Tools that are on, and those that a chat may call without consent, as JSON.
const TOOLS: Step = Step {
    version: 8,
    sql: "ALTER TABLE preset ADD COLUMN tools TEXT CHECK (json_valid(tools));
          ALTER TABLE chat_preset ADD COLUMN tools TEXT CHECK (json_valid(tools));
          CREATE TABLE allowed_tool (
              chat        INTEGER NOT NULL REFERENCES chat (id) ON DELETE CASCADE,
              fingerprint TEXT    NOT NULL,
              PRIMARY KEY (chat, fingerprint)
          ) STRICT, WITHOUT ROWID;",
};

/// A preset.
#[derive(Debug, Clone, PartialEq)]
pub struct PresetRow {
    /// Its id.
    pub id: PresetId,
    /// Its name.
    pub name: String,
    /// Instructions; if empty, those of the settings apply.
    pub instructions: String,
    /// Thinking of answers; `None`: the settings apply.
    pub thinking: Option<bool>,
    /// Sampling parameters, as JSON.
    pub sampling: Value,
    /// Names of the tools that are on; `None`: the settings apply.
    pub tools: Option<Vec<String>>,
}

/// Preset and instructions of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(deny_unknown_fields)]
pub struct ChatPreset {
    /// A preset, which may have been deleted; `None`: the settings apply.
    pub preset: Option<PresetId>,
    /// Instructions of its own, which replace the preset's; empty if there are none.
    pub instructions: String,
    /// Names of the tools that are on; `None`: those of the preset, or of the settings.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

/// The presets.
pub struct PresetTable<'s> {
    pub(crate) db: &'s Connection,
}

const COLUMNS: &str = "id, name, instructions, thinking, sampling, tools";

impl PresetRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<(PresetRow, String)> {
        let preset = PresetRow {
            id: PresetId(row.get("id")?),
            name: row.get("name")?,
            instructions: row.get("instructions")?,
            thinking: row.get("thinking")?,
            sampling: Value::Null,
            tools: names(row.get("tools")?)?,
        };
        Ok((preset, row.get("sampling")?))
    }

    fn with_sampling((preset, sampling): (PresetRow, String)) -> Result<PresetRow, StoreError> {
        let sampling =
            serde_json::from_str(&sampling).map_err(|error| StoreError::Sqlite(Box::new(error)))?;
        Ok(PresetRow { sampling, ..preset })
    }
}

impl PresetTable<'_> {
    /// Returns all presets, in the order of their names.
    pub fn list(&self) -> Result<Vec<PresetRow>, StoreError> {
        self.list_columns(COLUMNS)
    }

    /// Returns all presets of a database with this schema version, which knows presets.
    pub(crate) fn list_of_version(&self, version: u32) -> Result<Vec<PresetRow>, StoreError> {
        if version < TOOLS.version {
            self.list_columns("id, name, instructions, thinking, sampling, NULL AS tools")
        } else {
            self.list()
        }
    }

    fn list_columns(&self, columns: &str) -> Result<Vec<PresetRow>, StoreError> {
        let sql = format!("SELECT {columns} FROM preset ORDER BY name COLLATE NOCASE, id");
        let mut read = self.db.prepare_cached(&sql)?;
        let rows = read.query_map([], PresetRow::read)?;
        rows.map(|row| PresetRow::with_sampling(row?)).collect()
    }

    /// Returns a preset; `None` if it was deleted.
    pub fn get(&self, preset: PresetId) -> Result<Option<PresetRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM preset WHERE id = ?1");
        let mut read = self.db.prepare_cached(&sql)?;
        let row = read.query_row([preset.0], PresetRow::read).optional()?;
        row.map(PresetRow::with_sampling).transpose()
    }

    /// Adds a preset; the id of the row is ignored.
    pub fn add(&self, preset: &PresetRow) -> Result<PresetId, StoreError> {
        self.write(
            "INSERT INTO preset VALUES (NULL, ?2, ?3, ?4, ?5, ?6)",
            preset,
        )?;
        Ok(PresetId(self.db.last_insert_rowid()))
    }

    /// Writes a preset under its id, replacing or restoring it.
    pub fn put(&self, preset: &PresetRow) -> Result<(), StoreError> {
        self.write(
            "INSERT INTO preset VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (id) DO UPDATE
             SET name = ?2, instructions = ?3, thinking = ?4, sampling = ?5, tools = ?6",
            preset,
        )
    }

    /// Deletes a preset. The settings then apply to its chats.
    pub fn delete(&self, preset: PresetId) -> Result<(), StoreError> {
        let mut delete = self.db.prepare_cached("DELETE FROM preset WHERE id = ?1")?;
        delete.execute([preset.0])?;
        Ok(())
    }

    /// Returns the choice of a chat, or of the new one; `None` if there is none.
    pub fn of(&self, place: DraftPlace) -> Result<Option<ChatPreset>, StoreError> {
        let sql = "SELECT preset, instructions, tools FROM chat_preset WHERE chat = ?1";
        let mut read = self.db.prepare_cached(sql)?;
        let chosen = read.query_row([place.row()], |row| {
            Ok(ChatPreset {
                preset: row.get::<_, Option<i64>>(0)?.map(PresetId),
                instructions: row.get(1)?,
                tools: names(row.get(2)?)?,
            })
        });
        Ok(chosen.optional()?)
    }

    /// Stores the choice of a chat, or of the new one.
    pub fn choose(&self, place: DraftPlace, chosen: Option<&ChatPreset>) -> Result<(), StoreError> {
        let Some(ChatPreset {
            preset,
            instructions,
            tools,
        }) = chosen
        else {
            let mut delete = self
                .db
                .prepare_cached("DELETE FROM chat_preset WHERE chat = ?1")?;
            delete.execute([place.row()])?;
            return Ok(());
        };
        let mut keep = self.db.prepare_cached(
            "INSERT INTO chat_preset VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (chat) DO UPDATE SET preset = ?2, instructions = ?3, tools = ?4",
        )?;
        let tools = tools.as_ref().map(json).transpose()?;
        keep.execute((
            place.row(),
            preset.map(|preset| preset.0),
            instructions,
            tools,
        ))?;
        Ok(())
    }

    fn write(&self, sql: &str, preset: &PresetRow) -> Result<(), StoreError> {
        let PresetRow {
            id,
            name,
            instructions,
            thinking,
            sampling,
            tools,
        } = preset;
        let tools = tools.as_ref().map(json).transpose()?;
        let mut write = self.db.prepare_cached(sql)?;
        write.execute((
            id.0,
            name,
            instructions,
            thinking,
            sampling.to_string(),
            tools,
        ))?;
        Ok(())
    }

    /// Returns the fingerprints of the tools that a chat may call without consent.
    pub fn allowed_tools(&self, chat: ChatId) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT fingerprint FROM allowed_tool WHERE chat = ?1";
        let mut read = self.db.prepare_cached(sql)?;
        let rows = read.query_map([chat.0], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Lets a chat call a tool without consent.
    pub fn allow_tool(&self, chat: ChatId, fingerprint: &str) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO allowed_tool VALUES (?1, ?2)";
        let mut write = self.db.prepare_cached(sql)?;
        write.execute((chat.0, fingerprint))?;
        Ok(())
    }
}

/// Reads a list of names.
pub(crate) fn names(json: Option<String>) -> rusqlite::Result<Option<Vec<String>>> {
    let names = json.map(|json| serde_json::from_str(&json)).transpose();
    names.map_err(|error| FromSqlError::Other(Box::new(error)).into())
}
