//! Limits that the child sets for itself before it meets a template. Its parent watches its time and its output.

use std::io;

/// Limits memory, stack and time of this process for good, and has it leave no core dump.
#[cfg(unix)]
pub fn set() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// What a rendering may take, in bytes, beside what the program has taken by now.
    const MEMORY: u64 = 512 << 20;
    const STACK: u64 = 8 << 20;
    /// Seconds of computing, so that it ends even where nobody waits for it any more.
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

/// Address space that this process has taken, most of it for shared libraries.
#[cfg(unix)]
fn taken() -> u64 {
    /// Where it cannot be looked up.
    const USUAL: u64 = 2 << 30;
    let Ok(table) = std::fs::read_to_string("/proc/self/status") else {
        return USUAL;
    };
    let size = table.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kilobytes = size.and_then(|size| size.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(USUAL, |kilobytes| kilobytes.saturating_mul(1024))
}
