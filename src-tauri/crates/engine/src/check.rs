//! Whether a GPU may be trusted with a model, and whether it is faster than the CPU.
//!
//! Drivers that compute wrongly, crash or hang are common, so this is to run in a process of its own before a device is
//! first used. It takes an excerpt of the very model: its own shapes and formats, in a few blocks.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gpu::{Allowed, Executor, Failure, How, Product};
use kernels::{Cpu, CpuLevel, KvType};
use serde::{Deserialize, Serialize};

use crate::device;
use crate::engine::OpenError;
use crate::excerpt::Excerpt;
use crate::gguf::Gguf;
use crate::model::config::Config;
use crate::model::error::DeviceError;
use crate::model::gpu::GpuModel;
use crate::model::weights::{self, WeightSource};
use crate::place::{GPU_CHUNK, cpu_chunk, load};
use crate::run::generate::rate;
use crate::run::random::Random;
use crate::run::sampler::{Sampler, Sampling};
use crate::run::session::Session;

/// What to check.
#[derive(Clone, Debug)]
pub struct CheckOrder {
    /// The device, as [`DeviceRequest::Gpu`](crate::DeviceRequest::Gpu) names it.
    pub device: Option<String>,
    /// The model that it is to run.
    pub model: PathBuf,
    /// A small trained model, to be run as a whole.
    pub demo_model: Option<PathBuf>,
    /// Threads of the CPU that it is measured against; `None` for one per physical core.
    pub threads: Option<usize>,
    /// Whether the processor may play a GPU.
    pub software: bool,
    /// Whether cooperative matrices may be tried.
    pub matrices: bool,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuCheck {
    /// What was tried, in its order.
    pub steps: Vec<CheckStep>,
    /// What went wrong, as a sentence's end; nothing was tried after it.
    pub fault: Option<String>,
    /// It went wrong for want of memory, which says nothing against the device.
    pub full: bool,
    /// What its cooperative matrices are good for; `None` where it has none, or they were not tried.
    #[serde(default)]
    pub matrices: Option<MatrixCheck>,
    /// How fast GPU and CPU are; `None` after a fault.
    pub rates: Option<Rates>,
}

/// What a device's cooperative matrices are good for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MatrixCheck {
    /// What went wrong with them, as a sentence's end.
    pub fault: Option<String>,
    /// How many times as fast a product of many tokens is with them.
    pub speedup: Option<f64>,
}

impl GpuCheck {
    /// Whether cooperative matrices are right, and faster than the device is without them.
    pub fn uses_matrices(&self) -> bool {
        let worth_it = |it: &MatrixCheck| it.fault.is_none() && it.speedup.is_some_and(|x| x > 1.0);
        self.matrices.as_ref().is_some_and(worth_it)
    }
}

/// Something that was computed on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckStep {
    /// What it was, for people.
    pub what: String,
    /// The relative error; `None` where the GPU gave what is no number.
    pub error: Option<f64>,
    /// The most that rounding explains.
    pub bound: f64,
}

/// How fast the whole model is expected to be, in tokens per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// On the GPU.
    pub gpu: Rate,
    /// On the CPU.
    pub cpu: Rate,
}

/// Tokens per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Of reading.
    pub prefill: f64,
    /// Of writing.
    pub decode: f64,
}

impl Rates {
    /// With a share of the blocks, from 0 to 1, on the GPU and the others on the CPU.
    pub(crate) fn shared(&self, share: f64) -> Rates {
        let both = |gpu: f64, cpu: f64| 1.0 / (share / gpu + (1.0 - share) / cpu);
        Rates {
            gpu: Rate {
                prefill: both(self.gpu.prefill, self.cpu.prefill),
                decode: both(self.gpu.decode, self.cpu.decode),
            },
            cpu: self.cpu,
        }
    }

    /// Whether the GPU is worth it: it writes clearly faster, or reads much faster and writes no slower.
    pub fn favour_gpu(&self) -> bool {
        let decode = self.gpu.decode / self.cpu.decode;
        let prefill = self.gpu.prefill / self.cpu.prefill;
        decode >= 1.15 || (decode >= 1.0 && prefill >= 2.0)
    }
}

impl CheckStep {
    fn passed(&self) -> bool {
        self.error.is_some_and(|error| error <= self.bound)
    }
}

