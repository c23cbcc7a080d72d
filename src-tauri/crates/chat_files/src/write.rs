//! Writing chats: as JSONL, or as documents for readers.

use std::collections::HashSet;
use std::io::{self, Write};

use store::{ChatId, ChatRecords, StoreError, WholeChat};

use crate::file_reading::Omissions;
use crate::jsonl;
use crate::options::OnProgress;

/// Error of writing chats.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The chats could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file could not be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// A chat could not be rendered: a sentence.
    #[error("{0}")]
    Rendering(String),
    /// The caller cancelled.
    #[error("The export was cancelled.")]
    Cancelled,
}

/// Result of an export.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of chats.
    pub chats: usize,
    /// Chats in JSONL that are too large to be imported again.
    pub too_large: Omissions,
}

/// Renders a document to read, in this process or in another.
pub trait Render {
    /// Begins the document of chats with these titles.
    fn begin(&mut self, out: &mut dyn Write, titles: &[String]) -> Result<(), WriteError>;

    /// Renders the next chat. `go_on` is polled from time to time; false cancels.
    fn chat(
        &mut self,
        out: &mut dyn Write,
        whole: &WholeChat,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), WriteError>;

    /// Ends the document.
    fn end(&mut self, out: &mut dyn Write) -> Result<(), WriteError>;
}

/// Writes the given chats, in order; `None` for all. `document` renders them; without one, they are written as JSONL.
pub fn write(
    records: &ChatRecords<'_>,
    chats: Option<&[ChatId]>,
    document: Option<&mut dyn Render>,
    out: &mut dyn Write,
    progress: &mut OnProgress<'_>,
) -> Result<Written, WriteError> {
    let all = match chats {
        Some(_) => Vec::new(),
        None => records.all()?,
    };
    let is_all = chats.is_none();
    let chats = chats.unwrap_or(&all);
    let mut each = |out: &mut dyn Write, one: &mut OneChat<'_>| {
        for (at, chat) in chats.iter().enumerate() {
            let go_on = &mut || progress(at as u64, chats.len() as u64);
            if !go_on() {
                return Err(WriteError::Cancelled);
            }
            one(out, &records.read(*chat)?, go_on)?;
        }
        Ok(())
    };
    let mut too_large = Omissions::default();
    if let Some(document) = document {
        let titles = chats.iter().map(|chat| records.title(*chat));
        document.begin(out, &titles.collect::<Result<Vec<_>, _>>()?)?;
        each(out, &mut |out, whole, go_on| {
            document.chat(out, whole, go_on)
        })?;
        document.end(out)?;
    } else {
        let (mut folders, mut presets) = (records.folders()?, records.presets()?);
        if !is_all {
            let (mut in_use, mut chosen) = (HashSet::new(), HashSet::new());
            for chat in chats {
                let [folder, preset] = records.names_of(*chat)?;
                in_use.extend(folder);
                chosen.extend(preset);
            }
            folders.retain(|folder| in_use.contains(&folder.name));
            presets.retain(|preset| chosen.contains(&preset.name));
        }
        let mut lines = jsonl::Lines::begin(out, folders, presets)?;
        each(out, &mut |out, whole, _| Ok(lines.chat(out, whole)?))?;
        too_large = lines.end(out)?;
    }
    out.flush()?;
    Ok(Written {
        chats: chats.len(),
        too_large,
    })
}

type OneChat<'a> =
    dyn FnMut(&mut dyn Write, &WholeChat, &mut dyn FnMut() -> bool) -> Result<(), WriteError> + 'a;
