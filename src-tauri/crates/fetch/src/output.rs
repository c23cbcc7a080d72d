//! Events on stdout, a line of JSON each.

use std::io::{self, Write};

use download::DownloadEvent;

/// A parent that does not read any more closes stdin too, which ends this program.
pub fn emit(event: &DownloadEvent) {
    if let Ok(mut line) = serde_json::to_vec(event) {
        line.push(b'\n');
        let mut out = io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}
