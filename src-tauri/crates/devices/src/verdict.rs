//! The verdict on a GPU for a model.

use engine::ModelFile;
use serde::{Serialize, Serializer};

use crate::check::GpuCheck;
use crate::gpu_info::Gpu;
use crate::reason::{Reason, Rejection};

/// A GPU with the result of its check, as `goldcrest devices` shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The GPU.
    #[serde(flatten)]
    pub gpu: Gpu,
    /// The reason for running the model on it, or for rejecting it.
    #[serde(flatten, serialize_with = "usable_and_reason")]
    pub result: Result<Reason, Rejection>,
    /// Reason for which the last load of the model did not fit; a sentence.
    #[serde(rename = "without")]
    pub last_load: Option<String>,
    /// Bug report, if it is faulty.
    pub report: Option<String>,
    /// The result of its check.
    pub check: Option<GpuCheck>,
}

impl Verdict {
    /// Rejects a GPU.
    pub fn rejected(gpu: &Gpu, why: Rejection) -> Self {
        Self {
            gpu: gpu.clone(),
            result: Err(why),
            last_load: None,
            report: None,
            check: None,
        }
    }

    /// Judges a GPU that passed its check. On `automatic` it must be faster than the CPU.
    pub fn measured(gpu: &Gpu, check: GpuCheck, automatic: bool) -> Self {
        let result = match check.rates {
            None => Err(Rejection::NotMeasured),
            Some(rates) if !automatic => Ok(Reason::GpuRequested(Some(rates))),
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

    /// Returns whether the model runs on it.
    pub fn is_usable(&self) -> bool {
        self.result.is_ok()
    }

    /// Returns the reason, as a sentence.
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

/// A model with which GPUs are checked, and the CPU of the comparison.
pub struct Trial<'a> {
    /// The model.
    pub file: &'a ModelFile,
    /// CPU threads; `None` for one per physical core.
    pub threads: Option<usize>,
    /// Level and threads of the CPU.
    pub cpu: String,
    /// True if a GPU must be faster than the CPU.
    pub automatic: bool,
}

impl<'a> Trial<'a> {
    /// Makes a trial against the CPU at its best level.
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

    /// Fingerprint of the model.
    pub fn fingerprint(&self) -> &str {
        &self.file.summary().fingerprint
    }
}
