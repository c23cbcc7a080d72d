//! A file that appears under its name only when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file in progress, nameless or under a temporary name in its folder until [`Target::keep`]. Without that it
/// disappears, and an existing file stays unchanged.
pub struct Target {
    path: PathBuf,
    file: BufWriter<Unfinished>,
}

/// A file that does not have its name yet.
enum Unfinished {
    /// Disappears even after a crash.
    #[cfg(target_os = "linux")]
    Nameless(File),
    /// Used on file systems without nameless files.
    Named(NamedTempFile),
}

impl Target {
    /// Begins a file that only its user can read. It may replace a file, but no folder, no device, and no link to a
    /// file elsewhere.
    pub fn begin(path: &Path) -> io::Result<Target> {
        if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = Unfinished::begin(folder_of(path))?;
        Ok(Target {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 16, file),
        })
    }

    /// Gives the file its name, replacing another one, once all of it is on the disk.
    pub fn keep(self) -> io::Result<()> {
        let file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.file().sync_all()?;
        file.keep(&self.path)?;
        if let Ok(folder) = File::open(folder_of(&self.path)) {
            // Best effort: not every system supports it.
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Names of incomplete files.
fn unfinished() -> tempfile::Builder<'static, 'static> {
    let mut new = tempfile::Builder::new();
    new.prefix(".goldcrest-export-");
    new
}

impl Unfinished {
    fn begin(folder: &Path) -> io::Result<Unfinished> {
        #[cfg(target_os = "linux")]
        if let Ok(file) = nameless::begin(folder) {
            return Ok(Unfinished::Nameless(file));
        }
        Ok(Unfinished::Named(unfinished().tempfile_in(folder)?))
    }

    fn file(&self) -> &File {
        match self {
            #[cfg(target_os = "linux")]
            Unfinished::Nameless(file) => file,
            Unfinished::Named(file) => file.as_file(),
        }
    }

    fn keep(self, path: &Path) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Unfinished::Nameless(file) => nameless::keep(&file, path),
            Unfinished::Named(file) => {
                file.persist(path).map_err(|error| error.error)?;
                Ok(())
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod nameless {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

    use super::{folder_of, unfinished};

    /// Links to the open files of this process, by which one gets its name.
    const OPEN_FILES: &str = "/proc/self/fd";

    pub fn begin(folder: &Path) -> io::Result<File> {
        if !Path::new(OPEN_FILES).exists() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(open(folder, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// A link cannot replace a file, but a rename can: if the name is taken, the file gets a temporary name first.
    pub fn keep(file: &File, path: &Path) -> io::Result<()> {
        let open = format!("{OPEN_FILES}/{}", file.as_raw_fd());
        let link = |path: &Path| -> io::Result<()> {
            Ok(linkat(CWD, &open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
        };
        match link(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let named = unfinished().make_in(folder_of(path), link)?;
                named.persist(path).map_err(|error| error.error)
            }
            linked => linked,
        }
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
