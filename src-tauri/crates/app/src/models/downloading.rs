//! Downloads of the owner. Each is a child process.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::models::{FileStamp, FoundFile, KnownModel, ModelPlace, ModelSearch, Unusable};
use chat::{Failure, ModelChoice, ModelStatus};
use download::{
    AddressError, Destination, Download, DownloadEvent, DownloadRequest, DownloadState, HUB,
    Places, drop_incomplete, incomplete_bytes,
};

use super::downloads::{ActiveDownload, Next, RunningChild, is_within};
use super::library::Library;
use crate::wire::ShellEvent;

/// Minimum interval between two progress events.
const PROGRESS: Duration = Duration::from_millis(250);

/// Reason for refusing other servers: only the hub publishes the SHA-256 of its files.
const NOT_OF_HUB: &str = "Goldcrest can verify only files of Hugging Face. Download this one with your browser, and open it here.";

/// Result of reading a completed file.
struct ArrivedFile {
    found: Result<FoundFile, String>,
    stamp: Option<FileStamp>,
}

impl Library {
    /// Determines the bytes of each download on the disk. One without any has not begun, unless it failed; one on a drive
    /// that is missing waits for it.
    pub(super) fn restore_downloads(&mut self) {
        for (id, download) in &self.downloads.all {
            let (id, request) = (id.clone(), download.request.clone());
            let look = move || incomplete_bytes(&request);
            self.mailbox.in_background(look, move |library, bytes| {
                let download = library.downloads.all.get_mut(&id);
                let Some(download) = download.filter(|it| it.child.is_none()) else {
                    return;
                };
                match (bytes.flatten(), &mut download.state) {
                    (Ok(bytes), DownloadState::Failed { done, .. }) => {
                        *done = bytes.unwrap_or(0);
                    }
                    (Ok(Some(done)), state) => {
                        let total = download.request.bytes;
                        *state = DownloadState::Paused { done, total };
                    }
                    (Ok(None), _) => {
                        library.downloads.all.remove(&id);
                        library.downloads.save();
                    }
                    (Err(error), _) => {
                        tracing::info!(id, %error, "a download waits for its folder")
                    }
                }
                library.changed();
            });
        }
    }

    /// Starts or resumes the download of an entry.
    pub(super) fn get(&mut self, id: &str) -> Result<(), Failure> {
        if !self.downloads.all.contains_key(id) && self.manifest.by_file(id).is_none() {
            return Err(Failure::other(
                "This model is not in the list of those that can be downloaded.",
            ));
        }
        self.get_listed(id)
    }

    pub(super) fn get_address(&mut self, address: &str) -> Result<(), Failure> {
        let request = self.request_of_address(address)?;
        let is_this = |known: &&KnownModel| is_known(&request.destination, known);
        let known = self.manifest.downloadable().find(is_this);
        let id = known.map_or(request.url, |known| known.file.clone());
        self.get_listed(&id)
    }

    /// Starts a listed download. `id` is the file of a known model, or the address of another one. If nothing is on the
    /// disk, the request is made again: the download folder may have changed, and a request that cannot succeed is not
    /// repeated.
    fn get_listed(&mut self, id: &str) -> Result<(), Failure> {
        let download = self.downloads.all.get_mut(id);
        if let Some(download) = download {
            if download.next != Next::Stay {
                download.next = Next::Start;
                self.downloads.save();
                self.changed();
                return Ok(());
            }
            if download.child.is_some() {
                return Ok(());
            }
            if download.state.progress().0 > 0 {
                let request = download.request.clone();
                return self.start(id, request);
            }
        }
        let request = match self.manifest.by_file(id) {
            Some(known) => self.request_of(known)?,
            None => self.request_of_address(id)?,
        };
        let request = self.in_set_folder(request);
        self.start(id, request)
    }

    /// Returns the request for the file of the hub at an address.
    fn request_of_address(&self, address: &str) -> Result<DownloadRequest, Failure> {
        let places = Places {
            hub: self.places.hub.clone(),
            endpoint: self.places.endpoint.clone(),
            folder: None,
        };
        DownloadRequest::of_address(address, &places).map_err(|error| match error {
            AddressError::NoFolder => Failure::other(NOT_OF_HUB),
            error => Failure::other(error.to_string()),
        })
    }

