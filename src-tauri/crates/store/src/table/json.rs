//! Lists as JSON: in a column, and as a parameter for `json_each`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;

pub(crate) fn json<T: Serialize + ?Sized>(list: &T) -> Result<String, StoreError> {
    serde_json::to_string(list).map_err(|error| StoreError::Sqlite(Box::new(error)))
}

/// Parses the list of a column; empty if there is no row.
pub(crate) fn listed<T: DeserializeOwned>(json: Option<String>) -> Result<Vec<T>, StoreError> {
    json.map_or(Ok(Vec::new()), |json| {
        serde_json::from_str(&json).map_err(|error| StoreError::Sqlite(Box::new(error)))
    })
}
