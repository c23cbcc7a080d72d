//! The device of a model, and the reason for it.
//!
//! No driver is trusted: a child process lists the GPUs, and before a GPU is first used with a model, another one
//! compares its results with the CPU's and measures both. Verdicts are cached by device, driver and version of the app.
//! On automatic, a GPU is used only if it was measured faster; on any fault the model runs on the CPU, with a
//! [`Reason`].

mod cache;
mod check;
mod crash_marker;
mod excerpt;
mod gpu_info;
mod probe;
mod rates;
mod reason;
mod report;
mod request;
mod verdict;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::{
    CpuLevel, Engine, GpuPlacement, LoadOptions, ModelFile, OnEvent, OpenError, Placement,
    RequestEnd, StepOptions, machine,
};
pub use inference::{DeviceRequest, Opening, UnknownDevice};
use system::child::Child;

use cache::{Disabled, GpuCache, GpuKey};
pub use check::{CheckRequest, GpuCheck, GpuCheckStep, MatrixCheck, check_gpu};
pub use crash_marker::{CrashMarker, CrashMarkers, Work};
pub use gpu_info::Gpu;
use probe::{ProbeError, probe, probe_once};
pub use rates::{Rate, Rates};
pub use reason::{Explanation, Fault, PartialFit, Reason, Rejection};
pub use report::matrices;
pub use request::{VARIABLE, device_from_env};
use verdict::Trial;
pub use verdict::Verdict;

/// Lists the GPUs in this process; their drivers run in it.
pub fn list_gpus(software: bool) -> Vec<Gpu> {
    gpu::list(software).into_iter().map(Gpu::from).collect()
}

/// Opens a model on the device that `request` and the verdicts on the GPUs select. Without `devices` no GPU is used on
/// automatic, and a requested one is used unchecked.
///
/// # Errors
/// Fails if the CPU is out of memory, or the model cannot be read.
pub fn open(
    devices: Option<&Devices>,
    file: &ModelFile,
    request: &DeviceRequest,
    options: &LoadOptions,
    on_progress: &mut dyn FnMut(Opening),
) -> Result<OpenModel, OpenError> {
    let choice = match devices {
        Some(devices) => devices.choose(request, file, options.threads, &mut || {
            on_progress(Opening::Checking);
        }),
        None => Choice::unchecked(request, false),
    };
    load(devices, choice, file, options, on_progress)
}

/// Loads a model on the device of `choice`, or on the CPU if the GPU rejects it.
///
/// # Errors
/// Fails if the CPU is out of memory, or the model cannot be read.
pub fn load(
    devices: Option<&Devices>,
    choice: Choice,
    file: &ModelFile,
    options: &LoadOptions,
    on_progress: &mut dyn FnMut(Opening),
) -> Result<OpenModel, OpenError> {
    let (level, ignored_level) = machine::cpu_level(options.cpu_level, CpuLevel::detect())?;
    let mut load_at = |placement| {
        on_progress(Opening::Loading(0.0));
        let options = LoadOptions {
            placement,
            cpu_level: Some(level),
            ..options.clone()
        };
        Engine::load(file, &options, &mut |done| {
            on_progress(Opening::Loading(done));
        })
    };
    let marker = crash_marker(devices, choice.gpu.as_ref());
    let (engine, reason) = match load_at(choice.placement) {
        Err(OpenError::Gpu(rejection)) => {
            drop(marker);
            tracing::warn!(%rejection, "model not loaded on the GPU; falling back to the CPU");
            if let (Some(devices), Some(gpu)) = (devices, &choice.gpu)
                && rejection.is_fault()
            {
                devices.record_failure(gpu, &rejection.to_string());
            }
            (
                load_at(Placement::Cpu)?,
                Reason::NotLoaded(rejection.to_string()),
            )
        }
        engine => (engine?, choice.reason),
    };
    let device = engine.device();
    let fit = device.fit.clone().map(|fit| PartialFit {
        fit,
        rates: choice.rates,
    });
    if let (Some(devices), Some(gpu)) = (devices, &choice.gpu) {
        let last_load = match &fit {
            Some(fit) => Some(fit.to_string()),
            None => (!device.on_gpu).then(|| reason.to_string()),
        };
        devices.record_load(gpu, file, last_load);
    }
    let gpu = choice.gpu.filter(|_| device.on_gpu);
    let explanation = Explanation {
        reason,
        fit,
        ignored_level,
    };
    tracing::info!(device = device.name, reason = %explanation, "device chosen");
    Ok(OpenModel {
        engine,
        gpu,
        marker: None,
        explanation,
        report: choice.report,
    })
}

