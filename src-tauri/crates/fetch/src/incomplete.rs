//! The file that is written, and the end of the program by a pause.

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

/// How long the disk may take to write what it has been given.
const SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// The incomplete file, once it is open. Who holds it may write, so that a pause falls between two writes.
#[derive(Debug, Default)]
pub struct Incomplete {
    file: Mutex<Option<File>>,
}

impl Incomplete {
    /// Takes the file that is written from now on.
    pub fn open(&self, file: File) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    }

    /// Does something with the file, as long as it is the incomplete one of these paths: on a file system whose locks are
    /// not honoured another process may have put it in its place.
    ///
    /// # Errors
    /// Where it is not, or what `work` says.
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

    /// Ends the program with what was written on the disk, whatever the connection is waiting for.
    pub fn pause(&self) -> ! {
        let (sender, synced) = channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
                let bytes = file.as_ref().and_then(|it| it.metadata().ok());
                let bytes = bytes.map_or(0, |it| it.len());
                // Errors mean that the program ends at this moment.
                let _ = sender.send(bytes);
                // Unsynced it is still there, unless the power fails; a resume verifies all of it.
                let _ = file.as_ref().map(File::sync_data);
                let _ = sender.send(bytes);
                // The file is held until the end, so that nothing is written any more.
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
