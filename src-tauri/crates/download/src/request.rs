//! Requests: the file to download and its destination.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Line on the child's stdin that pauses a download. The end of stdin does the same.
pub const PAUSE: &str = "pause";

/// A file to download. Passed to the child as one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DownloadRequest {
    /// An https address, or http on the loopback.
    pub url: String,
    /// Destination of the file.
    pub destination: Destination,
    /// Size, if known. Otherwise the child takes it from the hub.
    pub bytes: Option<u64>,
    /// SHA-256 of the content in hexadecimal digits, if known. Otherwise the child takes it from the hub; a file
    /// without one is not downloaded.
    pub sha256: Option<String>,
}

/// Destination of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Destination {
    /// Hugging Face's cache, which huggingface_hub, transformers and llama.cpp share.
    HubCache {
        /// The cache's folder: see [`crate::hub_folder`].
        hub: PathBuf,
        /// Repository, as `owner/name`.
        repository: String,
        /// A commit, or the name of a branch, whose commit the hub returns.
        revision: String,
        /// The file's path in the repository.
        file: String,
    },
    /// A folder of the user.
    Folder {
        /// The folder, created if missing.
        folder: PathBuf,
        /// The file's name in it.
        file: String,
    },
}

/// Reasons why a request cannot be carried out as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The name leads out of its folder.
    #[error("{0:?} cannot be the name of a downloaded file")]
    File(String),
    /// Not `owner/name`.
    #[error("{0:?} is not a repository of the form owner/name")]
    Repository(String),
    /// Not a commit; a branch is replaced by its commit before the file is written.
    #[error("{0:?} is not a commit of 40 hexadecimal digits")]
    Revision(String),
    /// Files in the hub's cache are named after their hash.
    #[error("the SHA-256 of the file is not known")]
    NoHash,
    /// Not 64 hexadecimal digits.
    #[error("{0:?} is not a SHA-256 of 64 hexadecimal digits")]
    Hash(String),
}

impl DownloadRequest {
    /// Returns the SHA-256 in lower case.
    ///
    /// # Errors
    /// Fails if there is none, or it is not 64 hexadecimal digits.
    pub fn hash(&self) -> Result<String, RequestError> {
        let hash = self.sha256.as_ref().ok_or(RequestError::NoHash)?;
        if is_sha256(hash) {
            Ok(hash.to_ascii_lowercase())
        } else {
            Err(RequestError::Hash(hash.clone()))
        }
    }

    /// Returns the file's name, without its folders in the repository.
    pub fn file_name(&self) -> &str {
        let (Destination::HubCache { file, .. } | Destination::Folder { file, .. }) =
            &self.destination;
        file.rsplit('/').next().unwrap_or(file)
    }

    /// Checks that no name in it leads out of its folder.
    pub(crate) fn check_names(&self) -> Result<(), RequestError> {
        match &self.destination {
            Destination::HubCache {
                repository,
                revision,
                file,
                ..
            } => {
                let parts: Vec<&str> = repository.split('/').collect();
                if parts.len() != 2 || !parts.iter().all(|part| is_repository_name(part)) {
                    return Err(RequestError::Repository(repository.clone()));
                }
                if !is_commit(revision) {
                    return Err(RequestError::Revision(revision.clone()));
                }
                if !file.split('/').all(is_file_name) {
                    return Err(RequestError::File(file.clone()));
                }
            }
            Destination::Folder { file, .. } => {
                if !is_file_name(file) {
                    return Err(RequestError::File(file.clone()));
                }
            }
        }
        Ok(())
    }
}

/// Returns whether a revision is a commit and not the name of a branch.
pub fn is_commit(revision: &str) -> bool {
    is_hex(revision, 40)
}

/// Returns whether a text is a SHA-256 in hexadecimal digits.
pub fn is_sha256(text: &str) -> bool {
    is_hex(text, 64)
}

pub(crate) fn is_repository_name(part: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_part)
}

/// Returns whether every file system takes this name, it is displayed unchanged, and it leads to no other folder.
pub(crate) fn is_file_name(name: &str) -> bool {
    const LONGEST: usize = 200;
    let is_forbidden =
        |c: char| c.is_control() || is_not_shown(c) || r##"/\:*?"<>|#%"##.contains(c);
    !name.is_empty()
        && name.len() <= LONGEST
        && !name.starts_with('.')
        && !name.ends_with(['.', ' '])
        && !name.contains(is_forbidden)
}

/// Returns whether a character is invisible and may reorder others: a name would look like another one.
fn is_not_shown(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::is_file_name;

    #[test]
    fn a_name_that_looks_like_another_one_is_none() {
        for name in ["SmolLM3-Q4_K_M.gguf", "größe 3.gguf", "模型.gguf"] {
            assert!(is_file_name(name), "{name}");
        }
        for c in [
            '\u{202E}', '\u{200B}', '\u{2066}', '\u{FEFF}', '\u{AD}', '\u{7}', '/',
        ] {
            assert!(
                !is_file_name(&format!("{c}fugg.gguf")),
                "{}",
                c.escape_unicode()
            );
        }
    }
}
