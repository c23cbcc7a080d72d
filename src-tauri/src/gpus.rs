//! Which GPU may be used, and whether it is worth it.
//!
//! Nothing is taken on trust: a child process lists the devices, and before one is first used with a model another
//! checks what it computes and measures it against the CPU. What they found is remembered by device, driver and app.

mod child;
mod known;
#[cfg(test)]
mod tests;
mod verdict;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chat::Opening;
use engine::{
    CpuLevel, DeviceKind, DeviceRequest, Engine, GpuCheck, LoadOptions, MatrixCheck, OpenError,
    Rates,
};
use serde::{Deserialize, Serialize};

use crate::child::Child;
use crate::crash_marker::{CrashMarker, CrashMarkers, Work};
use crate::demo_model;
use child::{NoAnswer, ask, ask_once};
use known::{Key, Knowledge, Off};
use verdict::report;
pub use verdict::{Verdict, matrices};

/// A GPU as a driver shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    pub name: String,
    /// What `--device gpu:ID` names it by: its UUID, where the driver gives one.
    pub id: String,
    /// Its place on the bus, which names it, too.
    #[serde(default)]
    pub bus: String,
    pub driver: String,
    /// `Vulkan` or `Metal`.
    pub api: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: String,
    /// Why it is never used.
    pub refused: Option<String>,
}

impl From<engine::GpuInfo> for Gpu {
    fn from(info: engine::GpuInfo) -> Self {
        Self {
            name: info.name,
            id: info.id,
            bus: info.bus,
            driver: info.driver,
            api: info.api.to_owned(),
            kind: info.kind.name().to_owned(),
            refused: info.refused,
        }
    }
}

impl Gpu {
    fn is_called(&self, name: &str) -> bool {
        self.id == name || (!self.bus.is_empty() && self.bus == name)
    }
}

/// Where a model is to run, and why there.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub device: DeviceRequest,
    /// The GPU that it is.
    pub gpu: Option<Gpu>,
    /// Words for people; none where the engine knows best.
    pub because: Option<String>,
    /// What was measured of it and the CPU, where it must be worth it.
    pub rates: Option<Rates>,
    /// Whether its cooperative matrices are good.
    pub matrices: bool,
    /// What is known of a GPU that is not used because it does not work.
    pub report: Option<String>,
}

impl Decision {
    /// As asked for.
    fn plain(device: DeviceRequest) -> Self {
        Self {
            device,
            gpu: None,
            because: None,
            rates: None,
            matrices: false,
            report: None,
        }
    }

    /// No GPU.
    fn cpu(because: String) -> Self {
        Self {
            because: Some(because),
            ..Self::plain(DeviceRequest::Auto)
        }
    }
}

/// Models smaller than this are fast anywhere: a start does not wait for a check.
const SMALL: u64 = 64 << 20;

/// Bytes that a list or a check may have.
const OUTPUT_LIMIT: usize = 1 << 20;

/// The GPUs of this machine.
pub struct Gpus {
    folder: PathBuf,
    markers: CrashMarkers,
    list: Child,
    check: Child,
    /// Models of fewer bytes run on the CPU without a question.
    small: u64,
    /// Why no GPU is used while this process lives.
    distrust: Option<String>,
}

