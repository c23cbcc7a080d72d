//! Finds the small model that comes with the app.

use std::path::{Path, PathBuf};

use tauri::utils::platform::resource_dir;
use tauri::{Env, PackageInfo};

/// The demo model inside a folder of resources.
const DEMO_MODEL: &str = "models/demo/demo-q4_k_m.gguf";

/// Finds the demo model: beside the executable, where a build puts it, or in the resources of an installed app. A debug
/// build finds that of the source tree, too.
pub fn file() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    file_of(executable.parent()?)
}

fn file_of(folder: &Path) -> Option<PathBuf> {
    let places = [Some(folder.to_owned()), installed(), source_tree()];
    let mut files = places.into_iter().flatten().map(|it| it.join(DEMO_MODEL));
    files.find(|file| file.is_file())
}

/// Returns the folder of resources, as tauri's bundles and our packages create it.
fn installed() -> Option<PathBuf> {
    let package = PackageInfo {
        name: "Goldcrest".to_owned(),
        version: env!("CARGO_PKG_VERSION").parse().ok()?,
        authors: "",
        description: "",
        crate_name: env!("CARGO_PKG_NAME"),
    };
    resource_dir(&package, &Env::default()).ok()
}

#[cfg(any(test, debug_assertions))]
fn source_tree() -> Option<PathBuf> {
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

#[cfg(not(any(test, debug_assertions)))]
fn source_tree() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_file(folder: &Path) -> PathBuf {
        let file = folder.join(DEMO_MODEL);
        std::fs::create_dir_all(file.parent().expect("has a parent")).expect("made");
        std::fs::write(&file, b"").expect("written");
        file
    }

    #[test]
    fn the_demo_model_is_found_beside_the_executable_and_in_the_source_tree() {
        let root = tempfile::tempdir().expect("made");
        let file = place_file(&root.path().join("bin"));
        assert_eq!(file_of(&root.path().join("bin")), Some(file));
        assert!(file_of(&root.path().join("other")).is_some());
    }

    /// Skips folders above the executable: others than the installer may be able to write there.
    #[test]
    fn no_folder_above_the_executable_is_searched() {
        let root = tempfile::tempdir().expect("made");
        place_file(root.path());
        let folder = root.path().join("src-tauri/target/release");
        let found = file_of(&folder).expect("that of the source tree");
        assert!(!found.starts_with(root.path()), "{}", found.display());
    }
}
