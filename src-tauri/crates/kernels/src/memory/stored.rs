//! The bytes of a tensor, in memory or in a file, read by position.
//!
//! Files are read, not mapped: an unreadable page of a map (the file was truncated, the disk fails, the network share
//! is gone) ends the process by a signal, whereas a failed read is an error.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;

/// Observes the reads of a file, from several threads at once.
pub trait ReadObserver: Sync + std::fmt::Debug {
    /// Receives bytes that were read. Offset `start` counts from the beginning of the first file of a split model.
    fn read(&self, start: u64, bytes: &[u8]);
}

/// The bytes of a tensor, in memory or in a file.
#[derive(Clone, Copy, Debug)]
pub enum Stored<'a> {
    /// Bytes in memory.
    Memory(&'a [u8]),
    /// `len` bytes of a file from `start` on.
    File {
        /// The file.
        file: &'a File,
        /// Total bytes of the preceding files of a split model.
        files_before: u64,
        /// Offset of the first byte in the file.
        start: u64,
        /// Number of bytes.
        len: usize,
        /// Observer of the reads.
        observer: Option<&'a dyn ReadObserver>,
    },
}

impl<'a> Stored<'a> {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Stored::Memory(bytes) => bytes.len(),
            Stored::File { len, .. } => *len,
        }
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of `range`: borrowed from memory, or read into `buffer`.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is too short.
    ///
    /// # Panics
    /// Panics if `range` is not within the bytes.
    pub fn get<'b>(&self, range: Range<usize>, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]>
    where
        'a: 'b,
    {
        match *self {
            Stored::Memory(bytes) => Ok(&bytes[range]),
            Stored::File {
                file,
                files_before,
                start,
                len,
                observer,
            } => {
                assert!(
                    range.start <= range.end && range.end <= len,
                    "the range lies within the tensor"
                );
                let count = range.len();
                if buffer.len() < count {
                    buffer.try_reserve(count - buffer.len())?;
                    buffer.resize(count, 0);
                }
                let buffer = &mut buffer[..count];
                let start = start + range.start as u64;
                read_exact_at(file, start, buffer)?;
                if let Some(observer) = observer {
                    observer.read(files_before + start, buffer);
                }
                Ok(buffer)
            }
        }
    }

    /// All bytes.
    ///
    /// # Errors
    /// Same as [`Stored::get`].
    pub fn read(&self) -> io::Result<Cow<'a, [u8]>> {
        if let Stored::Memory(bytes) = *self {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut buffer = Vec::new();
        self.get(0..self.len(), &mut buffer)?;
        Ok(Cow::Owned(buffer))
    }
}

/// Fills `buffer` with the bytes of `file` from `start` on. Threads may read from one file concurrently.
///
/// # Errors
/// Fails if the file cannot be read, or ends before the buffer is full.
pub fn read_exact_at(file: &File, start: u64, buffer: &mut [u8]) -> io::Result<()> {
    let (mut at, mut rest) = (start, buffer);
    while !rest.is_empty() {
        match read_at(file, at, rest) {
            Ok(0) => {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the file has become shorter",
                ));
            }
            Ok(count) => {
                at += count as u64;
                rest = &mut rest[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_at(file: &File, start: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, start)
}

#[cfg(windows)]
fn read_at(file: &File, start: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, start)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::{BlockType, Cpu, CpuLevel, PackError};

    fn file(name: &str, bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("goldcrest-{}-{name}", std::process::id()));
        let mut options = File::options();
        let mut file = (options.read(true).write(true).create(true).truncate(true))
            .open(&path)
            .expect("a file");
        file.write_all(bytes).expect("it is written");
        // An open file outlives its name.
        std::fs::remove_file(&path).expect("it was there");
        file
    }

    #[test]
    fn a_matrix_from_a_file_is_the_one_from_memory() {
        // More bytes than a thread reads at a time, and a partial last panel.
        let (ty, rows, cols) = (BlockType::Q8_0, 16 * 100 + 5, 512);
        let len = ty.row_bytes(cols).expect("whole blocks") * rows;
        let bytes: Vec<u8> = (0..len + 7).map(|i| (i * 31 + i / 251) as u8).collect();
        let file = file("packed", &bytes);
        let start = 7;
        for threads in [1, 3] {
            let cpu = Cpu::new(threads, CpuLevel::best());
            let from_memory = cpu.pack(ty, rows, cols, &bytes[start..]).expect("it fits");
            let stored = Stored::File {
                file: &file,
                files_before: 0,
                start: start as u64,
                len,
                observer: None,
            };
            assert_eq!(*stored.read().expect("it is there"), bytes[start..]);
            let from_file = cpu.pack_stored(ty, rows, cols, stored).expect("it fits");
            let (mut a, mut b) = (vec![0.0; cols], vec![0.0; cols]);
            for r in 0..rows {
                from_memory.row(r, &mut a);
                from_file.row(r, &mut b);
                let bits = |row: &[f32]| row.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&a), bits(&b), "row {r}");
            }
        }
    }

    /// Offset and length of every read.
    #[derive(Debug, Default)]
    struct Ranges(std::sync::Mutex<Vec<(u64, usize)>>);

    impl ReadObserver for Ranges {
        fn read(&self, start: u64, bytes: &[u8]) {
            let mut ranges = self.0.lock().expect("not poisoned");
            ranges.push((start, bytes.len()));
        }
    }

    #[test]
    fn an_observer_hears_of_each_byte_of_a_matrix_once() {
        let (ty, rows, cols) = (BlockType::Q8_0, 16 * 100 + 5, 512);
        let len = ty.row_bytes(cols).expect("whole blocks") * rows;
        let file = file("observed", &vec![1; len + 7]);
        for threads in [1, 3] {
            let heard = Ranges::default();
            let stored = Stored::File {
                file: &file,
                files_before: 0,
                start: 7,
                len,
                observer: Some(&heard),
            };
            let cpu = Cpu::new(threads, CpuLevel::best());
            cpu.pack_stored(ty, rows, cols, stored).expect("it fits");
            let mut ranges = heard.0.into_inner().expect("not poisoned");
            ranges.sort_unstable();
            let mut at = 7;
            for (start, len) in ranges {
                assert_eq!(start, at);
                at += len as u64;
            }
            assert_eq!(at, 7 + len as u64);
        }
    }

    #[test]
    fn a_file_that_is_too_short_is_an_error() {
        let (ty, rows, cols) = (BlockType::Q8_0, 256, 2048);
        let len = ty.row_bytes(cols).expect("whole blocks") * rows;
        let file = file("short", &vec![1; len - 1]);
        let stored = Stored::File {
            file: &file,
            files_before: 0,
            start: 0,
            len,
            observer: None,
        };
        let error = stored.read().expect_err("a byte is missing");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        for threads in [1, 3] {
            let cpu = Cpu::new(threads, CpuLevel::best());
            let packed = cpu.pack_stored(ty, rows, cols, stored);
            assert!(matches!(packed, Err(PackError::Read(_))), "{packed:?}");
        }
    }
}
