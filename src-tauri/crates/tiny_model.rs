//! The model of the tests: SmolLM3's architecture and chat format in 4.6 MB. It thinks.

use std::path::{Path, PathBuf};

/// Returns its file, for the tests of any package below `src-tauri`.
pub fn file() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package.ancestors();
    let workspace = folders.find(|folder| folder.join("crates").is_dir());
    workspace
        .unwrap_or(package)
        .join("crates/engine/tests/fixtures/tiny-smollm3-q4_k_m.gguf")
}
