//! `goldcrest export`: chats to a file, or to stdout. The app may be open: it is not disturbed.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use chat::ChatId;
use chat_files::{Format, WriteError, Written};
use store::{Store, StoreSnapshot, WholeChat};

use super::args::{ExportArgs, ExportFormat};
use super::folders::data_folder;
use super::interrupt::Interrupt;
use super::output::{self, CliError};
use super::progress::ProgressLine;
use crate::data_lock;
use crate::exporting::{ChatsAtOnce, Export, check_place, too_large};
use crate::folders::Folders;
use crate::visible::on_one_line;

pub fn run(args: &ExportArgs) -> Result<(), CliError> {
    let file = args.out.as_path();
    let format = format(args.format, file)?;
    let folders = data_folder()?;
    let snapshot = snapshot(&folders)?;
    let chats = if args.all {
        None
    } else {
        Some(wanted(&snapshot, &args.chats)?)
    };
    let export = Export {
        chats,
        format,
        thinking: !args.without_thinking,
        name: None,
    };
    let chats = ChatsAtOnce::Kept(snapshot);
    let (written, _) = Interrupt::listen().during(|cancel| {
        if file == Path::new("-") {
            to_stdout(&export, &chats, cancel)
        } else {
            to_file(&export, &chats, file, &folders, cancel)
        }
    });
    written
}

fn to_stdout(export: &Export, chats: &ChatsAtOnce, cancel: &AtomicBool) -> Result<(), CliError> {
    let mut out = io::BufWriter::new(output::content());
    let progress = &mut |_, _| !cancel.load(Ordering::Relaxed);
    match export.to(chats, &mut out, progress) {
        Ok(written) => {
            out.flush()?;
            say_too_large(&written)
        }
        Err(WriteError::Cancelled) => Err(CliError::Interrupted),
        Err(WriteError::Output(error)) => Err(error.into()),
        Err(error) => Err(CliError::message(error.to_string())),
    }
}

/// Writes a file, of which nothing is left after an interruption.
fn to_file(
    export: &Export,
    chats: &ChatsAtOnce,
    file: &Path,
    folders: &Folders,
    cancel: &AtomicBool,
) -> Result<(), CliError> {
    check_place(file, folders)?;
    let mut line = ProgressLine::new();
    let progress = &mut |done, total| {
        line.show("Exporting", done, total);
        !cancel.load(Ordering::Relaxed)
    };
    let written = export.to_file(chats, file, progress);
    line.clear();
    let written = written?.ok_or(CliError::Interrupted)?;
    let chats = match written.chats {
        1 => "1 chat".to_owned(),
        count => format!("{} chats", figures::count(count)),
    };
    writeln!(
        output::stderr(),
        "{chats} in {}",
        on_one_line(&file.display().to_string())
    )?;
    say_too_large(&written)
}

/// Prints which chats cannot be imported again.
fn say_too_large(written: &Written) -> Result<(), CliError> {
    if let Some(sentence) = too_large(written) {
        writeln!(output::stderr(), "{}", on_one_line(&sentence))?;
    }
    Ok(())
}

/// Returns the given format, or that of the file's extension.
fn format(named: Option<ExportFormat>, file: &Path) -> Result<Format, CliError> {
    if let Some(format) = named {
        return Ok(match format {
            ExportFormat::Jsonl => Format::Jsonl,
            ExportFormat::Markdown => Format::Markdown,
            ExportFormat::Html => Format::Html,
        });
    }
    let extension = file.extension().unwrap_or_default().to_ascii_lowercase();
    let known = [Format::Jsonl, Format::Markdown, Format::Html];
    let named = known
        .into_iter()
        .find(|format| extension == format.extension());
    named.ok_or_else(|| CliError::message("say which format: --format jsonl, markdown or html"))
}

/// Returns the chats, each once; an error if one does not exist.
fn wanted(snapshot: &StoreSnapshot, ids: &[u32]) -> Result<Vec<ChatId>, CliError> {
    let records = snapshot.records();
    let mut known = HashSet::new();
    let ids = ids.iter().filter(|id| known.insert(**id));
    let chats = ids.map(|id| {
        let chat = ChatId(i64::from(*id));
        match records.title(chat) {
            Ok(_) => Ok(chat),
            Err(_) => Err(CliError::message(format!(
                "there is no chat {id}; `goldcrest chats` lists them"
            ))),
        }
    });
    chats.collect()
}

/// Writes a chat of the terminal, which is stored nowhere else, to a new file.
pub fn conversation(chat: WholeChat, file: &Path) -> Result<(), CliError> {
    let export = Export {
        chats: None,
        format: format(None, file)?,
        thinking: true,
        name: None,
    };
    if file.exists() {
        return Err(CliError::message(format!(
            "{} is there already; name another file",
            file.display()
        )));
    }
    if let Some(folders) = Folders::of_user() {
        check_place(file, &folders)?;
    }
    export.to_file(&ChatsAtOnce::alone(chat)?, file, &mut |_, _| true)?;
    Ok(())
}

/// Takes a snapshot of the chats. A database of an earlier version is migrated first, unless the app has it open.
pub fn snapshot(folders: &Folders) -> Result<StoreSnapshot, CliError> {
    let database = folders.database();
    let failed = |error: store::StoreError| CliError::message(error.to_string());
    if !database.exists() {
        return Err(CliError::message(format!(
            "there are no chats in {}",
            folders.data.display()
        )));
    }
    let lock = data_lock::lock(&folders.data);
    if let Ok(Some(_lock)) = &lock {
        Store::open(&database).map_err(failed)?;
    }
    StoreSnapshot::take(&database).map_err(failed)
}
