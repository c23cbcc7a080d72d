//! Aligned scratch memory.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::region::Region;
use super::reserve::OutOfMemory;

/// Types for which any bytes are a valid value.
pub(crate) trait AnyBits: Copy {}
impl AnyBits for f32 {}
impl AnyBits for u16 {}

/// Scratch memory aligned to a cache line, so that no vector or row of a tile straddles two. Large buffers are on huge
/// pages, because a loop that feeds a matrix unit cannot wait for page walks.
pub(crate) struct AlignedBuffer<T> {
    region: Option<Region>,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Default for AlignedBuffer<T> {
    fn default() -> Self {
        AlignedBuffer {
            region: None,
            len: 0,
            of: PhantomData,
        }
    }
}

impl<T: AnyBits> AlignedBuffer<T> {
    /// Allocates room for `len` elements, with unspecified values.
    ///
    /// # Errors
    /// Fails if the system has no memory left; the buffer is empty then.
    pub fn reserve(&mut self, len: usize) -> Result<(), OutOfMemory> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .ok_or(OutOfMemory { bytes: usize::MAX })?;
        if bytes > self.room() {
            // Free the old one first.
            (self.region, self.len) = (None, 0);
            let region = Region::new(bytes)?;
            // SAFETY: the region is new and owned, and has `region.bytes` bytes. All of it is initialised, because a later
            // `resize` may use what it has beyond `bytes`.
            unsafe { region.start.write_bytes(0, region.bytes) };
            self.region = Some(region);
        }
        Ok(())
    }

    /// Sets the length to `len` elements, with unspecified values.
    ///
    /// # Panics
    /// Panics if there is no room for them: see [`AlignedBuffer::reserve`].
    pub fn resize(&mut self, len: usize) {
        assert!(
            len.saturating_mul(size_of::<T>()) <= self.room(),
            "room is made first"
        );
        self.len = len;
    }

    /// Capacity in bytes.
    fn room(&self) -> usize {
        self.region.as_ref().map_or(0, |region| region.bytes)
    }
}

impl<T: AnyBits> Deref for AlignedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.region {
            // SAFETY: `resize` has checked that the region has `len` elements; `reserve` initialised and aligned it, and any
            // bytes are a `T`.
            Some(region) => unsafe {
                std::slice::from_raw_parts(region.start.as_ptr().cast(), self.len)
            },
            None => &[],
        }
    }
}

impl<T: AnyBits> DerefMut for AlignedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.region {
            // SAFETY: `len` initialised elements, as in `deref`; `&mut self` borrows the region exclusively.
            Some(region) => unsafe {
                std::slice::from_raw_parts_mut(region.start.as_ptr().cast(), self.len)
            },
            None => &mut [],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::region::HUGE_PAGE;
    use super::*;

    #[test]
    fn a_buffer_is_written_as_far_as_it_may_be_read() {
        let mut buffer = AlignedBuffer::<f32>::default();
        // A region of two megabytes, of which only a little is used at first.
        buffer.reserve(HUGE_PAGE / 16 + 1).expect("memory");
        buffer.resize(HUGE_PAGE / 16 + 1);
        let room = buffer.room() / size_of::<f32>();
        assert!(room > buffer.len(), "the region is padded");
        buffer.resize(room);
        assert!(buffer.iter().all(|&value| value.to_bits() == 0));
    }

    #[test]
    fn an_impossible_size_is_an_error_and_empties_the_buffer() {
        let absurd = isize::MAX as usize / 2;
        let mut buffer = AlignedBuffer::<f32>::default();
        buffer.reserve(4).expect("memory");
        buffer.resize(4);
        assert!(buffer.reserve(absurd / 4).is_err());
        assert!(buffer.is_empty());
    }
}
