//! Chats as files: exports of the app, and imports from it and other programs.
//!
//! [`write`] writes chats as JSONL, Markdown or HTML, one after the other, into a [`Target`] that appears under its
//! name only when it is complete. [`read`] finds chats in a file of any known program, and passes them on one at a
//! time, so that a large file is never in memory.
//!
//! Files from others may be made to attack their parser. The app therefore calls [`read`], and renders a [`Document`],
//! in separate processes, which exchange [`ItemPart`]s.

#![warn(missing_docs)]

mod dates;
mod document;
mod file_reading;
mod html;
mod input;
mod jsonl;
mod limits;
mod markdown;
mod options;
mod parts;
mod read;
mod read_error;
mod shown;
mod source;
mod target;
mod write;

pub use document::Document;
pub use file_reading::{Item, Omissions, Tally};
pub use options::{DocumentKind, Format, OnProgress, WriteOptions};
pub use parts::{ItemPart, ItemParts, Misplaced};
pub use read::{read, size};
pub use read_error::ReadError;
pub use source::Source;
pub use target::Target;
pub use write::{Render, WriteError, Written, write};
