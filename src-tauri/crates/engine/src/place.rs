//! Where a model goes: on the device that was asked for as far as it has room, or on the CPU.

use gpu::Executor;
use kernels::{Cpu, CpuLevel, KvType};

use crate::backend::Backend;
use crate::backend::candle::Candle;
use crate::backend::gpu::GpuModel;
use crate::config::Config;
use crate::device::{self, DeviceChoice, DeviceKind, DeviceRequest};
use crate::engine::{LoadOptions, OpenError};
use crate::forward::{Evaluate, Model};
use crate::process;
use crate::survival::Surviving;
use crate::weights::{self, WeightSource, Weights};

/// Gives a model's weights once more, for the CPU when a GPU has failed.
pub type Reopen = Box<dyn Fn() -> Result<Box<dyn WeightSource>, OpenError> + Send>;

/// A model on its device.
pub struct Placed {
    pub model: Box<dyn Evaluate>,
    pub device: DeviceChoice,
    /// Tokens of context that there is room for.
    pub context: usize,
    /// How keys and values are kept.
    pub kv: KvType,
}

/// A model on a GPU.
struct OnGpu {
    model: Box<dyn Evaluate>,
    kind: DeviceKind,
    name: String,
    context: usize,
    kv: KvType,
    /// What it has no room for, for people.
    without: Option<String>,
}

/// Memory beside weights and cache: activations, the tokenizer, a margin for everything else.
const OVERHEAD: u64 = 256 << 20;
/// The shortest context that is of any use.
const SHORTEST_CONTEXT: usize = 1024;
/// The shortest context for which a GPU is worth it.
const SHORTEST_ON_GPU: usize = 4096;

/// How long a context can be.
fn context(
    config: &Config,
    source: &dyn WeightSource,
    options: &LoadOptions,
) -> Result<usize, OpenError> {
    let wanted = options
        .context
        .unwrap_or(config.context)
        .clamp(1, config.context);
    let Some(available) = process::available() else {
        return Ok(wanted);
    };
    let per_token = kv_bytes_per_token(config, options.kv);
    let fixed = weights::bytes(source, config) + OVERHEAD;
    let needed = |context: usize| fixed.saturating_add(per_token.saturating_mul(context as u64));
    let least = if options.context.is_some() {
        wanted
    } else {
        wanted.min(SHORTEST_CONTEXT)
    };
    if needed(least) > available {
        return Err(OpenError::Memory {
            needed: needed(least),
            available,
        });
    }
    let room = usize::try_from((available - fixed) / per_token).unwrap_or(usize::MAX);
    Ok(wanted.min(room))
}

/// Bytes that one token takes in the cache.
pub fn kv_bytes_per_token(config: &Config, kv: KvType) -> u64 {
    let values = 2 * (config.layers * config.kv_width()) as u64;
    match kv {
        KvType::F32 => 4 * values,
        KvType::F16 => 2 * values,
        KvType::Q8_0 => values * 34 / 32,
    }
}

/// Loads the weights on the device that was asked for, or on the CPU where that does not work.
///
/// # Errors
/// When the CPU has no room either, or the CPU level that was asked for is not one of this machine's.
pub fn place(
    config: &Config,
    source: &dyn WeightSource,
    again: Reopen,
    options: &LoadOptions,
    progress: &mut dyn FnMut(f32),
) -> Result<Placed, OpenError> {
    let context = context(config, source, options)?;
    let threads = options
        .threads
        .filter(|&threads| threads > 0)
        .unwrap_or_else(device::physical_cores);
    let (level, refused) = device::cpu_level(options.cpu_level, CpuLevel::detect())?;
    let exact = options.exact;
    let cpu = move || {
        if exact {
            Cpu::exact(threads)
        } else {
            Cpu::new(threads, level)
        }
    };
    let on_gpu = match &options.device {
        DeviceRequest::Gpu(id) => {
            let exec = gpu::Wgpu::open(id.as_deref(), options.software_gpu);
            exec.map_err(|failure| format!("The CPU is used: {failure}"))
                .and_then(|exec| {
                    let name = exec.info().to_string();
                    on_gpu(exec, name, config, source, context, options, progress)
                })
                .map(|placed| {
                    let (config, kv, vocab) = (config.clone(), placed.kv, config.vocab);
                    let reload = move || -> Result<Box<dyn Evaluate>, OpenError> {
                        let chunk = cpu_chunk(&config, level);
                        load(&config, cpu(), &*again()?, kv, chunk, &mut |_| {})
                    };
                    let reload = Box::new(move || reload().map_err(|error| error.to_string()));
                    OnGpu {
                        model: Box::new(Surviving::new(placed.model, vocab, reload)),
                        ..placed
                    }
                })
        }
        _ if options.exact => Err("Exact arithmetic runs on the CPU".to_owned()),
        request => on_candle(request, config, source, context, options, progress),
    };
    let reason = match on_gpu {
        Ok(placed) => {
            let asked = || "The GPU was asked for".to_owned();
            let reason = options.because.clone().unwrap_or_else(asked);
            let device = DeviceChoice {
                kind: placed.kind,
                name: placed.name,
                reason: match placed.without {
                    Some(without) => format!("{reason}. {without}"),
                    None => reason,
                },
                cpu_level: level,
                threads,
            };
            return Ok(Placed {
                model: placed.model,
                device,
                context: placed.context,
                kv: placed.kv,
            });
        }
        // A caller who knows why it is automatic knows why it is not a GPU.
        Err(reason) if options.device == DeviceRequest::Auto => {
            options.because.clone().unwrap_or(reason)
        }
        Err(reason) => reason,
    };
    let cpu = cpu();
    let reason = match refused {
        Some(refused) => format!("{reason}. {refused}"),
        None => reason,
    };
    let device = DeviceChoice::cpu(cpu.level(), cpu.threads(), reason);
    let (kv, chunk) = (options.kv, cpu_chunk(config, level));
    Ok(Placed {
        model: load(config, cpu, source, kv, chunk, progress)?,
        device,
        context,
        kv,
    })
}

