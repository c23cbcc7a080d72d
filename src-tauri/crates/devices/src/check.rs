//! Correctness and speed of a GPU with a model.
//!
//! Drivers that compute wrong results, crash or hang are common, so this runs in a child process before a device is first
//! used. It runs an excerpt of the user's model: its shapes and formats, in a few layers.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use engine::gguf::Gguf;
use engine::machine;
use engine::model::config::Config;
use engine::model::error::DeviceError;
use engine::model::evaluate::Evaluate;
use engine::model::forward::{CpuModel, cpu_chunk};
use engine::model::gpu::{GPU_CHUNK, GpuModel};
use engine::model::weights::{self, WeightSource};
use engine::run::answer::rate;
use engine::run::random::Random;
use engine::run::sampler::Sampler;
use engine::run::sequence::Sequence;
use engine::run::session::Session;
use engine::{CpuLevel, OpenError};
use gpu::{Allowed, Executor, GpuError, KernelVariant, ProductCheck};
use inference::{KvType, Sampling};
use kernels::Cpu;
use serde::{Deserialize, Serialize};

use crate::excerpt::Excerpt;
use crate::rates::{Rate, Rates};
use crate::reason::Fault;

/// Parameters of a check.
#[derive(Clone, Debug)]
pub struct CheckRequest {
    /// The device, as [`DeviceRequest::Gpu`](inference::DeviceRequest::Gpu) names it.
    pub device: Option<String>,
    /// The model that the device runs.
    pub model: PathBuf,
    /// A small trained model, run with all layers.
    pub bundled_model: Option<PathBuf>,
    /// CPU threads of the comparison; `None` for one per physical core.
    pub threads: Option<usize>,
    /// True if software Vulkan counts as a GPU.
    pub software: bool,
    /// True if cooperative matrices may be tried.
    pub matrices: bool,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuCheck {
    /// Comparisons, in their order.
    pub steps: Vec<GpuCheckStep>,
    /// The fault that ended the check.
    pub fault: Option<Fault>,
    /// Result for cooperative matrices; `None` if it has none, or they were not tried.
    #[serde(default)]
    pub matrices: Option<MatrixCheck>,
    /// Rates of GPU and CPU; `None` after a fault.
    pub rates: Option<Rates>,
}

/// Result of the check of cooperative matrices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MatrixCheck {
    /// Their fault.
    pub fault: Option<Fault>,
    /// Speedup of products over many tokens.
    pub speedup: Option<f64>,
}

impl GpuCheck {
    /// Returns whether cooperative matrices are correct and faster.
    pub fn uses_matrices(&self) -> bool {
        let worth_it = |it: &MatrixCheck| it.fault.is_none() && it.speedup.is_some_and(|x| x > 1.0);
        self.matrices.as_ref().is_some_and(worth_it)
    }
}

/// A result that both devices computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuCheckStep {
    /// Its name.
    pub what: String,
    /// The relative error; `None` if the GPU produced NaN.
    pub error: Option<f64>,
    /// The largest error that rounding explains.
    pub bound: f64,
}

impl GpuCheckStep {
    fn passed(&self) -> bool {
        self.error.is_some_and(|error| error <= self.bound)
    }
}

/// Checks and measures a GPU.
///
/// # Errors
/// Fails if the model cannot be read. A fault of the device is reported in the [`GpuCheck`].
pub fn check_gpu(request: &CheckRequest) -> Result<GpuCheck, OpenError> {
    let software = request.software;
    check_opened(request, &|matrices| {
        gpu::Wgpu::open(request.device.as_deref(), Allowed { software, matrices })
    })
}

