//! The partial file, and the end of the program by a pause.

use std::fs::File;
use std::io;
use std::process;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use download::{DownloadEvent, DownloadPaths};

use crate::error::FetchError;
use crate::output;

/// Time limit for syncing the file.
const SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// The partial file, once it is open. Its lock is held for a write, so that a pause falls between two writes.
#[derive(Debug, Default)]
pub struct Incomplete {
    file: Mutex<Option<File>>,
}

impl Incomplete {
    /// Sets the file to write.
    pub fn open(&self, file: File) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    }

    /// Runs `work` on the file, if it is still the partial file of these paths: on a file system without working locks
    /// another process may have replaced it.
    ///
    /// # Errors
    /// Fails if it was replaced, or with the error of `work`.
    pub fn with<T>(
        &self,
        paths: &DownloadPaths,
        work: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> Result<T, FetchError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = file.as_mut().filter(|file| paths.is_incomplete(file));
        let file = file.ok_or_else(|| FetchError::lost(paths.incomplete()))?;
        work(file).map_err(|error| FetchError::writing(paths.folder(), error))
    }

    /// Ends the program after syncing the file, whatever the connection is waiting for.
    pub fn pause(&self) -> ! {
        let (sender, synced) = channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
                let bytes = file.as_ref().and_then(|it| it.metadata().ok());
                let bytes = bytes.map_or(0, |it| it.len());
                // Errors mean that the program is ending.
                let _ = sender.send(bytes);
                // Unsynced data survive, unless the power fails; a resume verifies the whole file.
                let _ = file.as_ref().map(File::sync_data);
                let _ = sender.send(bytes);
                // The lock is held until the end, so that nothing is written any more.
                loop {
                    thread::park();
                }
            });
            let deadline = Instant::now() + SYNC_TIMEOUT;
            let mut done = 0;
            for _ in 0..2 {
                let left = deadline.saturating_duration_since(Instant::now());
                done = synced.recv_timeout(left).unwrap_or(done);
            }
            output::end(&DownloadEvent::Paused { done });
            process::exit(0);
        })
    }
}
