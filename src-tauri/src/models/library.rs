//! The state of the models page: what is known, found, open and being downloaded.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ::models::{
    Bandwidth, EntrySources, Facts, FileStamp, FoundFile, Machine, Manifest, ModelList, ModelPlace,
    ModelSearch, id_of,
};
use chat::{AnswerStats, Chat, Failure, ModelChoice, ModelInfo, ModelStatus, Settings};
use engine::LoadOptions;

use super::downloads::Downloads;
use super::mailbox::Mailbox;
use super::places::{ModelPlaces, machine_name};
use crate::wire::ShellEvent;

/// Tokens of an answer that give a rate.
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
    pub(super) status: ModelStatus,
    search: ModelSearch,
    pub(super) found: Vec<FoundFile>,
    free_bytes: Option<u64>,
    scanning: bool,
    /// Files whose SHA-256 is to be computed, the one in work included.
    to_hash: VecDeque<FileStamp>,
    bandwidth_asked: bool,
    /// The list that the page has.
    sent: Option<ModelList>,
}

/// What a search brings back.
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
        Library {
            facts: Facts::read(&places.facts_file()),
            downloads: Downloads::read(&places.data.join("downloads.json")),
            manifest: Manifest::embedded(),
            status: ModelStatus::None,
            search: ModelSearch::default(),
            found: Vec::new(),
            free_bytes: None,
            scanning: false,
            to_hash: VecDeque::new(),
            bandwidth_asked: false,
            sent: None,
            mailbox,
            chat,
            settings,
            places,
            on_event,
        }
    }

    /// The list, and another search.
    pub(super) fn list(&mut self) -> ModelList {
        self.scan();
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
        let sources = EntrySources {
            manifest: &self.manifest,
            found: &self.found,
            facts: &self.facts,
            machine: &machine,
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

    /// The memory of the open model counts as free: opening another gives it back.
    fn machine(&self) -> Machine {
        let open = self.status.ready();
        let taken = open.map_or(0, |open| open.file_bytes.saturating_add(open.kv_bytes));
        let options = LoadOptions {
            threads: self.settings.threads.map(|threads| threads as usize),
            context: self.settings.context_length.map(|tokens| tokens as usize),
            kv: self.settings.kv_type,
            ..LoadOptions::default()
        };
        Machine {
            bandwidth: self.facts.bandwidth(&machine_name(&options)),
            available: engine::process::available().map(|free| free.saturating_add(taken)),
            options,
        }
    }

    /// Where models are downloaded to.
    pub(super) fn download_folder(&self) -> PathBuf {
        let set = self.settings.download_folder.as_deref();
        set.map_or_else(|| self.places.hub.clone(), PathBuf::from)
    }

    pub(super) fn settings_changed(&mut self, settings: Settings) {
        let moved = settings.download_folder != self.settings.download_folder;
        self.settings = settings;
        if moved {
            self.scan();
        }
        self.changed();
    }

    /// The file is noted as opened once it is.
    pub(super) fn model_changed(&mut self, status: ModelStatus) {
        self.status = status;
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
                    let Some(found) = found else { return };
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
        let known = self.facts.of(stamp);
        if known.is_none_or(|facts| facts.opened_as.as_deref() != Some(path)) {
            let path = path.to_owned();
            self.facts
                .update(stamp, |facts| facts.opened_as = Some(path));
        }
    }

    /// Adds a file that is now here.
    pub(super) fn add(&mut self, file: FoundFile) {
        self.found.retain(|it| it.stamp.path != file.stamp.path);
        self.found.push(file);
        self.hash_next();
        self.changed();
    }

    /// The rate of an answer is that of the open file.
    pub(super) fn answered(&mut self, stats: &AnswerStats) {
        let rate = stats.figures.tokens_per_second;
        let is_long = stats.figures.tokens >= MEASURED_TOKENS && rate.is_finite() && rate > 0.0;
        let is_open = |info: &ModelInfo| info.name == stats.model && !info.demo_model;
        if !is_long || !self.status.ready().is_some_and(is_open) {
            return;
        }
        let Some(file) = self.open_file() else {
            return;
        };
        if let Some(found) = self.found.iter().find(|it| it.path == file) {
            let stamp = found.stamp.clone();
            self.facts
                .update(&stamp, |facts| facts.tokens_per_second = Some(rate));
            self.changed();
        }
    }

    /// Searches the folders, unless that is under way.
    pub(super) fn scan(&mut self) {
        if self.scanning {
            return;
        }
        self.scanning = true;
        let set = self.settings.download_folder.as_deref().map(PathBuf::from);
        let own: Vec<_> = set.into_iter().chain([self.places.own_folder()]).collect();
        let folders = (self.places.folders)(&own);
        let opened: Vec<_> = self.facts.opened().map(Path::to_owned).collect();
        let (search, demo) = (self.search.clone(), self.places.demo_model.clone());
        let downloads = self.download_folder();
        let scan = move || {
            let mut found = search.run(&folders, &opened);
            let demo = demo.and_then(|demo| search.file(&demo, ModelPlace::DemoModel));
            if let Some(demo) = demo {
                found.retain(|file| file.stamp.path != demo.stamp.path);
                found.push(demo);
            }
            ScanResult {
                found,
                free_bytes: download::free_bytes(&downloads).ok(),
            }
        };
        self.mailbox.in_background(scan, |library, result| {
            library.scanning = false;
            library.found = result.found;
            library.free_bytes = result.free_bytes;
            library.hash_next();
            library.changed();
        });
    }

    /// Computes the SHA-256 of the files that may be official, one after the other.
    fn hash_next(&mut self) {
        let is_waiting = !self.to_hash.is_empty();
        for file in &self.found {
            let is_candidate = self.manifest.has_size(file.stamp.bytes);
            let is_hashed = self
                .facts
                .of(&file.stamp)
                .is_some_and(|it| it.sha256.is_some());
            if is_candidate && !is_hashed && !self.to_hash.contains(&file.stamp) {
                self.to_hash.push_back(file.stamp.clone());
            }
        }
        if !is_waiting {
            self.hash_front();
        }
    }

    fn hash_front(&mut self) {
        let Some(stamp) = self.to_hash.front().cloned() else {
            return;
        };
        let hash = move || {
            ::models::lower_priority();
            let never = AtomicBool::new(false);
            let hash = ::models::sha256(&stamp, &never);
            (stamp, hash)
        };
        self.mailbox.in_background(hash, |library, (stamp, hash)| {
            library.to_hash.pop_front();
            match hash {
                Ok(Some(sha256)) => {
                    library
                        .facts
                        .update(&stamp, |facts| facts.sha256 = Some(sha256));
                    library.changed();
                }
                // The next search sees what has become of it.
                Ok(None) => {
                    tracing::info!(file = %stamp.path.display(), "changed while it was hashed")
                }
                Err(error) => {
                    tracing::warn!(file = %stamp.path.display(), %error, "not hashed");
                }
            }
            library.hash_front();
        });
    }

    /// Measures the memory bandwidth once in a run of the app, unless it is known.
    fn measure_bandwidth(&mut self) {
        let machine = self.machine();
        let has_memory = machine.available.is_none_or(|free| free > BANDWIDTH_MEMORY);
        if self.bandwidth_asked || machine.bandwidth.is_some() || !has_memory {
            return;
        }
        self.bandwidth_asked = true;
        let (name, measure) = (machine_name(&machine.options), self.places.bandwidth);
        let threads = engine::machine::threads(machine.options.threads);
        self.mailbox.in_background(
            move || measure(threads),
            move |library, rate| {
                if rate.is_finite() {
                    library.facts.set_bandwidth(Bandwidth {
                        machine: name,
                        bytes_per_second: rate,
                    });
                    library.changed();
                }
            },
        );
    }

    /// The entry of a file that is here.
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
            ModelPlace::DemoModel => ModelChoice::DemoModel,
            _ => ModelChoice::File(file.path.clone()),
        });
        self.renewing(choice)
    }

    pub(super) fn file(&mut self, id: &str) -> Result<PathBuf, Failure> {
        let file = self.found(id).map(|file| file.path.clone());
        self.renewing(file)
    }

    pub(super) fn removable(&mut self, id: &str) -> Result<PathBuf, Failure> {
        let removable = self.found(id).and_then(|file| {
            if file.place == ModelPlace::DemoModel {
                return Err(Failure::other("The demo model is a part of Goldcrest and stays."));
            }
            if self.open_file().is_some_and(|open| open == file.path) {
                let refused = "This model is open. Open another one first, or the demo model; then remove it.";
                return Err(Failure::other(refused));
            }
            Ok(file.path.clone())
        });
        self.renewing(removable)
    }

    /// An entry that is not there is a sign of an old list.
    fn renewing<T>(&mut self, result: Result<T, Failure>) -> Result<T, Failure> {
        if result.is_err() {
            self.scan();
        }
        result
    }
}
