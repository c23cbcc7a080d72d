//! Which device runs the model, and why.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;
use std::{fmt, fs};

use kernels::{CpuLevel, CpuLevelError};
use sysinfo::System;

/// What was asked for, by settings, command line or `GOLDCREST_DEVICE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceRequest {
    /// A GPU if there is one that works, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU through Vulkan or Metal, by its id or the first that may be used.
    Gpu(Option<String>),
}

/// The text names no device.
#[derive(Debug, thiserror::Error)]
pub enum UnknownDevice {
    /// One of other programs' names for a GPU.
    #[error("`{0}` is not a device here: an NVIDIA or Apple GPU is reached as `gpu` or `gpu:ID`")]
    OtherApi(String),
    /// No name of a device.
    #[error("`{0}` is not a device: auto, cpu, gpu and gpu:ID are")]
    Unknown(String),
}

impl FromStr for DeviceRequest {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let name = text.trim().to_ascii_lowercase();
        match name.as_str() {
            "" | "auto" => return Ok(DeviceRequest::Auto),
            "cpu" => return Ok(DeviceRequest::Cpu),
            "gpu" => return Ok(DeviceRequest::Gpu(None)),
            _ => {}
        }
        if let Some(id) = name.strip_prefix("gpu:").filter(|id| !id.is_empty()) {
            return Ok(DeviceRequest::Gpu(Some(id.to_owned())));
        }
        Err(match name.split(':').next() {
            Some("cuda" | "metal" | "vulkan" | "rocm") => UnknownDevice::OtherApi(text.to_owned()),
            _ => UnknownDevice::Unknown(text.to_owned()),
        })
    }
}

impl fmt::Display for DeviceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceRequest::Auto => f.write_str("auto"),
            DeviceRequest::Cpu => f.write_str("cpu"),
            DeviceRequest::Gpu(None) => f.write_str("gpu"),
            DeviceRequest::Gpu(Some(id)) => write!(f, "gpu:{id}"),
        }
    }
}

/// A family of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A GPU through Vulkan or Metal.
    Gpu,
}

impl DeviceKind {
    /// The word for it in settings and records.
    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Gpu => "gpu",
        }
    }
}

/// The device that a model runs on.
#[derive(Clone, Debug)]
pub struct DeviceChoice {
    /// Its family.
    pub kind: DeviceKind,
    /// Its name for people, such as `CPU, AVX-512 VNNI, 2 threads`.
    pub name: String,
    /// Why this one and, on the CPU, why not a GPU; a sentence for people.
    pub reason: String,
    /// What a GPU has no room for; a sentence for people, and part of the reason.
    pub without: Option<String>,
    /// A GPU that was to be used has failed, and not for want of memory.
    pub gpu_failed: bool,
    /// The CPU's instruction set level that the kernels use.
    pub cpu_level: CpuLevel,
    /// CPU threads.
    pub threads: usize,
}

impl DeviceChoice {
    pub(crate) fn cpu(level: CpuLevel, threads: usize, reason: String) -> DeviceChoice {
        let plural = if threads == 1 { "" } else { "s" };
        let name = format!("CPU, {}, {threads} thread{plural}", level.name());
        DeviceChoice {
            kind: DeviceKind::Cpu,
            name,
            reason,
            without: None,
            gpu_failed: false,
            cpu_level: level,
            threads,
        }
    }
}

/// The level to compute with: the one that a caller chose, else what `detected` of the environment. Where that cannot be
/// used the best level is, for a window has nobody to ask, and a sentence says so.
pub(crate) fn cpu_level(
    chosen: Option<CpuLevel>,
    detected: Result<CpuLevel, CpuLevelError>,
) -> Result<(CpuLevel, Option<String>), CpuLevelError> {
    if let Some(level) = chosen {
        return Ok((level.checked()?, None));
    }
    Ok(match detected {
        Ok(level) => (level, None),
        Err(error) => {
            tracing::warn!("{} is ignored: {error}", CpuLevel::VARIABLE);
            let sentence = format!("{} is ignored: {error}", CpuLevel::VARIABLE);
            (CpuLevel::best(), Some(sentence))
        }
    })
}

/// Physical cores that this process may use: a second hardware thread on a core adds nothing to loops that wait
/// for memory.
pub(crate) fn physical_cores() -> usize {
    // Less than the CPUs that a cpuset leaves, where a cgroup's quota says so.
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = linux_cores(
        Path::new("/proc/self/status"),
        Path::new("/sys/devices/system/cpu"),
    )
    .or_else(|| System::physical_core_count().ok());
    cores.map_or(usable, |cores| cores.clamp(1, usable))
}

/// Distinct sets of sibling threads among the CPUs that this process may run on, where the kernel lists them: of two
/// threads of one core, a cpuset may hold one, both, or neither.
fn linux_cores(status: &Path, cpus: &Path) -> Option<usize> {
    let status = fs::read_to_string(status).ok()?;
    let allowed = |line: &str| line.strip_prefix("Cpus_allowed_list:").map(str::to_owned);
    let mut cores = BTreeSet::new();
    for cpu in numbers(status.lines().find_map(allowed)?.trim())? {
        let siblings = cpus.join(format!("cpu{cpu}/topology/thread_siblings_list"));
        // A CPU that is off has no topology.
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
    fn requests_read_as_they_print() {
        for text in ["auto", "cpu", "gpu", "gpu:0000:01:00.0"] {
            let request: DeviceRequest = text.parse().expect("a device");
            assert_eq!(request.to_string(), text);
        }
        assert_eq!(" CPU\n".parse().ok(), Some(DeviceRequest::Cpu));
        let error = |text: &str| text.parse::<DeviceRequest>().expect_err("no device");
        for text in ["cuda", "cuda:0", "Metal"] {
            assert!(matches!(error(text), UnknownDevice::OtherApi(_)), "{text}");
        }
        for text in ["gpu:", "tpu"] {
            assert!(matches!(error(text), UnknownDevice::Unknown(_)), "{text}");
        }
    }

    #[test]
    fn cores_are_counted_among_the_cpus_that_may_be_used() {
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
            // Off, or not a list.
            ("8-9", None),
            ("", None),
            ("a-b", None),
        ] {
            assert_eq!(count(allowed), cores, "{allowed}");
        }
        assert_eq!(linux_cores(&folder.path().join("none"), &cpus), None);
    }

    #[test]
    fn this_machine_has_cores_and_no_more_than_it_has_threads() {
        let threads = std::thread::available_parallelism().expect("known").get();
        assert!((1..=threads).contains(&physical_cores()));
    }

    #[test]
    fn a_cpu_level_that_cannot_be_used_is_said_or_refused() {
        let best = CpuLevel::best();
        let lacking = CpuLevel::ALL
            .into_iter()
            .find(|level| level.checked().is_err())
            .expect("no machine has both kinds of vectors");
        assert_eq!(cpu_level(None, Ok(best)), Ok((best, None)));
        let (level, sentence) = cpu_level(None, lacking.checked()).expect("the window goes on");
        assert_eq!(level, best);
        let sentence = sentence.expect("a sentence");
        assert!(
            sentence.contains(CpuLevel::VARIABLE) && sentence.contains(lacking.keyword()),
            "{sentence}"
        );
        assert_eq!(
            cpu_level(Some(lacking), Ok(best)),
            Err(CpuLevelError::Missing(lacking))
        );
    }
}
