//! Chats as files: what the app writes, and what it reads of other programs.
//!
//! [`write`] makes JSONL, Markdown or HTML of chats, one after the other, into a [`Target`] that appears under its name
//! only when it is whole. [`read`] finds chats in a file, whatever program exported it, and hands them on one at a time,
//! so that a large file is never in memory.

#![warn(missing_docs)]

mod dates;
mod file_reading;
mod html;
mod input;
mod jsonl;
mod limits;
mod markdown;
mod options;
mod read;
mod read_error;
mod shown;
mod source;
mod target;
mod write;

pub use file_reading::{Item, Omissions, Tally};
pub use html::article;
pub use options::{Format, OnProgress, WriteOptions};
pub use read::read;
pub use read_error::ReadError;
pub use source::Source;
pub use target::Target;
pub use write::{WriteError, write};
