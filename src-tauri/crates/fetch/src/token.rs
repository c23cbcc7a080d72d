//! The user's token for the hub.

use std::env;
use std::fs;
use std::path::PathBuf;

use download::hub_token_file;

use crate::error::FetchError;

/// Returns the token from `HF_TOKEN`, or from the file that `hf auth login` writes.
pub fn token() -> Option<String> {
    let set = |name| env::var(name).ok().filter(|it| !it.trim().is_empty());
    let token = set("HF_TOKEN")
        .or_else(|| set("HUGGING_FACE_HUB_TOKEN"))
        .or_else(|| fs::read_to_string(hub_token_file(&|name| env::var_os(name), &home())).ok());
    let token = token.as_deref().map(str::trim);
    token.filter(|it| !it.is_empty()).map(str::to_owned)
}

/// Returns the value of the header.
///
/// # Errors
/// Fails if the token is not valid in a header.
pub fn authorization(token: &str) -> Result<String, FetchError> {
    if token.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(format!("Bearer {token}"))
    } else {
        Err(FetchError::BadToken)
    }
}

fn home() -> PathBuf {
    env::home_dir().unwrap_or_default()
}
