//! Which device runs the model, and why.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;
use std::{fmt, fs};

use candle_core::Device;
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
    /// An NVIDIA GPU, by number or the first.
    Cuda(Option<usize>),
    /// Apple's GPU.
    Metal,
}

/// The text names no device.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a device: auto, cpu, gpu, gpu:ID, cuda, cuda:N and metal are")]
pub struct UnknownDevice(String);

impl FromStr for DeviceRequest {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let unknown = || UnknownDevice(text.to_owned());
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "auto" => Ok(DeviceRequest::Auto),
            "cpu" => Ok(DeviceRequest::Cpu),
            "gpu" => Ok(DeviceRequest::Gpu(None)),
            "cuda" => Ok(DeviceRequest::Cuda(None)),
            "metal" => Ok(DeviceRequest::Metal),
            other => {
                if let Some(id) = other.strip_prefix("gpu:").filter(|id| !id.is_empty()) {
                    return Ok(DeviceRequest::Gpu(Some(id.to_owned())));
                }
                let number = other.strip_prefix("cuda:").ok_or_else(unknown)?;
                Ok(DeviceRequest::Cuda(Some(
                    number.parse().map_err(|_| unknown())?,
                )))
            }
        }
    }
}

impl fmt::Display for DeviceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceRequest::Auto => f.write_str("auto"),
            DeviceRequest::Cpu => f.write_str("cpu"),
            DeviceRequest::Gpu(None) => f.write_str("gpu"),
            DeviceRequest::Gpu(Some(id)) => write!(f, "gpu:{id}"),
            DeviceRequest::Cuda(None) => f.write_str("cuda"),
            DeviceRequest::Cuda(Some(number)) => write!(f, "cuda:{number}"),
            DeviceRequest::Metal => f.write_str("metal"),
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
    /// An NVIDIA GPU.
    Cuda,
    /// Apple's GPU.
    Metal,
}

impl DeviceKind {
    /// The word for it in settings and records.
    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Gpu => "gpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Metal => "metal",
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

/// A GPU of candle's that answered.
pub(crate) struct CandleGpu {
    pub(crate) device: Device,
    pub(crate) kind: DeviceKind,
    pub(crate) name: String,
}

/// Opens the GPU of candle's that `request` asks for.
///
/// # Errors
/// The reason in words why the CPU must do.
pub(crate) fn open_candle(request: &DeviceRequest) -> Result<CandleGpu, String> {
    match request {
        DeviceRequest::Cpu => Err("The CPU was chosen in the settings".to_owned()),
        DeviceRequest::Cuda(number) => open_cuda(number.unwrap_or(0)),
        DeviceRequest::Metal => open_metal(),
        DeviceRequest::Auto if cfg!(feature = "metal") => open_metal(),
        DeviceRequest::Auto if cfg!(feature = "cuda") => open_cuda(0),
        DeviceRequest::Auto | DeviceRequest::Gpu(_) => {
            Err("The CPU is used: no GPU was chosen".to_owned())
        }
    }
}

#[cfg(feature = "cuda")]
fn open_cuda(number: usize) -> Result<CandleGpu, String> {
    // candle panics rather than fails where the driver's libraries are not installed.
    let opened = std::panic::catch_unwind(|| Device::new_cuda(number));
    match opened {
        Ok(Ok(device)) => {
            let name = format!("NVIDIA GPU {number} (CUDA)");
            Ok(CandleGpu {
                device,
                kind: DeviceKind::Cuda,
                name,
            })
        }
        Ok(Err(error)) => Err(format!(
            "No GPU: CUDA device {number} does not open ({error})"
        )),
        Err(_) => Err("No GPU: the NVIDIA driver or its libraries are not installed".to_owned()),
    }
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(_: usize) -> Result<CandleGpu, String> {
    Err("No GPU: this build has no CUDA support".to_owned())
}

#[cfg(feature = "metal")]
fn open_metal() -> Result<CandleGpu, String> {
    match Device::new_metal(0) {
        Ok(device) => Ok(CandleGpu {
            device,
            kind: DeviceKind::Metal,
            name: "Apple GPU (Metal)".to_owned(),
        }),
        Err(error) => Err(format!("No GPU: Metal does not open ({error})")),
    }
}

#[cfg(not(feature = "metal"))]
fn open_metal() -> Result<CandleGpu, String> {
    Err("No GPU: this build has no Metal support".to_owned())
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
        for text in [
            "auto",
            "cpu",
            "gpu",
            "gpu:0000:01:00.0",
            "cuda",
            "cuda:3",
            "metal",
        ] {
            let request: DeviceRequest = text.parse().expect("a device");
            assert_eq!(request.to_string(), text);
        }
        assert_eq!(" CPU\n".parse().ok(), Some(DeviceRequest::Cpu));
        for text in ["cuda:", "cuda:x", "cuda:-1", "gpu:", "tpu", "metal:0"] {
            assert!(text.parse::<DeviceRequest>().is_err(), "{text}");
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

    #[test]
    fn the_reason_says_what_was_asked_for() {
        let reason = |request| open_candle(&request).err().unwrap_or_default();
        assert!(reason(DeviceRequest::Cpu).contains("chosen"));
        if !cfg!(feature = "cuda") {
            assert!(reason(DeviceRequest::Cuda(None)).contains("no CUDA support"));
        }
    }
}
