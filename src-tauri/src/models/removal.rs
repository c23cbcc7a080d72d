//! What goes to the trash with a model.

use std::io;
use std::path::{Path, PathBuf};

/// Every path that has to go with the file at `path`.
///
/// In the hub's cache a file is a blob, and snapshots have links to it: a link alone would leave the gigabytes, a blob
/// alone would leave links to nothing, which other programs take for a file. So the blob goes with the links of all
/// snapshots. Another link that the user has made goes with its file, too.
///
/// # Errors
/// When the file is not there.
pub fn files_behind(path: &Path) -> io::Result<Vec<PathBuf>> {
    let content = path.canonicalize()?;
    let mut files = snapshot_links(&content);
    // First: where it cannot be moved, everything stays as it is.
    files.insert(0, content);
    let same = real_name(path)?;
    files.retain(|file| *file != same);
    files.push(path.to_owned());
    Ok(files)
}

/// A path without the links above its last part.
fn real_name(path: &Path) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok(folder.canonicalize()?.join(name)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The links to `content` where that is a blob of the hub's cache: `../snapshots/COMMIT/FILE`.
fn snapshot_links(content: &Path) -> Vec<PathBuf> {
    let blobs = content.parent();
    let blobs = blobs.filter(|folder| folder.file_name().is_some_and(|it| it == "blobs"));
    let mut folders: Vec<_> = blobs
        .map(|it| it.with_file_name("snapshots"))
        .into_iter()
        .collect();
    let mut links = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_symlink() && leads_to(&path, content) => links.push(path),
                _ => {}
            }
        }
    }
    links
}

fn leads_to(link: &Path, content: &Path) -> bool {
    link.canonicalize().is_ok_and(|target| target == content)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_blob_goes_with_its_links_and_with_nothing_else() {
        let home = tempfile::tempdir().expect("made");
        let home = home.path().canonicalize().expect("there");
        let blobs = home.join("models--a--b/blobs");
        fs::create_dir_all(&blobs).expect("made");
        for blob in ["x", "y"] {
            fs::write(blobs.join(blob), blob).expect("written");
        }
        let link = |commit: &str, blob: &str| {
            let folder = home
                .join("models--a--b/snapshots")
                .join(commit)
                .join("gguf");
            fs::create_dir_all(&folder).expect("made");
            let link = folder.join("m.gguf");
            symlink(blobs.join(blob), &link).expect("linked");
            link
        };
        let (first, second, other) = (link("1", "x"), link("2", "x"), link("3", "y"));
        let linked = home.join("linked");
        symlink(&home, &linked).expect("linked");
        let below_link = linked.join(first.strip_prefix(&home).expect("below"));
        let blob = blobs.join("x");
        let own = home.join("own.gguf");
        symlink(&first, &own).expect("linked");
        for (path, others) in [
            (&first, vec![&blob, &second]),
            (&below_link, vec![&blob, &second]),
            (&blob, vec![&first, &second]),
            (&own, vec![&blob, &first, &second]),
        ] {
            let mut files = files_behind(path).expect("there");
            assert_eq!(files.pop().as_ref(), Some(path));
            assert!(files[0] == blob || *path == blob, "{files:?}");
            files.sort();
            assert_eq!(files.iter().collect::<Vec<_>>(), others);
        }
        assert!(other.exists());
    }

    #[test]
    fn a_plain_file_goes_alone_and_one_that_is_gone_is_an_error() {
        let home = tempfile::tempdir().expect("made");
        let home = home.path().canonicalize().expect("there");
        let file = home.join("m.gguf");
        assert!(files_behind(&file).is_err());
        fs::write(&file, "m").expect("written");
        assert_eq!(files_behind(&file).expect("there"), [file]);
    }
}
