//! The keys that a chat uses: a file of lines, to which lines are appended.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::key::BlockKey;

/// The keys of a list; a torn line is left out.
///
/// # Errors
/// When the file is there and cannot be read.
pub(crate) fn read(path: &Path) -> io::Result<HashSet<BlockKey>> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        read => read?,
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| str::from_utf8(line).ok()?.parse().ok())
        .collect())
}

/// Appends a key to a list, which is made if it is not there.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn append(path: &Path, key: &BlockKey) -> io::Result<()> {
    system::private::file(path)?;
    let mut file: File = OpenOptions::new().append(true).open(path)?;
    // It begins with a line break, so that a torn line before it spoils no other.
    file.write_all(format!("\n{key}").as_bytes())
}
