//! An export: chats of one moment into a file that is there when it is whole.

use std::io;
use std::path::Path;

use chat::{Chat, ChatId, ChatRecords, Failure, Importing, Store, StoreSnapshot, WholeChat};
use chat_files::{Format, Target, WriteError, WriteOptions, write};
use jiff::tz::TimeZone;
use serde::Deserialize;

/// What to export, and how.
#[derive(Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
pub struct Export {
    /// `None`: all that are kept.
    pub chats: Option<Vec<ChatId>>,
    pub format: Format,
    pub thinking: bool,
}

impl Export {
    /// Writes a file; returns how many chats are in it, or `None` where `progress` ended it, which hears how many of how many
    /// are written.
    pub fn to_file(
        &self,
        chats: &ChatsAtOnce,
        path: &Path,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Option<usize>, Failure> {
        let failed = |error: io::Error| not_written(path, &error);
        let mut target = Target::begin(path).map_err(failed)?;
        let written = self.to(chats, &mut target, progress);
        match written {
            Ok(count) => {
                target.keep().map_err(failed)?;
                Ok(Some(count))
            }
            Err(WriteError::Cancelled) => Ok(None),
            Err(WriteError::Output(error)) => Err(failed(error)),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    /// Writes to something else than a file.
    pub fn to(
        &self,
        chats: &ChatsAtOnce,
        out: &mut dyn io::Write,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<usize, WriteError> {
        let records = chats.records();
        // A copy has those that were asked for.
        let is_copy = matches!(chats, ChatsAtOnce::Copied(_));
        let wanted = self.chats.as_deref().filter(|_| !is_copy);
        let options = WriteOptions {
            thinking: self.thinking,
            zone: TimeZone::system(),
        };
        write(&records, wanted, self.format, &options, out, progress)
    }

    /// A name for the file, by what is in it.
    pub fn file_name(&self, title: Option<&str>) -> String {
        let name = match title.map(as_file_name).filter(|name| !name.is_empty()) {
            Some(name) => name,
            None => format!("Goldcrest chats {}", jiff::Zoned::now().date()),
        };
        format!("{name}.{}", self.format.extension())
    }
}

/// Chats that do not change while they are read.
pub enum ChatsAtOnce {
    /// The database at one moment.
    Kept(StoreSnapshot),
    /// A copy of those that were asked for: temporary chats are in no file.
    Copied(Store),
}

impl ChatsAtOnce {
    /// Those of a running app.
    pub fn of(chat: &Chat, database: &Path, wanted: Option<&[ChatId]>) -> Result<Self, Failure> {
        let temporary = wanted.filter(|wanted| wanted.iter().any(|chat| chat.is_temporary()));
        let Some(wanted) = temporary else {
            return Ok(Self::Kept(StoreSnapshot::take(database)?));
        };
        let mut chats = Vec::new();
        for wanted in wanted {
            chats.push(chat.record(*wanted)?);
        }
        Self::copied(chats)
    }

    /// One that is in no database.
    pub fn alone(whole: WholeChat) -> Result<Self, Failure> {
        Self::copied(vec![whole])
    }

    fn copied(chats: Vec<WholeChat>) -> Result<Self, Failure> {
        let store = Store::in_memory()?;
        let mut copied = Importing::begin(1);
        for whole in chats {
            copied.add(&store, whole)?;
        }
        copied.write(&store, std::time::Duration::MAX)?;
        copied.finish(&store)?;
        Ok(Self::Copied(store))
    }

    pub fn records(&self) -> ChatRecords<'_> {
        match self {
            Self::Kept(snapshot) => snapshot.records(),
            Self::Copied(store) => store.records(),
        }
    }
}

/// Nothing is left of a file that was not written.
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
        _ => format!("{name} was not written: {error}."),
    })
}

/// A title without what file names cannot have anywhere.
fn as_file_name(title: &str) -> String {
    let forbidden = |letter: char| letter.is_control() || r#"/\:*?"<>|"#.contains(letter);
    let name: String = title
        .chars()
        .map(|letter| if forbidden(letter) { ' ' } else { letter })
        .take(80)
        .collect();
    let words: Vec<&str> = name.split_whitespace().collect();
    words.join(" ").trim_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_after_its_chat() {
        let export = |format| Export {
            chats: None,
            format,
            thinking: true,
        };
        for (title, name) in [
            ("How heavy?", "How heavy.md"),
            ("a/b\\c: d\n", "a b c d.md"),
            ("..", "Goldcrest chats"),
            ("Ä ñ 日本", "Ä ñ 日本.md"),
        ] {
            let found = export(Format::Markdown).file_name(Some(title));
            assert!(found.starts_with(name), "{found}");
        }
        assert!(export(Format::Jsonl).file_name(None).ends_with(".jsonl"));
    }

    #[test]
    fn what_was_not_written_says_why() {
        let says = |kind: io::ErrorKind| not_written(Path::new("/a/b.md"), &kind.into()).message;
        assert!(says(io::ErrorKind::StorageFull).contains("disk is full: b.md was not written"));
        assert!(says(io::ErrorKind::PermissionDenied).contains("Nothing can be written in /a"));
        assert!(says(io::ErrorKind::NotFound).contains("no folder /a"));
    }
}
