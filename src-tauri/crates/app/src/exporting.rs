//! Export: a snapshot of chats, written to a file atomically.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use chat::{Chat, ChatId, Failure, Importing};
use chat_files::{Format, OnProgress, Render, Target, WriteError, Written, write};
use serde::Deserialize;
use store::{ChatRecords, Store, StoreSnapshot, WholeChat};

use crate::file_names::as_file_name;
use crate::folders::Folders;
use crate::importing::names;
use crate::worker::Rendering;

/// Parameters of an export.
#[derive(Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct Export {
    /// Chats to export; `None`: all stored ones.
    pub chats: Option<Vec<ChatId>>,
    pub format: Format,
    pub thinking: bool,
    /// Name of the file, without its extension; `None`: derived from the content.
    #[serde(default)]
    pub name: Option<String>,
}

impl Export {
    /// Writes a file; `None` if `progress` cancelled it.
    pub fn to_file(
        &self,
        chats: &ChatsAtOnce,
        path: &Path,
        progress: &mut OnProgress<'_>,
    ) -> Result<Option<Written>, Failure> {
        let failed = |error: io::Error| not_written(path, &error);
        let mut target = Target::begin(path).map_err(failed)?;
        let written = self.to(chats, &mut target, progress);
        match written {
            Ok(written) => {
                target.keep().map_err(failed)?;
                Ok(Some(written))
            }
            Err(WriteError::Cancelled) => Ok(None),
            Err(WriteError::Output(error)) => Err(failed(error)),
            Err(WriteError::Store(error)) => Err(error.into()),
            Err(WriteError::Rendering(sentence)) => {
                Err(Failure::other(format!("{sentence} Nothing was exported.")))
            }
        }
    }

    /// Writes to another destination than a file.
    pub fn to(
        &self,
        chats: &ChatsAtOnce,
        out: &mut dyn io::Write,
        progress: &mut OnProgress<'_>,
    ) -> Result<Written, WriteError> {
        let records = chats.records();
        // A copy holds the requested chats.
        let is_copy = matches!(chats, ChatsAtOnce::Copied(_));
        let wanted = self.chats.as_deref().filter(|_| !is_copy);
        let kind = self.format.document();
        let mut rendering = kind.map(|kind| Rendering::new(kind, self.thinking));
        let document = rendering
            .as_mut()
            .map(|document| document as &mut dyn Render);
        write(&records, wanted, document, out, progress)
    }

    /// Returns the name of the file: the given one, or one derived from the content.
    pub fn file_name(&self, title: Option<&str>) -> String {
        let given = [self.name.as_deref(), title].into_iter().flatten();
        let mut names = given.map(as_file_name).filter(|name| !name.is_empty());
        let dated = || format!("Goldcrest chats {}", chat::now().date());
        let name = names.next().unwrap_or_else(dated);
        format!("{name}.{}", self.format.extension())
    }
}

/// Chats that do not change while they are read.
pub enum ChatsAtOnce {
    /// A snapshot of the database.
    Kept(StoreSnapshot),
    /// A copy of the requested chats: temporary ones are in no file.
    Copied(Store),
}

impl ChatsAtOnce {
    /// Takes the chats of a running app.
    pub fn of(chat: &Chat, database: &Path, wanted: Option<&[ChatId]>) -> Result<Self, Failure> {
        let temporary = wanted.filter(|wanted| wanted.iter().any(|chat| chat.is_temporary()));
        let Some(wanted) = temporary else {
            return Ok(Self::Kept(StoreSnapshot::take(database)?));
        };
        let mut copied = CopiedChats::begin()?;
        let (folders, presets) = chat.named_records()?;
        let (mut in_folders, mut with_presets) = (HashSet::new(), HashSet::new());
        for wanted in wanted {
            let whole = chat.record(*wanted)?;
            in_folders.extend(whole.chat.folder.clone());
            let chosen = whole.chat.chosen_preset.as_ref();
            with_presets.extend(chosen.and_then(|chosen| chosen.preset.clone()));
            copied.importing.add(&copied.store, whole)?;
        }
        for folder in folders
            .into_iter()
            .filter(|it| in_folders.contains(&it.name))
        {
            copied.importing.add_folder(folder);
        }
        for preset in presets
            .into_iter()
            .filter(|it| with_presets.contains(&it.name))
        {
            copied.importing.add_preset(preset);
        }
        copied.finish()
    }

    /// Takes a chat that is in no database.
    pub fn alone(whole: WholeChat) -> Result<Self, Failure> {
        let mut copied = CopiedChats::begin()?;
        copied.importing.add(&copied.store, whole)?;
        copied.finish()
    }

    pub fn records(&self) -> ChatRecords<'_> {
        match self {
            Self::Kept(snapshot) => snapshot.records(),
            Self::Copied(store) => store.records(),
        }
    }
}

/// Chats that are being copied into a store in memory.
struct CopiedChats {
    store: Store,
    importing: Importing,
}

