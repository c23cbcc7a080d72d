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
    let mut files = sibling_links(path, &content);
    if path.symlink_metadata()?.is_symlink() {
        // First: where it cannot be moved, everything stays as it is.
        files.insert(0, content);
    }
    files.push(path.to_owned());
    Ok(files)
}

/// The links to `content` in other snapshots: `snapshots/COMMIT/FILE`.
fn sibling_links(path: &Path, content: &Path) -> Vec<PathBuf> {
    let is_snapshots = |folder: &&Path| folder.file_name().is_some_and(|it| it == "snapshots");
    let Some(snapshots) = path.ancestors().find(is_snapshots) else {
        return Vec::new();
    };
    let below = path.strip_prefix(snapshots).unwrap_or(path);
    let file: PathBuf = below.components().skip(1).collect();
    let commits = snapshots.read_dir().into_iter().flatten().flatten();
    commits
        .map(|commit| commit.path().join(&file))
        .filter(|link| link != path && link.is_symlink())
        .filter(|link| link.canonicalize().is_ok_and(|target| target == content))
        .collect()
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
        let files = files_behind(&first).expect("there");
        assert_eq!(files, [blobs.join("x"), second, first]);
        assert!(other.exists());
    }

    #[test]
    fn a_plain_file_goes_alone_and_one_that_is_gone_is_an_error() {
        let home = tempfile::tempdir().expect("made");
        let file = home.path().join("m.gguf");
        assert!(files_behind(&file).is_err());
        fs::write(&file, "m").expect("written");
        assert_eq!(files_behind(&file).expect("there"), [file]);
    }
}
