//! Whether a GPU may run a model.

use engine::ModelFile;
use serde::{Serialize, Serializer};

use crate::check::GpuCheck;
use crate::gpu_info::Gpu;
use crate::reason::{Reason, Rejection};

/// A GPU with what was found of it, as `goldcrest devices` shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The GPU.
    #[serde(flatten)]
    pub gpu: Gpu,
    /// Whether the model would run on it, and why.
    #[serde(flatten, serialize_with = "usable_and_reason")]
    pub result: Result<Reason, Rejection>,
    /// Why the model did not fit on it when it was last loaded; a sentence.
    #[serde(rename = "without")]
    pub last_load: Option<String>,
    /// Everything that was found where it does not work, for a bug report.
    pub report: Option<String>,
    /// What its check found.
    pub check: Option<GpuCheck>,
}

impl Verdict {
    /// Of a GPU that is not used.
    pub fn rejected(gpu: &Gpu, why: Rejection) -> Self {
        Self {
            gpu: gpu.clone(),
            result: Err(why),
            last_load: None,
            report: None,
            check: None,
        }
    }

    /// Of a GPU that computes well. On `automatic` it must pay off.
    pub fn measured(gpu: &Gpu, check: GpuCheck, automatic: bool) -> Self {
        let result = match check.rates {
            None => Err(Rejection::NotMeasured),
            Some(rates) if !automatic => Ok(Reason::GpuAskedFor(Some(rates))),
            Some(rates) if rates.favour_gpu() => Ok(Reason::GpuFaster(rates)),
            Some(rates) => Err(Rejection::Slower(rates)),
        };
        Self {
            gpu: gpu.clone(),
            result,
            last_load: None,
            report: None,
            check: Some(check),
        }
    }

    /// Whether the model would run on it.
    pub fn is_usable(&self) -> bool {
        self.result.is_ok()
    }

    /// Why it would, or would not.
    pub fn reason(&self) -> String {
        match &self.result {
            Ok(reason) => reason.to_string(),
            Err(why) => why.to_string(),
        }
    }
}

fn usable_and_reason<S: Serializer>(
    result: &Result<Reason, Rejection>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Flat {
        usable: bool,
        reason: String,
    }
    let reason = match result {
        Ok(reason) => reason.to_string(),
        Err(why) => why.to_string(),
    };
    Flat {
        usable: result.is_ok(),
        reason,
    }
    .serialize(serializer)
}

/// A model with which GPUs are checked, and the CPU that they have to beat.
pub struct Trial<'a> {
    /// The model.
    pub file: &'a ModelFile,
    /// CPU threads; `None` for one per physical core.
    pub threads: Option<usize>,
    /// Names the CPU.
    pub cpu: String,
    /// Whether a GPU must pay off.
    pub automatic: bool,
}

impl<'a> Trial<'a> {
    /// With the CPU as it would be used.
    pub fn new(file: &'a ModelFile, threads: Option<usize>, automatic: bool) -> Self {
        let level = engine::CpuLevel::detect().map_or("unknown", engine::CpuLevel::keyword);
        Self {
            file,
            threads,
            cpu: match threads {
                Some(threads) => format!("{level}, {threads} threads"),
                None => level.to_owned(),
            },
            automatic,
        }
    }

    /// Names the model.
    pub fn fingerprint(&self) -> &str {
        &self.file.summary().fingerprint
    }
}
