//! Round trips of chats through files, and imports from other programs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod damaged;
mod documents;
mod foreign;
mod lenient;
mod resuming;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use chat_files::{Item, ReadError, Tally, read};
use jiff::tz::TimeZone;
use store::{FolderRecord, WholeChat};
use tempfile::TempDir;

/// The content of files.
struct Found {
    chats: Vec<WholeChat>,
    folders: Vec<FolderRecord>,
    tally: Tally,
}

fn read_files(files: &[PathBuf]) -> Result<Found, ReadError> {
    let (mut chats, mut folders) = (Vec::new(), Vec::new());
    let tally = read(files, &TimeZone::UTC, &mut |_, _| true, &mut |item| {
        match item {
            Item::Chat(whole) => chats.push(whole),
            Item::Folder(folder) => folders.push(folder),
            Item::File(_) | Item::Preset(_) => {}
        }
        true
    })?;
    for whole in &chats {
        assert_eq!(whole.fault(), None, "{}", whole.chat.title);
    }
    Ok(Found {
        chats,
        folders,
        tally,
    })
}

/// The chats of one file with this content.
fn read_text(name: &str, content: impl AsRef<[u8]>) -> Result<Found, ReadError> {
    let (_folder, file) = file(name, content);
    read_files(&[file])
}

fn file(name: &str, content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    (folder, path)
}

/// An archive with these files.
fn archive(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
    let path = folder.join("export.zip");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in files {
        archive.start_file(*name, options).unwrap();
        std::io::Write::write_all(&mut archive, content.as_bytes()).unwrap();
    }
    archive.finish().unwrap();
    path
}

/// A chat as lines: author, text and parent, with the thinking in brackets; the shown ones with a star.
fn outline(whole: &WholeChat) -> Vec<String> {
    let mut shown = Vec::new();
    let mut at = whole.chat.leaf;
    while let Some(place) = at {
        shown.push(place);
        at = whole.messages[place as usize - 1].parent;
    }
    let lines = whole.messages.iter().map(|message| {
        let star = if shown.contains(&message.id) { "*" } else { "" };
        let parent = message
            .parent
            .map_or("-".to_owned(), |parent| parent.to_string());
        let thinking = message.parts.thinking();
        let thinking = thinking.map_or(String::new(), |thinking| format!("[{thinking}] "));
        let who = message.role.name();
        format!(
            "{star}{parent}>{} {who}: {thinking}{}",
            message.id,
            message.parts.text()
        )
    });
    lines.collect()
}