    fn request_of(&self, known: &KnownModel) -> Result<DownloadRequest, Failure> {
        let unknown = || Failure::other(format!("{} cannot be downloaded.", known.name));
        let (repository, revision) = known.hub().ok_or_else(unknown)?;
        Ok(DownloadRequest {
            url: known.address(HUB).ok_or_else(unknown)?,
            destination: Destination::HubCache {
                hub: self.places.hub.clone(),
                repository: repository.to_owned(),
                revision: revision.to_owned(),
                file: known.file.clone(),
            },
            bytes: Some(known.bytes),
            sha256: Some(known.sha256.clone()),
        })
    }

    /// Redirects a request to the folder that the user has set, if there is one.
    fn in_set_folder(&self, mut request: DownloadRequest) -> DownloadRequest {
        if let Some(folder) = self.set_folder() {
            request.destination = Destination::Folder {
                folder: folder.to_owned(),
                file: request.file_name().to_owned(),
            };
        }
        request
    }

    fn start(&mut self, id: &str, request: DownloadRequest) -> Result<(), Failure> {
        let is_same = |(other, download): (&String, &ActiveDownload)| {
            other != id && download.request.destination == request.destination
        };
        if self.downloads.all.iter().any(is_same) {
            let file = request.file_name();
            return Err(Failure::other(format!(
                "Another download has the same name in the same folder: {file}. Finish or discard it first."
            )));
        }
        let is_held = |folder: &PathBuf| is_within(&request, folder);
        if self.held.as_ref().is_some_and(is_held) {
            return Err(Failure::other(
                "The folder of this download is being moved. Start it again when that is done.",
            ));
        }
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
        let mut download = ActiveDownload::paused(request, 0);
        if let Some(before) = self.downloads.all.remove(id) {
            download.state = before.state;
        }
        download.state = download.state.started();
        download.child = Some(RunningChild {
            number,
            download: child,
        });
        self.downloads.all.insert(id.to_owned(), download);
        self.downloads.save();
        self.changed();
        Ok(())
    }