/// Checks the device that `open` returns, with cooperative matrices or without, and once more without them if they are
/// faulty.
fn check_opened<E>(
    request: &CheckRequest,
    open: &dyn Fn(bool) -> Result<E, GpuError>,
) -> Result<GpuCheck, OpenError>
where
    E: Executor + Clone + 'static,
{
    let check_once = |matrices| match open(matrices) {
        Ok(exec) => check(exec, request),
        Err(failure) => Ok(GpuCheck {
            fault: Some(fault(failure)),
            // A driver may reject a feature that it reports.
            matrices: matrices.then(MatrixCheck::default),
            ..GpuCheck::default()
        }),
    };
    let found = check_once(request.matrices)?;
    if found.matrices.is_none() || !found.fault.as_ref().is_some_and(is_fault_of_device) {
        return Ok(found);
    }
    let without = check_once(false)?;
    let matrices = MatrixCheck {
        fault: found.fault,
        speedup: None,
    };
    Ok(GpuCheck {
        matrices: Some(matrices),
        ..without
    })
}

fn check<E>(exec: E, request: &CheckRequest) -> Result<GpuCheck, OpenError>
where
    E: Executor + Clone + 'static,
{
    let mut checking = GpuChecker {
        exec,
        threads: machine::threads(request.threads),
        level: machine::cpu_level(None, CpuLevel::detect())?.0,
        found: GpuCheck::default(),
    };
    match checking.run(request) {
        Ok(()) => {}
        Err(CheckError::Model(error)) => return Err(error),
        Err(CheckError::Device(fault)) => {
            checking.found.fault = Some(fault);
            checking.found.rates = None;
        }
    }
    Ok(checking.found)
}

fn fault(failure: GpuError) -> Fault {
    let message = failure.to_string();
    match failure {
        GpuError::OutOfMemory(_) => Fault::OutOfMemory(message),
        _ => Fault::Driver(message),
    }
}

/// Returns whether the fault is the device's, not the memory's.
pub fn is_fault_of_device(fault: &Fault) -> bool {
    !matches!(fault, Fault::OutOfMemory(_))
}

/// Reasons for ending a check early.
enum CheckError {
    Model(OpenError),
    Device(Fault),
}

impl From<GpuError> for CheckError {
    fn from(failure: GpuError) -> Self {
        CheckError::Device(fault(failure))
    }
}

impl From<DeviceError> for CheckError {
    fn from(error: DeviceError) -> Self {
        let message = error.to_string();
        CheckError::Device(match error {
            DeviceError::OutOfMemory(_) => Fault::OutOfMemory(message),
            _ => Fault::Driver(message),
        })
    }
}

struct GpuChecker<E> {
    exec: E,
    threads: usize,
    level: CpuLevel,
    found: GpuCheck,
}

/// Bound on the relative error of activations in 8 bits, against f32.
const PRODUCT_BOUND: f64 = 0.03;
const LOGITS_BOUND: f64 = 0.08;
/// Token counts with kernels of their own: one, a few, many.
const TOKEN_COUNTS: [usize; 3] = [1, 5, 70];
/// Tokens of the prefill: more than a decoding batch, and a multiple of no tile size.
const PREFILL_TOKENS: usize = 301;
/// Tokens of a timed product: as many as most prompts have, so that the whole device is occupied.
const PRODUCT_TOKENS: usize = 512;
/// Tokens whose decoding is timed.
const DECODE_TOKENS: usize = 24;

