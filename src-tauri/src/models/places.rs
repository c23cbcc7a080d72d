//! Where models are looked for and downloaded to, and by what.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use ::models::{SearchFolder, UserFolders};

use engine::LoadOptions;

use crate::demo_model;
use crate::folders::Folders;

/// Finds the folders to be searched; it is given those of the app.
type FindFolders = Box<dyn Fn(&[PathBuf]) -> Vec<SearchFolder> + Send + Sync>;

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
            folders: Box::new(move |own| {
                ::models::search_folders(&user, &environment, &searched, own)
            }),
            demo_model: demo_model::file(),
            fetch: Box::new(download::program),
            bandwidth: engine::read_bandwidth,
        }
    }

    /// What was found out about files.
    pub fn facts_file(&self) -> PathBuf {
        self.data.join("models.json")
    }

    /// The folder of models beside the chats.
    pub fn own_folder(&self) -> PathBuf {
        self.data.join("models")
    }
}

/// Names what a memory bandwidth is measured on.
pub fn machine_name(options: &LoadOptions) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let level = engine::CpuLevel::best();
    let threads = engine::machine::threads(options.threads);
    format!("{}, {cpus} CPUs, {threads} threads", level.name())
}
