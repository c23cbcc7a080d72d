//! Settings files of other programs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The text of a settings file of another program; none where it is unreadable or of a size that no such file has.
pub(crate) fn read_small(file: &Path) -> Option<String> {
    const LIMIT: u64 = 1 << 20;
    // A pipe of that name would not be read to its end.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let mut limited = File::open(file).ok()?.take(LIMIT);
    limited.read_to_string(&mut text).ok()?;
    Some(text)
}