impl<E> GpuChecker<E>
where
    E: Executor + Clone + 'static,
{
    fn run(&mut self, request: &CheckRequest) -> Result<(), CheckError> {
        let gguf = Gguf::open(&request.model).map_err(|error| CheckError::Model(error.into()))?;
        let config = Config::from_gguf(&gguf).map_err(|error| CheckError::Model(error.into()))?;
        weights::check(&gguf, &config).map_err(|error| CheckError::Model(error.into()))?;
        self.products(&gguf, &config)?;
        let excerpt = Excerpt::new(&gguf, &config);
        let name = format!("{} layers", excerpt.config().shape.layers);
        let (gpu, cpu) = self.compare_backends(&name, &excerpt, excerpt.config(), KvType::F16)?;
        if let Some(bundled_model) = &request.bundled_model
            && let Ok(gguf) = Gguf::open(bundled_model)
            && let Ok(config) = Config::from_gguf(&gguf)
        {
            for kv in [KvType::F16, KvType::Q8_0] {
                let name = format!("the bundled model, cache in {}", kv.name());
                self.compare_backends(&name, &gguf, &config, kv)?;
            }
        }
        let whole = weights::bytes_per_token(&gguf, &config) as f64;
        let part = weights::bytes_per_token(&excerpt, excerpt.config()) as f64;
        let blocks = excerpt.config().shape.layers as f64 / config.shape.layers as f64;
        let [gpu, cpu] = [gpu, cpu].map(|rate| Rate {
            prefill: rate.prefill * blocks,
            decode: rate.decode * part / whole,
        });
        self.found.rates = Some(Rates { gpu, cpu });
        Ok(())
    }

    /// Checks every product of the model, one per type and shape.
    fn products(&mut self, source: &dyn WeightSource, config: &Config) -> Result<(), CheckError> {
        let has_matrices = self.exec.limits().matrices.is_some();
        let (mut without, mut with) = (0.0, 0.0);
        let mut kinds = Vec::new();
        let head = weights::head_name(source);
        let names = weights::required_tensors(config)
            .into_iter()
            .map(|it| it.name);
        for name in names.chain([head.to_owned()]) {
            let is_head = name == head;
            let Some((ty, rows, cols)) = source.shape(&name) else {
                continue;
            };
            if rows == 1
                || (!is_head && rows == config.shape.vocab)
                || kinds.contains(&(ty, rows, cols))
            {
                continue;
            }
            kinds.push((ty, rows, cols));
            let Some(tensor) = source.tensor(&name) else {
                continue;
            };
            let product = ProductCheck {
                ty,
                rows,
                cols,
                stored: tensor.stored(),
            };
            for tokens in TOKEN_COUNTS {
                // Logits of many tokens are never computed.
                if is_head && tokens == TOKEN_COUNTS[2] {
                    continue;
                }
                let error =
                    product.relative_error(&mut self.exec, kernel_variant(tokens, false))?;
                let what = format!("{} {rows} × {cols}, {tokens} tokens", ty.name());
                self.record(what.clone(), error, PRODUCT_BOUND)?;
                if has_matrices && tokens == TOKEN_COUNTS[2] {
                    // From here on, cooperative matrices may be the cause of a fault.
                    self.found.matrices.get_or_insert_default();
                    let error =
                        product.relative_error(&mut self.exec, kernel_variant(tokens, true))?;
                    self.record(format!("{what} in matrices"), error, PRODUCT_BOUND)?;
                }
            }
            if has_matrices && !is_head {
                without +=
                    product.seconds(&mut self.exec, kernel_variant(PRODUCT_TOKENS, false))?;
                with += product.seconds(&mut self.exec, kernel_variant(PRODUCT_TOKENS, true))?;
            }
        }
        if let Some(matrices) = &mut self.found.matrices {
            matrices.speedup = Some(without / with);
        }
        Ok(())
    }

    /// Loads a model on both devices and compares their logits of the same tokens, the CPU's in f32, so that all rounding
    /// is the GPU's; then measures both, the CPU at its best level.
    fn compare_backends(
        &mut self,
        name: &str,
        source: &dyn WeightSource,
        config: &Config,
        kv: KvType,
    ) -> Result<(Rate, Rate), CheckError> {
        let options = gpu::Options {
            kv,
            floats: false,
            matrices: self.found.uses_matrices(),
        };
        let exec = self.exec.clone();
        let gpu = GpuModel::load(exec, config, source, options, GPU_CHUNK, &mut |_| {});
        let gpu = gpu.map_err(|error| {
            let message = error.to_string();
            CheckError::Device(match error.is_out_of_memory() {
                true => Fault::OutOfMemory(message),
                false => Fault::Driver(message),
            })
        })?;
        let on = |cpu: Cpu| {
            let chunk = cpu_chunk(config, cpu.level());
            let model = CpuModel::load(config, cpu, source, kv, chunk, &mut |_| {});
            Ok::<_, CheckError>(CheckedModel::new(model.map_err(CheckError::Model)?))
        };
        let mut gpu = CheckedModel::new(gpu);
        let ids = arbitrary(PREFILL_TOKENS + 8, config.shape.vocab);
        self.compare_logits(name, &mut gpu, &mut on(Cpu::exact(self.threads))?, &ids)?;
        let mut cpu = on(Cpu::new(self.threads, self.level))?;
        Ok((measure(&mut gpu, &ids)?, measure(&mut cpu, &ids)?))
    }

    fn compare_logits(
        &mut self,
        name: &str,
        gpu: &mut CheckedModel,
        cpu: &mut CheckedModel,
        ids: &[u32],
    ) -> Result<(), CheckError> {
        let (read, more) = ids.split_at(PREFILL_TOKENS);
        for &id in &read[..5] {
            for model in [&mut *gpu, &mut *cpu] {
                model.step(&[id])?;
            }
            self.record(
                format!("{name}, one token"),
                relative_error(gpu.logits(0), cpu.logits(0)),
                LOGITS_BOUND,
            )?;
        }
        for model in [&mut *gpu, &mut *cpu] {
            model.read(read)?;
        }
        self.record(
            format!("{name}, {PREFILL_TOKENS} tokens"),
            relative_error(gpu.logits(0), cpu.logits(0)),
            LOGITS_BOUND,
        )?;
        for model in [&mut *gpu, &mut *cpu] {
            model.step(more)?;
        }
        for row in 0..more.len() {
            self.record(
                format!("{name}, a few more"),
                relative_error(gpu.logits(row), cpu.logits(row)),
                LOGITS_BOUND,
            )?;
        }
        self.check_sampler(name, gpu, cpu, more[0])
    }

    /// Compares the tokens that the device samples with the likeliest ones of the CPU.
    fn check_sampler(
        &mut self,
        name: &str,
        gpu: &mut CheckedModel,
        cpu: &mut CheckedModel,
        first: u32,
    ) -> Result<(), CheckError> {
        // Half of all tokens are suppressed, so that the likeliest one sometimes is.
        let half = cpu.logits(0).len() / 2;
        let suppressed: Vec<u32> = (0..).step_by(2).take(half).collect();
        let mut sampler = Sampler::new(greedy(), 1).with_suppressed(&suppressed);
        if !gpu.samples_on_device(&sampler)? {
            return Ok(());
        }
        let mut id = first;
        for left in (0..5).rev() {
            let next = gpu.step_on_device(id, &mut sampler, left > 0)?;
            cpu.step(&[id])?;
            let logits = cpu.logits(0);
            let scale = rms(logits);
            for &id in &suppressed {
                logits[id as usize] = f32::NEG_INFINITY;
            }
            let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let short = f64::from(best - logits[next as usize]) / scale;
            self.record(format!("{name}, sampled"), short, LOGITS_BOUND)?;
            id = next;
        }
        Ok(())
    }

    /// Records a step; of consecutive steps with the same name, the largest error.
    fn record(&mut self, what: String, error: f64, bound: f64) -> Result<(), CheckError> {
        let error = error.is_finite().then_some(error);
        let step = GpuCheckStep { what, error, bound };
        let wrong = (!step.passed()).then(|| {
            let what = step.what.clone();
            match step.error {
                Some(error) => Fault::Wrong { step: what, error },
                None => Fault::Nan { step: what },
            }
        });
        match self.found.steps.last_mut() {
            Some(last) if last.what == step.what => {
                if wrong.is_some() || step.error > last.error {
                    *last = step;
                }
            }
            _ => self.found.steps.push(step),
        }
        wrong.map_or(Ok(()), |fault| Err(CheckError::Device(fault)))
    }
}

