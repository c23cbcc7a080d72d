//! The folders in which programs keep model files on this computer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::ollama;
use crate::small_file::read_small;

/// Places of model files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum ModelPlace {
    /// A file that was opened, and is in none of the other places.
    Opened,
    /// The app itself.
    BundledModel,
    /// A folder of the app: the one that the user has set for downloads, or the one beside the chats.
    Goldcrest,
    /// The cache of the Hugging Face hub, which transformers and llama.cpp share.
    HuggingFace,
    /// LM Studio's models.
    LmStudio,
    /// Jan's models.
    Jan,
    /// The former cache of llama.cpp.
    LlamaCpp,
    /// GPT4All's models.
    Gpt4All,
    /// Ollama's models.
    Ollama,
    /// The user's downloads.
    Downloads,
}

impl ModelPlace {
    /// Returns its name, as users know it.
    pub fn name(self) -> &'static str {
        match self {
            ModelPlace::Opened => "opened",
            ModelPlace::BundledModel => "part of Goldcrest",
            ModelPlace::Goldcrest => "Goldcrest",
            ModelPlace::HuggingFace => "Hugging Face cache",
            ModelPlace::LmStudio => "LM Studio",
            ModelPlace::Jan => "Jan",
            ModelPlace::LlamaCpp => "llama.cpp",
            ModelPlace::Gpt4All => "GPT4All",
            ModelPlace::Ollama => "Ollama",
            ModelPlace::Downloads => "Downloads",
        }
    }
}

/// The folders of a user, as the system names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserFolders {
    /// The home folder.
    pub home: PathBuf,
    /// Application data: `~/.local/share`, `~/Library/Application Support`, `%APPDATA%`.
    pub data: PathBuf,
    /// Application data of this computer: like `data`, but `%LOCALAPPDATA%`.
    pub local_data: PathBuf,
    /// Settings: `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    pub config: PathBuf,
    /// Caches: `~/.cache`, `~/Library/Caches`, `%LOCALAPPDATA%`.
    pub cache: PathBuf,
    /// Downloads, by their name in the user's language.
    pub downloads: Option<PathBuf>,
}

impl UserFolders {
    /// Returns the folders of this user; `None` if there is no home folder.
    pub fn of_user() -> Option<UserFolders> {
        let base = directories::BaseDirs::new()?;
        let user = directories::UserDirs::new();
        let named = user.and_then(|user| user.download_dir().map(Path::to_owned));
        Some(UserFolders {
            home: base.home_dir().to_owned(),
            data: base.data_dir().to_owned(),
            local_data: base.data_local_dir().to_owned(),
            config: base.config_dir().to_owned(),
            cache: base.cache_dir().to_owned(),
            downloads: downloads(named, base.home_dir()),
        })
    }
}

/// Returns the download folder of the desktop, else the one with the usual name: a Linux desktop names none until the
/// user's folders were set up.
fn downloads(named: Option<PathBuf>, home: &Path) -> Option<PathBuf> {
    named.or_else(|| Some(home.join("Downloads")).filter(|usual| usual.is_dir()))
}

/// A folder to search, with its subfolders.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SearchFolder {
    /// Kind of the folder.
    pub place: ModelPlace,
    /// Its path.
    pub path: PathBuf,
    /// Levels of subfolders to search.
    pub depth: usize,
}

/// Returns all folders in which a model file may be; many do not exist. `own` are folders of the app, `hub` the cache
/// of the Hugging Face hub. Reads the settings of other programs.
pub fn search_folders(
    user: &UserFolders,
    environment: &dyn Fn(&str) -> Option<OsString>,
    hub: &Path,
    own: &[PathBuf],
) -> Vec<SearchFolder> {
    let mut folders = own_folders(hub, own);
    let mut add = |place, path, depth| add_folder(&mut folders, place, path, depth);
    for folder in lm_studio(user) {
        // OWNER/NAME/
        add(ModelPlace::LmStudio, folder, 4);
    }
    let jan = jan(user, environment);
    add(ModelPlace::Jan, jan.join("llamacpp").join("models"), 4);
    // Used by earlier versions of Jan.
    add(ModelPlace::Jan, jan.join("models"), 4);
    let llama_cpp = path_of(environment("LLAMA_CACHE"));
    let llama_cpp = llama_cpp.unwrap_or_else(|| user.cache.join("llama.cpp"));
    add(ModelPlace::LlamaCpp, llama_cpp, 2);
    for folder in gpt4all(user) {
        add(ModelPlace::Gpt4All, folder, 1);
    }
    for folder in ollama(user, environment) {
        // HOST/OWNER/NAME/TAG
        add(ModelPlace::Ollama, folder.join(ollama::MANIFESTS), 3);
    }
    if let Some(folder) = &user.downloads {
        add(ModelPlace::Downloads, folder.clone(), 2);
    }
    folders
}

