//! Where models are looked for and downloaded to, and by what.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::models::{Facts, FoundFile, ModelPlace, ModelSearch, SearchFolder, UserFolders, own_folders};
use engine::LoadOptions;

use crate::demo_model;
use crate::folders::Folders;
use crate::model::{load_options, requested};

/// Finds the folders to be searched; it is given those of the app. It may wait for a network.
type FindFolders = Arc<dyn Fn(&[PathBuf]) -> Vec<SearchFolder> + Send + Sync>;

/// Tells how much memory is free.
type FreeMemory = Box<dyn Fn(u64) -> Option<u64> + Send + Sync>;

/// Finds a program.
type FindProgram = Box<dyn Fn() -> io::Result<PathBuf> + Send + Sync>;

/// What the models page depends on outside the app.
pub struct ModelPlaces {
    /// The app's folder.
    pub data: PathBuf,
    /// The cache of the Hugging Face hub.
    pub hub: PathBuf,
    /// The hub's address.
    pub endpoint: String,
    /// The folders to be searched.
    pub folders: FindFolders,
    /// The file of the demo model.
    pub demo_model: Option<PathBuf>,
    /// The program that downloads.
    pub fetch: FindProgram,
    /// Bytes of memory that are free once the open model is closed; it is given what that takes, for systems that do not
    /// tell what a process holds.
    pub memory: FreeMemory,
    /// Measures bytes per second from memory with this number of threads.
    pub bandwidth: fn(usize) -> f64,
}

impl ModelPlaces {
    /// Those of this user.
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
            demo_model: demo_model::file(),
            fetch: Box::new(download::program),
            memory: Box::new(engine::process::available_after_closing),
            bandwidth: engine::read_bandwidth,
        }
    }

    /// What was found out about files.
    pub fn facts_file(&self) -> PathBuf {
        self.data.join("models.json")
    }

    /// The folder of models beside the chats.
    fn own_folder(&self) -> PathBuf {
        self.data.join("models")
    }

    /// A search of these places, of the folder that the user has set, and for the files that were opened: to be run on a
    /// thread that may wait.
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
        let demo_model = self.demo_model.clone();
        move || {
            let folders = search.folders(move || find(&own)).unwrap_or(certain);
            let mut found = search.run(&folders, &opened);
            let demo = demo_model.and_then(|demo| search.file(&demo, ModelPlace::DemoModel));
            if let Some(demo) = demo {
                // It may have been opened as a file.
                found.retain(|file| file.stamp.path != demo.stamp.path);
                found.push(demo);
            }
            found
        }
    }
}

/// Names the settings under which a model has written at a rate: on which device, by which CPU and with how many threads.
/// Under others, it has another one.
pub fn settings_name(settings: &chat::ModelOptions) -> String {
    let device = requested(settings).map_or(settings.device.clone(), |device| device.to_string());
    format!("{device}, {}", machine_name(&load_options(settings)))
}

/// Names what a memory bandwidth is measured on.
pub fn machine_name(options: &LoadOptions) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let level = engine::CpuLevel::best();
    let threads = engine::machine::threads(options.threads);
    format!("{}, {cpus} CPUs, {threads} threads", level.name())
}
