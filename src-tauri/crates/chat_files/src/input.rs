//! Bytes on their way in: counted, and limited for each chat.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes of one chat: more is nothing that anybody wrote.
pub(crate) const LARGEST_CHAT: u64 = 256 << 20;

/// How much was read.
#[derive(Clone, Default)]
pub(crate) struct Counter(Rc<ByteCounts>);

#[derive(Default)]
struct ByteCounts {
    /// Of the files.
    read: Cell<u64>,
    /// Of the chat that is being read, without what compression saves.
    of_chat: Cell<u64>,
}

impl Counter {
    /// Bytes of the files that were read.
    pub fn read(&self) -> u64 {
        self.0.read.get()
    }

    /// What is read from here on is of another chat.
    pub fn begin_chat(&self) {
        self.0.of_chat.set(0);
    }

    /// Counts bytes of a file.
    pub fn add(&self, bytes: usize) {
        self.0.read.set(self.0.read.get() + bytes as u64);
    }
}

/// Input that fails where one chat is too large.
pub(crate) struct Counted<'a> {
    input: Box<dyn Read + 'a>,
    counter: Counter,
    /// Whether its bytes are those of a file.
    of_file: bool,
}

impl<'a> Counted<'a> {
    /// A file.
    pub fn of(file: impl Read + 'a, counter: &Counter) -> Counted<'a> {
        Counted {
            input: Box::new(file),
            counter: counter.clone(),
            of_file: true,
        }
    }

    /// What is in an archive, whose file is counted by itself.
    pub fn unpacked(input: impl Read + 'a, counter: &Counter) -> Counted<'a> {
        Counted {
            input: Box::new(input),
            counter: counter.clone(),
            of_file: false,
        }
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        if self.of_file {
            self.counter.add(read);
        }
        let of_chat = &self.counter.0.of_chat;
        of_chat.set(of_chat.get() + read as u64);
        if of_chat.get() > LARGEST_CHAT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(read)
    }
}