/// Checks and measures a GPU.
///
/// # Errors
/// When the model cannot be read. What is wrong with the device is in the [`GpuCheck`].
pub fn check_gpu(order: &CheckOrder) -> Result<GpuCheck, OpenError> {
    let software = order.software;
    check_opened(order, &|matrices| {
        gpu::Wgpu::open(order.device.as_deref(), Allowed { software, matrices })
    })
}

/// Checks the device that `open` gives with its cooperative matrices or without, and once more without them where
/// something is wrong with them.
fn check_opened<E>(
    order: &CheckOrder,
    open: &dyn Fn(bool) -> Result<E, Failure>,
) -> Result<GpuCheck, OpenError>
where
    E: Executor + Clone + 'static,
{
    let once = |matrices| match open(matrices) {
        Ok(exec) => check(exec, order),
        Err(failure) => Ok(GpuCheck {
            fault: Some(failure.to_string()),
            // A driver may refuse what it says it has.
            matrices: matrices.then(MatrixCheck::default),
            ..GpuCheck::default()
        }),
    };
    let found = once(order.matrices)?;
    if found.matrices.is_none() || found.fault.is_none() || found.full {
        return Ok(found);
    }
    let without = once(false)?;
    let matrices = MatrixCheck {
        fault: found.fault,
        speedup: None,
    };
    Ok(GpuCheck {
        matrices: Some(matrices),
        ..without
    })
}

pub(crate) fn check<E>(exec: E, order: &CheckOrder) -> Result<GpuCheck, OpenError>
where
    E: Executor + Clone + 'static,
{
    let mut checking = Checking {
        exec,
        threads: order.threads.unwrap_or_else(device::physical_cores),
        level: device::cpu_level(None, CpuLevel::detect())?.0,
        found: GpuCheck::default(),
    };
    match checking.run(order) {
        Ok(()) => {}
        Err(Stop::Model(error)) => return Err(error),
        Err(Stop::Device(fault, full)) => {
            checking.found.fault = Some(fault);
            checking.found.full = full;
            checking.found.rates = None;
        }
    }
    Ok(checking.found)
}

/// Why a check ends early.
enum Stop {
    Model(OpenError),
    /// What is wrong with the device, and whether it only lacks memory.
    Device(String, bool),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Device(
            failure.to_string(),
            matches!(failure, Failure::OutOfMemory(_)),
        )
    }
}

impl From<DeviceError> for Stop {
    fn from(error: DeviceError) -> Self {
        Stop::Device(
            error.to_string(),
            matches!(error, DeviceError::OutOfMemory(_)),
        )
    }
}

struct Checking<E> {
    exec: E,
    threads: usize,
    level: CpuLevel,
    found: GpuCheck,
}

/// What rounding activations to 8 bits may cost, against arithmetic that rounds none.
const PRODUCT_BOUND: f64 = 0.03;
const LOGITS_BOUND: f64 = 0.08;
/// Tokens for which there are kernels of their own: one, a few, many.
const COUNTS: [usize; 3] = [1, 5, 70];
/// Tokens that are read at once, more than decoding merges by itself and no multiple of anything.
const READ: usize = 301;
/// Tokens of a product that is timed: enough for every part of a device to have some, and few enough that a slow one
/// is not taken for one that hangs.
const TIMED_TOGETHER: usize = 128;
/// Tokens whose writing is timed.
const TIMED: usize = 24;

