//! Chats as a document to read.

use std::io::Write;

use store::WholeChat;

use crate::options::{DocumentKind, WriteOptions};
use crate::write::{Render, WriteError};
use crate::{html, markdown};

/// Writes chats into a document, one after the other.
pub struct Document {
    kind: DocumentKind,
    options: WriteOptions,
    chats: usize,
    answers: html::Answers,
}

impl Document {
    /// Makes an empty document.
    #[must_use]
    pub fn new(kind: DocumentKind, options: WriteOptions) -> Document {
        Document {
            kind,
            options,
            chats: 0,
            answers: html::Answers::default(),
        }
    }
}

impl Render for Document {
    fn begin(&mut self, out: &mut dyn Write, titles: &[String]) -> Result<(), WriteError> {
        match self.kind {
            DocumentKind::Html => Ok(html::begin(out, titles)?),
            DocumentKind::Markdown | DocumentKind::Print => Ok(()),
        }
    }

    fn chat(
        &mut self,
        out: &mut dyn Write,
        whole: &WholeChat,
        _: &mut dyn FnMut() -> bool,
    ) -> Result<(), WriteError> {
        let at = self.chats;
        self.chats += 1;
        match self.kind {
            DocumentKind::Markdown => {
                out.write_all(if at == 0 { b"" } else { b"\n---\n\n" })?;
                markdown::chat(out, whole, &self.options)?;
            }
            DocumentKind::Html => html::chat(out, at, whole, &self.options, &mut self.answers)?,
            DocumentKind::Print => html::print(out, whole, &self.options, &mut self.answers)?,
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<(), WriteError> {
        match self.kind {
            DocumentKind::Html => Ok(html::end(out)?),
            DocumentKind::Markdown | DocumentKind::Print => Ok(()),
        }
    }
}