impl Gpus {
    /// Looks, too, whether a process has died over a GPU.
    pub fn new(folder: &Path, markers: CrashMarkers) -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        // The hidden subcommand that answers.
        let leading = vec!["gpu-check".into()];
        Some(Self::asking(folder, markers, program, leading))
    }

    fn asking(
        folder: &Path,
        markers: CrashMarkers,
        program: PathBuf,
        leading: Vec<OsString>,
    ) -> Self {
        let child = |seconds| Child {
            program: program.clone(),
            leading: leading.clone(),
            startup: None,
            timeout: Duration::from_secs(seconds),
            output_limit: OUTPUT_LIMIT,
        };
        let mut gpus = Self {
            folder: folder.to_owned(),
            markers,
            list: child(10),
            check: child(120),
            small: SMALL,
            distrust: None,
        };
        for key in gpus.markers.take_crashes::<Key>(Work::GpuInUse) {
            let mut knowledge = gpus.knowledge();
            knowledge.entry(&key).crashed();
            gpus.remember(&knowledge);
            gpus.distrust = Some(
                "The CPU is used this time: the last time, Goldcrest ended while a GPU answered"
                    .to_owned(),
            );
        }
        gpus
    }

    /// Where `model` is to run when `asked` is asked for and the CPU has so many threads.
    ///
    /// A check, which takes a while, is told of before it begins.
    pub fn decide(
        &self,
        asked: DeviceRequest,
        model: &Path,
        threads: Option<usize>,
        on_check: &mut dyn FnMut(),
    ) -> Decision {
        let automatic = match &asked {
            DeviceRequest::Auto => true,
            DeviceRequest::Gpu(_) => false,
            DeviceRequest::Cpu => return Decision::plain(asked),
        };
        if automatic && std::fs::metadata(model).is_ok_and(|file| file.len() < self.small) {
            return Decision::cpu(
                "Runs on the CPU, which is fast enough for a model this small".into(),
            );
        }
        if let Some(distrust) = &self.distrust {
            return Decision::cpu(distrust.clone());
        }
        let gpus = match self.list() {
            Ok(gpus) => gpus,
            Err(no_answer) => {
                return Decision {
                    report: Some(no_answer.complaints),
                    ..Decision::cpu(format!("No GPU: looking for one, {}", no_answer.reason))
                };
            }
        };
        let wanted = |gpu: &&Gpu| match &asked {
            DeviceRequest::Gpu(Some(id)) => gpu.is_called(id),
            _ => true,
        };
        let wanted: Vec<&Gpu> = gpus.iter().filter(wanted).collect();
        if wanted.iter().all(|gpu| gpu.refused.is_some()) {
            return Decision::cpu(match (wanted.first(), asked) {
                (Some(gpu), _) => {
                    let reason = gpu.refused.as_deref().unwrap_or_default();
                    format!("No GPU: {}, {reason}", gpu.name)
                }
                (None, DeviceRequest::Gpu(Some(id))) => format!("No GPU is called {id}"),
                (None, _) => "No GPU: no Vulkan or Metal driver shows one".into(),
            });
        }
        // The engine says what is wrong with a file that is no model.
        let Some(trial) = Trial::new(model, threads, automatic) else {
            return Decision::plain(DeviceRequest::Cpu);
        };
        let mut because = None;
        for gpu in wanted {
            let verdict = self.judge(gpu, &trial, on_check);
            if verdict.usable {
                return Decision {
                    device: DeviceRequest::Gpu(Some(gpu.id.clone())),
                    gpu: Some(gpu.clone()),
                    because: Some(verdict.reason),
                    matrices: verdict.check.as_ref().is_some_and(GpuCheck::uses_matrices),
                    rates: verdict.check.filter(|_| automatic).and_then(|it| it.rates),
                    report: None,
                };
            }
            because.get_or_insert(Decision {
                report: verdict.report,
                ..Decision::cpu(format!("The CPU is used: {}, {}", gpu.name, verdict.reason))
            });
        }
        because.unwrap_or_else(|| Decision::plain(DeviceRequest::Cpu))
    }

    /// All devices, with what is known of them and this model. With `anew`, what was known is found out again, and each
    /// check is told of before it begins.
    pub fn verdicts(
        &self,
        model: &Path,
        threads: Option<usize>,
        anew: bool,
        on_check: &mut dyn FnMut(),
    ) -> Result<Vec<Verdict>, String> {
        let trial = Trial::new(model, threads, true).ok_or("the model cannot be opened")?;
        let gpus = self.list().map_err(|no_answer| no_answer.reason)?;
        if anew {
            let mut knowledge = self.knowledge();
            for gpu in &gpus {
                knowledge.forget(&Key::of(gpu));
            }
            self.remember(&knowledge);
        }
        let verdicts = gpus.iter().map(|gpu| {
            if anew {
                self.judge(gpu, &trial, on_check)
            } else {
                self.recall(gpu, &trial)
                    .unwrap_or_else(|| Verdict::of(gpu, false, "it has not been checked yet"))
            }
        });
        Ok(verdicts.collect())
    }

    /// Marks that `gpu` is at work until the mark is dropped.
    pub fn begin(&self, gpu: &Gpu) -> Option<CrashMarker> {
        self.markers.begin(Work::GpuInUse, &Key::of(gpu))
    }

    /// A GPU has failed while it answered.
    pub fn failed(&self, gpu: &Gpu, reason: &str) {
        let mut knowledge = self.knowledge();
        knowledge.entry(&Key::of(gpu)).failed(reason);
        self.remember(&knowledge);
    }

    /// A GPU has answered well.
    fn answered(&self, gpu: &Gpu) {
        let mut knowledge = self.knowledge();
        if knowledge.entry(&Key::of(gpu)).answered() {
            self.remember(&knowledge);
        }
    }

    /// Notes how far a model went on a GPU that had been found good.
    fn loaded(&self, gpu: &Gpu, engine: &Engine) {
        let device = engine.device();
        if device.gpu_failed {
            self.failed(gpu, &device.reason);
            return;
        }
        let words = match device.kind {
            DeviceKind::Gpu => device.without.clone(),
            _ => Some(device.reason.clone()),
        };
        let mut knowledge = self.knowledge();
        let entry = knowledge.entry(&Key::of(gpu));
        if entry.loaded(&engine.summary().fingerprint, words) {
            self.remember(&knowledge);
        }
    }

    fn list(&self) -> Result<Vec<Gpu>, NoAnswer> {
        ask(&self.list, &[])
    }

    fn judge(&self, gpu: &Gpu, trial: &Trial<'_>, on_check: &mut dyn FnMut()) -> Verdict {
        if let Some(verdict) = self.recall(gpu, trial) {
            return verdict;
        }
        tracing::info!(gpu = gpu.name, driver = gpu.driver, "checking a GPU");
        on_check();
        let check = match self.ask(gpu, trial) {
            Ok(check) if check.full => {
                // Others may leave more memory another time.
                return Verdict::of(gpu, false, &check.fault.unwrap_or_default());
            }
            Ok(check) => check,
            Err(no_answer) => {
                let check = GpuCheck {
                    fault: Some(no_answer.reason),
                    ..GpuCheck::default()
                };
                return self.put_off(gpu, &check, &no_answer.complaints);
            }
        };
        if check.fault.is_some() {
            return self.put_off(gpu, &check, "");
        }
        let mut knowledge = self.knowledge();
        let entry = knowledge.entry(&Key::of(gpu));
        entry.learn(&trial.fingerprint, &trial.cpu, check.clone());
        self.remember(&knowledge);
        Verdict::measured(gpu, check, trial.automatic)
    }

    /// Has a GPU checked. Where that crashes or hangs, cooperative matrices, which drivers know least, may be why.
    fn ask(&self, gpu: &Gpu, trial: &Trial<'_>) -> Result<GpuCheck, NoAnswer> {
        let mut arguments = trial.arguments(gpu);
        ask(&self.check, &arguments).or_else(|no_answer| {
            if !no_answer.blames_the_driver() {
                return Err(no_answer);
            }
            arguments.push("--without-matrices".into());
            let check = ask_once::<GpuCheck>(&self.check, &arguments, None);
            let check = check.map_err(|_| no_answer.clone())?;
            let matrices = MatrixCheck {
                fault: Some(no_answer.reason),
                speedup: None,
            };
            Ok(GpuCheck {
                matrices: Some(matrices),
                ..check
            })
        })
    }

    /// What is known already.
    fn recall(&self, gpu: &Gpu, trial: &Trial<'_>) -> Option<Verdict> {
        if let Some(reason) = &gpu.refused {
            return Some(Verdict::of(gpu, false, reason));
        }
        let knowledge = self.knowledge();
        let known = knowledge.of(&Key::of(gpu))?;
        if let Some(off) = &known.off {
            return Some(Verdict {
                report: Some(off.report.clone()),
                ..Verdict::of(gpu, false, &off.reason)
            });
        }
        let model = known.model(&trial.fingerprint, &trial.cpu)?;
        Some(Verdict {
            without: model.without.clone(),
            ..Verdict::measured(gpu, model.check.clone(), trial.automatic)
        })
    }

    fn put_off(&self, gpu: &Gpu, check: &GpuCheck, complaints: &str) -> Verdict {
        let reason = check.fault.clone().unwrap_or_default();
        let report = report(gpu, check, complaints);
        tracing::warn!(
            gpu = gpu.name,
            driver = gpu.driver,
            reason,
            "a GPU is not used"
        );
        let mut knowledge = self.knowledge();
        knowledge.entry(&Key::of(gpu)).off = Some(Off {
            reason: reason.clone(),
            report: report.clone(),
        });
        self.remember(&knowledge);
        Verdict {
            report: Some(report),
            check: Some(check.clone()),
            ..Verdict::of(gpu, false, &reason)
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("gpu.json")
    }

    fn knowledge(&self) -> Knowledge {
        Knowledge::read(&self.file())
    }

    fn remember(&self, knowledge: &Knowledge) {
        if let Err(error) = knowledge.write(&self.file()) {
            tracing::warn!(%error, "what was found out about GPUs is not kept");
        }
    }
}

