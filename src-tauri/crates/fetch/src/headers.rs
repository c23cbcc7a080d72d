//! Headers of an answer, and the hub's headers about a file whose content another server sends.

use download::{DownloadRequest, is_sha256};
use ureq::http::HeaderMap;

use crate::error::FetchError;

const HASH: &str = "x-linked-etag";
const SIZE: &str = "x-linked-size";

/// Returns a header as text.
pub fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Size and SHA-256 from the hub's first answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Linked {
    pub bytes: Option<u64>,
    /// Hash in lower case. Files of the repository itself have another hash there.
    pub sha256: Option<String>,
}

impl Linked {
    pub fn of(headers: &HeaderMap) -> Self {
        let hash = header(headers, HASH).map(|tag| tag.trim_matches('"').to_ascii_lowercase());
        Self {
            bytes: header(headers, SIZE).and_then(|it| it.parse().ok()),
            sha256: hash.filter(|it| is_sha256(it)),
        }
    }

    /// Returns whether these headers describe a file that another server sends.
    pub fn is_in(headers: &HeaderMap) -> bool {
        headers.contains_key(HASH)
    }

    /// Compares them with the request, before a byte of the file is received.
    ///
    /// # Errors
    /// Fails if the size or the SHA-256 differs.
    pub fn check(&self, host: &str, request: &DownloadRequest) -> Result<(), FetchError> {
        let size = self
            .bytes
            .and_then(|found| FetchError::size(host, found, request));
        if let Some(error) = size {
            return Err(error);
        }
        match (request.hash(), &self.sha256) {
            (Ok(expected), Some(found)) if expected != *found => Err(FetchError::Hash {
                host: host.to_owned(),
                found: found.clone(),
                expected,
            }),
            _ => Ok(()),
        }
    }
}
