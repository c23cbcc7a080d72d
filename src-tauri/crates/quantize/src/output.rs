//! The output: a temporary file beside the place where it is wanted, renamed there when it is complete.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::error::QuantizeError;

/// A file that is removed unless it is finished.
pub(crate) struct Output {
    /// Where it is wanted.
    path: PathBuf,
    file: NamedTempFile,
    overwrite: bool,
}

/// Refuses an output that is one of the inputs, or that is there already and is not to be overwritten.
pub(crate) fn check(path: &Path, inputs: &[&Path], overwrite: bool) -> Result<(), QuantizeError> {
    let fail = |problem: &str| Err(QuantizeError::output(path, problem));
    if path.file_name().is_none() || path.is_dir() {
        return fail("this is not the name of a file");
    }
    if inputs.iter().any(|input| is_same(path, input)) {
        return fail("the output cannot be an input");
    }
    if !overwrite && path.symlink_metadata().is_ok() {
        return fail("the file is there already; --force overwrites it");
    }
    if !folder(path).is_dir() {
        return fail("its folder is not there");
    }
    Ok(())
}

impl Output {
    /// Makes the temporary file, after a look at the space on its disk.
    pub(crate) fn create(path: &Path, len: u64, overwrite: bool) -> Result<Output, QuantizeError> {
        let folder = folder(path);
        check_space(path, len, free_bytes(folder))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut builder = Builder::new();
        let prefix = format!(".{name}.");
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        // As any new file, less what the umask takes; temporary files are their owner's alone.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder);
        let file = file.map_err(|error| {
            QuantizeError::output(
                path,
                format!("no file can be made in its folder: {}", error.kind()),
            )
        })?;
        Ok(Output {
            path: path.to_owned(),
            file,
            overwrite,
        })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), QuantizeError> {
        let written = self.file.as_file_mut().write_all(bytes);
        written.map_err(|error| QuantizeError::write(&self.path, &error))
    }

    /// Where the file is wanted.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the bytes are until the file is finished.
    pub(crate) fn temporary(&self) -> &Path {
        self.file.path()
    }

    /// Brings the bytes to the disk.
    pub(crate) fn sync(&self) -> Result<(), QuantizeError> {
        let synced = self.file.as_file().sync_all();
        synced.map_err(|error| QuantizeError::write(&self.path, &error))
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), QuantizeError> {
        let named = if self.overwrite {
            self.file.persist(&self.path)
        } else {
            self.file.persist_noclobber(&self.path)
        };
        match named {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
                let problem = "another program has made this file meanwhile";
                Err(QuantizeError::output(&self.path, problem))
            }
            Err(error) => Err(QuantizeError::write(&self.path, &error.error)),
        }
    }
}

/// The folder of a file; the current one where its path is a name alone.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether both paths lead to one file.
fn is_same(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn check_space(path: &Path, needed: u64, available: Option<u64>) -> Result<(), QuantizeError> {
    match available {
        Some(available) if available < needed => Err(QuantizeError::Space {
            path: path.to_owned(),
            needed,
            available,
        }),
        _ => Ok(()),
    }
}

/// Bytes that this user may still write on the disk of a folder, where the system tells.
#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

/// There is no call for it without unsafe code; a disk that becomes full is found by writing.
#[cfg(not(unix))]
fn free_bytes(_folder: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_space_is_refused_with_both_figures() {
        let path = Path::new("out.gguf");
        let error = check_space(path, 1_900_000_000, Some(1_000_000)).expect_err("too little");
        let said = "out.gguf: the file needs 1900 MB, and 1 MB are free on its disk";
        assert_eq!(error.to_string(), said);
        assert!(check_space(path, 10, Some(10)).is_ok());
        assert!(check_space(path, 10, None).is_ok());
    }

    #[test]
    fn a_full_disk_is_named() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = QuantizeError::write(Path::new("out.gguf"), &full);
        assert_eq!(error.to_string(), "out.gguf: the disk is full");
    }

    #[test]
    fn an_unfinished_file_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.gguf");
        let mut output = Output::create(&path, 4, false).expect("made");
        output.write(b"half").expect("written");
        assert!(output.temporary().exists());
        drop(output);
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 0);
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.gguf");
        let output = Output::create(&path, 4, false).expect("made");
        fs::write(&path, "theirs").expect("written");
        assert!(output.finish().is_err());
        assert_eq!(fs::read_to_string(&path).expect("read"), "theirs");
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 1);
    }
}
