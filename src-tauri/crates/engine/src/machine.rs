//! The CPU: usable cores and instruction set level.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kernels::{CpuLevel, CpuLevelError};
use sysinfo::System;

/// Returns the number of CPU threads: the requested one, else one per physical core.
pub fn threads(requested: Option<usize>) -> usize {
    requested
        .filter(|&threads| threads > 0)
        .unwrap_or_else(physical_cores)
}

/// Returns the CPU level: the caller's choice, else `detected`, that of the environment. If the latter is not
/// supported, the best level, with the error.
///
/// # Errors
/// Fails if this machine lacks the chosen level.
pub fn cpu_level(
    chosen: Option<CpuLevel>,
    detected: Result<CpuLevel, CpuLevelError>,
) -> Result<(CpuLevel, Option<CpuLevelError>), CpuLevelError> {
    if let Some(level) = chosen {
        return Ok((level.checked()?, None));
    }
    Ok(match detected {
        Ok(level) => (level, None),
        Err(error) => {
            tracing::warn!("{} is ignored: {error}", CpuLevel::VARIABLE);
            (CpuLevel::best(), Some(error))
        }
    })
}

/// Counts the physical cores that this process may use: a second hardware thread per core does not speed up loops bound
/// by memory bandwidth.
pub fn physical_cores() -> usize {
    // May be less than the CPUs of the cpuset, by a cgroup's quota.
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = linux_cores(
        Path::new("/proc/self/status"),
        Path::new("/sys/devices/system/cpu"),
    )
    .or_else(|| System::physical_core_count().ok());
    cores.map_or(usable, |cores| cores.clamp(1, usable))
}

/// Distinct sets of sibling threads among the CPUs that this process may run on, if the kernel lists them: of two
/// threads of one core, a cpuset may hold one, both, or neither.
fn linux_cores(status: &Path, cpus: &Path) -> Option<usize> {
    let status = fs::read_to_string(status).ok()?;
    let allowed = |line: &str| line.strip_prefix("Cpus_allowed_list:").map(str::to_owned);
    let mut cores = BTreeSet::new();
    for cpu in numbers(status.lines().find_map(allowed)?.trim())? {
        let siblings = cpus.join(format!("cpu{cpu}/topology/thread_siblings_list"));
        // An offline CPU has no topology.
        cores.extend(fs::read_to_string(siblings));
    }
    (!cores.is_empty()).then_some(cores.len())
}

/// The numbers of a list as the kernel writes it: `0-3,8`.
fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        numbers.extend(first.parse().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_counted_within_the_cpuset() {
        let folder = tempfile::tempdir().expect("made");
        let (status, cpus) = (folder.path().join("status"), folder.path().join("cpu"));
        // Four cores of two threads each, as most machines number them.
        for cpu in 0..8 {
            let topology = cpus.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).expect("made");
            let siblings = format!("{},{}\n", cpu % 4, cpu % 4 + 4);
            fs::write(topology.join("thread_siblings_list"), siblings).expect("written");
        }
        let count = |allowed: &str| {
            let text = format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n");
            fs::write(&status, text).expect("written");
            linux_cores(&status, &cpus)
        };
        for (allowed, cores) in [
            ("0-7", Some(4)),
            ("0-3", Some(4)),
            ("0-1,4-5", Some(2)),
            ("2,6", Some(1)),
            ("7", Some(1)),
            // Offline, or not a list.
            ("8-9", None),
            ("", None),
            ("a-b", None),
        ] {
            assert_eq!(count(allowed), cores, "{allowed}");
        }
        assert_eq!(linux_cores(&folder.path().join("none"), &cpus), None);
    }

    #[test]
    fn there_are_no_more_cores_than_threads() {
        let threads = std::thread::available_parallelism().expect("known").get();
        assert!((1..=threads).contains(&physical_cores()));
    }

    #[test]
    fn an_unsupported_cpu_level_is_reported_or_refused() {
        let best = CpuLevel::best();
        let lacking = CpuLevel::ALL
            .into_iter()
            .find(|level| level.checked().is_err())
            .expect("no machine has both kinds of vectors");
        assert_eq!(cpu_level(None, Ok(best)), Ok((best, None)));
        assert_eq!(
            cpu_level(None, lacking.checked()),
            Ok((best, Some(CpuLevelError::Missing(lacking)))),
            "the window uses the best level"
        );
        assert_eq!(
            cpu_level(Some(lacking), Ok(best)),
            Err(CpuLevelError::Missing(lacking))
        );
    }

    #[test]
    fn zero_threads_means_one_per_core() {
        assert_eq!(threads(Some(0)), threads(None));
        assert!(threads(None) > 0);
        assert_eq!(threads(Some(3)), 3);
    }
}
