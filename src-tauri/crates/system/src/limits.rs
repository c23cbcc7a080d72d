//! Limits that a process sets for itself: a child before it reads untrusted content, whose parent watches its time and
//! its output; and the app, which leaves no image of its memory behind.

use std::io;

/// Limits further allocations of this process to `bytes`, and disables its core dumps: beyond the limit an allocation
/// fails, instead of the system ending some process when it is out of memory.
#[cfg(target_os = "linux")]
pub fn set_memory(bytes: u64) -> io::Result<()> {
    use rustix::process::Resource;

    lower(Resource::Data, writable().saturating_add(bytes))?;
    no_core_dumps()
}

/// Disables core dumps only: on other systems writable memory cannot be limited separately from mapped memory.
#[cfg(not(target_os = "linux"))]
pub fn set_memory(_: u64) -> io::Result<()> {
    no_core_dumps()
}

/// Limits the stack of the main thread; others have a fixed one from their start.
#[cfg(unix)]
pub fn set_stack() -> io::Result<()> {
    const STACK: u64 = 8 << 20;
    lower(rustix::process::Resource::Stack, STACK)
}

/// Does nothing: on other systems the stack size is fixed when the program is built.
#[cfg(not(unix))]
pub fn set_stack() -> io::Result<()> {
    Ok(())
}

/// Limits the further CPU time of this process; a later call replaces the limit.
#[cfg(unix)]
pub fn set_seconds(seconds: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::time::{ClockId, clock_gettime};

    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let limit = u64::try_from(used)
        .unwrap_or(0)
        .saturating_add(seconds.max(1));
    let maximum = getrlimit(Resource::Cpu).maximum;
    let current = Some(maximum.map_or(limit, |maximum| maximum.min(limit)));
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}

/// Does nothing: on other systems only the parent watches its time.
#[cfg(not(unix))]
pub fn set_seconds(_: u64) -> io::Result<()> {
    Ok(())
}

/// Disables core dumps of this process and its children: the memory of the app must be in no file.
#[cfg(unix)]
pub fn no_core_dumps() -> io::Result<()> {
    /// Maximum size of a dump. None fits in one byte, and with this very limit Linux starts no program that takes
    /// dumps, such as systemd-coredump; with 0 it does.
    const SIZE: u64 = if cfg!(target_os = "linux") { 1 } else { 0 };
    lower(rustix::process::Resource::Core, SIZE)
}

/// Windows writes none unless somebody configures that for all programs.
#[cfg(not(unix))]
pub fn no_core_dumps() -> io::Result<()> {
    Ok(())
}

/// Sets a limit that cannot be raised again; a lower one stays.
#[cfg(unix)]
fn lower(resource: rustix::process::Resource, limit: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};

    let before = getrlimit(resource);
    let limit = Some(before.maximum.map_or(limit, |maximum| maximum.min(limit)));
    let lowered = Rlimit {
        current: limit,
        maximum: limit,
    };
    Ok(setrlimit(resource, lowered)?)
}

/// Returns the writable memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn writable() -> u64 {
    status("VmData:").unwrap_or(0)
}

/// Returns a field of this process's status, in bytes.
#[cfg(target_os = "linux")]
fn status(field: &str) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/self/status").ok()?;
    let size = table.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes = size.split_whitespace().next()?.parse::<u64>().ok()?;
    Some(kilobytes.saturating_mul(1024))
}
