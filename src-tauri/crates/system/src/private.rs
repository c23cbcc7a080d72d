//! Folders and files that other users of the machine cannot read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Creates a folder of mode 0700, with its parents. Removes the permissions of others from one that exists.
///
/// A folder that is shared by design, such as `/tmp`, stays as it is, and so does one that belongs to another user or
/// lies on a file system without modes.
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

/// Creates an empty file of mode 0600. Removes the permissions of others from one that exists.
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

/// Replaces a file atomically, with mode 0600, even across a power cut. Its folder is created as by [`folder`].
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        folder(parent)?;
    }
    let part = path.with_extension(format!("part-{}", std::process::id()));
    // The content is synced before the rename: otherwise a power cut could leave an empty file.
    let replaced = write_through(&part, content).and_then(|()| fs::rename(&part, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&part);
    }
    replaced
}

fn write_through(path: &Path, content: &[u8]) -> io::Result<()> {
    file(path)?;
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Syncs the parent folder, so that a rename survives a power cut, where the system can.
pub fn sync_parent(file: &Path) -> io::Result<()> {
    match file.parent().map(File::open) {
        Some(Ok(folder)) if cfg!(unix) => folder.sync_all(),
        _ => Ok(()),
    }
}

/// Never adds a permission: a file that its owner may not write stays so.
#[cfg(unix)]
fn restrict(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS: u32 = 0o077;
    const STICKY: u32 = 0o1000;
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 || mode & STICKY != 0 {
        return Ok(());
    }
    // If this is refused nothing can be done, and the chats are worth more.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS));
    Ok(())
}

#[cfg(not(unix))]
fn restrict(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_stays() {
        let folder = std::env::temp_dir().join(format!("goldcrest-replace-{}", std::process::id()));
        let path = folder.join("a.json");
        for content in ["long before", "after"] {
            replace(&path, content.as_bytes()).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("read"), content);
        }
        let taken = folder.join("folder");
        fs::create_dir_all(taken.join("in it")).expect("made");
        replace(&taken, b"x").expect_err("it is a folder");
        let names = fs::read_dir(&folder).expect("read").count();
        assert_eq!(names, 2, "nothing is left of what failed");
        fs::remove_dir_all(folder).expect("removed");
    }
}
