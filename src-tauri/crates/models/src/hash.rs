//! SHA-256 of a model file, in the background.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::stamp::FileStamp;

const CHUNK: usize = 1 << 20;

/// Computes the SHA-256 of the file with this stamp, or of its parts one after another, in hexadecimal digits; `None`
/// if the file no longer matches the stamp: a file that changes while it is read has no hash. `on_progress` receives
/// the number of bytes read so far.
///
/// # Errors
/// Fails if it cannot be read to its end.
pub fn sha256(stamp: &FileStamp, on_progress: &mut dyn FnMut(u64)) -> io::Result<Option<String>> {
    let files = stamp
        .files()
        .map(|path| Ok((path.to_owned(), File::open(path)?)));
    let mut files: Vec<(PathBuf, File)> = files.collect::<io::Result<_>>()?;
    let is_same = |files: &[(PathBuf, File)]| {
        let opened = files.iter();
        let opened = opened.map(|(path, file)| Ok((path.clone(), file.metadata()?)));
        Ok::<_, io::Error>(FileStamp::with(opened)? == *stamp)
    };
    if !is_same(&files)? {
        return Ok(None);
    }
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    for (_, file) in &mut files {
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                read => {
                    hash.update(&chunk[..read]);
                    done += read as u64;
                    on_progress(done);
                }
            }
        }
    }
    // The open files, and those that have their names now.
    let named = stamp
        .files()
        .map(|path| Ok((path.canonicalize()?, path.metadata()?)));
    let unchanged = is_same(&files)? && FileStamp::with(named)? == *stamp;
    Ok(unchanged.then(|| format!("{:x}", hash.finalize())))
}

/// Yields to every other thread. Except on Linux a priority belongs to the whole process.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::debug!(%error, "a file is hashed at the usual priority");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("made");
        let path = folder.path().join("model.gguf");
        fs::write(&path, content).expect("written");
        (folder, path)
    }

    fn hash(stamp: &FileStamp) -> Option<String> {
        sha256(stamp, &mut |_| {}).expect("read")
    }

    #[test]
    fn the_hash_is_that_of_the_content() {
        let (_folder, path) = file(b"abc");
        let stamp = FileStamp::of(&path).expect("there");
        // FIPS 180-2, example 1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(&stamp).as_deref(), Some(expected));
    }

    #[test]
    fn it_says_how_far_the_file_is_read() {
        let (_folder, path) = file(&vec![7; 2 * CHUNK + 1]);
        let stamp = FileStamp::of(&path).expect("there");
        let mut steps = Vec::new();
        sha256(&stamp, &mut |done| steps.push(done)).expect("read");
        assert_eq!(steps.last(), Some(&stamp.bytes));
        assert!(steps.len() > 2 && steps.is_sorted(), "{steps:?}");
    }

    #[test]
    fn a_file_that_changed_since_its_stamp_has_no_hash() {
        let (_folder, path) = file(b"abc");
        let stamp = FileStamp::of(&path).expect("there");
        fs::write(&path, b"abcd").expect("written");
        assert_eq!(hash(&stamp), None);
        fs::remove_file(&path).expect("removed");
        assert!(sha256(&stamp, &mut |_| {}).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_replaced_by_one_of_the_same_size_and_time_has_no_hash() {
        let (folder, path) = file(b"abc");
        let stamp = FileStamp::of(&path).expect("there");
        let time = path.metadata().and_then(|it| it.modified()).expect("known");
        let other = folder.path().join("other");
        fs::write(&other, b"xyz").expect("written");
        let opened = File::options().write(true).open(&other).expect("opened");
        opened.set_modified(time).expect("set");
        fs::rename(&other, &path).expect("moved");
        assert_eq!(hash(&stamp), None);
    }

    #[test]
    fn a_file_that_grows_while_it_is_read_has_no_hash() {
        let (_folder, path) = file(&vec![7; 64 * CHUNK]);
        let stamp = FileStamp::of(&path).expect("there");
        let writer = std::thread::spawn(move || {
            let mut file = File::options().append(true).open(path).expect("opened");
            io::Write::write_all(&mut file, b"more").expect("written");
        });
        // The change may come before, during or after the read.
        let found = hash(&stamp);
        writer.join().expect("written");
        let whole = format!("{:x}", Sha256::digest(vec![7; 64 * CHUNK]));
        assert!(found.is_none_or(|found| found == whole));
        assert_eq!(hash(&stamp), None, "it has another stamp now");
    }
}
