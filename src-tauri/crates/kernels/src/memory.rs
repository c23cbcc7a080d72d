//! Memory: fallible allocation, packed weights on huge pages, aligned scratch, and reads from a file.

pub(crate) mod arena;
pub(crate) mod buffer;
mod region;
pub(crate) mod reserve;
pub(crate) mod stored;
