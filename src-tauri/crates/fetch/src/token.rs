//! The user's token for the hub.

use std::env;
use std::fs;
use std::path::PathBuf;

use download::hub_token_file;

use crate::error::FetchError;

/// The value of the header, from `HF_TOKEN` or the file that `hf auth login` writes.
///
/// # Errors
/// Where it cannot be the value of a header.
pub fn authorization() -> Result<Option<String>, FetchError> {
    let set = |name| env::var(name).ok().filter(|it| !it.trim().is_empty());
    let token = set("HF_TOKEN")
        .or_else(|| set("HUGGING_FACE_HUB_TOKEN"))
        .or_else(|| fs::read_to_string(hub_token_file(&|name| env::var_os(name), &home())).ok());
    let token = token.as_deref().map(str::trim).unwrap_or_default();
    if token.is_empty() {
        return Ok(None);
    }
    if !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(FetchError::BadToken);
    }
    Ok(Some(format!("Bearer {token}")))
}

fn home() -> PathBuf {
    env::home_dir().unwrap_or_default()
}
