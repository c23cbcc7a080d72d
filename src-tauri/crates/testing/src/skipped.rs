//! Skipping of tests whose driver or data is not on this machine. libtest cannot skip at run time, so such a test
//! prints a line that `npm test` counts, and returns.

use std::io::Write;

/// Reports that the running test is skipped.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("main"));
    // The harness captures what passing tests print, so this goes straight to the stream; in one call, so that lines do
    // not mix.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Returns the device, or reports that the test is skipped. Panics instead if `GOLDCREST_NEED_GPU` is set.
pub fn or_skip<T>(device: Option<T>) -> Option<T> {
    if device.is_none() {
        assert!(
            std::env::var_os("GOLDCREST_NEED_GPU").is_none(),
            "a Vulkan driver is installed and shows no device"
        );
        skip("no Vulkan driver shows a device");
    }
    device
}
