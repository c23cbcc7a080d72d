//! What tells one state of a file from another without reading it.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A file as it was at one moment. A file with the same stamp has the same content, unless somebody set its time back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// Its path without symbolic links.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub modified: u64,
    /// Its number in its file system; 0 where there are none.
    pub inode: u64,
}

impl FileStamp {
    /// The stamp of the file at `path`, which may be a symbolic link to it.
    ///
    /// # Errors
    /// When it is not there, is not a file, or cannot be asked.
    pub fn of(path: &Path) -> io::Result<FileStamp> {
        let path = path.canonicalize()?;
        let metadata = path.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
        }
        Ok(FileStamp::with(path, &metadata))
    }

    /// The stamp of the file at `path` that has this metadata.
    pub(crate) fn with(path: PathBuf, metadata: &Metadata) -> FileStamp {
        let since = metadata.modified().ok();
        let since = since.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        FileStamp {
            path,
            bytes: metadata.len(),
            modified: since.map_or(0, |since| {
                u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
            }),
            inode: inode(metadata),
        }
    }
}

/// The drive that the file at `path` lies on, by a number that is valid until the system is started again; 0 where drives
/// have none.
pub(crate) fn drive_of(path: &Path) -> u64 {
    #[cfg(unix)]
    return path
        .metadata()
        .map_or(0, |file| std::os::unix::fs::MetadataExt::dev(&file));
    #[cfg(not(unix))]
    return {
        let _ = path;
        0
    };
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}
