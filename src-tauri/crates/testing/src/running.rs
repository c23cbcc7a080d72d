//! The processes of this machine.

use std::process::Command;

/// Returns the number of processes that have a text among their arguments.
///
/// # Panics
/// If there is no `ps`.
#[must_use]
pub fn running(marker: &str) -> usize {
    let output = Command::new("ps")
        // Otherwise a narrow terminal cuts lines, and a locale that is not installed replaces characters.
        .args(["-ww", "-eo", "args"])
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("ps");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| line.contains(marker)).count()
}