impl CopiedChats {
    fn begin() -> Result<Self, Failure> {
        let store = Store::in_memory()?;
        let importing = Importing::begin(&store, i64::MAX)?;
        Ok(Self { store, importing })
    }

    fn finish(self) -> Result<ChatsAtOnce, Failure> {
        let Self {
            store,
            mut importing,
        } = self;
        importing.write(&store, Duration::MAX)?;
        importing.finish(&store)?;
        Ok(ChatsAtOnce::Copied(store))
    }
}

/// Describes the chats of an export that are too large to be imported again; `None` if there are none.
pub fn too_large(written: &Written) -> Option<String> {
    let too_large = &written.too_large;
    let are = match too_large.count {
        0 => return None,
        1 => "1 chat is".to_owned(),
        count => format!("{} chats are", figures::count(count)),
    };
    let names = names(too_large);
    Some(format!("{are} too large to be imported again: {names}."))
}

/// Refuses a path in the data folder, where an export could replace the chats themselves.
pub fn check_place(file: &Path, folders: &Folders) -> Result<(), Failure> {
    if folders.hold(file) {
        return Err(Failure::other(format!(
            "{} is where Goldcrest keeps your chats. Choose another folder for the export.",
            folders.data.display()
        )));
    }
    Ok(())
}

/// Makes the failure of a file that was not written, of which nothing is left.
fn not_written(path: &Path, error: &io::Error) -> Failure {
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new(".")).display();
    Failure::other(match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("The disk is full: {name} was not written, and nothing of it is left there.")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("Nothing can be written in {folder}. Choose another folder.")
        }
        io::ErrorKind::NotFound => format!("There is no folder {folder}."),
        io::ErrorKind::AlreadyExists => format!(
            "{name} is there already, and is not a file that an export can replace. Choose another name."
        ),
        _ => format!("{name} was not written: {error}."),
    })
}

#[cfg(test)]
mod tests {
    use chat_files::Omissions;

    use super::*;

    #[test]
    fn a_file_is_named_after_its_chat() {
        let export = |format, name: Option<&str>| Export {
            chats: None,
            format,
            thinking: true,
            name: name.map(str::to_owned),
        };
        for (given, title, name) in [
            (None, "How heavy?", "How heavy.md"),
            (None, "..", "Goldcrest chats"),
            (Some("My notes"), "How heavy?", "My notes.md"),
            (Some("/"), "How heavy?", "How heavy.md"),
        ] {
            let found = export(Format::Markdown, given).file_name(Some(title));
            assert!(found.starts_with(name), "{found}");
        }
        let found = export(Format::Jsonl, None).file_name(None);
        assert!(found.ends_with(".jsonl"));
    }

    #[test]
    fn an_export_names_what_cannot_be_imported_again() {
        let written = |count, names: &[&str]| Written {
            too_large: Omissions {
                count,
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                others: 0,
            },
            ..Written::default()
        };
        assert_eq!(too_large(&written(0, &[])), None);
        for (written, sentence) in [
            (
                written(1, &["“Birds”"]),
                "1 chat is too large to be imported again: “Birds”.",
            ),
            (
                written(2, &["“Birds”", "“Trees”"]),
                "2 chats are too large to be imported again: “Birds” and “Trees”.",
            ),
        ] {
            assert_eq!(too_large(&written).as_deref(), Some(sentence));
        }
    }

    #[test]
    fn nothing_is_exported_into_the_data_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        std::fs::create_dir_all(data.join("copies")).expect("made");
        let beside = folder.path().join("beside");
        std::fs::create_dir(&beside).expect("made");
        let folders = Folders { data };
        for name in [
            "data/goldcrest.db",
            "data/goldcrest.lock",
            "data/kv",
            "data/copies/a.md",
            "data/../data/a.md",
            "beside/../data/a.md",
        ] {
            let refused = check_place(&folder.path().join(name), &folders);
            let message = refused.expect_err(name).message;
            assert!(
                message.contains("where Goldcrest keeps your chats"),
                "{message}"
            );
        }
        for name in ["a.md", "data", "data.md", "beside/a.md", "data/../a.md"] {
            let allowed = check_place(&folder.path().join(name), &folders);
            assert!(allowed.is_ok(), "{name}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../data", beside.join("link")).expect("linked");
            let linked = beside.join("link/goldcrest.db");
            check_place(&linked, &folders).expect_err("it is in the data folder");
        }
    }

    #[test]
    fn what_was_not_written_says_why() {
        let says = |kind: io::ErrorKind| not_written(Path::new("/a/b.md"), &kind.into()).message;
        assert!(says(io::ErrorKind::StorageFull).contains("disk is full: b.md was not written"));
        assert!(says(io::ErrorKind::PermissionDenied).contains("Nothing can be written in /a"));
        assert!(says(io::ErrorKind::AlreadyExists).contains("b.md is there already"));
        assert!(says(io::ErrorKind::NotFound).contains("no folder /a"));
    }
}
