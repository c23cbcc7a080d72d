//! Check results as text.

use std::fmt::Write;

use crate::check::{GpuCheck, MatrixCheck};
use crate::gpu_info::Gpu;
use crate::reason::Fault;

/// Describes the check result of cooperative matrices; `None` if a GPU has none.
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

/// Bug report about a faulty GPU.
pub fn report(gpu: &Gpu, check: &GpuCheck, stderr: &str) -> String {
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
            .map_or("NaN".into(), |error| format!("{error:.1e}"));
        let _ = writeln!(text, "{}: {error} (at most {})", step.what, step.bound);
    }
    if let Some(sentence) = matrices(check) {
        let _ = writeln!(text, "cooperative matrices: {sentence}");
    }
    let _ = writeln!(
        text,
        "{}",
        check
            .fault
            .as_ref()
            .map_or("no fault".to_owned(), Fault::to_string)
    );
    text + stderr
}
