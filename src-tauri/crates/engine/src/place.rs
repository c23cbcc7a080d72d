//! Where a model goes: on the device that was asked for as far as it has room, or on the CPU.

use gpu::{Executor, Failure};
use kernels::{Cpu, CpuLevel, KvType};

use crate::check::Rates;
use crate::device::{self, DeviceChoice, DeviceKind, DeviceRequest};
use crate::engine::{LoadOptions, OpenError};
use crate::model::config::Config;
use crate::model::error::DeviceError;
use crate::model::evaluate::Evaluate;
use crate::model::forward::CpuModel;
use crate::model::gpu::GpuModel;
use crate::model::split::Split;
use crate::model::weights::{self, WeightSource};
use crate::run::session::{Reload, Session};

/// Gives a model's weights once more, for the CPU when a GPU has failed.
pub type Reopen = Box<dyn Fn() -> Result<Box<dyn WeightSource>, OpenError> + Send>;

/// A model on its device.
pub struct Placed {
    pub session: Session,
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

/// Why a model is not on a GPU.
struct NoGpu {
    /// A sentence for people.
    reason: String,
    /// It has failed, and not for want of memory.
    failed: bool,
}

impl From<String> for NoGpu {
    fn from(reason: String) -> NoGpu {
        NoGpu {
            reason,
            failed: false,
        }
    }
}

impl From<OpenError> for NoGpu {
    fn from(error: OpenError) -> NoGpu {
        NoGpu {
            reason: format!("The GPU could not take the model: {error}"),
            failed: matches!(error.of_device(), Some(DeviceError::Failed(_))),
        }
    }
}

/// The shortest context for which a GPU is worth it.
const SHORTEST_ON_GPU: usize = 4096;

/// CPU threads to compute with.
pub fn threads(options: &LoadOptions) -> usize {
    options
        .threads
        .filter(|&threads| threads > 0)
        .unwrap_or_else(device::physical_cores)
}

/// Loads the weights on the device that was asked for, or on the CPU where that does not work, for a context of this
/// length in tokens.
///
/// # Errors
/// When the CPU has no room for them, or the CPU level that was asked for is not one of this machine's.
pub fn place(
    config: &Config,
    source: &dyn WeightSource,
    again: Reopen,
    options: &LoadOptions,
    context: usize,
    progress: &mut dyn FnMut(f32),
) -> Result<Placed, OpenError> {
    let threads = threads(options);
    let (level, refused) = device::cpu_level(options.cpu_level, CpuLevel::detect())?;
    let exact = options.exact;
    let cpu = move || {
        if exact {
            Cpu::exact(threads)
        } else {
            Cpu::new(threads, level)
        }
    };
    let order = Order {
        config,
        source,
        options,
        context,
        cpu: &cpu,
        chunk: cpu_chunk(config, level),
    };
    let on_gpu = match &options.device {
        DeviceRequest::Gpu(id) => open_gpu(id.as_deref(), options)
            .and_then(|exec| {
                let name = exec.info().to_string();
                order.on_gpu(exec, name, progress)
            })
            .map(|placed| {
                let (config, kv) = (config.clone(), placed.kv);
                let reload = move || -> Result<Box<dyn Evaluate>, OpenError> {
                    let chunk = cpu_chunk(&config, level);
                    load(&config, cpu(), &*again()?, kv, chunk, &mut |_| {})
                };
                let reload: Reload = Box::new(move || reload().map_err(|error| error.to_string()));
                (placed, reload)
            }),
        _ if options.exact => Err("Exact arithmetic runs on the CPU".to_owned().into()),
        DeviceRequest::Cpu => Err("The CPU was chosen".to_owned().into()),
        DeviceRequest::Auto => Err("The CPU is used: no GPU was chosen".to_owned().into()),
    };
    let NoGpu { reason, failed } = match on_gpu {
        Ok((placed, reload)) => {
            let asked = || "The GPU was asked for".to_owned();
            let reason = options.because.clone().unwrap_or_else(asked);
            let device = DeviceChoice {
                kind: placed.kind,
                name: placed.name,
                reason: match &placed.without {
                    Some(without) => format!("{reason}. {without}"),
                    None => reason,
                },
                without: placed.without,
                gpu_failed: false,
                cpu_level: level,
                threads,
            };
            return Ok(Placed {
                session: Session::with_failover(placed.model, reload),
                device,
                context: placed.context,
                kv: placed.kv,
            });
        }
        Err(why) => why,
    };
    let reason = match &options.because {
        // A caller who knows why it is automatic knows why it is not a GPU.
        Some(because) if options.device == DeviceRequest::Auto => because.clone(),
        _ => reason,
    };
    let cpu = cpu();
    let reason = match refused {
        Some(refused) => format!("{reason}. {refused}"),
        None => reason,
    };
    let device = DeviceChoice {
        gpu_failed: failed,
        ..DeviceChoice::cpu(cpu.level(), cpu.threads(), reason)
    };
    let (kv, chunk) = (options.kv, cpu_chunk(config, level));
    let model = load(config, cpu, source, kv, chunk, progress)?;
    Ok(Placed {
        session: Session::new(model),
        device,
        context,
        kv,
    })
}

/// The GPU of this id, or the first that may be used.
fn open_gpu(id: Option<&str>, options: &LoadOptions) -> Result<gpu::Wgpu, NoGpu> {
    let allowed = gpu::Allowed {
        software: options.software_gpu,
        matrices: options.gpu_matrices,
    };
    gpu::Wgpu::open(id, allowed).map_err(|failure| NoGpu {
        reason: format!("The CPU is used: {failure}"),
        failed: !matches!(failure, Failure::NoDevice(_)),
    })
}

/// A model that is to go on a GPU.
struct Order<'a> {
    config: &'a Config,
    source: &'a dyn WeightSource,
    options: &'a LoadOptions,
    /// Tokens of context, as far as the CPU has room.
    context: usize,
    /// Makes a CPU for the blocks that stay there, with this number of tokens a pass.
    cpu: &'a dyn Fn() -> Cpu,
    chunk: usize,
}

