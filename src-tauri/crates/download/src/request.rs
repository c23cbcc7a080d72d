//! What is downloaded, and where it goes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The line on the child's stdin that pauses a download. The end of stdin does the same.
pub const PAUSE: &str = "pause";

/// A file to be downloaded. Crosses to the child as one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DownloadRequest {
    /// An https address, or http on the loopback.
    pub url: String,
    /// Where the file goes.
    pub destination: Destination,
    /// Its size, where that is known. The child takes it from the hub otherwise.
    pub bytes: Option<u64>,
    /// SHA-256 of its content in hexadecimal digits, where that is known. The child takes it from the hub otherwise; a file
    /// without one is not downloaded.
    pub sha256: Option<String>,
}

/// Where a file goes.
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
        /// `owner/name`
        repository: String,
        /// A commit, or the name of a branch, of which the hub names the commit.
        revision: String,
        /// The file's path in the repository.
        file: String,
    },
    /// A folder of the user's.
    Folder {
        /// The folder, made where it is not there.
        folder: PathBuf,
        /// The file's name in it.
        file: String,
    },
}

/// Why a request cannot be carried out as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It would lead out of its folder.
    #[error("{0:?} cannot be the name of a downloaded file")]
    File(String),
    /// Not `owner/name`.
    #[error("{0:?} is not a repository of the form owner/name")]
    Repository(String),
    /// Not a commit; a branch is replaced by its commit before the file is written.
    #[error("{0:?} is not a commit of 40 hexadecimal digits")]
    Revision(String),
    /// In the hub's cache a file is named after its hash.
    #[error("the SHA-256 of the file is not known")]
    NoHash,
    /// Not 64 hexadecimal digits.
    #[error("{0:?} is not a SHA-256 of 64 hexadecimal digits")]
    Hash(String),
}

impl DownloadRequest {
    /// The SHA-256 in lower case.
    ///
    /// # Errors
    /// Where there is none, or it is not 64 hexadecimal digits.
    pub fn hash(&self) -> Result<String, RequestError> {
        let hash = self.sha256.as_ref().ok_or(RequestError::NoHash)?;
        if is_sha256(hash) {
            Ok(hash.to_ascii_lowercase())
        } else {
            Err(RequestError::Hash(hash.clone()))
        }
    }

    /// The file's name, without the folders that it may have in a repository.
    pub fn file_name(&self) -> &str {
        let (Destination::HubCache { file, .. } | Destination::Folder { file, .. }) =
            &self.destination;
        file.rsplit('/').next().unwrap_or(file)
    }

    /// Checks that the names in it lead nowhere else.
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

/// Whether a revision is a commit and not the name of a branch.
pub fn is_commit(revision: &str) -> bool {
    is_hex(revision, 40)
}

/// Whether a text is a SHA-256 in hexadecimal digits.
pub fn is_sha256(text: &str) -> bool {
    is_hex(text, 64)
}

pub(crate) fn is_repository_name(part: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_part)
}

/// A name that every file system takes, that is shown as it is, and that leads nowhere else.
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

/// Returns whether a character has no form of its own, and may change the order of others: a name would look like another one.
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