/// Loads the weights on a GPU, and makes do with the memory that it has: with a shorter context, unless a length was
/// asked for, or with keys and values in 8 bits. The error is a sentence.
fn on_gpu<E>(
    exec: E,
    name: String,
    config: &Config,
    source: &dyn WeightSource,
    context: usize,
    options: &LoadOptions,
    progress: &mut dyn FnMut(f32),
) -> Result<OnGpu, String>
where
    E: Executor + 'static,
{
    let refused =
        |error: &dyn std::fmt::Display| format!("The GPU could not take the model: {error}");
    let (wanted, floats) = (options.kv, options.exact);
    let asked = gpu::Options { kv: wanted, floats };
    let mut model = GpuModel::load(exec, config, source, asked, GPU_CHUNK, progress)
        .map_err(|error| refused(&error))?;
    let shortest = match options.context {
        Some(_) => context,
        None => context.min(SHORTEST_ON_GPU),
    };
    let smaller = (wanted == KvType::F16).then_some(KvType::Q8_0);
    for kv in [wanted].into_iter().chain(smaller) {
        let mut length = context;
        while length >= shortest {
            if model
                .make_room(kv, length)
                .map_err(|error| refused(&error))?
            {
                return Ok(OnGpu {
                    model: Box::new(model),
                    kind: DeviceKind::Gpu,
                    name,
                    context: length,
                    kv,
                    without: without(length < context, kv != wanted, length),
                });
            }
            length = match length / 2 {
                half if half < shortest && length > shortest => shortest,
                half => half,
            };
        }
    }
    let needed = kv_bytes_per_token(config, smaller.unwrap_or(wanted)) * shortest as u64;
    Err(format!(
        "The CPU is used: beside the model, the GPU's memory has no room for {shortest} tokens of context ({} MB)",
        needed >> 20
    ))
}

/// How a model makes do with a GPU's memory.
fn without(shorter: bool, eighths: bool, length: usize) -> Option<String> {
    let shorter = shorter.then(|| format!("{length} tokens of context"));
    let eighths = eighths.then(|| "keys and values in 8 bits".to_owned());
    let parts: Vec<String> = shorter.into_iter().chain(eighths).collect();
    (!parts.is_empty()).then(|| format!("Its memory has room for {}", parts.join(" and ")))
}

/// Loads the weights on a GPU of candle's. The error is a sentence.
fn on_candle(
    request: &DeviceRequest,
    config: &Config,
    source: &dyn WeightSource,
    context: usize,
    options: &LoadOptions,
    progress: &mut dyn FnMut(f32),
) -> Result<OnGpu, String> {
    let gpu = device::open_candle(request)?;
    let (backend, kv) = (Candle::new(gpu.device), options.kv);
    let model = load(config, backend, source, kv, CANDLE_CHUNK, progress)
        .map_err(|error| format!("The GPU could not take the model: {error}"))?;
    Ok(OnGpu {
        model,
        kind: gpu.kind,
        name: gpu.name,
        context,
        kv,
        without: None,
    })
}

/// Loads the weights on a backend.
///
/// # Errors
/// When a tensor is missing or misshapen, or the device has no room.
pub fn load<B>(
    config: &Config,
    backend: B,
    source: &dyn WeightSource,
    kv: KvType,
    chunk: usize,
    progress: &mut dyn FnMut(f32),
) -> Result<Box<dyn Evaluate>, OpenError>
where
    B: Backend<Matrix: Send, Norm: Send, Rows: Send, Positions: Send, KvLayer: Send>
        + Send
        + 'static,
{
    let weights = Weights::load(&backend, source, config, progress)?;
    Ok(Box::new(Model::new(
        config.clone(),
        backend,
        weights,
        kv,
        chunk,
    )?))
}

/// Tokens per pass on a GPU.
pub const GPU_CHUNK: usize = 512;
const CANDLE_CHUNK: usize = 512;

/// Tokens per pass on the CPU: enough to make good use of every weight read, yet so few that a block takes no
/// longer than Stop may. The same for a model everywhere that a level is in use, so that answers do not depend on
/// the machine's speed.
pub fn cpu_chunk(config: &Config, level: CpuLevel) -> usize {
    let products_per_block: usize = match level {
        CpuLevel::AvxVnni | CpuLevel::Avx512 | CpuLevel::Amx => 24_000_000_000,
        _ => 12_000_000_000,
    };
    let block = config.products_per_token() as usize / config.layers;
    let fits = (products_per_block / block).clamp(32, 512);
    1 << fits.ilog2()
}

#[cfg(test)]
mod tests;
