//! Disjoint parts of one slice, written by several threads.

/// A slice of which the tasks of a job write disjoint parts.
///
/// The borrow checker cannot see that two tasks never touch the same elements; every use of [`DisjointSlice::slice`] says
/// why.
pub(crate) struct DisjointSlice<'a, T> {
    data: *mut T,
    len: usize,
    life: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: a `DisjointSlice` gives access to parts of a `&mut [T]` only, which may be sent, and used part by disjoint part
// from several threads, when `T: Send`.
unsafe impl<T: Send> Sync for DisjointSlice<'_, T> {}

impl<'a, T> DisjointSlice<'a, T> {
    pub fn new(slice: &'a mut [T]) -> Self {
        DisjointSlice {
            data: slice.as_mut_ptr(),
            len: slice.len(),
            life: std::marker::PhantomData,
        }
    }

    /// The elements from `start`, `len` of them.
    ///
    /// # Safety
    /// No two slices that are alive at the same time may overlap.
    #[expect(
        clippy::mut_from_ref,
        reason = "that is its purpose; the caller proves disjointness"
    )]
    pub unsafe fn slice(&self, start: usize, len: usize) -> &mut [T] {
        assert!(
            start <= self.len && len <= self.len - start,
            "part lies outside of the slice"
        );
        // SAFETY: in bounds by the assertion, in a live exclusive borrow; disjoint by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), len) }
    }
}