/// A loaded model with the reason for its device.
pub struct OpenModel {
    /// The model.
    pub engine: Engine,
    /// The GPU that it runs on, if any.
    gpu: Option<Gpu>,
    /// Crash marker while the engine works on submitted requests; it may have failed to be written.
    marker: Option<Option<CrashMarker>>,
    explanation: Explanation,
    report: Option<String>,
}

impl OpenModel {
    /// Returns the reason for the model's device.
    pub fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// Bug report about a GPU that is rejected as faulty.
    pub fn report(&self) -> Option<&str> {
        self.report.as_deref()
    }

    /// Runs `work`, which generates. On a GPU, a crash marker exists meanwhile, and its success or failure is recorded.
    pub fn run<T>(&mut self, devices: Option<&Devices>, work: impl FnOnce(&mut Engine) -> T) -> T {
        let marker = crash_marker(devices, self.gpu.as_ref());
        let done = work(&mut self.engine);
        drop(marker);
        if let Some(failure) = self.engine.device().failure.clone() {
            self.record_failure(devices, failure);
        } else if let Some((devices, gpu)) = devices.zip(self.gpu.as_ref()) {
            devices.record_answer(gpu);
        }
        done
    }

    /// Runs [`Engine::step`]. On a GPU, a crash marker exists until the submitted requests have ended. Its answers are
    /// recorded, and its failure: then the model is on the CPU.
    pub fn step(
        &mut self,
        devices: Option<&Devices>,
        step: &mut StepOptions<'_>,
        on_event: &mut OnEvent<'_>,
    ) -> Vec<RequestEnd> {
        self.marker
            .get_or_insert_with(|| crash_marker(devices, self.gpu.as_ref()));
        let ended = self.engine.step(step, on_event);
        if !self.engine.is_busy() {
            self.marker = None;
        }
        if let Some(failure) = self.engine.device().failure.clone() {
            self.record_failure(devices, failure);
        } else if let Some((devices, gpu)) = devices.zip(self.gpu.as_ref()) {
            // A request without tokens may have had no pass.
            let is_answer = |(_, end): &&RequestEnd| matches!(end, Ok(it) if it.stats.tokens > 0);
            for _ in ended.iter().filter(is_answer) {
                devices.record_answer(gpu);
            }
        }
        ended
    }

    fn record_failure(&mut self, devices: Option<&Devices>, failure: String) {
        let Some(gpu) = self.gpu.take() else {
            return;
        };
        self.marker = None;
        if let Some(devices) = devices {
            devices.record_failure(&gpu, &failure);
        }
        self.explanation.reason = Reason::Failed(failure);
        self.explanation.fit = None;
        self.report = None;
    }
}

/// Sets a crash marker while a GPU is in use.
fn crash_marker(devices: Option<&Devices>, gpu: Option<&Gpu>) -> Option<CrashMarker> {
    devices?.begin(gpu?)
}

/// The device selected for a model, and the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The device.
    pub placement: Placement,
    /// The GPU, if it is one.
    pub gpu: Option<Gpu>,
    /// The reason.
    pub reason: Reason,
    /// Measured rates of the GPU and the CPU.
    pub rates: Option<Rates>,
    /// Bug report about a GPU that is rejected as faulty.
    pub report: Option<String>,
}

impl Choice {
    fn cpu(reason: Reason) -> Self {
        Self {
            placement: Placement::Cpu,
            gpu: None,
            reason,
            rates: None,
            report: None,
        }
    }

