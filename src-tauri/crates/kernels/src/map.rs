//! A model file, mapped read-only.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

/// A read-only map of a whole file.
///
/// The file must not be truncated by another program while it is mapped: reading a page that is
/// gone ends the process. Model files are downloaded once and then only read, so that this is the
/// same bargain that every GGUF reader makes.
#[derive(Debug)]
pub struct FileMap(Mmap);

impl FileMap {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be opened or mapped.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: the map is private and read-only, so nothing in this process can change the
        // bytes behind the shared slices; the type's documentation states what others must not do.
        let map = unsafe { Mmap::map(&file)? };
        Ok(FileMap(map))
    }

    /// The file's bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The file's size in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives the memory of `range`'s whole pages back: they are read from the file again if they
    /// are needed again. Packed weights no longer need their source, and must not count twice.
    pub fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        {
            const PAGE: usize = 4096;
            let start = range.start.next_multiple_of(PAGE);
            let end = range.end.min(self.len()) / PAGE * PAGE;
            if start < end {
                // SAFETY: the range lies inside this file-backed, private, read-only map, whose
                // pages come back from the file with the same bytes; no reference is invalidated.
                let advised = unsafe {
                    self.0.unchecked_advise_range(
                        memmap2::UncheckedAdvice::DontNeed,
                        start,
                        end - start,
                    )
                };
                // Advice that is refused costs memory, not correctness.
                drop(advised);
            }
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}
