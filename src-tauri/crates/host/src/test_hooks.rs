//! Hooks of end-to-end tests, set by the environment. Release builds ignore them.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Path that the file picker returns: native dialogs have no WebDriver.
const PICK_FILE: &str = "GOLDCREST_PICK_FILE";

/// Path of a file that blocks opening a model file while it exists.
const HOLD_OPENING: &str = "GOLDCREST_HOLD_OPENING";

/// Falsifies the engine's logits that `goldcrest verify` compares, if set.
const DISTURB_LOGITS: &str = "GOLDCREST_DISTURB_LOGITS";

/// Makes a model call a tool whenever it can, if set: the tiny model has random weights.
const REQUIRE_CALLS: &str = "GOLDCREST_REQUIRE_CALLS";

pub fn requires_calls() -> bool {
    variable(REQUIRE_CALLS).is_some()
}

pub fn disturbs_logits() -> bool {
    variable(DISTURB_LOGITS).is_some()
}

pub fn picked_file() -> Option<PathBuf> {
    variable(PICK_FILE)
}

pub fn hold_opening() {
    if let Some(file) = variable(HOLD_OPENING) {
        while file.exists() {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn variable(name: &str) -> Option<PathBuf> {
    if cfg!(debug_assertions) {
        std::env::var_os(name).map(PathBuf::from)
    } else {
        None
    }
}
