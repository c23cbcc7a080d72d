//! Ctrl+C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::folders::Folders;
use ::devices::CrashMarkers;

/// Ctrl+C, told apart by whether something is at work that it can stop.
#[derive(Clone, Default)]
pub struct Interrupt {
    cancel: Arc<AtomicBool>,
    working: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on: Ctrl+C stops the work at hand, and ends the program when there is none.
    pub fn listen() -> Self {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        let listening = ctrlc::set_handler(move || {
            // A second Ctrl+C, before the first was obeyed, ends the program.
            let again = heard.cancel.swap(true, Ordering::Relaxed);
            if again || !heard.working.load(Ordering::Relaxed) {
                if let Some(folders) = Folders::of_user() {
                    CrashMarkers::new(&folders.data).withdraw();
                }
                std::process::exit(130);
            }
        });
        if let Err(error) = listening {
            tracing::warn!("Ctrl+C will end the program at once: {error}");
        }
        interrupt
    }

    /// Does work that looks at the flag, and returns it with whether it was interrupted.
    pub fn during<T>(&self, work: impl FnOnce(&AtomicBool) -> T) -> (T, bool) {
        self.cancel.store(false, Ordering::Relaxed);
        self.working.store(true, Ordering::Relaxed);
        let result = work(&self.cancel);
        self.working.store(false, Ordering::Relaxed);
        (result, self.cancel.swap(false, Ordering::Relaxed))
    }
}
