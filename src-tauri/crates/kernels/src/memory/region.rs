//! One allocation, on huge pages where the system has them.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

use super::reserve::OutOfMemory;

pub(super) const HUGE_PAGE: usize = 2 << 20;

/// One allocation, freed as a whole.
pub(super) struct Region {
    pub start: NonNull<u8>,
    pub bytes: usize,
}

// SAFETY: a region owns plain memory and has no thread affinity.
unsafe impl Send for Region {}
// SAFETY: a shared region gives out its address only; `Arena` and `PackedBytes` decide who reads and writes through it.
unsafe impl Sync for Region {}

impl Region {
    /// Small memory begins at a cache line, larger at a huge page.
    fn layout(bytes: usize) -> Layout {
        let align = if bytes < HUGE_PAGE / 4 { 64 } else { HUGE_PAGE };
        // Cannot fail: the alignment is a power of two, and `new` has checked the size.
        Layout::from_size_align(bytes, align).unwrap_or(Layout::new::<u8>())
    }

    pub fn new(bytes: usize) -> Result<Region, OutOfMemory> {
        if bytes > isize::MAX as usize - HUGE_PAGE {
            return Err(OutOfMemory { bytes });
        }
        let mut layout = Self::layout(bytes);
        if layout.align() == HUGE_PAGE {
            // The system backs only whole huge pages.
            layout = layout.pad_to_align();
        }
        let bytes = layout.size();
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).ok_or(OutOfMemory { bytes })?;
        // Miri does not implement the call.
        #[cfg(all(target_os = "linux", not(miri)))]
        if layout.align() == HUGE_PAGE {
            // SAFETY: the range is this allocation, and the advice changes no contents.
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
