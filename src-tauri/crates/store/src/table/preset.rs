//! Presets, and the choice of each chat: one of them, and instructions of its own.

use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::draft::DraftPlace;
use crate::table::id::PresetId;

/// Schema version that introduced presets.
pub(crate) const SINCE: u32 = 4;

// As with drafts, row 0 belongs to the new chat. A chat whose preset was deleted keeps its number, which is never
// reused, so that the deletion can be undone; temporary chats are in a store without presets.
pub(crate) const STEPS: &[Step] = &[Step {
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
}];

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
}

/// The presets.
pub struct PresetTable<'s> {
    pub(crate) db: &'s Connection,
}

const COLUMNS: &str = "id, name, instructions, thinking, sampling";

impl PresetRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<(PresetRow, String)> {
        let preset = PresetRow {
            id: PresetId(row.get("id")?),
            name: row.get("name")?,
            instructions: row.get("instructions")?,
            thinking: row.get("thinking")?,
            sampling: Value::Null,
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
        let sql = format!("SELECT {COLUMNS} FROM preset ORDER BY name COLLATE NOCASE, id");
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
        self.write("INSERT INTO preset VALUES (NULL, ?2, ?3, ?4, ?5)", preset)?;
        Ok(PresetId(self.db.last_insert_rowid()))
    }

    /// Writes a preset under its id, replacing or restoring it.
    pub fn put(&self, preset: &PresetRow) -> Result<(), StoreError> {
        self.write(
            "INSERT INTO preset VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE SET name = ?2, instructions = ?3, thinking = ?4, sampling = ?5",
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
        let sql = "SELECT preset, instructions FROM chat_preset WHERE chat = ?1";
        let mut read = self.db.prepare_cached(sql)?;
        let chosen = read.query_row([place.row()], |row| {
            Ok(ChatPreset {
                preset: row.get::<_, Option<i64>>(0)?.map(PresetId),
                instructions: row.get(1)?,
            })
        });
        Ok(chosen.optional()?)
    }

    /// Stores the choice of a chat, or of the new one.
    pub fn choose(&self, place: DraftPlace, chosen: Option<&ChatPreset>) -> Result<(), StoreError> {
        let Some(ChatPreset {
            preset,
            instructions,
        }) = chosen
        else {
            let mut delete = self
                .db
                .prepare_cached("DELETE FROM chat_preset WHERE chat = ?1")?;
            delete.execute([place.row()])?;
            return Ok(());
        };
        let mut keep = self.db.prepare_cached(
            "INSERT INTO chat_preset VALUES (?1, ?2, ?3)
             ON CONFLICT (chat) DO UPDATE SET preset = ?2, instructions = ?3",
        )?;
        keep.execute((place.row(), preset.map(|preset| preset.0), instructions))?;
        Ok(())
    }

    fn write(&self, sql: &str, preset: &PresetRow) -> Result<(), StoreError> {
        let PresetRow {
            id,
            name,
            instructions,
            thinking,
            sampling,
        } = preset;
        let mut write = self.db.prepare_cached(sql)?;
        write.execute((id.0, name, instructions, thinking, sampling.to_string()))?;
        Ok(())
    }
}
