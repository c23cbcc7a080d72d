//! For tests whose driver or data is not on this machine. libtest cannot skip at run time, so such a test says so on a
//! line that `npm test` counts, and returns.

use std::io::Write;

/// Says that the test that runs is skipped.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("main"));
    // Straight to the stream, for the harness hides what passing tests print; and whole, so that nothing comes between.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// A device, or the word that the test is skipped. Where `GOLDCREST_NEED_GPU` is set it has failed.
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
