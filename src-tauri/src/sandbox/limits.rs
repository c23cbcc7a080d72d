//! Limits that a child sets for itself before it reads an untrusted file. Its parent watches its time and its output.

use std::io;

/// Limits memory, stack and CPU time of this process for good, and disables core dumps.
#[cfg(unix)]
pub fn set() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Memory of a rendering, in bytes, beside what the program has allocated.
    const MEMORY: u64 = 512 << 20;
    const STACK: u64 = 8 << 20;
    /// CPU time in seconds, so that it ends even if its parent has ended.
    const TIME: u64 = 3;

    let lower = |resource, limit: u64| {
        let before = getrlimit(resource);
        let limit = Some(before.maximum.map_or(limit, |maximum| maximum.min(limit)));
        setrlimit(
            resource,
            Rlimit {
                current: limit,
                maximum: limit,
            },
        )
    };
    lower(Resource::As, taken().saturating_add(MEMORY))?;
    lower(Resource::Stack, STACK)?;
    lower(Resource::Cpu, TIME)?;
    lower(Resource::Core, 0)?;
    Ok(())
}

/// Elsewhere its time is the only bound of its memory.
#[cfg(not(unix))]
pub fn set() -> io::Result<()> {
    Ok(())
}

/// Limits further allocations of this process to `bytes`, and disables its core dumps: beyond the limit an allocation
/// fails, instead of the system ending some process when it is out of memory.
#[cfg(target_os = "linux")]
pub fn set_memory(bytes: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    for (resource, limit) in [
        (Resource::Data, writable().saturating_add(bytes)),
        (Resource::Core, 0),
    ] {
        let before = getrlimit(resource);
        let limit = Some(before.maximum.map_or(limit, |maximum| maximum.min(limit)));
        setrlimit(
            resource,
            Rlimit {
                current: limit,
                maximum: limit,
            },
        )?;
    }
    Ok(())
}

/// Elsewhere writable memory cannot be limited apart from what is mapped.
#[cfg(not(target_os = "linux"))]
pub fn set_memory(_: u64) -> io::Result<()> {
    Ok(())
}

/// Writable memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn writable() -> u64 {
    status("VmData:").unwrap_or(0)
}

/// Address space that this process has taken, most of it for shared libraries.
#[cfg(unix)]
fn taken() -> u64 {
    /// Where it cannot be looked up.
    const USUAL: u64 = 2 << 30;
    status("VmSize:").unwrap_or(USUAL)
}

/// A field of this process's status, in bytes.
#[cfg(unix)]
fn status(field: &str) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/self/status").ok()?;
    let size = table.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes = size.split_whitespace().next()?.parse::<u64>().ok()?;
    Some(kilobytes.saturating_mul(1024))
}
