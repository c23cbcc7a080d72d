//! What the owner does with downloads. Each is a child process.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::models::{DownloadState, FileStamp, FoundFile, KnownModel, ModelPlace, ModelSearch};
use chat::{Failure, ModelChoice, ModelStatus};
use download::{
    AddressError, Destination, Download, DownloadEvent, DownloadRequest, HUB, Places,
    drop_incomplete, incomplete_bytes,
};

use super::downloads::{ActiveDownload, RunningChild};
use super::library::Library;
use crate::wire::ShellEvent;

/// The least time between two events of progress.
const PROGRESS: Duration = Duration::from_millis(250);

/// What is made of a file that has arrived.
struct ArrivedFile {
    found: Result<FoundFile, String>,
    stamp: Option<FileStamp>,
}

impl Library {
    /// Looks how much of each download is on the disk. One of which nothing is has not begun.
    pub(super) fn restore_downloads(&mut self) {
        for (id, download) in &self.downloads.all {
            let (id, request) = (id.clone(), download.request.clone());
            let look = move || incomplete_bytes(&request);
            self.mailbox.in_background(look, move |library, bytes| {
                match (bytes, library.downloads.all.get_mut(&id)) {
                    (Some(bytes), Some(download)) if download.child.is_none() => {
                        let total = download.request.bytes;
                        download.state = DownloadState::Paused { done: bytes, total };
                    }
                    (None, Some(download)) if download.child.is_none() => {
                        library.downloads.all.remove(&id);
                        library.downloads.save();
                    }
                    _ => {}
                }
                library.changed();
            });
        }
    }

    /// Starts or resumes a download.
    pub(super) fn get(&mut self, id: &str) -> Result<(), Failure> {
        let request = match (self.downloads.all.get(id), self.manifest.by_file(id)) {
            (Some(download), _) => download.request.clone(),
            (None, Some(known)) => self.request_of(known)?,
            (None, None) => {
                return Err(Failure::other(
                    "This model is not in the list of those that can be downloaded.",
                ));
            }
        };
        self.start(id, request)
    }

    pub(super) fn get_address(&mut self, address: &str) -> Result<(), Failure> {
        let request = self.request_of_address(address);
        let request = request.map_err(|error| Failure::other(error.to_string()))?;
        let is_this = |known: &&KnownModel| is_known(&request.destination, known);
        let known = self.manifest.downloadable().find(is_this);
        match known.map(|known| known.file.clone()) {
            Some(file) => self.get(&file),
            None => self.start(&request.url.clone(), request),
        }
    }

    /// A file that is not on the hub goes to the app's own folder where the user has set none.
    fn request_of_address(&self, address: &str) -> Result<DownloadRequest, AddressError> {
        let mut places = Places {
            hub: self.places.hub.clone(),
            endpoint: self.places.endpoint.clone(),
            folder: self.settings.download_folder.as_deref().map(PathBuf::from),
        };
        match DownloadRequest::of_address(address, &places) {
            Err(AddressError::NoFolder) => {
                places.folder = Some(self.places.own_folder());
                DownloadRequest::of_address(address, &places)
            }
            request => request,
        }
    }

    fn request_of(&self, known: &KnownModel) -> Result<DownloadRequest, Failure> {
        let unknown = || Failure::other(format!("{} cannot be downloaded.", known.name));
        let (repository, revision) = known.hub().ok_or_else(unknown)?;
        let file = known.file.clone();
        let destination = match &self.settings.download_folder {
            Some(folder) => Destination::Folder {
                folder: folder.into(),
                file,
            },
            None => Destination::HubCache {
                hub: self.places.hub.clone(),
                repository: repository.to_owned(),
                revision: revision.to_owned(),
                file,
            },
        };
        Ok(DownloadRequest {
            url: known.address(HUB).ok_or_else(unknown)?,
            destination,
            bytes: Some(known.bytes),
            sha256: Some(known.sha256.clone()),
        })
    }

