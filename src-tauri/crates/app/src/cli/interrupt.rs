//! Ctrl+C, and the end of a parent.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::folders::Folders;
use ::devices::CrashMarkers;

/// Handler of Ctrl+C: stops the running work, or ends the program if there is none.
#[derive(Clone, Default)]
pub struct Interrupt {
    cancel: Arc<AtomicBool>,
    working: Arc<AtomicBool>,
    /// True to simulate Ctrl+C as soon as work runs.
    #[cfg(test)]
    pub pressed: bool,
}

impl Interrupt {
    /// Installs the handler.
    pub fn listen() -> Self {
        let interrupt = Self::default();
        let handler = interrupt.clone();
        let listening = ctrlc::set_handler(move || {
            // A second Ctrl+C, before the first took effect, ends the program.
            let again = handler.cancel.swap(true, Ordering::Relaxed);
            if again || !handler.working.load(Ordering::Relaxed) {
                exit();
            }
        });
        if let Err(error) = listening {
            tracing::warn!("Ctrl+C will end the program at once: {error}");
        }
        interrupt
    }

    /// Ends the program at the end of stdin: the parent that holds it has closed it, or has ended.
    pub fn exit_with_parent() {
        thread::spawn(|| {
            // An error is an end, too.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            exit();
        });
    }

    /// Runs work that polls the flag, and returns its result with whether it was interrupted.
    pub fn during<T>(&self, work: impl FnOnce(&Arc<AtomicBool>) -> T) -> (T, bool) {
        self.cancel.store(false, Ordering::Relaxed);
        #[cfg(test)]
        self.cancel.store(self.pressed, Ordering::Relaxed);
        self.working.store(true, Ordering::Relaxed);
        let result = work(&self.cancel);
        self.working.store(false, Ordering::Relaxed);
        (result, self.cancel.swap(false, Ordering::Relaxed))
    }
}

/// Ends the program at once. This is no crash, so its crash markers are removed.
fn exit() -> ! {
    if let Some(folders) = Folders::of_user() {
        CrashMarkers::new(&folders.data).withdraw();
    }
    process::exit(130);
}
