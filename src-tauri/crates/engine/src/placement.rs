//! Brings a model to the device where it is placed, as far as that has room.

use std::sync::Arc;

use gpu::Executor;
use kernels::{Cpu, CpuLevel, KvType};

use crate::machine;
use crate::model::config::Config;
use crate::model::error::DeviceError;
use crate::model::evaluate::Evaluate;
use crate::model::forward::{CpuModel, cpu_chunk};
use crate::model::gpu::{GPU_CHUNK, GpuModel};
use crate::model::split::Split;
use crate::model::weights::{self, WeightSource};
use crate::open_error::{GpuRejection, OpenError};
use crate::options::{GpuPlacement, LoadOptions, Placement};
use crate::run::session::{Reload, Session};

/// A model on its device.
pub struct Placed {
    /// The model with an empty cache.
    pub session: Session,
    /// The device.
    pub device: ActiveDevice,
    /// Tokens of context that there is room for.
    pub context: usize,
    /// How keys and values are kept.
    pub kv: KvType,
}

/// The device that a model runs on.
#[derive(Clone, Debug)]
pub struct ActiveDevice {
    /// Whether it is a GPU, or a GPU and the CPU.
    pub on_gpu: bool,
    /// Its name for the user, such as `CPU, AVX-512 VNNI, 2 threads`.
    pub name: String,
    /// How the model makes do with a GPU's memory; `None` where it has room for everything.
    pub fit: Option<GpuFit>,
    /// Why a GPU on which it ran before has failed.
    pub failure: Option<String>,
    /// The CPU's instruction set level that the kernels use.
    pub cpu_level: CpuLevel,
    /// CPU threads.
    pub threads: usize,
}

impl ActiveDevice {
    pub(crate) fn cpu(level: CpuLevel, threads: usize) -> ActiveDevice {
        let plural = if threads == 1 { "" } else { "s" };
        ActiveDevice {
            on_gpu: false,
            name: format!("CPU, {}, {threads} thread{plural}", level.name()),
            fit: None,
            failure: None,
            cpu_level: level,
            threads,
        }
    }
}

/// What a GPU's memory has room for, where that is not everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFit {
    /// Layers on the GPU; the others are on the CPU.
    pub layers: usize,
    /// Layers of the model.
    pub of_layers: usize,
    /// Tokens of context, where they are fewer than wanted.
    pub context: Option<usize>,
    /// How keys and values are kept, where that is not as wanted.
    pub kv: Option<KvType>,
}

/// The min_context context for which a GPU is used, where no length was asked for.
const MIN_GPU_CONTEXT: usize = 4096;

/// Loads the weights for a context of this length in tokens.
///
/// # Errors
/// When the device has no room for them, or the CPU level that was asked for is not one of this machine's.
pub fn place(
    config: &Config,
    weights: &Arc<dyn WeightSource + Send + Sync>,
    options: &LoadOptions,
    context: usize,
    progress: &mut dyn FnMut(f32),
) -> Result<Placed, OpenError> {
    let threads = machine::threads(options.threads);
    let (level, _) = machine::cpu_level(options.cpu_level, CpuLevel::detect())?;
    let exact = options.exact;
    let cpu = move || {
        if exact {
            Cpu::exact(threads)
        } else {
            Cpu::new(threads, level)
        }
    };
    let chunk = cpu_chunk(config, level);
    let gpu = match &options.placement {
        Placement::Cpu => {
            let (cpu, kv) = (cpu(), options.kv);
            let device = ActiveDevice::cpu(cpu.level(), cpu.threads());
            let model = CpuModel::load(config, cpu, &**weights, kv, chunk, progress)?;
            return Ok(Placed {
                session: Session::new(Box::new(model)),
                device,
                context,
                kv,
            });
        }
        Placement::Gpu(gpu) => gpu,
    };
    let allowed = gpu::Allowed {
        software: gpu.software,
        matrices: gpu.matrices,
    };
    let exec = gpu::Wgpu::open(gpu.id.as_deref(), allowed).map_err(GpuRejection::NotOpened)?;
    let name = exec.info().to_string();
    let request = GpuLoadRequest {
        config,
        source: &**weights,
        options,
        gpu,
        context,
        cpu: &cpu,
        chunk,
    };
    let on_gpu = request.load(exec, progress)?;
    let (config, kv, weights) = (config.clone(), on_gpu.kv, Arc::clone(weights));
    let reload: Reload = Box::new(move || {
        let model = CpuModel::load(&config, cpu(), &*weights, kv, chunk, &mut |_| {});
        let model = model.map_err(|error| error.to_string())?;
        Ok(Box::new(model) as Box<dyn Evaluate>)
    });
    Ok(Placed {
        session: Session::with_failover(on_gpu.model, reload),
        device: ActiveDevice {
            on_gpu: true,
            name: match &on_gpu.fit {
                Some(fit) if fit.layers < fit.of_layers => {
                    format!("{} of {} layers on {name}", fit.layers, fit.of_layers)
                }
                _ => name,
            },
            fit: on_gpu.fit,
            failure: None,
            cpu_level: level,
            threads,
        },
        context: on_gpu.context,
        kv,
    })
}

