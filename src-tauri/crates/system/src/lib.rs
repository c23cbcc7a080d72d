//! Operating-system services of the app: child processes with limits, and files that only the user may read.

pub mod child;
pub mod companion;
#[cfg(target_os = "linux")]
pub mod confine;
pub mod frames;
pub mod limits;
pub mod private;
pub mod regular;
