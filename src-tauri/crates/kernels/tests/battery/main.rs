//! The shared battery: every routine at every level of this machine, against the scalar level and
//! plain arithmetic.

mod attention;
mod blocks;
mod elementwise;
mod levels;
mod products;
mod random;
