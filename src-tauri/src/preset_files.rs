//! Export and import of presets, to files that the user chooses in a dialog.

use app::file_names::as_file_name;
use chat::preset::{ReadPresets, file};
use chat::{Chat, Failure, Preset, PresetId};
use serde::Serialize;

use crate::file_dialogs::{FileDialogs, Purpose};

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ImportedPresets {
    pub ids: Vec<PresetId>,
    /// Parts of another app's preset that have no counterpart here.
    pub left_out: Vec<String>,
}

/// Exports presets, and returns the name of the file; `None` if the user closed the dialog.
pub fn export(
    chat: &Chat,
    dialogs: &FileDialogs,
    ids: &[PresetId],
) -> Result<Option<String>, Failure> {
    let mut presets = chat.presets()?;
    presets.retain(|preset| ids.contains(&preset.id));
    let name = match &presets[..] {
        [] => return Err(Failure::other("There is no preset to export.")),
        [Preset { content, .. }] => file_name(&content.name),
        _ => "Goldcrest presets.json".to_owned(),
    };
    let Some(path) = dialogs.save_file("Export presets", &name) else {
        return Ok(None);
    };
    let contents: Vec<_> = presets.into_iter().map(|preset| preset.content).collect();
    file::write(&path, &contents)?;
    let name = path.file_name().unwrap_or_default();
    Ok(Some(name.to_string_lossy().into_owned()))
}

/// Imports presets, and returns them; `None` if the user closed the dialog.
pub fn import(chat: &Chat, dialogs: &FileDialogs) -> Result<Option<ImportedPresets>, Failure> {
    let filter = ("Presets", &["json"][..]);
    let picked = dialogs.open_files(Purpose::Import, "Import presets", filter, false);
    let Some(path) = picked.first() else {
        return Ok(None);
    };
    let ReadPresets { presets, left_out } = file::read(path)?;
    let ids = chat.add_presets(presets)?;
    Ok(Some(ImportedPresets { ids, left_out }))
}

fn file_name(preset: &str) -> String {
    match as_file_name(preset).as_str() {
        "" => "Preset.json".to_owned(),
        name => format!("{name}.json"),
    }
}
