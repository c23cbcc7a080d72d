//! The SHA-256 of files that may be official, computed on separate threads.

use std::time::{Duration, Instant};

use ::models::FileStamp;

use super::library::Library;

/// Minimum interval between two progress reports of a file.
const PROGRESS: Duration = Duration::from_millis(250);

impl Library {
    /// Hashes found files that may be official, unless their hash is known.
    pub(super) fn verify_found(&mut self) {
        for file in &self.found {
            let facts = self.facts.of(&file.stamp);
            let is_hashed = facts.is_some_and(|it| it.sha256.is_some());
            if self.manifest.has_size(file.stamp.bytes) && !is_hashed {
                self.hashing.add(file);
            }
        }
        while let Some((drive, stamp)) = self.hashing.take(&self.manifest) {
            self.hash(drive, stamp);
        }
    }

    fn hash(&mut self, drive: u64, stamp: FileStamp) {
        let (mailbox, hashed) = (self.mailbox.clone(), stamp.clone());
        let hash = move || {
            ::models::lower_priority();
            let mut reported = Instant::now();
            ::models::sha256(&hashed, &mut |done| {
                if reported.elapsed() >= PROGRESS {
                    reported = Instant::now();
                    let hashed = hashed.clone();
                    mailbox.tell(move |library| library.verified_to(&hashed, done));
                }
            })
        };
        self.mailbox.in_background(hash, move |library, hash| {
            library.hashing.end(drive, &stamp);
            match hash.flatten() {
                Ok(Some(sha256)) => {
                    library
                        .facts
                        .update(&stamp, |facts| facts.sha256 = Some(sha256));
                }
                // The next search detects the change.
                Ok(None) => {
                    tracing::info!(file = %stamp.path.display(), "changed while it was hashed");
                }
                Err(error) => {
                    tracing::warn!(file = %stamp.path.display(), %error, "not hashed");
                    let file = library.found.iter_mut().find(|file| file.stamp == stamp);
                    if let Some(file) = file {
                        file.header = Err(::models::unread(&error).into());
                    }
                }
            }
            while let Some((drive, stamp)) = library.hashing.take(&library.manifest) {
                library.hash(drive, stamp);
            }
            library.changed();
        });
    }

    fn verified_to(&mut self, stamp: &FileStamp, done: u64) {
        if self.hashing.advance(stamp, done) {
            self.changed();
        }
    }
}
