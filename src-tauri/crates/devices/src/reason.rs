//! The reason for a model's device: one type, and one place where it becomes a sentence.

use std::fmt;

use engine::{CpuLevel, CpuLevelError, GpuFit};
use figures::tokens;
use serde::{Deserialize, Serialize};

use crate::rates::Rates;

/// The environment variable and value with which Vulkan's loader loads no implicit layers (overlays, recorders) above a
/// driver.
pub const WITHOUT_LAYERS: (&str, &str) = ("VK_LOADER_LAYERS_DISABLE", "~implicit~");

/// The reason for a model's device. Displayed, it is a sentence without its full stop.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The user chose the CPU.
    CpuChosen,
    /// No GPU was requested, and there is no list of them.
    NotRequested,
    /// A small model is fast on any CPU.
    SmallModel,
    /// The last run crashed while a GPU was in use.
    CrashedLastRun,
    /// The GPUs could not be listed.
    NotListed(Fault),
    /// No GPU.
    NoGpu,
    /// No GPU of this id.
    UnknownGpu(String),
    /// A GPU is rejected.
    Rejected {
        /// Its name.
        gpu: String,
        /// Reason for the rejection.
        why: Rejection,
    },
    /// The model could not be loaded on the GPU.
    NotLoaded(String),
    /// The GPU failed during an answer.
    Failed(String),
    /// The GPU was requested; its rates, if measured.
    GpuRequested(Option<Rates>),
    /// The GPU was measured faster.
    GpuFaster(Rates),
}

/// The reason for rejecting a GPU.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// Its driver or kind is on the list of unsupported ones.
    Refused(String),
    /// It is faulty.
    Faulty(Fault),
    /// Its check measured no rates.
    NotMeasured,
    /// No check yet.
    NotChecked,
    /// It is no faster than the CPU.
    Slower(Rates),
}

/// A fault of a GPU, or of the child process that checks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The child could not be started.
    NotStarted(String),
    /// The child timed out after this number of seconds.
    TimedOut(u64),
    /// The child was interrupted.
    Interrupted,
    /// The child crashed, with this exit status.
    Crashed(String),
    /// The child crashes only with a Vulkan layer of another program.
    Layer,
    /// The output of the child is invalid.
    Unreadable(String),
    /// A wrong result.
    Wrong {
        /// The step.
        step: String,
        /// The relative error.
        error: f64,
    },
    /// NaN in a result.
    Nan {
        /// The step.
        step: String,
    },
    /// Out of memory: not a fault of the device.
    OutOfMemory(String),
    /// The driver reports an error.
    Driver(String),
    /// The app crashed while the GPU was in use.
    AppEnded,
    /// Repeated failures.
    Repeated {
        /// Their number.
        times: usize,
        /// The last one.
        last: Box<Fault>,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::CpuChosen => f.write_str("The CPU was chosen"),
            Reason::NotRequested => f.write_str("No GPU was requested"),
            Reason::SmallModel => {
                f.write_str("Runs on the CPU, which is fast enough for a model this small")
            }
            Reason::CrashedLastRun => f.write_str(
                "The CPU is used this time, because Goldcrest crashed while it last used a GPU",
            ),
            Reason::NotListed(fault) => write!(f, "No GPU is used: while looking for one, {fault}"),
            Reason::NoGpu => f.write_str("No GPU was found by a Vulkan or Metal driver"),
            Reason::UnknownGpu(id) => write!(f, "There is no GPU {id}"),
            Reason::Rejected { gpu, why } => write!(f, "{gpu} is not used: {why}"),
            Reason::NotLoaded(why) => write!(f, "The model could not be loaded on the GPU: {why}"),
            Reason::Failed(why) => write!(f, "The GPU failed, so the CPU took over: {why}"),
            Reason::GpuRequested(None) => f.write_str("The GPU was chosen"),
            Reason::GpuRequested(Some(rates)) => {
                write!(f, "The GPU was chosen; it writes {rates}")
            }
            Reason::GpuFaster(rates) => write!(f, "The GPU is faster here: it writes {rates}"),
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Refused(why) => f.write_str(why),
            Rejection::Faulty(fault) => fault.fmt(f),
            Rejection::NotMeasured => f.write_str("it was not measured"),
            Rejection::NotChecked => f.write_str("it has not been checked yet"),
            Rejection::Slower(rates) => write!(f, "it is no faster here: it writes {rates}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotStarted(why) => write!(f, "its check could not be started ({why})"),
            Fault::TimedOut(seconds) => write!(f, "its driver timed out after {seconds} s"),
            Fault::Interrupted => f.write_str("its check was interrupted"),
            Fault::Crashed(status) => write!(f, "its driver crashes ({status})"),
            Fault::Layer => {
                let (variable, value) = WITHOUT_LAYERS;
                write!(
                    f,
                    "another program's Vulkan layer makes it crash; with {variable}={value} in Goldcrest's \
                     environment it works"
                )
            }
            Fault::Unreadable(why) => write!(f, "the output of its check is invalid ({why})"),
            Fault::Wrong { step, error } => {
                write!(
                    f,
                    "its results are wrong ({step}: relative error {error:.2})"
                )
            }
            Fault::Nan { step } => write!(f, "it produces NaN ({step})"),
            Fault::OutOfMemory(why) | Fault::Driver(why) => f.write_str(why),
            Fault::AppEnded => f.write_str("Goldcrest crashed while using it"),
            Fault::Repeated { times, last } => {
                write!(f, "it has failed {times} times, the last time: {last}")
            }
        }
    }
}

