//! Replies of JSON.

use axum::http::header;
use axum::response::IntoResponse;
use serde_json::Value;

/// Makes the reply of an object.
pub fn json(value: &Value) -> impl IntoResponse + use<> {
    (
        [(header::CONTENT_TYPE, "application/json")],
        value.to_string(),
    )
}
