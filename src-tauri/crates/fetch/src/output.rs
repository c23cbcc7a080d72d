//! Events on stdout, a line of JSON each.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use download::DownloadEvent;

/// True once the last event was written.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Writes an event. A parent that stops reading closes stdin too, which ends this program.
pub fn emit(event: &DownloadEvent) {
    if let Ok(mut line) = serde_json::to_vec(event) {
        line.push(b'\n');
        let mut out = io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

/// Writes the last event. A pause and the end of a download may coincide: the first one counts.
pub fn end(event: &DownloadEvent) {
    if !ENDED.swap(true, Ordering::SeqCst) {
        emit(event);
    }
}
