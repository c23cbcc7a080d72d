//! The state of the models page: known, found, open and downloading models.

use std::path::{Path, PathBuf};

use ::models::{
    Bandwidth, EntrySources, Facts, FileStamp, FoundFile, Machine, Manifest, ModelList, ModelPlace,
    ModelSearch, OpenFile, WritingRate, id_of,
};
use chat::{AnswerStats, Chat, Failure, ModelChoice, ModelInfo, ModelStatus, Settings};
use host::load_options;

use super::downloads::{DOWNLOADS_FILE, Downloads};
use super::hashing::Hashing;
use super::mailbox::Mailbox;
use super::places::{ModelPlaces, machine_name, settings_name};
use crate::wire::ShellEvent;

/// Minimum tokens of an answer that give a rate.
const MEASURED_TOKENS: usize = 32;
/// Free memory below which the bandwidth is not measured: the measurement takes half a gigabyte for an instant.
const BANDWIDTH_MEMORY: u64 = 2 << 30;

/// The owner's state.
pub(super) struct Library {
    pub(super) mailbox: Mailbox<Library>,
    pub(super) chat: Chat,
    pub(super) settings: Settings,
    pub(super) places: ModelPlaces,
    pub(super) on_event: Box<dyn Fn(ShellEvent) + Send>,
    pub(super) manifest: Manifest,
    pub(super) facts: Facts,
    pub(super) downloads: Downloads,
    /// Folder into which nothing is downloaded for now.
    pub(super) held: Option<PathBuf>,
    pub(super) status: ModelStatus,
    search: ModelSearch,
    pub(super) found: Vec<FoundFile>,
    free_bytes: Option<u64>,
    scanning: bool,
    /// True if something has changed since the running search began: it may have missed that.
    scan_again: bool,
    pub(super) hashing: Hashing,
    /// The settings under which the open model was opened.
    opened_under: String,
    /// True if the model that was opened last runs on a GPU.
    on_gpu: bool,
    /// Machine whose memory bandwidth is being measured.
    bandwidth_asked: Option<String>,
    /// List that was sent to the page.
    sent: Option<ModelList>,
}

/// Result of a search.
struct ScanResult {
    found: Vec<FoundFile>,
    free_bytes: Option<u64>,
}

impl Library {
    pub(super) fn new(
        mailbox: Mailbox<Library>,
        chat: Chat,
        settings: Settings,
        places: ModelPlaces,
        on_event: Box<dyn Fn(ShellEvent) + Send>,
    ) -> Library {
        let mut library = Library {
            facts: Facts::read(&places.facts_file()),
            downloads: Downloads::read(&places.data.join(DOWNLOADS_FILE)),
            held: None,
            manifest: Manifest::embedded(),
            status: ModelStatus::None,
            search: ModelSearch::default(),
            found: Vec::new(),
            free_bytes: None,
            scanning: false,
            scan_again: false,
            hashing: Hashing::default(),
            opened_under: String::new(),
            on_gpu: false,
            bandwidth_asked: None,
            sent: None,
            mailbox,
            chat,
            settings,
            places,
            on_event,
        };
        library.note_folder();
        library
    }

    /// Stores the folder of the settings for commands, which search it, too.
    fn note_folder(&mut self) {
        let folder = self.set_folder().map(Path::to_owned);
        self.facts.set_folder(folder.as_deref());
    }

    /// Returns the list, and starts another search, unless one is running.
    pub(super) fn list(&mut self) -> ModelList {
        if !self.scanning {
            self.scan();
        }
        self.measure_bandwidth();
        let list = self.now();
        self.sent = Some(list.clone());
        list
    }

    /// Sends the list if it has changed.
    pub(super) fn changed(&mut self) {
        let list = self.now();
        if self.sent.as_ref() != Some(&list) {
            self.sent = Some(list.clone());
            (self.on_event)(ShellEvent::Models { list });
        }
    }

