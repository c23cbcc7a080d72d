//! Flags that steer a generation from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The flags that a generation polls. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    /// Ends the generation.
    pub cancel: Arc<AtomicBool>,
    /// Ends the thinking: the answer begins.
    pub answer_now: Arc<AtomicBool>,
}

impl Signals {
    /// Makes the signals of a generation that this flag cancels.
    pub fn cancelled_by(cancel: &Arc<AtomicBool>) -> Signals {
        Signals {
            cancel: Arc::clone(cancel),
            answer_now: Arc::default(),
        }
    }

    /// Ends the generation.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Returns true once the generation is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}
