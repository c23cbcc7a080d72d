//! What is known of a GPU, as text.

use std::fmt::Write;

use engine::{GpuCheck, MatrixCheck};
use serde::Serialize;

use super::Gpu;

/// A device with what is known of it, as `goldcrest devices` shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    #[serde(flatten)]
    pub gpu: Gpu,
    /// Whether the model would run on it.
    pub usable: bool,
    pub reason: String,
    /// What of the model did not go on it when it was last loaded, and why.
    pub without: Option<String>,
    pub report: Option<String>,
    pub check: Option<GpuCheck>,
}

impl Verdict {
    pub(super) fn of(gpu: &Gpu, usable: bool, reason: &str) -> Self {
        Self {
            gpu: gpu.clone(),
            usable,
            reason: reason.to_owned(),
            without: None,
            report: None,
            check: None,
        }
    }

    /// Of a GPU that computes well. Where it is `automatic`, it must be worth it.
    pub(super) fn measured(gpu: &Gpu, check: GpuCheck, automatic: bool) -> Self {
        let Some(rates) = check.rates else {
            return Self::of(gpu, false, "it was not measured");
        };
        let (gpu_writes, cpu_writes) = (rates.gpu.decode, rates.cpu.decode);
        let figures = format!("about {gpu_writes:.1} tokens/s, the CPU {cpu_writes:.1}");
        let (usable, reason) = if !automatic {
            (true, format!("The GPU was asked for; it writes {figures}"))
        } else if rates.favour_gpu() {
            (true, format!("The GPU is faster here: it writes {figures}"))
        } else {
            (false, format!("it is no faster here: it writes {figures}"))
        };
        Self {
            check: Some(check),
            ..Self::of(gpu, usable, &reason)
        }
    }
}

/// What is known of a GPU's cooperative matrices, as text.
pub fn matrices(check: &GpuCheck) -> Option<String> {
    let MatrixCheck { fault, speedup } = check.matrices.as_ref()?;
    Some(match (fault, speedup) {
        (Some(fault), _) => format!("not used: {fault}"),
        (None, Some(speedup)) if check.uses_matrices() => {
            format!("prompts are multiplied {speedup:.1} times as fast with them")
        }
        (None, Some(speedup)) => format!("not used: {speedup:.1} times as fast as without them"),
        (None, None) => "not measured".to_owned(),
    })
}

/// All that is known of a GPU that does not work, in plain text.
pub(super) fn report(gpu: &Gpu, check: &GpuCheck, complaints: &str) -> String {
    let (version, os, arch) = (
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    );
    let mut text = format!("Goldcrest {version}, {os} {arch}\n");
    // Writing to a string does not fail.
    let _ = writeln!(text, "{} ({}, {}), {}", gpu.name, gpu.kind, gpu.id, gpu.api);
    let _ = writeln!(text, "driver: {}", gpu.driver);
    for step in &check.steps {
        let error = step
            .error
            .map_or("no number".into(), |error| format!("{error:.1e}"));
        let _ = writeln!(text, "{}: {error} (at most {})", step.what, step.bound);
    }
    if let Some(words) = matrices(check) {
        let _ = writeln!(text, "cooperative matrices: {words}");
    }
    let _ = writeln!(text, "{}", check.fault.as_deref().unwrap_or("no fault"));
    text + complaints
}