    fn start(&mut self, id: &str, request: DownloadRequest) -> Result<(), Failure> {
        let before = self.downloads.all.get(id);
        if before.is_some_and(|download| download.child.is_some()) {
            return Ok(());
        }
        let (done, total) = before.map_or((0, request.bytes), ActiveDownload::progress);
        self.downloads.starts += 1;
        let number = self.downloads.starts;
        let (mailbox, key) = (self.mailbox.clone(), id.to_owned());
        let on_event = move |event| {
            let key = key.clone();
            mailbox.tell(move |library| library.download_event(&key, number, event));
        };
        let not_started = |error| Failure::other(format!("The download did not start: {error}."));
        let program = (self.places.fetch)().map_err(not_started)?;
        let child = Download::start(&program, &request, on_event).map_err(not_started)?;
        let download = ActiveDownload {
            child: Some(RunningChild {
                number,
                download: child,
            }),
            state: DownloadState::Running {
                done,
                total,
                bytes_per_second: None,
                seconds_left: None,
            },
            ..ActiveDownload::paused(request, done)
        };
        self.downloads.all.insert(id.to_owned(), download);
        self.downloads.save();
        self.changed();
        Ok(())
    }

    pub(super) fn pause(&mut self, id: &str) {
        let child = self.downloads.all.get(id).and_then(|it| it.child.as_ref());
        if let Some(child) = child {
            child.download.pause();
        }
    }

    /// A child may still be writing: what it wrote is removed when it has ended.
    pub(super) fn drop_download(&mut self, id: &str) {
        let Some(download) = self.downloads.all.get_mut(id) else {
            return;
        };
        download.dropped = true;
        let is_running = download.child.is_some();
        self.downloads.save();
        if is_running {
            self.pause(id);
        } else {
            self.remove_incomplete(id);
        }
        self.changed();
    }

    fn remove_incomplete(&mut self, id: &str) {
        let Some(download) = self.downloads.all.remove(id) else {
            return;
        };
        let remove = move || drop_incomplete(&download.request);
        self.mailbox.in_background(remove, |library, removed| {
            if let Err(error) = removed {
                tracing::warn!(%error, "an incomplete file was not removed");
            }
            library.scan();
        });
    }

    /// What a child says.
    fn download_event(&mut self, id: &str, number: u64, event: DownloadEvent) {
        let Some(download) = self.downloads.all.get_mut(id) else {
            return;
        };
        if download
            .child
            .as_ref()
            .is_none_or(|child| child.number != number)
        {
            return;
        }
        let (done, total) = download.progress();
        let is_last = event.is_last();
        if is_last {
            download.child = None;
        }
        if is_last && download.dropped {
            return self.remove_incomplete(id);
        }
        match event {
            DownloadEvent::Resolved { request } => {
                download.request = request;
                return self.downloads.save();
            }
            DownloadEvent::Progress {
                done,
                total,
                bytes_per_second,
            } => {
                download.state = DownloadState::Running {
                    done,
                    total,
                    bytes_per_second,
                    seconds_left: seconds_left(done, total, bytes_per_second),
                };
            }
            DownloadEvent::Waiting { .. } => {
                download.state = DownloadState::Waiting { done, total };
            }
            DownloadEvent::Verifying { done, total } => {
                download.state = DownloadState::Verifying { done, total };
            }
            DownloadEvent::Paused { done } => {
                download.state = DownloadState::Paused { done, total };
            }
            DownloadEvent::Failed {
                message,
                can_resume,
            } => {
                let done = if can_resume { done } else { 0 };
                download.state = DownloadState::Failed {
                    done,
                    total,
                    message,
                };
            }
            DownloadEvent::Done { file, sha256, .. } => return self.arrived(id, file, sha256),
        }
        self.send_progress(id, is_last);
    }

    /// An end is sent at once, progress at times.
    fn send_progress(&mut self, id: &str, is_last: bool) {
        let Some(download) = self.downloads.all.get_mut(id) else {
            return;
        };
        let is_due = download.sent.is_none_or(|sent| sent.elapsed() >= PROGRESS);
        if !is_due && !is_last {
            return;
        }
        download.sent = Some(Instant::now());
        let state = download.state.clone();
        self.send_download(id, Some(state));
        if is_last {
            self.changed();
        }
    }

    fn send_download(&self, id: &str, download: Option<DownloadState>) {
        (self.on_event)(ShellEvent::Download {
            id: id.to_owned(),
            download,
        });
    }

