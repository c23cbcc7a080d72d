//! Import: adds chats from files, all or none.

use std::path::PathBuf;

use chat::{Chat, Failure, ImportCounts, RunningImport};
use chat_files::{Item, Omissions, OnProgress, Tally};

use crate::wire::Imported;
use crate::worker;

/// Adds the chats of files to those of the app; `None` if `progress` cancelled it.
pub fn into_app(
    chat: &Chat,
    files: &[PathBuf],
    progress: &mut OnProgress<'_>,
) -> Result<Option<Imported>, Failure> {
    let mut import = RunningImport::begin(chat)?;
    let add = &mut |item| match item {
        Item::File(_) => Ok(()),
        Item::Folder(folder) => import.add_folder(folder),
        Item::Preset(preset) => import.add_preset(preset),
        Item::Chat(whole) => import.add(whole),
    };
    let Some(tally) = worker::read(files, progress, add)? else {
        return Ok(None);
    };
    Ok(Some(Imported::of(&tally, import.finish()?)))
}

impl Imported {
    pub fn of(tally: &Tally, counts: ImportCounts) -> Self {
        Self {
            message: sentences(tally, counts),
            added: counts.added + counts.folders + counts.presets > 0,
        }
    }
}

/// Describes the result of an import.
fn sentences(tally: &Tally, counts: ImportCounts) -> String {
    let names: Vec<&str> = tally.sources.iter().map(|source| source.name()).collect();
    let first = match counts.of_added() {
        Some(added) if names.is_empty() => format!("Imported {added}."),
        Some(added) => format!("Imported {added} from {}.", names.join(" and ")),
        None => "There was nothing new to import.".to_owned(),
    };
    let others = [
        (
            counts.known,
            "chat was here already",
            "chats were here already",
        ),
        (
            counts.changed,
            "chat had new messages and was added as a copy",
            "chats had new messages and were added as copies",
        ),
        (
            tally.empty,
            "chat without messages was left out",
            "chats without messages were left out",
        ),
        (
            tally.cut + counts.cut,
            "text was too long and was cut",
            "texts were too long and were cut",
        ),
        (
            counts.left_out,
            "folder or preset cannot be kept here and was left out",
            "folders or presets cannot be kept here and were left out",
        ),
    ];
    let others = others.into_iter().filter(|(number, ..)| *number > 0);
    let others = others.map(|(number, one, several)| {
        let words = if number == 1 { one } else { several };
        format!(" {} {words}.", figures::count(number))
    });
    first + &others.collect::<String>() + &unread(tally)
}

/// Describes the parts of the files that could not be read.
fn unread(tally: &Tally) -> String {
    let Omissions { count, .. } = tally.unread_messages;
    let mut sentences = String::new();
    if count > 0 {
        let (messages, were) = if count == 1 {
            ("message", "was")
        } else {
            ("messages", "were")
        };
        let (count, chats) = (figures::count(count), names(&tally.unread_messages));
        sentences +=
            &format!(" {count} {messages} in {chats} could not be read and {were} left out.");
    }
    let Omissions { count, .. } = tally.replaced;
    if count > 0 {
        let (characters, stand) = if count == 1 {
            ("character", "stands as �")
        } else {
            ("characters", "stand as �")
        };
        let (count, files) = (figures::count(count), names(&tally.replaced));
        sentences += &format!(" {count} {characters} in {files} could not be read and {stand}.");
    }
    let others = [
        (
            &tally.unread_chats,
            "chat could not be read and was left out",
            "chats could not be read and were left out",
        ),
        (
            &tally.large_chats,
            "chat has more in it than can be kept here and was left out",
            "chats have more in them than can be kept here and were left out",
        ),
        (
            &tally.unknown_files,
            "file has no chats that Goldcrest can read",
            "files have no chats that Goldcrest can read",
        ),
        (
            &tally.damaged_files,
            "file is damaged and could not be read to its end",
            "files are damaged and could not be read to their ends",
        ),
    ];
    for (left_out, one, several) in others.iter().filter(|(left_out, ..)| left_out.count > 0) {
        let words = if left_out.count == 1 { one } else { several };
        let count = figures::count(left_out.count);
        sentences += &format!(" {count} {words}: {}.", names(left_out));
    }
    sentences
}

/// Formats names for a sentence.
pub fn names(left_out: &Omissions) -> String {
    let mut names = left_out.names.clone();
    if left_out.others > 0 {
        names.push(format!("{} more", figures::count(left_out.others)));
    }
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Converts a count for the page.
pub fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use chat_files::Source;

    use super::*;

    #[test]
    fn an_import_says_what_became_of_everything() {
        let tally = |sources: &[Source]| Tally {
            sources: sources.to_vec(),
            ..Tally::default()
        };
        let known = ImportCounts {
            known: 2,
            ..ImportCounts::default()
        };
        let imported = Imported::of(&tally(&[Source::Goldcrest]), known);
        assert!(!imported.added);
        assert_eq!(
            imported.message,
            "There was nothing new to import. 2 chats were here already."
        );
        let imported = Imported::of(
            &tally(&[]),
            ImportCounts {
                folders: 1,
                presets: 2,
                left_out: 1,
                ..known
            },
        );
        assert!(imported.added);
        assert_eq!(
            imported.message,
            "Imported 1 folder and 2 presets. 2 chats were here already. \
             1 folder or preset cannot be kept here and was left out."
        );
        let all = Imported::of(
            &Tally {
                empty: 2,
                cut: 1,
                ..tally(&[Source::ChatGpt, Source::Jan])
            },
            ImportCounts {
                added: 1204,
                changed: 1,
                known: 1,
                ..ImportCounts::default()
            },
        );
        assert_eq!(
            all.message,
            "Imported 1,204 chats from ChatGPT and Jan. 1 chat was here already. \
             1 chat had new messages and was added as a copy. 2 chats without messages were left out. \
             1 text was too long and was cut."
        );
    }

    #[test]
    fn an_import_names_what_could_not_be_read() {
        let left_out = |count, names: &[&str], others| Omissions {
            count,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            others,
        };
        let tally = Tally {
            unread_messages: left_out(1, &["“Birds”"], 0),
            unread_chats: left_out(19, &["number 2 in c.json", "“Trees”"], 17),
            large_chats: left_out(1, &["“All”"], 0),
            unknown_files: left_out(2, &["a.jsonl", "b.jsonl"], 0),
            damaged_files: left_out(1, &["c.json after line 1, column 812"], 0),
            replaced: left_out(1204, &["c.json"], 0),
            ..Tally::default()
        };
        let counts = ImportCounts {
            added: 2,
            ..ImportCounts::default()
        };
        assert_eq!(
            Imported::of(&tally, counts).message,
            "Imported 2 chats. 1 message in “Birds” could not be read and was left out. \
             1,204 characters in c.json could not be read and stand as �. \
             19 chats could not be read and were left out: number 2 in c.json, “Trees” and 17 more. \
             1 chat has more in it than can be kept here and was left out: “All”. \
             2 files have no chats that Goldcrest can read: a.jsonl and b.jsonl. \
             1 file is damaged and could not be read to its end: c.json after line 1, column 812."
        );
    }
}