fn kernel_variant(tokens: usize, matrices: bool) -> KernelVariant {
    KernelVariant {
        tokens,
        floats: false,
        matrices,
    }
}

fn greedy() -> Sampling {
    Sampling {
        temperature: 0.0,
        ..Sampling::default()
    }
}

fn arbitrary(count: usize, vocab: usize) -> Vec<u32> {
    let mut random = Random::new(1);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "vocabularies are counted in u32"
    )]
    (0..count)
        .map(|_| (random.bits() % vocab as u64) as u32)
        .collect()
}

/// Root mean square.
fn rms(values: &[f32]) -> f64 {
    let squares = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>();
    (squares / values.len() as f64).sqrt()
}

/// RMS of the difference over the RMS of `expected`.
fn relative_error(actual: &[f32], expected: &[f32]) -> f64 {
    let difference: Vec<f32> = actual.iter().zip(expected).map(|(a, b)| a - b).collect();
    rms(&difference) / rms(expected)
}

/// A loaded model with a sequence, under check.
struct CheckedModel {
    session: Session,
    sequence: Sequence,
}

impl CheckedModel {
    fn new(model: impl Evaluate + 'static) -> CheckedModel {
        CheckedModel {
            session: Session::new(Box::new(model)),
            sequence: Sequence::default(),
        }
    }

