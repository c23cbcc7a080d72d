//! Finds the small model that comes with the app. `npm run build` and `npm start` fetch it (`.scripts/bundled-model.mjs`).
//! It is optional: if it cannot be fetched, the build goes on, and in the app the guide answers until a model is opened.

use std::path::{Path, PathBuf};

use ::models::Manifest;

use crate::environment;

/// Its path in the manifest, below `models` of a folder of resources.
const FILE: &str = "bundled/SmolLM2-135M-Instruct.Q4_1.gguf";
/// Resources of an installed app, from the executable's folder, as tauri's bundles and our packages place them.
const INSTALLED: &str = if cfg!(target_os = "macos") {
    "../Resources"
} else if cfg!(target_os = "linux") {
    "../lib/Goldcrest"
} else {
    "."
};

/// Finds the file: the one that the environment names, or beside the executable, where a build puts it, or in the
/// resources of an installed app. A debug build finds that of the source tree, too. A file of another size than the
/// manifest's is damaged, and passed over.
pub fn file() -> Option<PathBuf> {
    if let Some(file) = environment::bundled_model().or_else(of_tests) {
        return Some(file).filter(|file| file.is_file());
    }
    real_file()
}

/// Finds the file that set-up fetched, whatever the environment names.
pub fn real_file() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let manifest = Manifest::embedded();
    file_of(executable.parent()?, manifest.by_file(FILE)?.bytes)
}

fn file_of(folder: &Path, bytes: u64) -> Option<PathBuf> {
    let places = [
        Some(folder.to_owned()),
        Some(folder.join(INSTALLED)),
        source_tree(),
    ];
    let is_whole = |file: &PathBuf| {
        let found = file.metadata();
        found.is_ok_and(|found| found.is_file() && found.len() == bytes)
    };
    let folders = places.into_iter().flatten();
    folders
        .map(|folder| folder.join("models").join(FILE))
        .find(is_whole)
}

/// Returns the model of the unit tests: it is in every clone, and thinks.
fn of_tests() -> Option<PathBuf> {
    #[cfg(test)]
    return Some(testing::tiny_model());
    #[cfg(not(test))]
    None
}

#[cfg(any(test, debug_assertions))]
fn source_tree() -> Option<PathBuf> {
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.."))
}

#[cfg(not(any(test, debug_assertions)))]
fn source_tree() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a file of three bytes.
    fn place_file(folder: &Path) -> PathBuf {
        let file = folder.join("models").join(FILE);
        std::fs::create_dir_all(file.parent().expect("has a parent")).expect("made");
        std::fs::write(&file, b"abc").expect("written");
        file
    }

    #[test]
    fn the_manifest_has_its_name_and_size() {
        let manifest = Manifest::embedded();
        let known = manifest.by_file(FILE).expect("listed");
        assert_eq!(known.name, chat::BUNDLED_MODEL);
        assert_eq!(known.address("https://huggingface.co"), None);
    }

    #[test]
    fn a_whole_file_is_found_beside_the_executable() {
        let root = tempfile::tempdir().expect("made");
        let file = place_file(&root.path().join("bin"));
        assert_eq!(file_of(&root.path().join("bin"), 3), Some(file));
        assert_eq!(file_of(&root.path().join("bin"), 4), None, "truncated");
        assert_eq!(file_of(&root.path().join("other"), 3), None);
    }

    /// Skips folders above the executable: others than the installer may be able to write there.
    #[test]
    fn no_folder_above_the_executable_is_searched() {
        let root = tempfile::tempdir().expect("made");
        place_file(root.path());
        let folder = root.path().join("src-tauri/target/release");
        assert_eq!(file_of(&folder, 3), None);
    }
}