/// Returns the folders of [`search_folders`] that no setting of another program names.
pub fn own_folders(hub: &Path, own: &[PathBuf]) -> Vec<SearchFolder> {
    let mut folders = Vec::new();
    for folder in own {
        add_folder(&mut folders, ModelPlace::Goldcrest, folder.clone(), 2);
    }
    // models--OWNER--NAME/snapshots/COMMIT/ and the folders of the repository.
    add_folder(&mut folders, ModelPlace::HuggingFace, hub.to_owned(), 5);
    folders
}

/// Adds a folder. A folder of the app that also belongs to another program is searched as that program's.
fn add_folder(folders: &mut Vec<SearchFolder>, place: ModelPlace, path: PathBuf, depth: usize) {
    match folders.iter_mut().find(|known| known.path == path) {
        Some(known) => {
            if known.place == ModelPlace::Goldcrest {
                known.place = place;
            }
            known.depth = known.depth.max(depth);
        }
        None if path.is_absolute() => folders.push(SearchFolder { place, path, depth }),
        None => {}
    }
}

/// Returns LM Studio's folder of models, which `settings.json` in its home folder names once it is moved. Its home
/// folder is named by `~/.lmstudio-home-pointer`, and was `~/.cache/lm-studio` before version 0.3.6.
fn lm_studio(user: &UserFolders) -> Vec<PathBuf> {
    let pointer = read_small(&user.home.join(".lmstudio-home-pointer"));
    let pointed = pointer.and_then(|text| path_of(Some(text.lines().next()?.trim().into())));
    let homes = [
        pointed,
        Some(user.home.join(".lmstudio")),
        Some(user.home.join(".cache").join("lm-studio")),
    ];
    let mut folders = Vec::new();
    for home in homes.into_iter().flatten() {
        folders.extend(json_path(&home.join("settings.json"), "downloadsFolder"));
        folders.push(home.join("models"));
    }
    let settings = user.config.join("LM Studio").join("settings.json");
    folders.extend(json_path(&settings, "downloadsFolder"));
    folders
}

/// Returns Jan's data folder: `JAN_DATA_FOLDER`, else the one that `settings.json` in its folder names, else `data`
/// there.
fn jan(user: &UserFolders, environment: &dyn Fn(&str) -> Option<OsString>) -> PathBuf {
    let own = user.data.join("Jan");
    path_of(environment("JAN_DATA_FOLDER"))
        .or_else(|| json_path(&own.join("settings.json"), "data_folder"))
        .or_else(|| json_path(&user.config.join("Jan/settings.json"), "data_folder"))
        .unwrap_or_else(|| own.join("data"))
}

/// Returns GPT4All's folder of models: `modelPath` in its settings, and the default.
fn gpt4all(user: &UserFolders) -> Vec<PathBuf> {
    let settings = read_small(&user.config.join("nomic.ai").join("GPT4All.ini"));
    let line = settings.as_deref().and_then(|text| {
        text.lines()
            .find_map(|line| line.trim().strip_prefix("modelPath="))
    });
    let moved = line.and_then(|path| path_of(Some(path.trim().trim_matches('"').into())));
    let default = user.local_data.join("nomic.ai").join("GPT4All");
    moved.into_iter().chain([default]).collect()
}

/// Returns Ollama's folders of models: `OLLAMA_MODELS`, the user's own, and that of its service on Linux.
fn ollama(user: &UserFolders, environment: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let named = path_of(environment("OLLAMA_MODELS"));
    let own = user.home.join(".ollama").join("models");
    let service = PathBuf::from("/usr/share/ollama/.ollama/models");
    named.into_iter().chain([own, service]).collect()
}

fn path_of(text: Option<OsString>) -> Option<PathBuf> {
    text.filter(|text| !text.is_empty()).map(PathBuf::from)
}