impl<E> Checking<E>
where
    E: Executor + Clone + 'static,
{
    fn run(&mut self, order: &CheckOrder) -> Result<(), Stop> {
        let gguf = Gguf::open(&order.model).map_err(|error| Stop::Model(error.into()))?;
        let config = Config::from_gguf(&gguf).map_err(|error| Stop::Model(error.into()))?;
        weights::check(&gguf, &config).map_err(|error| Stop::Model(error.into()))?;
        self.products(&gguf, &config)?;
        let excerpt = Excerpt::new(&gguf, &config);
        let name = format!("{} blocks", excerpt.config().layers);
        let (gpu, cpu) = self.sides(&name, &excerpt, excerpt.config(), KvType::F16)?;
        if let Some(demo_model) = &order.demo_model
            && let Ok(gguf) = Gguf::open(demo_model)
            && let Ok(config) = Config::from_gguf(&gguf)
        {
            for kv in [KvType::F16, KvType::Q8_0] {
                let name = format!("the demo model, cache in {}", kv.name());
                self.sides(&name, &gguf, &config, kv)?;
            }
        }
        let whole = weights::bytes_per_token(&gguf, &config) as f64;
        let part = weights::bytes_per_token(&excerpt, excerpt.config()) as f64;
        let blocks = excerpt.config().layers as f64 / config.layers as f64;
        let [gpu, cpu] = [gpu, cpu].map(|rate| Rate {
            prefill: rate.prefill * blocks,
            decode: rate.decode * part / whole,
        });
        self.found.rates = Some(Rates { gpu, cpu });
        Ok(())
    }

    /// Every product of the model, one of a kind.
    fn products(&mut self, source: &dyn WeightSource, config: &Config) -> Result<(), Stop> {
        let has_matrices = self.exec.limits().matrices.is_some();
        let (mut without, mut with) = (0.0, 0.0);
        let mut kinds = Vec::new();
        let head = weights::head(source);
        let names = weights::expected(config).into_iter().map(|it| it.name);
        for name in names.chain([head.to_owned()]) {
            let is_head = name == head;
            let Some((ty, rows, cols)) = source.shape(&name) else {
                continue;
            };
            if rows == 1 || (!is_head && rows == config.vocab) || kinds.contains(&(ty, rows, cols))
            {
                continue;
            }
            kinds.push((ty, rows, cols));
            let Some(tensor) = source.tensor(&name) else {
                continue;
            };
            let product = Product {
                ty,
                rows,
                cols,
                stored: tensor.stored(),
            };
            for tokens in COUNTS {
                // Logits are never wanted of many.
                if is_head && tokens == COUNTS[2] {
                    continue;
                }
                let error = product.error(&mut self.exec, how(tokens, false))?;
                let what = format!("{} {rows} × {cols}, {tokens} tokens", ty.name());
                self.note(what.clone(), error, PRODUCT_BOUND)?;
                if has_matrices && tokens == COUNTS[2] {
                    // From here on they may be what is at fault.
                    self.found.matrices.get_or_insert_default();
                    let error = product.error(&mut self.exec, how(tokens, true))?;
                    self.note(format!("{what} in matrices"), error, PRODUCT_BOUND)?;
                }
            }
            if has_matrices && !is_head {
                without += product.seconds(&mut self.exec, how(TIMED_TOGETHER, false))?;
                with += product.seconds(&mut self.exec, how(TIMED_TOGETHER, true))?;
            }
        }
        if let Some(matrices) = &mut self.found.matrices {
            matrices.speedup = Some(without / with);
        }
        Ok(())
    }

    /// Loads a model on both sides and compares what they make of the same tokens, the CPU in f32, so that all rounding
    /// is the GPU's; then how fast they are, the CPU as it would be used.
    fn sides(
        &mut self,
        name: &str,
        source: &dyn WeightSource,
        config: &Config,
        kv: KvType,
    ) -> Result<(Rate, Rate), Stop> {
        let options = gpu::Options {
            kv,
            floats: false,
            matrices: self.found.uses_matrices(),
        };
        let exec = self.exec.clone();
        let gpu = GpuModel::load(exec, config, source, options, GPU_CHUNK, &mut |_| {});
        let gpu = gpu.map_err(|error| Stop::Device(error.to_string(), error.is_full()))?;
        let chunk = cpu_chunk(config, self.level);
        let on = |cpu: Cpu| {
            let model = load(config, cpu, source, kv, chunk, &mut |_| {});
            model.map(Session::new).map_err(Stop::Model)
        };
        let mut gpu = Session::new(Box::new(gpu));
        let ids = arbitrary(READ + 8, config.vocab);
        self.compare(name, &mut gpu, &mut on(Cpu::exact(self.threads))?, &ids)?;
        let mut cpu = on(Cpu::new(self.threads, self.level))?;
        Ok((speed(&mut gpu, &ids)?, speed(&mut cpu, &ids)?))
    }

    fn compare(
        &mut self,
        name: &str,
        gpu: &mut Session,
        cpu: &mut Session,
        ids: &[u32],
    ) -> Result<(), Stop> {
        let never = AtomicBool::new(false);
        let (read, more) = ids.split_at(READ);
        for &id in &read[..5] {
            for session in [&mut *gpu, &mut *cpu] {
                let _complete = session.step(id, &[], &never)?;
            }
            self.note(
                format!("{name}, one token"),
                apart(gpu.logits(0), cpu.logits(0)),
                LOGITS_BOUND,
            )?;
        }
        for session in [&mut *gpu, &mut *cpu] {
            session.truncate(0);
            let _complete = session.read(read, &never, &mut |_| {})?;
        }
        self.note(
            format!("{name}, {READ} tokens"),
            apart(gpu.logits(0), cpu.logits(0)),
            LOGITS_BOUND,
        )?;
        for session in [&mut *gpu, &mut *cpu] {
            let _complete = session.step(more[0], &more[1..], &never)?;
        }
        for row in 0..more.len() {
            self.note(
                format!("{name}, a few more"),
                apart(gpu.logits(row), cpu.logits(row)),
                LOGITS_BOUND,
            )?;
        }
        self.choices(name, gpu, cpu, more[0])
    }

    /// What the device itself takes for the likeliest tokens.
    fn choices(
        &mut self,
        name: &str,
        gpu: &mut Session,
        cpu: &mut Session,
        first: u32,
    ) -> Result<(), Stop> {
        // Half of all tokens are suppressed, so that the likeliest is among them now and then.
        let half = cpu.logits(0).len() / 2;
        let suppressed: Vec<u32> = (0..).step_by(2).take(half).collect();
        let mut sampler = Sampler::new(greedy(), 1).suppressing(&suppressed);
        if !gpu.samples_on_device(&sampler)? {
            return Ok(());
        }
        let mut id = first;
        for left in (0..5).rev() {
            let next = gpu.step_on_device(id, &mut sampler, left > 0)?;
            let _complete = cpu.step(id, &[], &AtomicBool::new(false))?;
            let logits = cpu.logits(0);
            let size = size(logits);
            for &id in &suppressed {
                logits[id as usize] = f32::NEG_INFINITY;
            }
            let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let short = f64::from(best - logits[next as usize]) / size;
            self.note(format!("{name}, chosen"), short, LOGITS_BOUND)?;
            id = next;
        }
        Ok(())
    }

    /// Books a step; of several of one name the worst.
    fn note(&mut self, what: String, error: f64, bound: f64) -> Result<(), Stop> {
        let error = error.is_finite().then_some(error);
        let step = CheckStep { what, error, bound };
        let wrong = (!step.passed()).then(|| match step.error {
            Some(error) => format!("it computes wrongly ({}: {error:.2} off)", step.what),
            None => format!("it gives what is no number ({})", step.what),
        });
        match self.found.steps.last_mut() {
            Some(last) if last.what == step.what => {
                if wrong.is_some() || step.error > last.error {
                    *last = step;
                }
            }
            _ => self.found.steps.push(step),
        }
        wrong.map_or(Ok(()), |wrong| Err(Stop::Device(wrong, false)))
    }
}

