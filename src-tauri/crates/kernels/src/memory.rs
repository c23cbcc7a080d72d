//! Where packed weights live: a few large allocations, on huge pages where the system has them.

pub(crate) mod stored;

use std::alloc::{Layout, alloc, dealloc};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

const HUGE_PAGE: usize = 2 << 20;
/// Small matrices share an allocation of this size; what is never written takes no memory.
const REGION: usize = 64 << 20;

/// The system has no memory left for what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system has no {} MB of memory left", bytes.div_ceil(1 << 20))]
pub struct OutOfMemory {
    /// Bytes that were asked for.
    pub bytes: usize,
}

/// Makes room for `len` values in all.
///
/// # Errors
/// When the system has no memory left; `values` is as before then.
pub fn reserve<T>(values: &mut Vec<T>, len: usize) -> Result<(), OutOfMemory> {
    let missing = len.saturating_sub(values.len());
    values.try_reserve_exact(missing).map_err(|_| OutOfMemory {
        bytes: len.saturating_mul(size_of::<T>()),
    })
}

/// Memory that is handed out piece by piece and freed as a whole.
struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a region is plain memory; who may write which part is `Arena`'s and `Weights`' business.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Small memory begins at a cache line, larger at a huge page.
    fn layout(bytes: usize) -> Layout {
        let align = if bytes < HUGE_PAGE / 4 { 64 } else { HUGE_PAGE };
        // Cannot fail: the alignment is a power of two, and `new` was given a size that exists.
        Layout::from_size_align(bytes, align).unwrap_or(Layout::new::<u8>())
    }

    fn new(bytes: usize) -> Result<Region, OutOfMemory> {
        if bytes > isize::MAX as usize - HUGE_PAGE {
            return Err(OutOfMemory { bytes });
        }
        let mut layout = Self::layout(bytes);
        if layout.align() == HUGE_PAGE {
            // The system gives no huge page to a part of one.
            layout = layout.pad_to_align();
        }
        let bytes = layout.size();
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).ok_or(OutOfMemory { bytes })?;
        // Miri, which watches what unsafe code does to memory, does not know the call.
        #[cfg(all(target_os = "linux", not(miri)))]
        if layout.align() == HUGE_PAGE {
            // SAFETY: the advice changes no contents, and the last page may be shared with others.
            unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(Region { start, bytes })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with the same layout.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
    }
}

/// Hands out memory for weights.
#[derive(Default)]
pub(crate) struct Arena {
    current: Option<(Arc<Region>, usize)>,
}

impl Arena {
    /// `bytes` of memory, aligned to a cache line, with nothing in it.
    ///
    /// # Errors
    /// When the system has no more.
    pub fn take(&mut self, bytes: usize) -> Result<Fresh, OutOfMemory> {
        let room = bytes
            .checked_next_multiple_of(64)
            .ok_or(OutOfMemory { bytes })?;
        let (region, at) = match self.current.take() {
            Some((region, used)) if region.bytes - used >= room => (region, used),
            _ => {
                let bytes = room.max(REGION).checked_next_multiple_of(HUGE_PAGE);
                let bytes = bytes.ok_or(OutOfMemory { bytes: room })?;
                (Arc::new(Region::new(bytes)?), 0)
            }
        };
        self.current = Some((Arc::clone(&region), at + room));
        Ok(Fresh { region, at, bytes })
    }
}

/// Memory that nobody has written yet.
pub(crate) struct Fresh {
    region: Arc<Region>,
    at: usize,
    bytes: usize,
}

impl Fresh {
    /// How many huge pages this memory touches.
    pub fn pages(&self) -> usize {
        (self.at % HUGE_PAGE + self.bytes).div_ceil(HUGE_PAGE)
    }

    /// Which of the parts of `len` bytes begin in huge page `page`. The system clears a page when
    /// it is first written to; threads that begin one together would each clear one.
    pub fn parts_in(&self, page: usize, len: usize) -> Range<usize> {
        let before = |page: usize| {
            let bytes = (page * HUGE_PAGE).saturating_sub(self.at % HUGE_PAGE);
            bytes.div_ceil(len).min(self.bytes / len)
        };
        before(page)..before(page + 1)
    }

    /// Part `i` of equal parts of `len` bytes, handed to one writer.
    ///
    /// # Safety
    /// No part is handed out twice at a time.
    #[expect(clippy::mut_from_ref, reason = "several threads fill disjoint parts")]
    pub unsafe fn part(&self, i: usize, len: usize) -> &mut [MaybeUninit<u8>] {
        assert!((i + 1) * len <= self.bytes, "part lies outside");
        // SAFETY: inside the region by the assertion and `take`; disjoint by contract; memory
        // that may hold anything needs no first value.
        unsafe {
            let start = self.region.start.as_ptr().add(self.at + i * len);
            std::slice::from_raw_parts_mut(start.cast(), len)
        }
    }