    /// Pauses the downloads into a folder, and starts none there until this is called with `None`.
    pub(super) fn hold(&mut self, folder: Option<PathBuf>) {
        self.held = folder;
        let Some(folder) = &self.held else {
            return;
        };
        let all = self.downloads.all.iter();
        let within = all.filter(|(_, download)| download.is_within(folder));
        let ids: Vec<_> = within.map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.pause(&id);
        }
    }

    /// Returns whether a download into the held folder has not ended.
    pub(super) fn writes_into_held(&self) -> bool {
        let mut running = self.downloads.all.values().filter(|it| it.child.is_some());
        running.any(|it| self.held.as_ref().is_some_and(|held| it.is_within(held)))
    }

    pub(super) fn pause(&mut self, id: &str) {
        let Some(download) = self.downloads.all.get_mut(id) else {
            return;
        };
        if download.next == Next::Start {
            download.next = Next::Stay;
        }
        if let Some(child) = &download.child {
            child.download.pause();
        }
    }

    /// Drops a download. A child may still be writing: the partial file is removed when it has ended.
    pub(super) fn drop_download(&mut self, id: &str) {
        let Some(download) = self.downloads.all.get_mut(id) else {
            return;
        };
        let was_next = mem::replace(&mut download.next, Next::Drop);
        if let Some(child) = &download.child {
            child.download.pause();
        } else if was_next == Next::Stay {
            self.remove_incomplete(id);
        }
        self.downloads.save();
        self.changed();
    }

    fn remove_incomplete(&mut self, id: &str) {
        let Some(download) = self.downloads.all.get(id) else {
            return;
        };
        let (id, request) = (id.to_owned(), download.request.clone());
        let remove = move || drop_incomplete(&request);
        self.mailbox.in_background(remove, move |library, removed| {
            library.removed(&id, removed.flatten());
        });
    }

    fn removed(&mut self, id: &str, removed: io::Result<()>) {
        let Some(download) = self.downloads.all.get_mut(id) else {
            return;
        };
        let next = mem::replace(&mut download.next, Next::Stay);
        match removed {
            Ok(()) if next == Next::Start => {
                let (_, total) = download.state.progress();
                download.state = DownloadState::Paused { done: 0, total };
            }
            Ok(()) => {
                self.downloads.all.remove(id);
            }
            Err(error) => {
                let message = format!("What was downloaded of it could not be removed: {error}.");
                download.state = download.state.failed(message);
            }
        }
        self.downloads.save();
        if next == Next::Start {
            self.start_again(id);
        }
        self.scan();
        self.changed();
    }

    fn start_again(&mut self, id: &str) {
        if let Err(failure) = self.get_listed(id) {
            self.fail(id, failure.to_string());
        }
    }

    /// Handles an event of a child.
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
        let is_last = event.is_last();
        let next = download.next;
        if is_last {
            download.child = None;
            if next == Next::Drop {
                return self.remove_incomplete(id);
            }
            download.next = Next::Stay;
        }
        match event {
            DownloadEvent::Resolved { request } => {
                download.request = request;
                return self.downloads.save();
            }
            DownloadEvent::Done { file, sha256, .. } => return self.arrived(id, file, sha256),
            event => {
                download.state = download.state.after(event);
                if matches!(download.state, DownloadState::Failed { .. }) {
                    self.downloads.save();
                }
            }
        }
        self.send_progress(id, is_last);
        if is_last && next == Next::Start {
            self.start_again(id);
        }
    }

    /// Sends a change of state or an end at once, and progress at intervals.
    fn send_progress(&mut self, id: &str, is_last: bool) {
        let Some(download) = self.downloads.all.get_mut(id) else {
            return;
        };
        let kind = mem::discriminant(&download.state);
        let is_due = |(at, sent): (Instant, _)| sent != kind || at.elapsed() >= PROGRESS;
        if !is_last && !download.sent.is_none_or(is_due) {
            return;
        }
        download.sent = Some((Instant::now(), kind));
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

    /// Handles a complete and verified file; its header is read before it is listed.
    fn arrived(&mut self, id: &str, file: PathBuf, sha256: String) {
        let Some(download) = self.downloads.all.get(id) else {
            return;
        };
        let place = match download.request.destination {
            Destination::Folder { .. } => ModelPlace::Goldcrest,
            Destination::HubCache { .. } => ModelPlace::HuggingFace,
        };
        let (id, search) = (id.to_owned(), ModelSearch::default());
        let look = move || {
            let path = file.display();
            let found = match search.file(&file, place) {
                Some(FoundFile {
                    header:
                        Err(Unusable {
                            reason,
                            foreign: Some(_),
                        }),
                    ..
                }) => Err(format!("It is in {path}. {reason}")),
                Some(found) => Ok(found),
                None => Err(format!(
                    "It is in {path}, but Goldcrest cannot run it: it is not a model for chats."
                )),
            };
            let stamp = FileStamp::of(&file).ok();
            ArrivedFile { found, stamp }
        };
        self.mailbox.in_background(look, move |library, arrived| {
            let arrived = match arrived {
                Ok(arrived) => arrived,
                Err(error) => {
                    return library.fail(
                        &id,
                        format!("It is downloaded, but could not be read: {error}."),
                    );
                }
            };
            if let Some(stamp) = &arrived.stamp {
                library
                    .facts
                    .update(stamp, |facts| facts.sha256 = Some(sha256));
            }
            match arrived.found {
                Ok(found) => library.file_is_here(&id, found),
                Err(message) => library.fail(&id, message),
            }
        });
    }

    fn file_is_here(&mut self, id: &str, found: FoundFile) {
        self.downloads.all.remove(id);
        self.downloads.save();
        let file = found.path.clone();
        let opens = found.header.is_ok() && self.opens_downloads() && self.open(&file);
        self.send_download(id, None);
        self.add(found);
        (self.on_event)(ShellEvent::Downloaded {
            id: id.to_owned(),
            file: ::models::id_of(&file),
            opens,
        });
        self.scan();
    }

    /// Opens a file in the chat; returns whether that began.
    fn open(&self, file: &Path) -> bool {
        let opened = self.chat.open_model(ModelChoice::File(file.to_owned()));
        if let Err(error) = &opened {
            tracing::warn!(%error, "a downloaded model was not opened");
        }
        opened.is_ok()
    }

    fn fail(&mut self, id: &str, message: String) {
        if let Some(download) = self.downloads.all.get_mut(id) {
            download.state = download.state.failed(message);
            self.downloads.save();
            self.send_progress(id, true);
        }
    }

    /// Returns whether the user still has only the bundled model: a model of the user's choice stays open.
    fn opens_downloads(&self) -> bool {
        match &self.status {
            ModelStatus::None => true,
            ModelStatus::Checking { model }
            | ModelStatus::Loading { model, .. }
            | ModelStatus::Ejected { model } => model.bundled_model,
            ModelStatus::Ready { model } => model.bundled_model,
        }
    }
}

/// Returns whether a destination is that of a known model, at its commit or on the main branch.
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
