//! Scheduling of hashes: one file at a time on each drive, that of the recommended model first.

use std::collections::{HashMap, HashSet};

use ::models::{FileStamp, FoundFile, Manifest};

/// Files that are being hashed. A drive that does not answer delays no file on another.
#[derive(Default)]
pub(super) struct Hashing {
    /// Hashed bytes of each file, including pending ones.
    done: HashMap<FileStamp, u64>,
    /// Pending files, with their drives.
    waiting: Vec<(u64, FileStamp)>,
    /// Drives on which a file is being read.
    busy: HashSet<u64>,
}

impl Hashing {
    /// Returns the hashed bytes of each file.
    pub(super) fn done(&self) -> &HashMap<FileStamp, u64> {
        &self.done
    }

    pub(super) fn add(&mut self, file: &FoundFile) {
        if !self.done.contains_key(&file.stamp) {
            self.done.insert(file.stamp.clone(), 0);
            self.waiting.push((file.drive, file.stamp.clone()));
        }
    }

    /// Returns the next file of an idle drive, and marks the drive as busy.
    pub(super) fn take(&mut self, manifest: &Manifest) -> Option<(u64, FileStamp)> {
        let recommended = manifest.recommended().map(|known| known.bytes);
        let free = |(_, (drive, _)): &(usize, &(u64, FileStamp))| !self.busy.contains(drive);
        let next = (self.waiting.iter().enumerate())
            .filter(free)
            .min_by_key(|(_, (_, stamp))| Some(stamp.bytes) != recommended);
        let (at, _) = next?;
        let (drive, stamp) = self.waiting.remove(at);
        self.busy.insert(drive);
        Some((drive, stamp))
    }

    /// Records the hashed bytes of a file; returns whether it is one of these.
    pub(super) fn advance(&mut self, stamp: &FileStamp, done: u64) -> bool {
        let bytes = self.done.get_mut(stamp);
        bytes.map(|bytes| *bytes = done).is_some()
    }

    pub(super) fn end(&mut self, drive: u64, stamp: &FileStamp) {
        self.done.remove(stamp);
        self.busy.remove(&drive);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ::models::ModelPlace;

    use super::*;

    fn file(path: &str, drive: u64, bytes: u64) -> FoundFile {
        FoundFile {
            path: path.into(),
            place: ModelPlace::Downloads,
            stamp: FileStamp {
                path: path.into(),
                more: Vec::new(),
                bytes,
                modified: 1,
                inodes: vec![1],
            },
            drive,
            header: Err("It is not there.".to_owned().into()),
        }
    }

    #[test]
    fn each_drive_has_one_file_at_a_time_and_what_newcomers_are_offered_comes_first() {
        let manifest = Manifest::embedded();
        let offered = manifest.recommended().expect("one is").bytes;
        let mut hashing = Hashing::default();
        for file in [
            file("/1/a", 1, 7),
            file("/1/offered", 1, offered),
            file("/2/b", 2, 7),
        ] {
            hashing.add(&file);
            hashing.add(&file);
        }
        let mut next = || {
            let (drive, stamp) = hashing.take(&manifest)?;
            Some((drive, stamp))
        };
        let (drive, stamp) = next().expect("two drives");
        assert_eq!((drive, stamp.path.as_path()), (1, Path::new("/1/offered")));
        assert_eq!(next().map(|(drive, _)| drive), Some(2));
        assert_eq!(next(), None, "both drives are busy");
        hashing.end(drive, &stamp);
        assert!(!hashing.done().contains_key(&stamp));
        let last = hashing.take(&manifest).expect("its drive is free");
        assert_eq!(last.1.path, Path::new("/1/a"));
        assert_eq!(hashing.take(&manifest), None);
    }
}