    /// A file is whole and verified; its header is read before it is said to be here.
    fn arrived(&mut self, id: &str, file: PathBuf, sha256: String) {
        let id = id.to_owned();
        let (search, set) = (
            ModelSearch::default(),
            self.settings.download_folder.is_some(),
        );
        let place = match self
            .downloads
            .all
            .get(&id)
            .map(|it| &it.request.destination)
        {
            Some(Destination::Folder { .. }) if set => ModelPlace::Goldcrest,
            Some(Destination::HubCache { .. }) => ModelPlace::HuggingFace,
            _ => ModelPlace::Goldcrest,
        };
        let look = move || {
            let found = search.file(&file, place).ok_or_else(|| {
                let path = file.display();
                format!(
                    "It is in {path}, but it is not a SmolLM3 model, and Goldcrest runs no other."
                )
            });
            let stamp = FileStamp::of(&file).ok();
            ArrivedFile { found, stamp }
        };
        self.mailbox.in_background(look, move |library, arrived| {
            if let Some(stamp) = &arrived.stamp {
                library
                    .facts
                    .update(stamp, |facts| facts.sha256 = Some(sha256));
            }
            match arrived.found {
                Ok(found) => library.file_is_here(&id, found),
                Err(message) => library.file_is_of_no_use(&id, message),
            }
        });
    }

    fn file_is_here(&mut self, id: &str, found: FoundFile) {
        self.downloads.all.remove(id);
        self.downloads.save();
        let file = found.path.clone();
        let opens = found.header.is_ok() && self.opens_downloads();
        self.send_download(id, None);
        self.add(found);
        (self.on_event)(ShellEvent::Downloaded {
            id: id.to_owned(),
            file: ::models::id_of(&file),
            opens,
        });
        if opens && let Err(error) = self.chat.open_model(ModelChoice::File(file)) {
            tracing::warn!(%error, "a downloaded model was not opened");
        }
        self.scan();
    }

    fn file_is_of_no_use(&mut self, id: &str, message: String) {
        if let Some(download) = self.downloads.all.get_mut(id) {
            let (done, total) = download.progress();
            download.state = DownloadState::Failed {
                done,
                total,
                message,
            };
            self.send_progress(id, true);
        }
    }

    /// Whether the user still has nothing but the demo model: a model of the user's own choice stays open.
    fn opens_downloads(&self) -> bool {
        match &self.status {
            ModelStatus::None => true,
            ModelStatus::Checking { model }
            | ModelStatus::Loading { model, .. }
            | ModelStatus::Ejected { model } => model.demo_model,
            ModelStatus::Ready { model } => model.demo_model,
        }
    }
}

/// Whether a destination is that of a known model, in whichever revision.
fn is_known(destination: &Destination, known: &KnownModel) -> bool {
    match destination {
        Destination::HubCache {
            repository,
            file,
            revision,
            ..
        } => {
            known.hub().is_some_and(|(own, commit)| {
                own == repository && (revision == commit || revision == "main")
            }) && known.file == *file
        }
        Destination::Folder { .. } => false,
    }
}

fn seconds_left(done: u64, total: Option<u64>, rate: Option<f64>) -> Option<u64> {
    let (left, rate) = (total?.checked_sub(done)?, rate?);
    let seconds = (left as f64 / rate).ceil();
    // Where nothing arrives there is no end in sight.
    let is_foreseeable = rate > 0.0 && seconds < 1e7;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of seconds, cut to what fits"
    )]
    is_foreseeable.then_some(seconds as u64)
}

#[cfg(test)]
mod tests {
    use super::seconds_left;

    #[test]
    fn the_time_left_is_of_the_bytes_that_are_left() {
        assert_eq!(seconds_left(400, Some(1000), Some(100.0)), Some(6));
        assert_eq!(seconds_left(1000, Some(1000), Some(100.0)), Some(0));
        for (done, total, rate) in [
            (0, None, Some(1.0)),
            (0, Some(10), None),
            (0, Some(10), Some(0.0)),
            (0, Some(u64::MAX), Some(1.0)),
            (0, Some(10), Some(f64::NAN)),
            (11, Some(10), Some(1.0)),
        ] {
            assert_eq!(seconds_left(done, total, rate), None);
        }
    }
}
