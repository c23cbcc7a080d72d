//! What the machine has left and this process has taken, in memory and time.

use std::fs;
use std::time::Duration;

use sysinfo::{MemoryRefreshKind, System};

/// Bytes that can still be used without swapping, or `None` where the system does not tell.
pub fn available() -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let free = Some(system.available_memory()).filter(|free| *free > 0)?;
    Some(free.min(container_room().unwrap_or(u64::MAX)))
}

/// The most memory that this process has held at once, in bytes.
pub fn peak_resident() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

/// Time that this process's threads have computed.
pub fn cpu_time() -> Option<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir("/proc/self/task").ok()?.flatten() {
        let table = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        nanoseconds += table.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(nanoseconds))
}

/// Time that this thread has computed.
pub fn thread_time() -> Option<Duration> {
    let table = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(
        table.split_whitespace().next()?.parse().ok()?,
    ))
}

/// What a container's limit leaves.
fn container_room() -> Option<u64> {
    let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max")?;
    Some(limit.saturating_sub(number("/sys/fs/cgroup/memory.current")?))
}

/// A field in kilobytes of one of the kernel's tables, in bytes.
fn field(path: &str, name: &str) -> Option<u64> {
    let table = fs::read_to_string(path).ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}
