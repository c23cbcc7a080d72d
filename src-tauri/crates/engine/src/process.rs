//! Free memory of the machine; memory and CPU time of this process.

use std::fs;
use std::time::Duration;

use sysinfo::{MemoryRefreshKind, System};

/// Bytes available without swapping; `None` where the system does not report them.
pub fn available() -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let free = Some(system.available_memory()).filter(|free| *free > 0)?;
    Some(free.min(cgroup_available().unwrap_or(u64::MAX)))
}

/// Peak resident memory of this process, in bytes.
pub fn peak_resident() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

/// Memory that this process has allocated and that is resident, in bytes: without the pages of files.
pub fn allocated() -> Option<u64> {
    field("/proc/self/status", "RssAnon:")
}

/// CPU time of this process's threads.
pub fn cpu_time() -> Option<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir("/proc/self/task").ok()?.flatten() {
        let table = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        nanoseconds += table.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(nanoseconds))
}

/// CPU time of this thread.
pub fn thread_time() -> Option<Duration> {
    let table = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(
        table.split_whitespace().next()?.parse().ok()?,
    ))
}

/// Memory left below the limit of the cgroup, in bytes.
fn cgroup_available() -> Option<u64> {
    let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max")?;
    Some(limit.saturating_sub(number("/sys/fs/cgroup/memory.current")?))
}

/// A field in kilobytes of a procfs table, in bytes.
fn field(path: &str, name: &str) -> Option<u64> {
    let table = fs::read_to_string(path).ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}
