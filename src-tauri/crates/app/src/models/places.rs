//! Places of models: folders to search, the folder for downloads, and the program for them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::models::{Facts, FoundFile, ModelPlace, ModelSearch, SearchFolder, UserFolders, own_folders};
use engine::LoadOptions;
use host::bundled_model;
use host::{load_options, requested};

use crate::folders::Folders;

/// Finds the folders to search, given those of the app. It may wait for a network.
type FindFolders = Arc<dyn Fn(&[PathBuf]) -> Vec<SearchFolder> + Send + Sync>;

/// Returns the free memory.
type FreeMemory = Box<dyn Fn(u64) -> Option<u64> + Send + Sync>;

/// Finds a program.
type FindProgram = Box<dyn Fn() -> io::Result<PathBuf> + Send + Sync>;

/// Dependencies of the models page outside the app.
pub struct ModelPlaces {
    /// The app's folder.
    pub data: PathBuf,
    /// The cache of the Hugging Face hub.
    pub hub: PathBuf,
    /// The hub's address.
    pub endpoint: String,
    /// Folders to search.
    pub folders: FindFolders,
    /// The file of the bundled model.
    pub bundled_model: Option<PathBuf>,
    /// The program that downloads.
    pub fetch: FindProgram,
    /// Free bytes of memory once the open model is closed; its argument is the memory of that, for systems that do not
    /// report that of a process.
    pub memory: FreeMemory,
    /// Measures bytes per second from memory with this number of threads.
    pub bandwidth: fn(usize) -> f64,
}

impl ModelPlaces {
    /// Returns the places of this user.
    pub fn of_user(folders: &Folders) -> Self {
        fn environment(name: &str) -> Option<OsString> {
            std::env::var_os(name)
        }
        let user = UserFolders::of_user().unwrap_or_default();
        let hub = download::hub_folder(&environment, &user.home);
        let searched = hub.clone();
        Self {
            data: folders.data.clone(),
            hub,
            endpoint: download::hub_endpoint(&environment),
            folders: Arc::new(move |own| {
                ::models::search_folders(&user, &environment, &searched, own)
            }),
            bundled_model: bundled_model::file(),
            fetch: Box::new(download::program),
            memory: Box::new(engine::process::available_after_closing),
            bandwidth: engine::read_bandwidth,
        }
    }

    /// Returns the file of facts about models.
    pub fn facts_file(&self) -> PathBuf {
        self.data.join("models.json")
    }

    /// Returns the folder of models beside the chats.
    fn own_folder(&self) -> PathBuf {
        self.data.join("models")
    }

    /// Searches these places, the folder that the user has set, and the files that were opened: on a thread that may
    /// wait.
    pub fn search(
        &self,
        search: &ModelSearch,
        set: Option<&Path>,
        facts: &Facts,
    ) -> impl FnOnce() -> Vec<FoundFile> + Send + use<> {
        let set = set.map(Path::to_owned);
        let own: Vec<_> = set.into_iter().chain([self.own_folder()]).collect();
        let opened: Vec<_> = facts.opened().map(Path::to_owned).collect();
        let certain = own_folders(&self.hub, &own);
        let (search, find) = (search.clone(), Arc::clone(&self.folders));
        let bundled_model = self.bundled_model.clone();
        move || {
            let folders = search.folders(move || find(&own)).unwrap_or(certain);
            let mut found = search.run(&folders, &opened);
            let bundled =
                bundled_model.and_then(|bundled| search.file(&bundled, ModelPlace::BundledModel));
            if let Some(bundled) = bundled {
                // It may have been opened as a file.
                found.retain(|file| file.stamp.path != bundled.stamp.path);
                found.push(bundled);
            }
            found
        }
    }
}

/// Returns a key for the settings under which a model has a rate: device, CPU and threads. Under others, it has another
/// one.
pub fn settings_name(settings: &chat::ModelOptions) -> String {
    let device = requested(settings).map_or(settings.device.clone(), |device| device.to_string());
    format!("{device}, {}", machine_name(&load_options(settings)))
}

/// Returns a key for the machine of a memory bandwidth.
pub fn machine_name(options: &LoadOptions) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let level = engine::CpuLevel::best();
    let threads = engine::machine::threads(options.threads);
    format!("{}, {cpus} CPUs, {threads} threads", level.name())
}
