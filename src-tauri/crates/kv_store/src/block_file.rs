//! The file of one block: magic, key, length, content, and a BLAKE3 checksum over all of these.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::Path;

use system::regular;
use tempfile::NamedTempFile;

use crate::key::BlockKey;

/// Prefix of files that are being written.
pub(crate) const TEMPORARY: &str = "writing-";
const MAGIC: &[u8; 8] = b"GCKVBLK1";
const HEADER: usize = MAGIC.len() + 32 + 8;
const CHECKSUM: usize = 32;
/// Limit far above the content of any block; larger files are not read.
const MOST_BYTES: u64 = 1 << 30;

fn header(key: &BlockKey, content: usize) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let (magic, rest) = header.split_at_mut(MAGIC.len());
    let (name, length) = rest.split_at_mut(32);
    magic.copy_from_slice(MAGIC);
    name.copy_from_slice(key.bytes());
    length.copy_from_slice(&(content as u64).to_le_bytes());
    header
}

/// Returns the bytes of the file of a block.
pub(crate) fn length(content: usize) -> u64 {
    (HEADER + content + CHECKSUM) as u64
}

/// Writes a block under a temporary name and renames it when complete: a process that ends in between leaves a
/// temporary file. It is not synced; the checksum detects blocks torn by a power cut.
///
/// # Errors
/// Fails if it cannot be written; nothing is left of it then.
pub(crate) fn write(path: &Path, key: &BlockKey, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // Only its owner may read a temporary file.
    let mut file = NamedTempFile::with_prefix_in(TEMPORARY, folder)?;
    let header = header(key, content.len());
    let checksum = blake3::Hasher::new()
        .update(&header)
        .update(content)
        .finalize();
    file.write_all(&header)?;
    file.write_all(content)?;
    file.write_all(checksum.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Reads the content of a block; `None` unless the file is that of `key`, complete and intact.
///
/// # Errors
/// Fails if it cannot be read.
pub(crate) fn read(path: &Path, key: &BlockKey) -> io::Result<Option<Vec<u8>>> {
    let mut file = regular::open(path, OpenOptions::new().read(true))?;
    let around = (HEADER + CHECKSUM) as u64;
    let content = file.metadata()?.len().checked_sub(around);
    let content = content.filter(|length| *length <= MOST_BYTES);
    let Some(length) = content.and_then(|length| usize::try_from(length).ok()) else {
        return Ok(None);
    };
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    if header != self::header(key, length) {
        return Ok(None);
    }
    let mut content = Vec::new();
    content.try_reserve_exact(length)?;
    (&file).take(length as u64).read_to_end(&mut content)?;
    let mut checksum = [0; CHECKSUM];
    file.read_exact(&mut checksum)?;
    let found = blake3::Hasher::new()
        .update(&header)
        .update(&content)
        .finalize();
    Ok((found == checksum).then_some(content))
}