impl Order<'_> {
    /// Loads the weights on a GPU, and makes do with the memory that it has: with a shorter context, unless a length was
    /// asked for, with keys and values in 8 bits, and in the end with the last blocks, the others being the CPU's.
    fn on_gpu<E>(
        &self,
        exec: E,
        name: String,
        progress: &mut dyn FnMut(f32),
    ) -> Result<OnGpu, NoGpu>
    where
        E: Executor + 'static,
    {
        let wanted = self.options.kv;
        let asked = gpu::Options {
            kv: wanted,
            floats: self.options.exact,
            matrices: self.options.gpu_matrices,
        };
        let (config, source) = (self.config, self.source);
        let mut model = GpuModel::load_last(exec, config, source, asked, GPU_CHUNK, progress)?;
        let room = self.room(&mut model).map_err(OpenError::from)?;
        let Some((context, kv)) = room else {
            return Err(NoGpu::from(format!(
                "The CPU is used: beside a block of the model, the GPU's memory has no room for {} of context",
                figures::tokens(self.shortest())
            )));
        };
        let (blocks, all) = (model.blocks(), config.layers);
        let without = self.without(blocks, context, kv);
        let placed = |model, name| OnGpu {
            model,
            kind: DeviceKind::Gpu,
            name,
            context,
            kv,
            without,
        };
        if blocks < all && self.rates(blocks).is_some_and(|rates| !rates.favour_gpu()) {
            return Err(NoGpu::from(format!(
                "The CPU is used: the GPU's memory has room for {blocks} of {all} layers, too few to be worth it"
            )));
        }
        model.prepare().map_err(OpenError::from)?;
        if blocks == all {
            return Ok(placed(Box::new(model), name));
        }
        let done = blocks as f32 / all as f32;
        let split = self.split(model, kv, &mut |part| progress((done + part).min(1.0)));
        let name = format!("{blocks} of {all} layers on {name}");
        Ok(placed(split?, name))
    }

    /// The shortest context that will do.
    fn shortest(&self) -> usize {
        match self.options.context {
            Some(_) => self.context,
            None => self.context.min(SHORTEST_ON_GPU),
        }
    }

    /// The longest context that the GPU has room for, and how keys and values are kept for it. Only where there is none
    /// do blocks go; `None` where the last one would have to.
    fn room<E: Executor>(
        &self,
        model: &mut GpuModel<E>,
    ) -> Result<Option<(usize, KvType)>, DeviceError> {
        let (wanted, shortest) = (self.options.kv, self.shortest());
        let smaller = (wanted == KvType::F16).then_some(KvType::Q8_0);
        loop {
            for kv in [wanted].into_iter().chain(smaller) {
                let mut length = self.context;
                while length >= shortest {
                    if model.make_room(kv, length)? {
                        return Ok(Some((length, kv)));
                    }
                    length = match length / 2 {
                        half if half < shortest && length > shortest => shortest,
                        half => half,
                    };
                }
            }
            if !model.shed()? {
                return Ok(None);
            }
        }
    }

    /// The model whose last blocks these are.
    fn split<E>(
        &self,
        last: GpuModel<E>,
        kv: KvType,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Box<dyn Evaluate>, OpenError>
    where
        E: Executor + 'static,
    {
        let first = Config {
            layers: self.config.layers - last.blocks(),
            ..self.config.clone()
        };
        let cpu = (self.cpu)();
        let weights = weights::load_first(&cpu, self.source, self.config, first.layers, progress)?;
        let first = CpuModel::new(first, cpu, weights, kv, self.chunk)?;
        Ok(Box::new(Split::new(first, last)))
    }

    /// How fast GPU and CPU together, and the CPU alone, are expected to be, where that was measured.
    fn rates(&self, blocks: usize) -> Option<Rates> {
        let share = blocks as f64 / self.config.layers as f64;
        Some(self.options.rates?.shared(share))
    }

    /// How the model makes do with the GPU's memory.
    fn without(&self, blocks: usize, context: usize, kv: KvType) -> Option<String> {
        let all = self.config.layers;
        let parts: Vec<String> = [
            (blocks < all).then(|| format!("{blocks} of {all} layers")),
            (context < self.context).then(|| format!("{} of context", figures::tokens(context))),
            (kv != self.options.kv).then(|| "keys and values in 8 bits".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() {
            return None;
        }
        let together = (self.rates(blocks).filter(|_| blocks < all))
            .map(|rates| format!(": with the CPU about {:.1} tokens/s", rates.gpu.decode));
        Some(format!(
            "Its memory has room for {}{}",
            parts.join(", "),
            together.unwrap_or_default()
        ))
    }
}

/// Loads the weights into the CPU's memory.
///
/// # Errors
/// When a tensor is missing or misshapen, or there is no room.
pub fn load(
    config: &Config,
    cpu: Cpu,
    source: &dyn WeightSource,
    kv: KvType,
    chunk: usize,
    progress: &mut dyn FnMut(f32),
) -> Result<Box<dyn Evaluate>, OpenError> {
    let weights = weights::load(&cpu, source, config, progress)?;
    let model = CpuModel::new(config.clone(), cpu, weights, kv, chunk)?;
    Ok(Box::new(model))
}

/// Tokens per pass on a GPU.
pub const GPU_CHUNK: usize = 512;
/// Tokens per pass on the CPU, at most.
pub const MOST_CPU_CHUNK: usize = 512;

/// Tokens per pass on the CPU: enough to make good use of every weight read, yet so few that a block takes no
/// longer than Stop may. The same for a model everywhere that a level is in use, so that answers do not depend on
/// the machine's speed.
pub fn cpu_chunk(config: &Config, level: CpuLevel) -> usize {
    let products_per_block: usize = match level {
        CpuLevel::AvxVnni | CpuLevel::Avx512 | CpuLevel::Amx => 24_000_000_000,
        _ => 12_000_000_000,
    };
    let block = config.products_per_token() as usize / config.layers;
    let fits = (products_per_block / block).clamp(32, MOST_CPU_CHUNK);
    1 << fits.ilog2()
}

#[cfg(test)]
mod tests;
