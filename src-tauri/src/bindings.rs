//! Checks that the committed TypeScript is the one that these commands and types make.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::Parameter;
use specta_typescript::{Typescript, semantic};
use tauri_specta::ErrorHandlingMode;

use crate::commands;

/// Set to write the file instead of comparing it.
const WRITE: &str = "GOLDCREST_WRITE_BINDINGS";

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/host/bindings.ts")
}

fn export(file: &Path) {
    // JSON has no NaN and the shell sends none, so a float is a number and never null.
    let semantics = semantic::Configuration::default().enable_lossless_floats();
    tauri_specta::Builder::<tauri::Wry>::new()
        .commands(commands::collect())
        .error_handling(ErrorHandlingMode::Throw)
        .semantic_types(semantics)
        .disable_serde_phases()
        .constant("defaultSettings", chat::Settings::default())
        .constant("slashCommands", chat::SLASH_COMMANDS)
        .constant("settingNames", chat::setting_names())
        .constant("parameters", parameters())
        .export(Typescript::default().header(HEADER), file)
        .expect("the types can be written as TypeScript");
}

/// Returns the parameters of an answer, by key.
fn parameters() -> BTreeMap<&'static str, Parameter> {
    engine::PARAMETERS.map(|it| (it.key, it)).into()
}

const HEADER: &str = "// `npm run bindings` writes this file from what src-tauri/src/commands.rs takes and returns.\n";

#[test]
fn the_committed_bindings_are_current() {
    if std::env::var_os(WRITE).is_some() {
        return export(&committed());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let fresh = folder.path().join("bindings.ts");
    export(&fresh);
    let read = |file: &Path| std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        read(&fresh) == read(&committed()),
        "ui/src/host/bindings.ts is not what the commands make: run `npm run bindings` and commit it"
    );
}