    /// Reads a prompt into an empty sequence.
    fn read(&mut self, ids: &[u32]) -> Result<(), DeviceError> {
        let (sequence, never) = (&mut self.sequence, AtomicBool::new(false));
        sequence.truncate(0);
        let _complete = self.session.prefill(sequence, ids, &never, &mut |_| {})?;
        Ok(())
    }

    /// Evaluates tokens in one pass. There are logits after each.
    fn step(&mut self, ids: &[u32]) -> Result<(), DeviceError> {
        let (sequence, never) = (&mut self.sequence, AtomicBool::new(false));
        let _complete = self.session.step(sequence, ids[0], &ids[1..], &never)?;
        Ok(())
    }

    /// Logits after the token of this index in the last pass.
    fn logits(&mut self, row: usize) -> &mut [f32] {
        self.session.logits(row)
    }

    fn samples_on_device(&mut self, sampler: &Sampler) -> Result<bool, DeviceError> {
        self.session.samples_on_device(&mut self.sequence, sampler)
    }

    fn step_on_device(
        &mut self,
        id: u32,
        sampler: &mut Sampler,
        more: bool,
    ) -> Result<u32, DeviceError> {
        let (sequence, never) = (&mut self.sequence, AtomicBool::new(false));
        let next = self
            .session
            .step_on_device(sequence, id, sampler, more, &never)?;
        Ok(next.unwrap_or(id))
    }
}

/// Prefill and decoding rates of a loaded model.
fn measure(model: &mut CheckedModel, ids: &[u32]) -> Result<Rate, DeviceError> {
    let started = Instant::now();
    model.read(&ids[..PREFILL_TOKENS])?;
    let prefill = rate(PREFILL_TOKENS, started.elapsed().as_secs_f64());
    let mut sampler = Sampler::new(greedy(), 1);
    let on_device = model.samples_on_device(&sampler)?;
    let mut id = ids[PREFILL_TOKENS];
    let started = Instant::now();
    for left in (0..DECODE_TOKENS).rev() {
        if on_device {
            id = model.step_on_device(id, &mut sampler, left > 0)?;
        } else {
            model.step(&[id])?;
        }
    }
    let decode = rate(DECODE_TOKENS, started.elapsed().as_secs_f64());
    Ok(Rate { prefill, decode })
}

#[cfg(test)]
mod tests;
