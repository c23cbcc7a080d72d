//! Settings files of other programs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Returns the text of a settings file of another program; `None` if it is unreadable or larger than any such file.
pub(crate) fn read_small(file: &Path) -> Option<String> {
    const LIMIT: u64 = 1 << 20;
    // A pipe of that name would never end.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let mut limited = File::open(file).ok()?.take(LIMIT);
    limited.read_to_string(&mut text).ok()?;
    Some(text)
}
