//! The keys that a chat uses: an append-only file of lines.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use system::{private, regular};

use crate::key::BlockKey;

/// Limit far above the list of any chat.
const MOST_BYTES: u64 = 1 << 26;

/// Reads the keys of a list, skipping a torn line.
///
/// # Errors
/// Fails if the file exists and cannot be read.
pub(crate) fn read(path: &Path) -> io::Result<HashSet<BlockKey>> {
    let bytes = match regular::read(path, MOST_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        read => read?,
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| str::from_utf8(line).ok()?.parse().ok())
        .collect())
}

/// Appends a key to a list, which is created if missing.
///
/// # Errors
/// Fails if it cannot be written.
pub(crate) fn append(path: &Path, key: &BlockKey) -> io::Result<()> {
    private::file(path)?;
    let mut file = regular::open(path, OpenOptions::new().append(true))?;
    // The line break comes first, so that a torn line before it spoils no other.
    file.write_all(format!("\n{key}").as_bytes())
}
