//! Finds the small model that comes with the app.

use std::path::{Path, PathBuf};

/// The demo model inside a folder of resources.
const DEMO_MODEL: &str = "models/demo/demo-q4_k_m.gguf";

/// The demo model: installed, beside the executable (where a build puts it), or in the
/// source tree above it.
pub fn file() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    file_near(executable.parent()?)
}

fn file_near(folder: &Path) -> Option<PathBuf> {
    let installed = ["../lib/Goldcrest", "../lib/goldcrest", "../Resources"];
    let mut places = std::iter::once(folder.to_owned())
        .chain(installed.iter().map(|place| folder.join(place)))
        .chain(folder.ancestors().skip(1).map(Path::to_owned));
    places.find_map(|place| {
        let file = place.join(DEMO_MODEL);
        file.is_file().then_some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_file(folder: &Path) {
        let file = folder.join(DEMO_MODEL);
        std::fs::create_dir_all(file.parent().expect("has a parent")).expect("made");
        std::fs::write(file, b"").expect("written");
    }

    #[test]
    fn the_demo_model_is_found_beside_installed_and_above() {
        for (place, executable) in [
            ("bin", "bin"),
            ("lib/Goldcrest", "bin"),
            ("", "src-tauri/target/release"),
        ] {
            let root = tempfile::tempdir().expect("made");
            let folder = root.path().join(executable);
            std::fs::create_dir_all(&folder).expect("made");
            place_file(&root.path().join(place));
            assert!(file_near(&folder).is_some(), "{place} from {executable}");
        }
    }

    #[test]
    fn no_demo_model_is_no_path() {
        let root = tempfile::tempdir().expect("made");
        assert_eq!(file_near(root.path()), None);
    }
}