    fn now(&self) -> ModelList {
        let listed = self.downloads.listed();
        let machine = self.machine();
        let open = self.status.ready().and_then(|info| {
            Some(OpenFile {
                path: info.file.as_ref()?.into(),
                context_length: info.context_length,
            })
        });
        let sources = EntrySources {
            manifest: &self.manifest,
            found: &self.found,
            facts: &self.facts,
            machine: &machine,
            machine_name: &settings_name(&self.settings.load_options()),
            open: open.as_ref(),
            hashing: self.hashing.done(),
            downloads: &listed,
            endpoint: &self.places.endpoint,
        };
        ModelList {
            entries: sources.entries(),
            scanning: self.scanning,
            folder: self.download_folder().to_string_lossy().into_owned(),
            free_bytes: self.free_bytes,
        }
    }

    fn machine(&self) -> Machine {
        let settings = self.settings.load_options();
        let options = load_options(&settings);
        let open = self.status.ready().filter(|open| !open.device.on_gpu);
        let bandwidth = self.facts.bandwidth(&machine_name(&options));
        Machine {
            bandwidth: bandwidth.filter(|_| !self.on_gpu),
            reached: self.facts.reached(&settings_name(&settings)),
            available: (self.places.memory)(open.map_or(0, |open| open.file_bytes)),
            options,
        }
    }

    /// Returns the download folder that the user has set. The hub's cache is used as such, whether it was set or not.
    pub(super) fn set_folder(&self) -> Option<&Path> {
        let set = self.settings.download_folder.as_deref().map(Path::new);
        set.filter(|folder| *folder != self.places.hub)
    }

    /// Returns the folder for downloads.
    pub(super) fn download_folder(&self) -> PathBuf {
        self.set_folder().unwrap_or(&self.places.hub).to_owned()
    }

    pub(super) fn settings_changed(&mut self, settings: Settings) {
        let moved = settings.download_folder != self.settings.download_folder;
        self.settings = settings;
        self.note_folder();
        if moved {
            self.scan();
        }
        self.measure_bandwidth();
        self.changed();
    }

    /// Handles a change of the model. A file is noted as opened once it is. The forecasts are recomputed, but not at
    /// each step of loading: the memory of a model is free once another one is opened.
    pub(super) fn model_changed(&mut self, status: ModelStatus) {
        let is_step = match (&self.status, &status) {
            (
                ModelStatus::Loading { model: before, .. },
                ModelStatus::Loading { model: now, .. },
            ) => before == now,
            _ => false,
        };
        self.status = status;
        if let Some(open) = self.status.ready() {
            self.on_gpu = open.device.on_gpu;
            self.opened_under = settings_name(&self.settings.load_options());
        }
        if !is_step {
            self.changed();
        }
        let Some(file) = self.open_file() else {
            return;
        };
        match self.found.iter().find(|it| it.path == file) {
            Some(found) => {
                let stamp = found.stamp.clone();
                self.opened(&stamp, &file);
            }
            None => {
                let search = self.search.clone();
                let look = move || search.file(&file, ModelPlace::Opened);
                self.mailbox.in_background(look, |library, found| {
                    let Ok(Some(found)) = found else { return };
                    library.opened(&found.stamp.clone(), &found.path.clone());
                    library.add(found);
                });
            }
        }
    }

    fn open_file(&self) -> Option<PathBuf> {
        let ModelInfo { file, .. } = self.status.ready()?;
        file.as_ref().map(PathBuf::from)
    }

    fn opened(&mut self, stamp: &FileStamp, path: &Path) {
        self.facts.open(stamp, path);
    }

    /// Adds a file that has arrived.
    pub(super) fn add(&mut self, file: FoundFile) {
        self.found.retain(|it| it.stamp.path != file.stamp.path);
        self.found.push(file);
        self.scan_again = self.scanning;
        self.verify_found();
        self.changed();
    }

    /// Records the rate of an answer that was written alone for the open file.
    pub(super) fn answered(&mut self, stats: &AnswerStats) {
        let rate = stats.figures.tokens_per_second;
        let is_measured = stats.figures.tokens >= MEASURED_TOKENS
            && !stats.figures.shared
            && rate.is_finite()
            && rate > 0.0;
        let is_open = |info: &ModelInfo| info.name == stats.model && !info.bundled_model;
        if !is_measured || !self.status.ready().is_some_and(is_open) {
            return;
        }
        let Some(file) = self.open_file() else {
            return;
        };
        if let Some(found) = self.found.iter().find(|it| it.path == file) {
            let (stamp, machine) = (found.stamp.clone(), self.opened_under.clone());
            let header = found.header.as_ref().ok();
            let reached = header.and_then(|it| Machine::reached_by(&it.footprint, rate));
            if let Some(bytes_per_second) = reached {
                self.facts.set_reached(Bandwidth {
                    machine: machine.clone(),
                    bytes_per_second,
                });
            }
            self.facts.update(&stamp, |facts| {
                facts.rate = Some(WritingRate {
                    machine,
                    tokens_per_second: rate,
                });
            });
            self.changed();
        }
    }

