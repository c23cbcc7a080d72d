//! Folders and presets of an import: their names in the export, and here.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::to_raw_value;
use store::{FolderId, FolderRecord, PresetId, PresetRecord, Store, StoreError, WholeChat};

use crate::preset::{self, Preset, PresetContent, free_name, is_numbered, same_name};
use crate::settings::{MAX_INSTRUCTIONS, SamplingSettings};
use crate::{text, title};

/// Maximum folders of an import: nobody makes more.
const MOST_FOLDERS: usize = 1000;
/// Maximum bytes of a preset's sampling parameters, as JSON.
const LONGEST_SAMPLING: usize = 4000;

/// Folders and presets of an import, with valid names and texts.
#[derive(Default)]
pub(super) struct NamedRecords {
    folders: Vec<FolderRecord>,
    presets: Vec<(PresetRecord, PresetContent)>,
    /// Names and instructions that were truncated.
    pub cut: usize,
    /// Folders and presets that are not valid here.
    pub left_out: usize,
}

/// Folders and presets that were created.
#[derive(Default)]
pub(super) struct MadeRecords {
    pub folders: Vec<FolderId>,
    pub presets: Vec<PresetId>,
    /// Presets that had no room.
    pub left_out: usize,
    /// Ids by name.
    pub folder_of: HashMap<String, FolderId>,
    pub preset_of: HashMap<String, PresetId>,
}

impl NamedRecords {
    pub fn add_folder(&mut self, folder: FolderRecord) {
        let name = self.cut(title::one_line(&folder.name), title::FOLDER);
        let has_room = self.folders.len() < MOST_FOLDERS;
        match title::of_folder(&name).ok().filter(|_| has_room) {
            Some(name) => self.folders.push(FolderRecord { name, ..folder }),
            None => self.left_out += 1,
        }
    }

    pub fn add_preset(&mut self, preset: PresetRecord) {
        let written = Some(preset.sampling.get()).filter(|json| json.len() <= LONGEST_SAMPLING);
        let written: Value = written
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default();
        let content = PresetContent {
            name: self.cut(title::one_line(&preset.name), title::PRESET),
            instructions: self.cut(preset.instructions.clone(), MAX_INSTRUCTIONS),
            thinking: preset.thinking,
            sampling: SamplingSettings::stored(&written),
            tools: preset.tools.clone(),
        };
        let content = content.validated().ok();
        let Some(content) = content else {
            self.left_out += 1;
            return;
        };
        if self.presets.iter().any(|(_, known)| *known == content) {
            return;
        }
        if self.presets.len() == preset::MOST {
            self.left_out += 1;
            return;
        }
        // Sampling values in range are not parsed: a number may change in its last digit when it is read and written.
        let stays = serde_json::from_value(written)
            .is_ok_and(|it: SamplingSettings| it == content.sampling);
        let sampling = if stays {
            None
        } else {
            to_raw_value(&content.sampling).ok()
        };
        let record = PresetRecord {
            name: content.name.clone(),
            instructions: content.instructions.clone(),
            sampling: sampling.unwrap_or(preset.sampling),
            thinking: preset.thinking,
            tools: preset.tools,
        };
        self.presets.push((record, content));
    }

    /// Renames a chat's folder and preset to their names here.
    pub fn rename_in(&mut self, whole: &mut WholeChat) {
        let chat = &mut whole.chat;
        if let Some(folder) = &mut chat.folder {
            *folder = within(title::one_line(folder), title::FOLDER).0;
        }
        if let Some(chosen) = &mut chat.chosen_preset {
            if let Some(preset) = &mut chosen.preset {
                *preset = within(title::one_line(preset), title::PRESET).0;
            }
            let instructions = std::mem::take(&mut chosen.instructions);
            chosen.instructions = self.cut(instructions, MAX_INSTRUCTIONS);
        }
    }

    /// Creates those that are missing. In a transaction.
    pub fn make(self, store: &Store) -> Result<MadeRecords, StoreError> {
        let mut made = MadeRecords::default();
        self.make_folders(store, &mut made)?;
        self.make_presets(store, &mut made)?;
        Ok(made)
    }

    fn make_folders(&self, store: &Store, made: &mut MadeRecords) -> Result<(), StoreError> {
        let table = store.folders();
        let rows = table.list()?.into_iter();
        let mut here: HashMap<String, FolderId> =
            rows.map(|row| (row.name.to_lowercase(), row.id)).collect();
        for folder in &self.folders {
            let key = folder.name.to_lowercase();
            let id = match here.get(&key) {
                Some(id) => *id,
                None => {
                    let id = table.create(&folder.name, folder.created_at)?;
                    table.collapse(id, folder.collapsed)?;
                    made.folders.push(id);
                    here.insert(key, id);
                    id
                }
            };
            made.folder_of.insert(folder.name.clone(), id);
        }
        Ok(())
    }

    /// Creates presets. An existing one with the same name and another content stays, and the imported one gets a
    /// number. One that got a number in an earlier import is recognised.
    fn make_presets(self, store: &Store, made: &mut MadeRecords) -> Result<(), StoreError> {
        let rows = store.presets().list()?.into_iter();
        let mut here: Vec<Preset> = rows.map(Preset::from).collect();
        let before = here.len();
        for (record, content) in self.presets {
            let says_the_same = |other: &PresetContent| {
                (&other.instructions, other.thinking, &other.sampling)
                    == (&content.instructions, content.thinking, &content.sampling)
            };
            let known = here.iter().enumerate().find(|(at, other)| {
                let other = &other.content;
                says_the_same(other)
                    && (same_name(&other.name, &content.name)
                        || (*at < before && is_numbered(&other.name, &content.name)))
            });
            let given = record.name.clone();
            let id = match known {
                Some((_, known)) => known.id,
                None if here.len() >= preset::MOST => {
                    made.left_out += 1;
                    continue;
                }
                None => {
                    let is_taken = |name: &str| {
                        let mut here = here.iter();
                        here.any(|other| same_name(&other.content.name, name))
                    };
                    let name = free_name(&content.name, is_taken);
                    let id = store.records().add_preset(&PresetRecord {
                        name: name.clone(),
                        ..record
                    })?;
                    made.presets.push(id);
                    let content = PresetContent { name, ..content };
                    here.push(Preset { id, content });
                    id
                }
            };
            made.preset_of.insert(given, id);
        }
        Ok(())
    }

    fn cut(&mut self, text: String, most: usize) -> String {
        let (text, is_cut) = within(text, most);
        self.cut += usize::from(is_cut);
        text
    }
}

/// Truncates a text to this number of characters; true if it was longer.
fn within(text: String, most: usize) -> (String, bool) {
    match text.chars().nth(most) {
        None => (text, false),
        Some(_) => (text::cut(&text, most - 1).trim_end().to_owned(), true),
    }
}