fn how(tokens: usize, matrices: bool) -> How {
    How {
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

/// Root of the mean square.
fn size(values: &[f32]) -> f64 {
    let squares = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>();
    (squares / values.len() as f64).sqrt()
}

/// How far these are apart, relative to the second.
fn apart(ours: &[f32], theirs: &[f32]) -> f64 {
    let difference: Vec<f32> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
    size(&difference) / size(theirs)
}

/// How fast a loaded model reads and writes.
fn speed(session: &mut Session, ids: &[u32]) -> Result<Rate, DeviceError> {
    let never = AtomicBool::new(false);
    session.truncate(0);
    let started = Instant::now();
    let _complete = session.read(&ids[..READ], &never, &mut |_| {})?;
    let prefill = rate(READ, started.elapsed().as_secs_f64());
    let mut sampler = Sampler::new(greedy(), 1);
    let on_device = session.samples_on_device(&sampler)?;
    let mut id = ids[READ];
    let started = Instant::now();
    for left in (0..TIMED).rev() {
        if on_device {
            id = session.step_on_device(id, &mut sampler, left > 0)?;
        } else {
            let _complete = session.step(id, &[], &never)?;
        }
    }
    let decode = rate(TIMED, started.elapsed().as_secs_f64());
    Ok(Rate { prefill, decode })
}

#[cfg(test)]
mod tests;
