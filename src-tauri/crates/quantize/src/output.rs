//! The output: a temporary file beside its destination, renamed when it is complete.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::error::QuantizeError;

/// Suffix of a temporary file.
const SUFFIX: &str = ".part";

/// A file that is removed unless it is finished.
pub(crate) struct Output {
    /// Path of the destination.
    path: PathBuf,
    file: NamedTempFile,
    overwrite: bool,
}

/// Refuses an output that is one of the inputs, or that exists and is not to be overwritten.
pub(crate) fn check(path: &Path, inputs: &[&Path], overwrite: bool) -> Result<(), QuantizeError> {
    let fail = |problem: &str| Err(QuantizeError::output(path, problem));
    // A device would be replaced by a file, not written to.
    let is_special = fs::metadata(path).is_ok_and(|there| !there.is_file());
    if path.file_name().is_none() || is_special {
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
    /// Creates the temporary file, after a check of the free space on its disk.
    pub(crate) fn create(path: &Path, len: u64, overwrite: bool) -> Result<Output, QuantizeError> {
        let folder = folder(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.");
        #[cfg(unix)]
        remove_stale(folder, &prefix);
        // If the system does not report it, the write shows it.
        check_space(path, len, fs4::available_space(folder).ok())?;
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(SUFFIX);
        #[cfg(unix)]
        // Like any new file, less the umask; temporary files would be their owner's alone.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder);
        let file = file.map_err(|error| {
            QuantizeError::output(
                path,
                format!("no file can be made in its folder: {}", error.kind()),
            )
        })?;
        // Locked, it is not stale. On Windows a lock would prevent reading the file back.
        #[cfg(unix)]
        let _ = file.as_file().try_lock();
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

    /// Returns the path of the destination.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the temporary file.
    pub(crate) fn temporary(&self) -> &Path {
        self.file.path()
    }

    /// Syncs the file.
    pub(crate) fn sync(&self) -> Result<(), QuantizeError> {
        let synced = self.file.as_file().sync_all();
        synced.map_err(|error| QuantizeError::write(&self.path, &error))
    }

    /// Renames the file to its destination.
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

/// Returns the folder of a file; the current one if its path is only a name.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns whether both paths lead to the same file.
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

/// Removes temporary files of this output that no process holds locked: they are left by killed runs.
#[cfg(unix)]
fn remove_stale(folder: &Path, prefix: &str) {
    let is_temporary = |name: &str| {
        let random = name.strip_prefix(prefix);
        let random = random.and_then(|rest| rest.strip_suffix(SUFFIX));
        random.is_some_and(|it| it.len() == 6 && it.bytes().all(|it| it.is_ascii_alphanumeric()))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_temporary(&entry.file_name().to_string_lossy()) {
            let path = entry.path();
            if fs::File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
                // A file that cannot be removed stays as it is.
                let _ = fs::remove_file(path);
            }
        }
    }
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

    #[cfg(unix)]
    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.gguf");
        let left = |name: &str| {
            let file = folder.path().join(name);
            fs::write(&file, "half").expect("written");
            file
        };
        let stale = left(".out.gguf.aB3dE6.part");
        let others = [
            ".out.gguf.part",
            ".out.gguf.notes1.md",
            ".other.gguf.aB3dE6.part",
            "out.gguf.aB3dE6.part",
        ];
        let others = others.map(left);
        let running = Output::create(&path, 4, false).expect("made");
        assert!(!stale.exists());
        drop(Output::create(&path, 4, false).expect("made"));
        assert!(running.temporary().exists(), "another run writes it");
        assert!(others.iter().all(|other| other.exists()));
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket.gguf");
        let _socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        for path in [&path, Path::new("/dev/null")] {
            let error = check(path, &[], true).expect_err("a device");
            assert!(error.to_string().contains("not the name of a file"));
        }
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
