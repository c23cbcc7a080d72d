//! Regular files only: opening a pipe would wait for its other end, and a device may have no end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens an existing file, following links.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        let kind = io::ErrorKind::InvalidInput;
        return Err(io::Error::new(kind, "it is not a file"));
    }
    options.open(path)
}

/// Reads a file of at most this many bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let file = open(path, OpenOptions::new().read(true))?;
    file.take(most.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "four").expect("written");
        assert_eq!(read(&path, 4).expect("read"), b"four");
        let kind = |path: &Path, most| read(path, most).expect_err("refused").kind();
        assert_eq!(kind(&path, 3), io::ErrorKind::FileTooLarge);
        assert_eq!(kind(folder.path(), 9), io::ErrorKind::InvalidInput);
        assert_eq!(kind(&path.with_extension("no"), 9), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("made");
        let refused = read(&link, 9).expect_err("refused");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