/// The part of a model that fits in a GPU's memory, as a sentence without its full stop; with the rates of its check also
/// the expected rate of GPU and CPU together.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialFit {
    /// The part that fits.
    pub fit: GpuFit,
    /// Rates of the whole model on the GPU.
    pub rates: Option<Rates>,
}

impl fmt::Display for PartialFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GpuFit {
            layers,
            of_layers,
            context,
            kv,
        } = &self.fit;
        let parts = [
            (layers < of_layers).then(|| format!("{layers} of {of_layers} layers")),
            context.map(|context| format!("{} of context", tokens(context))),
            kv.is_some().then(|| "chat memory in 8 bits".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        write!(f, "Its memory holds {}", parts.join(", "))?;
        match self.rates {
            Some(rates) if layers < of_layers => {
                let together = rates.shared(*layers as f64 / *of_layers as f64).gpu.decode;
                write!(f, ": with the CPU about {together:.1} tokens/s")
            }
            _ => Ok(()),
        }
    }
}

/// The explanation of a model's device for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The reason.
    pub reason: Reason,
    /// The partial fit, if not everything fits on the GPU.
    pub fit: Option<PartialFit>,
    /// Reason for ignoring `GOLDCREST_CPU`.
    pub ignored_level: Option<CpuLevelError>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        if let Some(fit) = &self.fit {
            write!(f, ". {fit}")?;
        }
        if let Some(error) = &self.ignored_level {
            write!(f, ". {} is ignored: {error}", CpuLevel::VARIABLE)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use engine::KvType;

    use super::*;
    use crate::rates::Rate;

    #[test]
    fn a_reason_is_one_sentence() {
        let rate = |decode| Rate {
            decode,
            prefill: 100.0,
        };
        let rates = Rates {
            gpu: rate(40.0),
            cpu: rate(10.0),
        };
        let slower = Reason::Rejected {
            gpu: "Card".to_owned(),
            why: Rejection::Slower(rates),
        };
        assert_eq!(
            slower.to_string(),
            "Card is not used: it is no faster here: it writes about 40.0 tokens/s, the CPU 10.0"
        );
        // 2 of 5 layers take a quarter of 100 ms · 2/5, the others all of 100 ms · 3/5.
        let explanation = Explanation {
            reason: Reason::GpuFaster(rates),
            fit: Some(PartialFit {
                fit: GpuFit {
                    layers: 2,
                    of_layers: 5,
                    context: Some(4096),
                    kv: Some(KvType::Q8_0),
                },
                rates: Some(rates),
            }),
            ignored_level: None,
        };
        assert_eq!(
            explanation.to_string(),
            "The GPU is faster here: it writes about 40.0 tokens/s, the CPU 10.0. Its memory holds 2 of 5 layers, \
             4,096 tokens of context, chat memory in 8 bits: with the CPU about 14.3 tokens/s"
        );
    }

    #[test]
    fn faults_survive_serialisation() {
        let fault = Fault::Repeated {
            times: 2,
            last: Box::new(Fault::Wrong {
                step: "logits".to_owned(),
                error: 0.5,
            }),
        };
        let json = serde_json::to_string(&fault).expect("plain data");
        assert_eq!(serde_json::from_str::<Fault>(&json).ok(), Some(fault));
    }
}
