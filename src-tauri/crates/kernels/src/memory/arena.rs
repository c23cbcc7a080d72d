//! The arena of packed weights: a few large allocations, on huge pages where the system has them.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use super::region::{HUGE_PAGE, Region};
use super::reserve::OutOfMemory;

/// Small matrices share an allocation of this size; pages that are never written take no memory.
const REGION: usize = 64 << 20;

/// Allocates memory for weights.
#[derive(Default)]
pub(crate) struct Arena {
    current: Option<(Arc<Region>, usize)>,
}

impl Arena {
    /// `bytes` of uninitialised memory, aligned to a cache line.
    ///
    /// # Errors
    /// Fails if the system has no memory left.
    pub fn take(&mut self, bytes: usize) -> Result<UninitWeights, OutOfMemory> {
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
        Ok(UninitWeights { region, at, bytes })
    }
}

/// Memory that is not initialised yet.
pub(crate) struct UninitWeights {
    region: Arc<Region>,
    at: usize,
    bytes: usize,
}

impl UninitWeights {
    /// Number of huge pages that this memory touches.
    pub fn pages(&self) -> usize {
        (self.at % HUGE_PAGE + self.bytes).div_ceil(HUGE_PAGE)
    }

    /// The parts of `len` bytes that begin in huge page `page`. The system clears a page on its first write; several
    /// threads writing to one page at once would each clear one.
    pub fn parts_in(&self, page: usize, len: usize) -> Range<usize> {
        let before = |page: usize| {
            let bytes = (page * HUGE_PAGE).saturating_sub(self.at % HUGE_PAGE);
            bytes.div_ceil(len).min(self.bytes / len)
        };
        before(page)..before(page + 1)
    }

    /// Part `i` of equal parts of `len` bytes.
    ///
    /// # Safety
    /// No part is borrowed twice at a time.
    #[expect(clippy::mut_from_ref, reason = "several threads fill disjoint parts")]
    pub unsafe fn part(&self, i: usize, len: usize) -> &mut [MaybeUninit<u8>] {
        assert!((i + 1) * len <= self.bytes, "part lies outside");
        // SAFETY: inside the region by the assertion and `take`; disjoint by this function's contract; `MaybeUninit` needs
        // no initial value.
        unsafe {
            let start = self.region.start.as_ptr().add(self.at + i * len);
            std::slice::from_raw_parts_mut(start.cast(), len)
        }
    }

    /// The memory as initialised bytes.
    ///
    /// # Safety
    /// Every byte was written through a `part`, and no part is borrowed any more.
    pub unsafe fn finish(self) -> PackedBytes {
        PackedBytes {
            region: self.region,
            at: self.at,
            bytes: self.bytes,
        }
    }
}

/// Packed weights; read-only.
pub(crate) struct PackedBytes {
    region: Arc<Region>,
    at: usize,
    bytes: usize,
}

impl PackedBytes {
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: initialised by the contract of `UninitWeights::finish`, and never written again.
        unsafe { std::slice::from_raw_parts(self.region.start.as_ptr().add(self.at), self.bytes) }
    }
}

impl std::fmt::Debug for PackedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_begins_in_one_page() {
        let mut arena = Arena::default();
        for (parts, len) in [(1, 64), (40, 18_432), (700, 99_072), (3, 5 << 20), (9, 640)] {
            let uninit = arena.take(parts * len).expect("memory");
            let pages = (0..uninit.pages()).flat_map(|page| {
                let parts = uninit.parts_in(page, len);
                for i in parts.clone() {
                    assert_eq!((uninit.at % HUGE_PAGE + i * len) / HUGE_PAGE, page);
                }
                parts
            });
            assert!(pages.eq(0..parts), "{parts} parts of {len} bytes");
        }
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        let absurd = isize::MAX as usize / 2;
        assert!(Arena::default().take(absurd).is_err());
        assert!(Arena::default().take(usize::MAX).is_err());
    }
}
