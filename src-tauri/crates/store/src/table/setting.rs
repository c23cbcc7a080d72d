//! Settings: a JSON value per key.

use rusqlite::Connection;
use serde_json::{Map, Value};

use crate::error::StoreError;
use crate::migrate::Step;

pub(crate) const STEPS: &[Step] = &[Step {
    version: 1,
    sql: "CREATE TABLE setting (
              key   TEXT PRIMARY KEY,
              value TEXT NOT NULL CHECK (json_valid(value))
          ) STRICT, WITHOUT ROWID;",
}];

/// The settings.
pub struct SettingTable<'s> {
    pub(crate) db: &'s Connection,
}

impl SettingTable<'_> {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Result<Option<Value>, StoreError> {
        Ok(self.with_prefix(key)?.remove(key))
    }

    /// Returns all keys that begin with `prefix`, in order.
    pub fn with_prefix(&self, prefix: &str) -> Result<Map<String, Value>, StoreError> {
        let mut read = self.db.prepare_cached(
            "SELECT key, value FROM setting WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key",
        )?;
        let rows = read.query_map([prefix], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        let mut found = Map::new();
        for row in rows {
            let (key, value) = row?;
            let value = serde_json::from_str(&value)
                .map_err(|error| StoreError::Sqlite(Box::new(error)))?;
            found.insert(key, value);
        }
        Ok(found)
    }

    /// Sets the value of a key.
    pub fn set(&self, key: &str, value: &Value) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "INSERT INTO setting (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            )?
            .execute((key, value.to_string()))?;
        Ok(())
    }
}