/// A model where it was decided that it runs.
pub struct Opened {
    pub engine: Engine,
    /// The GPU that it is on.
    pub gpu: Option<Gpu>,
    /// What is known of a GPU that is not used because it does not work.
    pub report: Option<String>,
}

/// Opens a model on what `options` ask for, as far as is known to be good.
pub fn open(
    gpus: Option<&Gpus>,
    file: &Path,
    mut options: LoadOptions,
    on_progress: &mut dyn FnMut(Opening),
) -> Result<Opened, OpenError> {
    let (mut gpu, mut report) = (None, None);
    if let Some(gpus) = gpus {
        let on_check = &mut || on_progress(Opening::Checking);
        let decision = gpus.decide(options.device, file, options.threads, on_check);
        (options.device, options.because) = (decision.device, decision.because);
        options.rates = decision.rates;
        options.gpu_matrices = decision.matrices;
        (gpu, report) = (decision.gpu, decision.report);
    }
    on_progress(Opening::Loading(0.0));
    let mark = in_use(gpus, gpu.as_ref());
    let engine = Engine::open(file, &options, &mut |done| {
        on_progress(Opening::Loading(done));
    })?;
    drop(mark);
    if let (Some(gpus), Some(gpu)) = (gpus, &gpu) {
        gpus.loaded(gpu, &engine);
    }
    Ok(Opened {
        gpu: gpu.filter(|_| engine.device().kind == DeviceKind::Gpu),
        engine,
        report,
    })
}

