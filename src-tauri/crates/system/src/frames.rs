//! Frames: the length as u32, little-endian, and as many bytes. They hold JSON, or a piece of a document; an empty one
//! is a terminator.

use std::io::{self, Read, Write};
use std::process;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde::Serialize;

/// Terminator of the output that a runtime may print before a child writes its first frame.
pub const READY: u8 = 0;

/// Maximum bytes of a frame: a message has two texts of 4 MB at most, and its tokens.
pub const LARGEST: usize = 128 << 20;

/// Encodes a value as a frame.
pub fn of(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, value)?;
    let length = length(frame.len() - 4)?;
    frame[..4].copy_from_slice(&length);
    Ok(frame)
}

/// Writes bytes as a frame.
pub fn write(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&length(bytes.len())?)?;
    out.write_all(bytes)
}

fn length(bytes: usize) -> io::Result<[u8; 4]> {
    let length = u32::try_from(bytes).ok();
    let length = length.filter(|length| *length as usize <= LARGEST);
    let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
    Ok(length.ok_or_else(too_large)?.to_le_bytes())
}

/// Reads the next frame; `None` at the end.
pub fn read(input: &mut dyn Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut frame = vec![0; length];
    input.read_exact(&mut frame)?;
    Ok(Some(frame))
}

/// Reads the frames of stdin on a separate thread. Its end ends this process, whatever it is doing: a parent that has
/// ended, or no longer needs the work, closes it.
pub fn of_stdin() -> io::Result<Receiver<Vec<u8>>> {
    let (sender, frames) = channel();
    thread::Builder::new().spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Ok(Some(frame)) = read(&mut stdin) {
            if sender.send(frame).is_err() {
                break;
            }
        }
        process::exit(0);
    })?;
    Ok(frames)
}

/// Writer of frames.
pub struct Framed<'a> {
    pub out: &'a mut dyn Write,
}

impl Write for Framed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(LARGEST)];
        if !piece.is_empty() {
            write(self.out, piece)?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_until_they_end() {
        let mut written = of(&"one").expect("short");
        write(&mut written, b"").expect("written");
        Framed { out: &mut written }
            .write_all(b"two")
            .expect("written");
        let mut input = written.as_slice();
        for frame in [&b"\"one\""[..], b"", b"two"] {
            let read = read(&mut input).expect("a frame");
            assert_eq!(read.as_deref(), Some(frame));
        }
        assert!(read(&mut input).expect("the end").is_none());
        for damaged in [&b"\x05\0\0\0four"[..], b"\xff\xff\xff\xff", b"\x01\0"] {
            let read = read(&mut { damaged });
            assert!(!matches!(read, Ok(Some(_))), "{damaged:?}");
        }
    }
}
