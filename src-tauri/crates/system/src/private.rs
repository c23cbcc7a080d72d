//! Folders and files that other users of the machine cannot read.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a folder of mode 0700, with the folders above it; from one that exists, takes away what
/// others may do there.
///
/// A folder that is shared by design, such as `/tmp`, stays as it is, and so does one that belongs
/// to another user or lies on a file system without modes.
pub fn folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)?;
    }
    #[cfg(not(unix))]
    fs::create_dir_all(path)?;
    restrict(path)
}

/// Makes an empty file of mode 0600; from one that exists, takes away what others may do with it.
pub fn file(path: &Path) -> io::Result<()> {
    let mut new = OpenOptions::new();
    new.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        new.mode(0o600);
    }
    match new.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => restrict(path),
        Err(error) => Err(error),
    }
}

/// Writes a file of mode 0600 in the place of the one that is there: whole, or not at all. Its folder is made as by
/// [`folder`].
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        folder(parent)?;
    }
    let part = path.with_extension(format!("part-{}", std::process::id()));
    file(&part)?;
    fs::write(&part, content)?;
    fs::rename(part, path)
}

/// Never adds a permission: what its owner may not write stays so.
#[cfg(unix)]
fn restrict(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS: u32 = 0o077;
    const STICKY: u32 = 0o1000;
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 || mode & STICKY != 0 {
        return Ok(());
    }
    // Where this is refused there is nothing to be done, and the chats are worth more.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS));
    Ok(())
}

#[cfg(not(unix))]
fn restrict(_: &Path) -> io::Result<()> {
    Ok(())
}
