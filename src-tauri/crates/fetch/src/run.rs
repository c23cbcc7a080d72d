//! A download from the request to the verified file.
//!
//! The file gets its name only once the SHA-256 of all of it on the disk is right, whatever the server, the network or a
//! crash did. The hash is that of the request or of the hub; without one nothing is downloaded. A partial file is
//! removed only if its content is known to be wrong.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use download::{DownloadEvent, DownloadPaths, DownloadRequest};
use sha2::{Digest, Sha256};

use crate::client::Client;
use crate::error::FetchError;
use crate::incomplete::Incomplete;
use crate::output;
use crate::resolve::{self, Resolved};
use crate::retries::Retries;
use crate::test_setting::test_setting;
use crate::transfer::Transfer;

/// Bytes that are hashed at once.
const PART: usize = 1 << 20;
/// Interval between two reports.
const REPORT: Duration = Duration::from_millis(250);

/// Setting of tests in milliseconds: delay between the rename of the file and the final event.
const NAMED_SETTING: &str = "GOLDCREST_FETCH_NAMED";

/// Downloads a file, and emits its events.
///
/// # Errors
/// Returns the reason for which there is no file; the partial file is kept if a resume can use it.
pub fn run(request: DownloadRequest, incomplete: &Incomplete) -> Result<(), FetchError> {
    if request.sha256.is_some() {
        request.hash()?;
    }
    let client = Client::new()?;
    let Resolved { request, branch } = if resolve::is_needed(&request) {
        let mut retries = Retries::new(0);
        retry(&mut retries, || {
            (0, resolve::resolve(&client, request.clone()))
        })?
    } else {
        Resolved {
            request,
            branch: None,
        }
    };
    output::emit(&DownloadEvent::Resolved {
        request: request.clone(),
    });
    let url = client.address(&request.url)?;
    let expected = request.hash()?;
    let paths = DownloadPaths::of(&request)?;
    let written = |error| FetchError::writing(paths.folder(), error);
    let lock = paths.take_lock();
    let branch = branch.as_deref();
    if let Some(existing) = paths.existing() {
        // Nothing needs to be written, so this may be a read-only folder, in which no lock can be taken.
        if is_content(&existing, &request, &expected).map_err(written)? {
            let file = paths.link(branch).map_err(written)?;
            return end(file, expected).map_err(written);
        }
        if paths.is_of_user() {
            return Err(FetchError::Exists { path: existing });
        }
    }
    let _lock = lock.map_err(|error| FetchError::locking(paths.folder(), error))?;
    let file = paths.open_incomplete().map_err(written)?;
    let there = file.metadata().map_err(written)?.len();
    incomplete.open(file);
    let mut transfer = Transfer::new(&client, &url, &request, &paths, incomplete, there);
    let mut is_second_round = false;
    loop {
        receive_all(&mut transfer).inspect_err(|error| discard(&paths, incomplete, error))?;
        let file = incomplete.with(&paths, |file| file.try_clone())?;
        // The lock is not held meanwhile, so that a pause does not wait for the hash.
        let found = file.sync_all().and_then(|()| sha256(file));
        let found = found.map_err(written)?;
        if found == expected {
            break;
        }
        if is_second_round || !transfer.is_pieced {
            let error = FetchError::WrongContent {
                host: url.host_str().unwrap_or_default().to_owned(),
                found,
                expected,
            };
            discard(&paths, incomplete, &error);
            return Err(error);
        }
        // A part was damaged, or belongs to another version of the file: restart from the beginning.
        is_second_round = true;
        transfer.begin_again()?;
    }
    // A pause now waits, and comes too late: the file is there.
    let is_published = incomplete.with(&paths, |_| {
        let file = match paths.publish(branch) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            published => published?,
        };
        if let Some(pause) = test_setting(NAMED_SETTING) {
            thread::sleep(Duration::from_millis(pause));
        }
        end(file, expected).map(|()| true)
    })?;
    match is_published {
        true => Ok(()),
        false => Err(FetchError::Exists { path: paths.file() }),
    }
}

/// Receives the rest of the file, over as many connections as needed.
fn receive_all(transfer: &mut Transfer<'_>) -> Result<(), FetchError> {
    match transfer.request.bytes {
        Some(bytes) if transfer.done == bytes => return Ok(()),
        Some(bytes) if transfer.done > bytes => return transfer.shorten(bytes),
        total => transfer.check_space(total)?,
    }
    let mut retries = Retries::new(transfer.done);
    retry(&mut retries, || {
        let received = transfer.receive();
        (transfer.done, received)
    })
}

/// Retries transient errors. `work` also returns the bytes received.
fn retry<T>(
    retries: &mut Retries,
    mut work: impl FnMut() -> (u64, Result<T, FetchError>),
) -> Result<T, FetchError> {
    loop {
        let (done, result) = work();
        let error = match result {
            Err(error) if error.is_transient() => error,
            result => return result,
        };
        let pause = retries.next(done, error.has_answered(), error.retry_after());
        let Some(pause) = pause else {
            return Err(error);
        };
        output::emit(&DownloadEvent::Waiting {
            message: error.reason(),
            seconds: pause.as_secs(),
        });
        thread::sleep(pause);
    }
}

/// Removes a partial file that is useless or empty.
fn discard(paths: &DownloadPaths, incomplete: &Incomplete, error: &FetchError) {
    // If it cannot be removed, the next download detects it by the hash.
    let _ = incomplete.with(paths, |file| {
        if error.can_resume() && file.metadata()?.len() > 0 {
            return Ok(());
        }
        paths.remove_incomplete()
    });
}

/// Returns whether an existing file is the requested one.
fn is_content(path: &Path, request: &DownloadRequest, expected: &str) -> io::Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    if request.bytes.is_some_and(|expected| expected != bytes) {
        return Ok(false);
    }
    Ok(sha256(file)? == expected)
}

/// Computes the SHA-256 of a whole file in lower case, with reports.
fn sha256(mut file: File) -> io::Result<String> {
    let total = file.metadata()?.len();
    file.seek(SeekFrom::Start(0))?;
    let (mut hash, mut part, mut done) = (Sha256::new(), vec![0; PART], 0);
    let mut reported = Instant::now();
    output::emit(&DownloadEvent::Verifying { done, total });
    loop {
        let read = match file.read(&mut part) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&part[..read]);
        done += read as u64;
        if reported.elapsed() >= REPORT {
            reported = Instant::now();
            output::emit(&DownloadEvent::Verifying { done, total });
        }
    }
    Ok(format!("{:x}", hash.finalize()))
}

/// Emits the final event.
fn end(file: PathBuf, sha256: String) -> io::Result<()> {
    let bytes = fs::metadata(&file)?.len();
    output::end(&DownloadEvent::Done {
        file,
        sha256,
        bytes,
    });
    Ok(())
}
