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

/// Memory that would be available if this process freed all that it has allocated: a model is closed before another one
/// is opened. If the system does not report that, `open_bytes` of the open model count.
pub fn available_after_closing(open_bytes: u64) -> Option<u64> {
    let own = allocated().unwrap_or(open_bytes);
    Some(available()?.saturating_add(own))
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_holds_counts_whether_or_not_it_is_used() {
        let of_open = 1 << 60;
        let before = available_after_closing(of_open).expect("Linux tells");
        let mut system = System::new().expect("Linux tells");
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        assert!(before <= system.total_memory(), "{before}");
        let held = vec![1u8; 256 << 20];
        let with = available_after_closing(of_open).expect("Linux tells");
        assert!(std::hint::black_box(&held).iter().all(|byte| *byte == 1));
        // Other processes allocate and free memory meanwhile.
        let difference = before.abs_diff(with);
        assert!(allocated().is_some_and(|own| own > 256 << 20));
        assert!(difference < 1 << 30, "{before} and {with}");
    }
}
