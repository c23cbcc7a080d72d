//! Stamps, which tell states of a file apart without reading it.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// State of a model file at one moment, or of all files of a split model. The same stamp means the same content, unless
/// somebody set the file's time back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// Its path without symbolic links; of several, the first.
    pub path: PathBuf,
    /// The paths of the other files, in order.
    pub more: Vec<PathBuf>,
    /// Total size.
    pub bytes: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub modified: u64,
    /// Inodes of all files, in order; 0 if there are none.
    pub inodes: Vec<u64>,
}

impl FileStamp {
    /// Returns the stamp of the file at `path`, which may be a symbolic link to it, with the other parts of the same
    /// model.
    ///
    /// # Errors
    /// Fails if it does not exist, is not a file, or cannot be queried.
    pub fn of(path: &Path) -> io::Result<FileStamp> {
        if !path.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
        }
        let files = engine::gguf::model_files(path);
        let files = files.into_iter().map(|file| {
            let path = file.canonicalize()?;
            let metadata = path.metadata()?;
            Ok((path, metadata))
        });
        FileStamp::with(files)
    }

    /// Returns the stamp of these files.
    pub(crate) fn with(
        files: impl IntoIterator<Item = io::Result<(PathBuf, Metadata)>>,
    ) -> io::Result<FileStamp> {
        let mut whole: Option<FileStamp> = None;
        for file in files {
            let (path, metadata) = file?;
            let since = metadata.modified().ok();
            let since = since.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let modified = since.map_or(0, |since| {
                u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
            });
            match &mut whole {
                Some(whole) => {
                    whole.more.push(path);
                    whole.bytes += metadata.len();
                    whole.modified = whole.modified.max(modified);
                    whole.inodes.push(inode(&metadata));
                }
                None => {
                    whole = Some(FileStamp {
                        path,
                        more: Vec::new(),
                        bytes: metadata.len(),
                        modified,
                        inodes: vec![inode(&metadata)],
                    });
                }
            }
        }
        whole.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the paths of all files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.path]
            .into_iter()
            .chain(&self.more)
            .map(PathBuf::as_path)
    }
}

/// Returns the drive of the file at `path`, as a number that is valid until the next boot; 0 if drives have none.
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
