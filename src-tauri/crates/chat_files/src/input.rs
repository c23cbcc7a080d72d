//! Input streams that are counted, limited, and stopped when the caller cancels.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::rc::Rc;

use crate::options::OnProgress;

/// Maximum bytes of one chat, skipped values included: no real chat is larger.
pub(crate) const LARGEST_CHAT: u64 = 1 << 30;
/// Maximum bytes that archives may unpack to: this number, plus this multiple of their size.
const UNPACKED: u64 = 512 << 20;
const PACKING: u64 = 100;

/// Reason that reading stops, inside of an [`io::Error`].
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("stopped")]
    Stopped,
    #[error("the chat is too large")]
    ChatTooLarge,
    #[error("the archive unpacks to too much")]
    UnpacksToTooMuch,
}

impl Refusal {
    /// Returns the refusal that caused an error, if any.
    pub fn of(error: &io::Error) -> Option<Refusal> {
        error.get_ref()?.downcast_ref::<Refusal>().copied()
    }
}

/// Counts the bytes that are read, and reports progress.
#[derive(Clone)]
pub(crate) struct Counter<'a>(Rc<ByteCounts<'a>>);

struct ByteCounts<'a> {
    progress: RefCell<&'a mut OnProgress<'a>>,
    /// Bytes of all files.
    total: u64,
    /// Bytes read of the files.
    read: Cell<u64>,
    /// Bytes of the current chat, uncompressed.
    of_chat: Cell<u64>,
    /// Bytes of archives, uncompressed.
    unpacked: Cell<u64>,
}

impl<'a> Counter<'a> {
    /// Makes a counter up to `total`.
    pub fn new(total: u64, progress: &'a mut OnProgress<'a>) -> Counter<'a> {
        Counter(Rc::new(ByteCounts {
            progress: RefCell::new(progress),
            total,
            read: Cell::new(0),
            of_chat: Cell::new(0),
            unpacked: Cell::new(0),
        }))
    }

    /// Starts the count of the next chat.
    pub fn begin_chat(&self) {
        self.0.of_chat.set(0);
    }

    /// Reports the bytes read. Returns true to go on.
    pub fn goes_on(&self) -> bool {
        let read = self.0.read.get().min(self.0.total);
        (self.0.progress.borrow_mut())(read, self.0.total)
    }

    /// Counts bytes of a file.
    pub fn add(&self, bytes: usize) -> io::Result<()> {
        self.0.read.set(self.0.read.get() + bytes as u64);
        if self.goes_on() {
            Ok(())
        } else {
            Err(io::Error::other(Refusal::Stopped))
        }
    }

    fn add_unpacked(&self, bytes: usize) -> io::Result<()> {
        let unpacked = &self.0.unpacked;
        unpacked.set(unpacked.get() + bytes as u64);
        let most = UNPACKED.saturating_add(self.0.total.saturating_mul(PACKING));
        if unpacked.get() > most {
            return Err(io::Error::other(Refusal::UnpacksToTooMuch));
        }
        // The file itself may have yielded few bytes or none for these.
        self.add(0)
    }
}

/// Input that fails if a chat is too large, or the caller cancels.
pub(crate) struct Counted<'c, 'a> {
    input: Box<dyn Read + 'c>,
    counter: Counter<'a>,
    /// True if its bytes are those of a file.
    of_file: bool,
}

impl<'c, 'a> Counted<'c, 'a> {
    /// Counts a file.
    pub fn of(file: impl Read + 'c, counter: &Counter<'a>) -> Counted<'c, 'a> {
        Counted {
            input: Box::new(file),
            counter: counter.clone(),
            of_file: true,
        }
    }

    /// Counts the content of an archive, whose file is counted separately.
    pub fn unpacked(input: impl Read + 'c, counter: &Counter<'a>) -> Counted<'c, 'a> {
        Counted {
            input: Box::new(input),
            counter: counter.clone(),
            of_file: false,
        }
    }
}

impl Read for Counted<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        if self.of_file {
            self.counter.add(read)?;
        } else {
            self.counter.add_unpacked(read)?;
        }
        let of_chat = &self.counter.0.of_chat;
        of_chat.set(of_chat.get() + read as u64);
        if of_chat.get() > LARGEST_CHAT {
            return Err(io::Error::other(Refusal::ChatTooLarge));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_that_is_too_large_is_refused_and_the_next_one_counts_from_zero() {
        let mut progress = |_, _| true;
        let counter = Counter::new(0, &mut progress);
        let mut input = Counted::of(io::repeat(b'x'), &counter);
        let mut buffer = vec![0; 1 << 20];
        for _ in 0..LARGEST_CHAT >> 20 {
            input.read_exact(&mut buffer).expect("small enough");
        }
        let error = input.read_exact(&mut buffer).expect_err("too large");
        assert!(matches!(Refusal::of(&error), Some(Refusal::ChatTooLarge)));
        counter.begin_chat();
        input.read_exact(&mut buffer).expect("another chat");
    }
}
