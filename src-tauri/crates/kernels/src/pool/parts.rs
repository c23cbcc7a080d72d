//! Disjoint parts of one slice for several threads.

/// Lets the tasks of a job write disjoint parts of one slice.
///
/// Rust's borrow rules cannot see that two tasks never touch the same elements; every use of
/// [`DisjointSlice::slice`] states why it is so.
pub(crate) struct DisjointSlice<'a, T> {
    data: *mut T,
    len: usize,
    life: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: a `DisjointSlice` only hands out parts of a `&mut [T]`, which may be sent and, part by disjoint
// part, used from several threads when `T: Send`.
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
        // SAFETY: in bounds by the assertion, from a live exclusive borrow; disjoint by contract.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), len) }
    }
}