    /// The finished weights.
    ///
    /// # Safety
    /// Every byte was written in a `part`, and no part is still in use.
    pub unsafe fn finish(self) -> Weights {
        Weights {
            region: self.region,
            at: self.at,
            bytes: self.bytes,
        }
    }
}

/// Packed weights, read-only from now on.
pub(crate) struct Weights {
    region: Arc<Region>,
    at: usize,
    bytes: usize,
}

impl Weights {
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: initialised by `Fresh`'s contract, and never written again.
        unsafe { std::slice::from_raw_parts(self.region.start.as_ptr().add(self.at), self.bytes) }
    }
}

impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes)
    }
}

/// Numbers for which any bytes will do.
pub(crate) trait Plain: Copy {}
impl Plain for f32 {}
impl Plain for u16 {}

/// Scratch that begins at a cache line, so that no vector or row of a tile lies across two; when
/// it is large, on huge pages, because a loop that feeds a matrix unit cannot wait for page walks.
pub(crate) struct Buffer<T> {
    region: Option<Region>,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Buffer {
            region: None,
            len: 0,
            of: PhantomData,
        }
    }
}

impl<T: Plain> Buffer<T> {
    /// Makes room for `len` numbers; what they are is left open.
    ///
    /// # Errors
    /// When the system has no memory left; the buffer is empty then.
    pub fn reserve(&mut self, len: usize) -> Result<(), OutOfMemory> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .ok_or(OutOfMemory { bytes: usize::MAX })?;
        if bytes > self.room() {
            // Free the old one first.
            (self.region, self.len) = (None, 0);
            let region = Region::new(bytes)?;
            // SAFETY: a new region is this much memory, which nobody else sees. All of it is written, because a later
            // call may use what the region has beyond `bytes`.
            unsafe { region.start.write_bytes(0, region.bytes) };
            self.region = Some(region);
        }
        Ok(())
    }

    /// Makes it `len` numbers long; what they are is left open.
    ///
    /// # Panics
    /// When there is no room for them: see [`Buffer::reserve`].
    pub fn resize(&mut self, len: usize) {
        assert!(
            len.saturating_mul(size_of::<T>()) <= self.room(),
            "room is made first"
        );
        self.len = len;
    }

    /// Bytes that it can hold.
    fn room(&self) -> usize {
        self.region.as_ref().map_or(0, |region| region.bytes)
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.region {
            // SAFETY: `resize` made at least as many bytes, initialised and aligned, and any bytes
            // are a `T`.
            Some(region) => unsafe {
                std::slice::from_raw_parts(region.start.as_ptr().cast(), self.len)
            },
            None => &[],
        }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.region {
            // SAFETY: as above, borrowed exclusively.
            Some(region) => unsafe {
                std::slice::from_raw_parts_mut(region.start.as_ptr().cast(), self.len)
            },
            None => &mut [],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_begins_in_one_page() {
        let mut arena = Arena::default();
        for (parts, len) in [(1, 64), (40, 18_432), (700, 99_072), (3, 5 << 20), (9, 640)] {
            let fresh = arena.take(parts * len).expect("memory");
            let pages = (0..fresh.pages()).flat_map(|page| {
                let parts = fresh.parts_in(page, len);
                for i in parts.clone() {
                    assert_eq!((fresh.at % HUGE_PAGE + i * len) / HUGE_PAGE, page);
                }
                parts
            });
            assert!(pages.eq(0..parts), "{parts} parts of {len} bytes");
        }
    }

    #[test]
    fn a_buffer_is_written_as_far_as_it_may_be_read() {
        let mut buffer = Buffer::<f32>::default();
        // A region of two megabytes, of which a little is asked for first.
        buffer.reserve(HUGE_PAGE / 16 + 1).expect("memory");
        buffer.resize(HUGE_PAGE / 16 + 1);
        let room = buffer.room() / size_of::<f32>();
        assert!(room > buffer.len(), "the region is padded");
        buffer.resize(room);
        assert!(buffer.iter().all(|&value| value.to_bits() == 0));
    }

    #[test]
    fn memory_that_the_system_does_not_have_is_an_error() {
        let absurd = isize::MAX as usize / 2;
        assert!(Arena::default().take(absurd).is_err());
        assert!(Arena::default().take(usize::MAX).is_err());
        let mut buffer = Buffer::<f32>::default();
        buffer.reserve(4).expect("memory");
        buffer.resize(4);
        assert!(buffer.reserve(absurd / 4).is_err());
        assert!(buffer.is_empty());
        let mut values = vec![7_u32];
        assert_eq!(
            reserve(&mut values, absurd / 4),
            Err(OutOfMemory {
                bytes: absurd / 4 * 4
            })
        );
        assert!(reserve(&mut values, usize::MAX).is_err());
        assert_eq!(values, [7]);
        reserve(&mut values, 3).expect("memory");
        assert!(values.capacity() >= 3);
    }
}
