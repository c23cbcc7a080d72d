//! A file that is being written: under its name only when it is whole.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Beside its place under another name until [`Target::keep`]; without that nothing is left of it, and a file that was
/// there stays as it was.
pub struct Target {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl Target {
    /// Begins a file. Only its user can read it.
    pub fn begin(path: &Path) -> io::Result<Target> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut new = tempfile::Builder::new();
        new.prefix(".goldcrest-export-");
        let file = new.tempfile_in(folder)?;
        Ok(Target {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 16, file),
        })
    }

    /// Gives the file its name, in the place of another that has it, once all of it is on the disk.
    pub fn keep(self) -> io::Result<()> {
        let file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        if let Some(folder) = self
            .path
            .parent()
            .and_then(|folder| File::open(folder).ok())
        {
            // Where the system can do that.
            let _ = folder.sync_all();
        }
        Ok(())
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
