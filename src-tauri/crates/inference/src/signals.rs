//! Flags that steer a generation from another thread.

use std::sync::atomic::AtomicBool;

static NEVER: AtomicBool = AtomicBool::new(false);

/// The flags that a generation polls.
#[derive(Debug, Clone, Copy)]
pub struct Signals<'a> {
    /// Ends the generation.
    pub cancel: &'a AtomicBool,
    /// Ends the thinking: the answer begins.
    pub answer_now: &'a AtomicBool,
}

impl<'a> From<&'a AtomicBool> for Signals<'a> {
    /// Makes the signals of a generation that can only be cancelled.
    fn from(cancel: &'a AtomicBool) -> Self {
        Self {
            cancel,
            answer_now: &NEVER,
        }
    }
}
