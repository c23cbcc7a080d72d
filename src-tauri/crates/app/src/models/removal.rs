//! Paths that go to the trash with a model.

use std::io;
use std::path::{Path, PathBuf};

/// Returns every path that must go with the file at `path`.
///
/// In the hub's cache a file is a blob, and snapshots have links to it: removing a link alone would leave the
/// gigabytes, and a blob alone would leave dangling links, which other programs take for a file. So the blob goes with
/// the links of all snapshots. Another link that the user has made goes with its file, too. A split model goes with all
/// of its files.
///
/// # Errors
/// Fails if the file does not exist.
pub fn files_behind(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for other in engine::gguf::model_files(path) {
        if other != path {
            files.extend(files_of(&other)?);
        }
    }
    files.extend(files_of(path)?);
    Ok(files)
}

/// Returns every path that must go with this one file.
fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    let content = path.canonicalize()?;
    let mut files = snapshot_links(&content);
    // First: if it cannot be moved, everything stays as it is.
    files.insert(0, content);
    let same = real_name(path)?;
    files.retain(|file| *file != same);
    files.push(path.to_owned());
    Ok(files)
}

/// Resolves the links in a path except for its last part.
fn real_name(path: &Path) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok(folder.canonicalize()?.join(name)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Returns the links to `content` if that is a blob of the hub's cache: `../snapshots/COMMIT/FILE`.
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
    fn a_model_in_several_files_goes_with_all_of_them() {
        use engine::gguf::write::{Field, header};
        let home = tempfile::tempdir().expect("made");
        let home = home.path().canonicalize().expect("there");
        let name = |part: u32| format!("m-0000{part}-of-00003.gguf");
        let image = |part: u32| {
            let fields = [("split.no", part - 1), ("split.count", 3)];
            header(fields.map(|(key, value)| (key, Field::U32(value))), &[])
        };
        let plain = [1, 2, 3].map(|part| home.join(name(part)));
        let (blobs, snapshot) = (home.join("h/blobs"), home.join("h/snapshots/1"));
        for folder in [&blobs, &snapshot] {
            fs::create_dir_all(folder).expect("made");
        }
        let mut hub = Vec::new();
        for part in 1..=3 {
            fs::write(&plain[part as usize - 1], image(part)).expect("written");
            let (blob, link) = (blobs.join(format!("{part}")), snapshot.join(name(part)));
            fs::write(&blob, image(part)).expect("written");
            symlink(&blob, &link).expect("linked");
            hub.extend([blob, link]);
        }
        let other = home.join("m-00001-of-00002.gguf");
        fs::write(&other, image(1)).expect("written");
        for (path, all) in [(&plain[1], plain.to_vec()), (&snapshot.join(name(2)), hub)] {
            let mut files = files_behind(path).expect("there");
            assert_eq!(files.last(), Some(path));
            files.sort();
            let mut all = all.clone();
            all.sort();
            assert_eq!(files, all);
        }
        fs::remove_file(&plain[0]).expect("removed");
        assert_eq!(
            files_behind(&plain[2]).expect("there"),
            plain[1..],
            "what is left"
        );
        assert_eq!(files_behind(&other).expect("there"), [other]);
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