/// A model that is to be loaded on a GPU.
struct GpuLoadRequest<'a> {
    config: &'a Config,
    source: &'a dyn WeightSource,
    options: &'a LoadOptions,
    gpu: &'a GpuPlacement,
    /// Tokens of context, as far as the CPU has room.
    context: usize,
    /// Makes a CPU for the layers that stay there, with this number of tokens a pass.
    cpu: &'a dyn Fn() -> Cpu,
    chunk: usize,
}

/// A model on a GPU.
struct LoadedGpuModel {
    model: Box<dyn Evaluate>,
    context: usize,
    kv: KvType,
    fit: Option<GpuFit>,
}

impl GpuLoadRequest<'_> {
    /// Loads the weights on a GPU, and makes do with the memory that it has: with a shorter context, unless a length was
    /// asked for, with keys and values in 8 bits, and in the end with the last layers, the others being the CPU's.
    fn load<E>(
        &self,
        exec: E,
        progress: &mut dyn FnMut(f32),
    ) -> Result<LoadedGpuModel, GpuRejection>
    where
        E: Executor + 'static,
    {
        let not_loaded = |error: OpenError| GpuRejection::NotLoaded(Box::new(error));
        let wanted = gpu::Options {
            kv: self.options.kv,
            floats: self.options.exact,
            matrices: self.gpu.matrices,
        };
        let (config, source) = (self.config, self.source);
        let mut model = GpuModel::load_last(exec, config, source, wanted, GPU_CHUNK, progress)
            .map_err(not_loaded)?;
        let room = self
            .room(&mut model)
            .map_err(|error| not_loaded(error.into()))?;
        let Some((context, kv)) = room else {
            let context = self.min_context();
            return Err(GpuRejection::NoRoom { context });
        };
        let (fit, layers) = (model.blocks(), config.shape.layers);
        if fit < layers && fit < self.gpu.min_layers {
            return Err(GpuRejection::TooFewLayers { fit, layers });
        }
        model.prepare().map_err(|error| not_loaded(error.into()))?;
        let model: Box<dyn Evaluate> = if fit == layers {
            Box::new(model)
        } else {
            let done = fit as f32 / layers as f32;
            let split = self.split(model, kv, &mut |part| progress((done + part).min(1.0)));
            split.map_err(not_loaded)?
        };
        let short = GpuFit {
            layers: fit,
            of_layers: layers,
            context: (context < self.context).then_some(context),
            kv: (kv != self.options.kv).then_some(kv),
        };
        let fits = short.layers == layers && short.context.is_none() && short.kv.is_none();
        Ok(LoadedGpuModel {
            model,
            context,
            kv,
            fit: (!fits).then_some(short),
        })
    }

    /// The min_context context that will do.
    fn min_context(&self) -> usize {
        match self.options.context {
            Some(_) => self.context,
            None => self.context.min(MIN_GPU_CONTEXT),
        }
    }

    /// The longest context that the GPU has room for, and how keys and values are kept for it. Layers are dropped only
    /// where there is no room for the min_context; `None` where the last one would have to be.
    fn room<E: Executor>(
        &self,
        model: &mut GpuModel<E>,
    ) -> Result<Option<(usize, KvType)>, DeviceError> {
        let (wanted, min_context) = (self.options.kv, self.min_context());
        let fallback = (wanted == KvType::F16).then_some(KvType::Q8_0);
        loop {
            for kv in [wanted].into_iter().chain(fallback) {
                let mut length = self.context;
                while length >= min_context {
                    if model.reserve_kv(kv, length)? {
                        return Ok(Some((length, kv)));
                    }
                    length = match length / 2 {
                        half if half < min_context && length > min_context => min_context,
                        half => half,
                    };
                }
            }
            if !model.drop_first_layer()? {
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
        let layers = self.config.shape.layers - last.blocks();
        let first = self.config.with_layers(layers);
        let cpu = (self.cpu)();
        let weights = weights::load_first_layers(&cpu, self.source, self.config, layers, progress)?;
        let first = CpuModel::new(first, cpu, weights, kv, self.chunk)?;
        Ok(Box::new(Split::new(first, last)))
    }
}

#[cfg(test)]
mod tests;
