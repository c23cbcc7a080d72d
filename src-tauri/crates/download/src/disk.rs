//! The free space of disks.

use std::io;
use std::path::Path;

/// Returns the bytes that the user may still write to the disk of `folder`, or of its nearest existing parent.
///
/// # Errors
/// Fails if none of its parents can be queried.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let folder = std::path::absolute(folder)?;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for above in folder.ancestors() {
        match fs4::available_space(above) {
            Ok(bytes) => return Ok(bytes),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_folder_that_is_not_made_yet_is_on_the_disk_of_the_one_above() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("not/made/yet");
        assert!(super::free_bytes(&below).is_ok_and(|bytes| bytes > 0));
    }
}