    /// Makes the choice as requested, without a check; with cooperative matrices or without.
    pub fn unchecked(request: &DeviceRequest, matrices: bool) -> Self {
        match request {
            DeviceRequest::Auto => Self::cpu(Reason::NotRequested),
            DeviceRequest::Cpu => Self::cpu(Reason::CpuChosen),
            DeviceRequest::Gpu(id) => Self {
                placement: Placement::Gpu(GpuPlacement {
                    id: id.clone(),
                    software: software_gpu(),
                    matrices,
                    min_layers: 1,
                }),
                ..Self::cpu(Reason::GpuRequested(None))
            },
        }
    }

    /// Makes the choice of a GPU that passed its check, for `reason`.
    fn gpu(verdict: Verdict, reason: Reason, trial: &Trial<'_>) -> Self {
        let check = verdict.check.unwrap_or_default();
        let layers = trial.file.config().shape.layers;
        let rates = check.rates;
        let min_layers = rates
            .filter(|_| trial.automatic)
            .map_or(1, |rates| rates.min_layers(layers));
        Self {
            placement: Placement::Gpu(GpuPlacement {
                id: Some(verdict.gpu.id.clone()),
                software: software_gpu(),
                matrices: check.uses_matrices(),
                min_layers,
            }),
            gpu: Some(verdict.gpu),
            reason,
            rates,
            report: None,
        }
    }
}

/// The environment variable that accepts software Vulkan as a GPU.
pub const SOFTWARE_GPU: &str = "GOLDCREST_ALLOW_SOFTWARE_GPU";

/// Returns whether the environment accepts software Vulkan as a GPU.
pub fn software_gpu() -> bool {
    std::env::var_os(SOFTWARE_GPU).is_some_and(|value| value == "1")
}

/// Size below which models are fast on any CPU, so that a start does not wait for a check.
const SMALL_MODEL: u64 = 64 << 20;

/// Most output of a child process, in bytes.
const OUTPUT_LIMIT: usize = 1 << 20;

/// The GPUs of this machine and the cache of their checks.
pub struct Devices {
    folder: PathBuf,
    markers: CrashMarkers,
    list: Child,
    check: Child,
    /// A small trained model that a check runs with all layers.
    bundled_model: Option<PathBuf>,
    /// On automatic, models with fewer bytes run on the CPU.
    small_model: u64,
    /// True if the last run crashed while a GPU was in use; this process uses none.
    crashed_last_run: bool,
}

