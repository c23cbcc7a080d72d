//! Loads a model on the device of its placement, as far as it fits.

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
    /// The model, without sequences.
    pub session: Session,
    /// The device.
    pub device: ActiveDevice,
    /// Context in tokens that fits.
    pub context: usize,
    /// Storage type of keys and values.
    pub kv: KvType,
}

/// The device that a model runs on.
#[derive(Clone, Debug)]
pub struct ActiveDevice {
    /// True for a GPU, and for a GPU with the CPU.
    pub on_gpu: bool,
    /// Its display name, such as `CPU, AVX-512 VNNI, 2 threads`.
    pub name: String,
    /// The part of the model that fits on the GPU; `None` if everything fits.
    pub fit: Option<GpuFit>,
    /// Error of the GPU before the failover to the CPU.
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

/// The part of a model that fits in a GPU's memory, if not everything does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFit {
    /// Layers on the GPU; the others are on the CPU.
    pub layers: usize,
    /// Layers of the model.
    pub of_layers: usize,
    /// Context in tokens, if it is shorter than wanted.
    pub context: Option<usize>,
    /// Storage type of keys and values, if it is not the wanted one.
    pub kv: Option<KvType>,
}

/// The shortest context with which a GPU is used if no length is requested.
const MIN_GPU_CONTEXT: usize = 4096;

/// Loads the weights for a context of this length in tokens.
///
/// # Errors
/// Fails if the device is out of memory, or this machine lacks the requested CPU level.
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

/// The request to load a model on a GPU.
struct GpuLoadRequest<'a> {
    config: &'a Config,
    source: &'a dyn WeightSource,
    options: &'a LoadOptions,
    gpu: &'a GpuPlacement,
    /// Context in tokens that fits in the CPU's memory.
    context: usize,
    /// Makes the kernels of the layers on the CPU.
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
    /// Loads the weights on a GPU. If not everything fits, it falls back to a shorter context, unless a length is
    /// requested, to keys and values in 8 bits, and to the last layers, with the others on the CPU.
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
        let (fit, layers) = (model.layers(), config.shape.layers);
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

    /// The shortest acceptable context.
    fn min_context(&self) -> usize {
        match self.options.context {
            Some(_) => self.context,
            None => self.context.min(MIN_GPU_CONTEXT),
        }
    }

    /// The longest context that fits on the GPU, and its type of keys and values. Layers are dropped only if not even
    /// the shortest fits; `None` if it does not fit beside one layer.
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

    /// Builds the split model with these last layers.
    fn split<E>(
        &self,
        last: GpuModel<E>,
        kv: KvType,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Box<dyn Evaluate>, OpenError>
    where
        E: Executor + 'static,
    {
        let layers = self.config.shape.layers - last.layers();
        let first = self.config.with_layers(layers);
        let cpu = (self.cpu)();
        let weights = weights::load_first_layers(&cpu, self.source, self.config, layers, progress)?;
        let first = CpuModel::new(first, cpu, weights, kv, self.chunk)?;
        Ok(Box::new(Split::new(first, last)))
    }
}

#[cfg(test)]
mod tests;
