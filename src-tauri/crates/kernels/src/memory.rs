//! Where packed weights live: a few large allocations, on huge pages where the system has them.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

const HUGE_PAGE: usize = 2 << 20;
/// Small matrices share an allocation of this size; what is never written takes no memory.
const REGION: usize = 64 << 20;

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
    fn layout(bytes: usize) -> Layout {
        // Cannot fail: the alignment is a power of two, and `new` was given a size that exists.
        Layout::from_size_align(bytes, HUGE_PAGE).unwrap_or(Layout::new::<u8>())
    }

    fn new(bytes: usize) -> Region {
        let layout = Self::layout(bytes);
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else {
            std::alloc::handle_alloc_error(layout)
        };
        #[cfg(target_os = "linux")]
        // SAFETY: the range is this allocation's own; the advice changes no contents.
        unsafe {
            libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
        }
        Region { start, bytes }
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
    /// `bytes` of memory, aligned to a cache line, with zeros in it.
    pub fn take(&mut self, bytes: usize) -> Fresh {
        let room = bytes.next_multiple_of(64);
        let (region, at) = match self.current.take() {
            Some((region, used)) if region.bytes - used >= room => (region, used),
            _ => (
                Arc::new(Region::new(room.max(REGION).next_multiple_of(HUGE_PAGE))),
                0,
            ),
        };
        self.current = Some((Arc::clone(&region), at + room));
        Fresh { region, at, bytes }
    }
}

/// Memory that nobody has written yet.
pub(crate) struct Fresh {
    region: Arc<Region>,
    at: usize,
    bytes: usize,
}

impl Fresh {
    /// Part `i` of equal parts of `len` bytes, made zero and handed to one writer.
    ///
    /// # Safety
    /// No part is handed out twice at a time.
    #[expect(clippy::mut_from_ref, reason = "several threads fill disjoint parts")]
    pub unsafe fn part(&self, i: usize, len: usize) -> &mut [u8] {
        assert!((i + 1) * len <= self.bytes, "part lies outside");
        // SAFETY: inside the region by the assertion and `take`; disjoint by contract; zeroed
        // before it is seen as initialised.
        unsafe {
            let start = self.region.start.as_ptr().add(self.at + i * len);
            start.write_bytes(0, len);
            std::slice::from_raw_parts_mut(start, len)
        }
    }

    /// The finished weights.
    ///
    /// # Safety
    /// Every byte was handed out by `part`, and no part is still in use.
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