impl Devices {
    /// Keeps the cache in `folder` and records the crashes of stale markers. `None` if this program cannot run as a
    /// child.
    pub fn new(
        folder: &Path,
        markers: CrashMarkers,
        bundled_model: Option<PathBuf>,
    ) -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        // The hidden subcommand that lists and checks.
        let leading = vec!["gpu-check".into()];
        let devices = Self::with_program(folder, markers, program, leading);
        Some(Self {
            bundled_model,
            ..devices
        })
    }

    /// Likewise, with another program in place of this one.
    pub fn with_program(
        folder: &Path,
        markers: CrashMarkers,
        program: PathBuf,
        leading: Vec<OsString>,
    ) -> Self {
        let child = |seconds| Child {
            program: program.clone(),
            leading: leading.clone(),
            timeout: Duration::from_secs(seconds),
            output_limit: OUTPUT_LIMIT,
        };
        let mut devices = Self {
            folder: folder.to_owned(),
            markers,
            list: child(10),
            check: child(120),
            bundled_model: None,
            small_model: SMALL_MODEL,
            crashed_last_run: false,
        };
        for key in devices.markers.take_crashes::<GpuKey>(Work::GpuInUse) {
            let mut cache = devices.cache();
            cache.entry(&key).record_crash();
            devices.write(&cache);
            devices.crashed_last_run = true;
        }
        devices
    }

    /// Selects the device for the model of `file`, with this number of CPU threads.
    /// `on_check` is called before a check, which takes seconds.
    pub fn choose(
        &self,
        request: &DeviceRequest,
        file: &ModelFile,
        threads: Option<usize>,
        on_check: &mut dyn FnMut(),
    ) -> Choice {
        let automatic = match request {
            DeviceRequest::Cpu => return Choice::cpu(Reason::CpuChosen),
            DeviceRequest::Auto => true,
            DeviceRequest::Gpu(_) => false,
        };
        if automatic && file.summary().file_bytes < self.small_model {
            return Choice::cpu(Reason::SmallModel);
        }
        if self.crashed_last_run {
            return Choice::cpu(Reason::CrashedLastRun);
        }
        let gpus = match self.list() {
            Ok(gpus) => gpus,
            Err(error) => {
                return Choice {
                    report: Some(error.stderr),
                    ..Choice::cpu(Reason::NotListed(error.fault))
                };
            }
        };
        let trial = Trial::new(file, threads, automatic);
        let mut rejected = None;
        for gpu in gpus.iter().filter(|gpu| gpu.is_allowed_by(request)) {
            let verdict = self.verdict(gpu, &trial, on_check);
            match verdict.result.clone() {
                Ok(reason) => return Choice::gpu(verdict, reason, &trial),
                Err(why) => rejected.get_or_insert(Choice {
                    report: verdict.report,
                    ..Choice::cpu(Reason::Rejected {
                        gpu: gpu.name.clone(),
                        why,
                    })
                }),
            };
        }
        rejected.unwrap_or_else(|| {
            Choice::cpu(match request {
                DeviceRequest::Gpu(Some(id)) => Reason::UnknownGpu(id.clone()),
                _ => Reason::NoGpu,
            })
        })
    }

    /// Returns all GPUs with their verdicts for a model. With `again`, the cache is ignored, and `on_check` is called
    /// before each check.
    ///
    /// # Errors
    /// Fails if the GPUs cannot be listed.
    pub fn verdicts(
        &self,
        file: &ModelFile,
        threads: Option<usize>,
        again: bool,
        on_check: &mut dyn FnMut(),
    ) -> Result<Vec<Verdict>, Fault> {
        let trial = Trial::new(file, threads, true);
        let gpus = self.list().map_err(|error| error.fault)?;
        if again {
            let mut cache = self.cache();
            for gpu in &gpus {
                cache.forget(&GpuKey::of(gpu));
            }
            self.write(&cache);
        }
        let verdicts = gpus.iter().map(|gpu| {
            if again {
                self.verdict(gpu, &trial, on_check)
            } else {
                self.cached_verdict(gpu, &trial)
                    .unwrap_or_else(|| Verdict::rejected(gpu, Rejection::NotChecked))
            }
        });
        Ok(verdicts.collect())
    }

    /// Sets a crash marker for `gpu` until it is dropped.
    pub fn begin(&self, gpu: &Gpu) -> Option<CrashMarker> {
        self.markers.begin(Work::GpuInUse, &GpuKey::of(gpu))
    }

    fn record_failure(&self, gpu: &Gpu, failure: &str) {
        let mut cache = self.cache();
        let fault = Fault::Driver(failure.to_owned());
        cache.entry(&GpuKey::of(gpu)).record_failure(fault);
        self.write(&cache);
    }

    fn record_answer(&self, gpu: &Gpu) {
        let mut cache = self.cache();
        if cache.entry(&GpuKey::of(gpu)).record_answer() {
            self.write(&cache);
        }
    }

    fn record_load(&self, gpu: &Gpu, file: &ModelFile, last_load: Option<String>) {
        let mut cache = self.cache();
        let entry = cache.entry(&GpuKey::of(gpu));
        if entry.record_load(&file.summary().fingerprint, last_load) {
            self.write(&cache);
        }
    }

    fn list(&self) -> Result<Vec<Gpu>, ProbeError> {
        probe(&self.list, &[])
    }

    /// Returns the cached verdict, else the verdict of a check.
    fn verdict(&self, gpu: &Gpu, trial: &Trial<'_>, on_check: &mut dyn FnMut()) -> Verdict {
        if let Some(verdict) = self.cached_verdict(gpu, trial) {
            return verdict;
        }
        tracing::info!(gpu = gpu.name, driver = gpu.driver, "checking a GPU");
        on_check();
        let check = match self.run_check(gpu, trial) {
            Ok(check) => check,
            // Not cached: the user ended it, or it never ran, which is no fault of the GPU.
            Err(ProbeError {
                fault: fault @ (Fault::Interrupted | Fault::NotStarted(_)),
                ..
            }) => return Verdict::rejected(gpu, Rejection::Faulty(fault)),
            Err(error) => {
                let check = GpuCheck {
                    fault: Some(error.fault.clone()),
                    ..GpuCheck::default()
                };
                return self.disable(gpu, check, error.fault, &error.stderr);
            }
        };
        match check.fault.clone() {
            // Not cached: other programs may leave more memory another time.
            Some(fault @ Fault::OutOfMemory(_)) => Verdict::rejected(gpu, Rejection::Faulty(fault)),
            Some(fault) => self.disable(gpu, check, fault, ""),
            None => {
                let mut cache = self.cache();
                let entry = cache.entry(&GpuKey::of(gpu));
                entry.record_check(trial.fingerprint(), &trial.cpu, check.clone());
                self.write(&cache);
                Verdict::measured(gpu, check, trial.automatic)
            }
        }
    }

    /// Checks a GPU in a child process. If that crashes or hangs, cooperative matrices, the least tested part of drivers,
    /// may be the cause, and the check is repeated without them.
    fn run_check(&self, gpu: &Gpu, trial: &Trial<'_>) -> Result<GpuCheck, ProbeError> {
        let mut arguments = self.check_arguments(gpu, trial);
        probe(&self.check, &arguments).or_else(|error| {
            if !error.blames_the_driver() {
                return Err(error);
            }
            arguments.push("--without-matrices".into());
            let check = probe_once::<GpuCheck>(&self.check, &arguments, None);
            let check = check.map_err(|_| error.clone())?;
            let matrices = MatrixCheck {
                fault: Some(error.fault),
                speedup: None,
            };
            Ok(GpuCheck {
                matrices: Some(matrices),
                ..check
            })
        })
    }

    fn check_arguments(&self, gpu: &Gpu, trial: &Trial<'_>) -> Vec<OsString> {
        let mut arguments = vec!["--device".into(), gpu.id.clone().into()];
        if let Some(path) = trial.file.path() {
            arguments.extend(["--model".into(), path.into()]);
        }
        if let Some(bundled_model) = &self.bundled_model {
            arguments.extend(["--bundled-model".into(), bundled_model.into()]);
        }
        if let Some(threads) = trial.threads {
            arguments.extend(["--threads".into(), threads.to_string().into()]);
        }
        arguments
    }

    fn cached_verdict(&self, gpu: &Gpu, trial: &Trial<'_>) -> Option<Verdict> {
        if let Some(why) = &gpu.refused {
            return Some(Verdict::rejected(gpu, Rejection::Refused(why.clone())));
        }
        let cache = self.cache();
        let record = cache.of(&GpuKey::of(gpu))?;
        if let Some(Disabled { fault, report }) = &record.disabled {
            return Some(Verdict {
                report: Some(report.clone()),
                ..Verdict::rejected(gpu, Rejection::Faulty(fault.clone()))
            });
        }
        let model = record.model(trial.fingerprint(), &trial.cpu)?;
        Some(Verdict {
            last_load: model.last_load.clone(),
            ..Verdict::measured(gpu, model.check.clone(), trial.automatic)
        })
    }

    fn disable(&self, gpu: &Gpu, check: GpuCheck, fault: Fault, stderr: &str) -> Verdict {
        let report = report::report(gpu, &check, stderr);
        tracing::warn!(gpu = gpu.name, driver = gpu.driver, %fault, "GPU disabled");
        let mut cache = self.cache();
        cache.entry(&GpuKey::of(gpu)).disabled = Some(Disabled {
            fault: fault.clone(),
            report: report.clone(),
        });
        self.write(&cache);
        Verdict {
            report: Some(report),
            check: Some(check),
            ..Verdict::rejected(gpu, Rejection::Faulty(fault))
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("gpu.json")
    }

    fn cache(&self) -> GpuCache {
        GpuCache::read(&self.file())
    }

    fn write(&self, cache: &GpuCache) {
        if let Err(error) = cache.write(&self.file()) {
            tracing::warn!(%error, "could not write the GPU check cache");
        }
    }
}