    /// Searches the folders; again if a search is running, as it may have passed the change.
    pub(super) fn scan(&mut self) {
        if self.scanning {
            self.scan_again = true;
            return;
        }
        (self.scanning, self.scan_again) = (true, false);
        let find = self
            .places
            .search(&self.search, self.set_folder(), &self.facts);
        let downloads = self.download_folder();
        let scan = move || ScanResult {
            found: find(),
            free_bytes: download::free_bytes(&downloads).ok(),
        };
        self.mailbox.in_background(scan, |library, result| {
            library.scanning = false;
            match result {
                Ok(_) if library.scan_again => library.scan(),
                Ok(ScanResult { found, free_bytes }) => {
                    (library.found, library.free_bytes) = (found, free_bytes);
                    library.verify_found();
                }
                Err(_) => {}
            }
            library.changed();
        });
    }

    /// Measures the memory bandwidth once for the configured threads, unless it is known.
    fn measure_bandwidth(&mut self) {
        let machine = self.machine();
        let name = machine_name(&machine.options);
        let has_memory = machine.available.is_none_or(|free| free > BANDWIDTH_MEMORY);
        let is_asked = self.bandwidth_asked.as_ref() == Some(&name);
        let is_known = self.facts.bandwidth(&name).is_some();
        if is_asked || is_known || self.on_gpu || !has_memory {
            return;
        }
        self.bandwidth_asked = Some(name.clone());
        let measure = self.places.bandwidth;
        let threads = engine::machine::threads(machine.options.threads);
        self.mailbox.in_background(
            move || measure(threads),
            move |library, rate| match rate {
                Ok(rate) if rate.is_finite() => {
                    library.facts.set_bandwidth(Bandwidth {
                        machine: name,
                        bytes_per_second: rate,
                    });
                    library.changed();
                }
                Ok(_) => {}
                Err(_) => library.bandwidth_asked = None,
            },
        );
    }

    /// Returns the entry of a file on this computer.
    pub(super) fn found(&self, id: &str) -> Result<&FoundFile, Failure> {
        let found = self.found.iter().find(|file| id_of(&file.path) == id);
        found.ok_or_else(|| {
            Failure::other(
                "This model is not on this computer any more. The list is being renewed.",
            )
        })
    }

    pub(super) fn choice(&mut self, id: &str) -> Result<ModelChoice, Failure> {
        let choice = self.found(id).map(|file| match file.place {
            ModelPlace::BundledModel => ModelChoice::BundledModel,
            _ => ModelChoice::File(file.path.clone()),
        });
        self.renewing(choice)
    }

    pub(super) fn file(&mut self, id: &str) -> Result<PathBuf, Failure> {
        let file = self.found(id).map(|file| file.path.clone());
        self.renewing(file)
    }

    pub(super) fn removable(&mut self, id: &str) -> Result<PathBuf, Failure> {
        let removable = self.found(id).and_then(|file| match file.place {
            ModelPlace::BundledModel => Err(Failure::other(
                "This model is a part of Goldcrest and stays.",
            )),
            _ => Ok(file.path.clone()),
        });
        self.renewing(removable)
    }

    /// Returns the file of the model that is open, being opened or unloaded; `None` if that is the bundled model.
    pub(super) fn file_in_use(&self) -> Option<PathBuf> {
        let file = match &self.status {
            ModelStatus::None => &None,
            ModelStatus::Checking { model }
            | ModelStatus::Loading { model, .. }
            | ModelStatus::Ejected { model } => &model.file,
            ModelStatus::Ready { model } => &model.file,
        };
        file.as_ref().map(PathBuf::from)
    }

    /// Searches again after an error: a missing entry is a sign of an outdated list.
    fn renewing<T>(&mut self, result: Result<T, Failure>) -> Result<T, Failure> {
        if result.is_err() {
            self.scan();
        }
        result
    }
}