/// Returns the path under `key` of a JSON file.
fn json_path(file: &Path, key: &str) -> Option<PathBuf> {
    let json: serde_json::Value = serde_json::from_str(&read_small(file)?).ok()?;
    path_of(Some(json.get(key)?.as_str()?.into()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn user(home: &TempDir) -> UserFolders {
        let home = home.path();
        UserFolders {
            home: home.to_owned(),
            data: home.join("data"),
            local_data: home.join("local"),
            config: home.join("config"),
            cache: home.join("cache"),
            downloads: Some(home.join("Téléchargements")),
        }
    }

    fn write(file: PathBuf, text: &str) {
        fs::create_dir_all(file.parent().expect("has one")).expect("made");
        fs::write(file, text).expect("written");
    }

    /// Returns the paths of a place, relative to the home folder if they are in it.
    fn paths(home: &TempDir, place: ModelPlace, variables: &[(&str, &str)]) -> Vec<String> {
        let environment = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let hub = home.path().join("hub");
        let folders = search_folders(&user(home), &environment, &hub, &[]);
        let of_place = folders.into_iter().filter(|folder| folder.place == place);
        of_place
            .map(|folder| {
                let path = folder.path.strip_prefix(home.path());
                path.unwrap_or(&folder.path).display().to_string()
            })
            .collect()
    }

    #[test]
    fn each_program_has_its_default_folder() {
        let home = tempfile::tempdir().expect("made");
        for (place, expected) in [
            (ModelPlace::HuggingFace, vec!["hub"]),
            (
                ModelPlace::LmStudio,
                vec![".lmstudio/models", ".cache/lm-studio/models"],
            ),
            (
                ModelPlace::Jan,
                vec!["data/Jan/data/llamacpp/models", "data/Jan/data/models"],
            ),
            (ModelPlace::LlamaCpp, vec!["cache/llama.cpp"]),
            (ModelPlace::Gpt4All, vec!["local/nomic.ai/GPT4All"]),
            (
                ModelPlace::Ollama,
                vec![
                    ".ollama/models/manifests",
                    "/usr/share/ollama/.ollama/models/manifests",
                ],
            ),
            (ModelPlace::Downloads, vec!["Téléchargements"]),
            (ModelPlace::Goldcrest, vec![]),
        ] {
            assert_eq!(paths(&home, place, &[]), expected, "{place:?}");
        }
    }

    #[test]
    fn without_a_folder_that_the_desktop_names_downloads_is_the_one_of_that_name() {
        let home = tempfile::tempdir().expect("made");
        let named = home.path().join("Téléchargements");
        assert_eq!(downloads(None, home.path()), None);
        let usual = home.path().join("Downloads");
        fs::create_dir(&usual).expect("made");
        assert_eq!(downloads(None, home.path()), Some(usual));
        assert_eq!(downloads(Some(named.clone()), home.path()), Some(named));
    }

    #[test]
    fn moved_folders_are_read_from_settings_and_environment() {
        let home = tempfile::tempdir().expect("made");
        let lm_studio = home.path().join("elsewhere");
        write(
            home.path().join(".lmstudio-home-pointer"),
            &format!("{}\n", lm_studio.display()),
        );
        write(
            lm_studio.join("settings.json"),
            r#"{ "downloadsFolder": "/disk/lm" }"#,
        );
        write(
            home.path().join("data/Jan/settings.json"),
            r#"{ "data_folder": "/disk/jan" }"#,
        );
        write(
            home.path().join("config/nomic.ai/GPT4All.ini"),
            "[General]\nmodelPath=/disk/gpt4all/\n",
        );
        let lm = paths(&home, ModelPlace::LmStudio, &[]);
        assert_eq!(&lm[..2], ["/disk/lm", "elsewhere/models"]);
        let jan = |variables| paths(&home, ModelPlace::Jan, variables);
        assert_eq!(jan(&[])[0], "/disk/jan/llamacpp/models");
        let set = [("JAN_DATA_FOLDER", "/set")];
        assert_eq!(jan(&set)[0], "/set/llamacpp/models");
        assert_eq!(paths(&home, ModelPlace::Gpt4All, &[])[0], "/disk/gpt4all/");
        let llama_cpp = |value| paths(&home, ModelPlace::LlamaCpp, &[("LLAMA_CACHE", value)]);
        assert_eq!(llama_cpp("/disk/llama"), ["/disk/llama"]);
        assert_eq!(llama_cpp(""), ["cache/llama.cpp"], "empty is not set");
    }

    #[test]
    fn a_folder_of_the_app_that_is_another_programs_is_searched_as_that_programs() {
        let home = tempfile::tempdir().expect("made");
        let hub = home.path().join("hub");
        let lm_studio = home.path().join(".lmstudio/models");
        let own = [hub.clone(), lm_studio.clone(), home.path().join("own")];
        let folders = search_folders(&user(&home), &|_| None, &hub, &own);
        let of_path = |path: &Path| {
            let same: Vec<_> = folders.iter().filter(|it| it.path == path).collect();
            assert_eq!(same.len(), 1, "{path:?}");
            (same[0].place, same[0].depth)
        };
        assert_eq!(of_path(&hub), (ModelPlace::HuggingFace, 5));
        assert_eq!(of_path(&lm_studio), (ModelPlace::LmStudio, 4));
        assert_eq!(of_path(&own[2]), (ModelPlace::Goldcrest, 2));
    }

    #[test]
    fn settings_that_are_damaged_or_relative_are_passed_over() {
        let home = tempfile::tempdir().expect("made");
        write(
            home.path().join(".lmstudio/settings.json"),
            r#"{ "downloadsFolder": 7 }"#,
        );
        write(home.path().join("data/Jan/settings.json"), "{");
        fs::create_dir_all(home.path().join("config/nomic.ai/GPT4All.ini")).expect("made");
        let lm = paths(&home, ModelPlace::LmStudio, &[]);
        assert_eq!(lm, [".lmstudio/models", ".cache/lm-studio/models"]);
        let jan = paths(&home, ModelPlace::Jan, &[]);
        assert_eq!(jan[0], "data/Jan/data/llamacpp/models");
        let gpt4all = paths(&home, ModelPlace::Gpt4All, &[]);
        assert_eq!(gpt4all, ["local/nomic.ai/GPT4All"]);
        let llama = paths(&home, ModelPlace::LlamaCpp, &[("LLAMA_CACHE", "relative")]);
        assert!(llama.is_empty(), "{llama:?}");
    }
}