/// Marks that a GPU is at work, if one is.
fn in_use(gpus: Option<&Gpus>, gpu: Option<&Gpu>) -> Option<CrashMarker> {
    gpus?.begin(gpu?)
}

/// Lets a model work. While it is on a GPU there is a mark that tells of a death; and where it has left the GPU, which
/// has failed, that is noted, and there is no `gpu` any more.
pub fn watched<T>(
    gpus: Option<&Gpus>,
    gpu: &mut Option<Gpu>,
    engine: &mut Engine,
    work: impl FnOnce(&mut Engine) -> T,
) -> T {
    let mark = in_use(gpus, gpu.as_ref());
    let done = work(engine);
    drop(mark);
    let device = engine.device();
    match (gpus, gpu.as_ref()) {
        (Some(gpus), Some(at_work)) if device.kind == DeviceKind::Gpu => gpus.answered(at_work),
        (Some(gpus), Some(left)) => {
            gpus.failed(left, &device.reason);
            *gpu = None;
        }
        _ => {}
    }
    done
}

/// A model that GPUs are tried with, and the CPU that they have to beat.
struct Trial<'a> {
    model: &'a Path,
    fingerprint: String,
    threads: Option<usize>,
    cpu: String,
    /// Whether a GPU must be worth it.
    automatic: bool,
}

impl<'a> Trial<'a> {
    /// None where the file is no model.
    fn new(model: &'a Path, threads: Option<usize>, automatic: bool) -> Option<Self> {
        let level = CpuLevel::detect().map_or("unknown", CpuLevel::keyword);
        Some(Self {
            model,
            fingerprint: Engine::check(model).ok()?.fingerprint,
            threads,
            cpu: match threads {
                Some(threads) => format!("{level}, {threads} threads"),
                None => level.to_owned(),
            },
            automatic,
        })
    }

    fn arguments(&self, gpu: &Gpu) -> Vec<OsString> {
        let mut arguments = vec!["--device".into(), gpu.id.clone().into()];
        arguments.extend(["--model".into(), self.model.into()]);
        if let Some(demo_model) = demo_model::file() {
            arguments.extend(["--demo-model".into(), demo_model.into()]);
        }
        if let Some(threads) = self.threads {
            arguments.extend(["--threads".into(), threads.to_string().into()]);
        }
        arguments
    }
}
