//! The file of one block: magic, key, length, content, and a BLAKE3 checksum over all of these.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::key::BlockKey;

/// How the name of a file begins that is being written.
pub(crate) const TEMPORARY: &str = "writing-";
const MAGIC: &[u8; 8] = b"GCKVBLK1";
const HEADER: usize = MAGIC.len() + 32 + 8;
const CHECKSUM: usize = 32;
/// Far above any block; a larger file is not read.
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

/// Bytes of the file of a block.
pub(crate) fn length(content: usize) -> u64 {
    (HEADER + content + CHECKSUM) as u64
}

/// Writes a block beside its path and gives it its name when it is whole: a process that ends in between leaves a
/// temporary file. It is not synced: what a power failure tears, the checksum finds.
///
/// # Errors
/// When it cannot be written; nothing is left of it then.
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

/// The content of a block; `None` where the file is not that of `key`, whole and in every byte as it was written.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read(path: &Path, key: &BlockKey) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if !(HEADER as u64 + CHECKSUM as u64..=MOST_BYTES).contains(&length) {
        return Ok(None);
    }
    let Ok(length) = usize::try_from(length) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length)?;
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let Some((rest, checksum)) = bytes.split_last_chunk::<CHECKSUM>() else {
        return Ok(None);
    };
    let Some(content) = rest.strip_prefix(&header(key, rest.len().saturating_sub(HEADER))) else {
        return Ok(None);
    };
    if blake3::hash(rest) != *checksum {
        return Ok(None);
    }
    let content = content.len();
    bytes.truncate(HEADER + content);
    bytes.drain(..HEADER);
    Ok(Some(bytes))
}
