//! Writing chats, in one of three formats.

use std::collections::HashSet;
use std::io::{self, Write};

use store::{ChatId, ChatRecords, StoreError, WholeChat};

use crate::options::{Format, OnProgress, WriteOptions};
use crate::{html, jsonl, markdown};

/// Why chats were not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// They could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file could not be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The caller asked for an end.
    #[error("The export was cancelled.")]
    Cancelled,
}

/// Writes chats in the order of `chats`; `None`: all. Returns how many there were.
pub fn write(
    records: &ChatRecords<'_>,
    chats: Option<&[ChatId]>,
    format: Format,
    options: &WriteOptions,
    out: &mut dyn Write,
    progress: &mut OnProgress<'_>,
) -> Result<usize, WriteError> {
    let all = match chats {
        Some(_) => Vec::new(),
        None => records.all()?,
    };
    let is_all = chats.is_none();
    let chats = chats.unwrap_or(&all);
    let mut each = |out: &mut dyn Write, one: &mut OneChat<'_>| {
        for (at, chat) in chats.iter().enumerate() {
            if !progress(at as u64, chats.len() as u64) {
                return Err(WriteError::Cancelled);
            }
            one(out, at, &records.read(*chat)?)?;
        }
        Ok(())
    };
    match format {
        Format::Jsonl => {
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
            each(out, &mut |out, _, whole| lines.chat(out, whole))?;
            lines.end(out)?;
        }
        Format::Markdown => each(out, &mut |out, at, whole| {
            out.write_all(if at == 0 { b"" } else { b"\n---\n\n" })?;
            markdown::chat(out, whole, options)
        })?,
        Format::Html => {
            let titles = chats.iter().map(|chat| records.title(*chat));
            html::begin(out, &titles.collect::<Result<Vec<_>, _>>()?)?;
            each(out, &mut |out, at, whole| {
                html::chat(out, at, whole, options)
            })?;
            html::end(out)?;
        }
    }
    out.flush()?;
    Ok(chats.len())
}

type OneChat<'a> = dyn FnMut(&mut dyn Write, usize, &WholeChat) -> io::Result<()> + 'a;
