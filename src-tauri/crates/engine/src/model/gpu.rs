//! A model on a GPU, through crate `gpu`: whole passes instead of single operations, because its kernels fuse several.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use gpu::{
    DeviceModel, DeviceSampling, DeviceSequence, Executor, GpuMatrix, GpuNorm, Options, PassInput,
};
use inference::{KvType, Sampling};

use crate::gguf::TensorView;
use crate::model::config::Config;
use crate::model::error::DeviceError;
use crate::model::evaluate::{
    Cache, DeviceSampler, Evaluate, Pass, PassSlot, Profile, Want, cache_of, check_slots,
    one_by_one,
};
use crate::model::rope::Rotation;
use crate::model::weights::{self, DeviceMemory, WeightSource};
use crate::open_error::OpenError;

/// Uploads weights to a GPU.
struct Uploader<E>(RefCell<E>);

impl<E: Executor> DeviceMemory for Uploader<E> {
    type Matrix = GpuMatrix<E::Buffer>;
    type Norm = GpuNorm<E::Buffer>;

    fn matrix(&self, weights: TensorView<'_>) -> Result<Self::Matrix, DeviceError> {
        let TensorView {
            ty,
            rows,
            cols,
            bytes,
        } = weights;
        let matrix = gpu::load_matrix(&mut *self.0.borrow_mut(), ty, rows, cols, bytes)?;
        if !matrix.format().keeps(ty) {
            tracing::info!(from = ty.name(), to = ?matrix.format(), rows, cols, "weights converted for the GPU");
        }
        Ok(matrix)
    }

    fn norm(&self, weights: &[f32]) -> Result<Self::Norm, DeviceError> {
        Ok(gpu::load_norm(&mut *self.0.borrow_mut(), weights)?)
    }
}

/// Tokens of a pass on a GPU, at most; a device that shares its memory splits it.
pub const GPU_CHUNK: usize = 1024;

/// A model on a GPU.
pub struct GpuModel<E: Executor> {
    model: DeviceModel<E>,
    vocab: usize,
    chunk: usize,
}

impl<E: Executor> GpuModel<E> {
    /// Uploads all weights. `chunk` is the most tokens of one pass.
    pub fn load(
        exec: E,
        config: &Config,
        source: &dyn WeightSource,
        options: Options,
        chunk: usize,
        progress: &mut dyn FnMut(f32),
    ) -> Result<GpuModel<E>, OpenError> {
        let model = GpuModel::load_last(exec, config, source, options, chunk, progress)?;
        match config.shape.layers - model.layers() {
            0 => Ok(model),
            missing => {
                let full = format!(
                    "{missing} of {} layers do not fit in its memory",
                    config.shape.layers
                );
                Err(DeviceError::OutOfMemory(full).into())
            }
        }
    }

    /// Uploads the head and as many of the last layers as fit.
    pub fn load_last(
        exec: E,
        config: &Config,
        source: &dyn WeightSource,
        options: Options,
        chunk: usize,
        progress: &mut dyn FnMut(f32),
    ) -> Result<GpuModel<E>, OpenError> {
        let uploader = Uploader(RefCell::new(exec));
        let weights = weights::load_last_layers(&uploader, source, config, progress)?;
        let rotation = Rotation::new(&config.rope, config.shape.rotary);
        let angles = move |first, count| {
            let mut angles = Vec::new();
            rotation.append(first, count, &mut angles);
            angles
        };
        let exec = uploader.0.into_inner();
        let model = DeviceModel::new(
            exec,
            config.shape.clone(),
            options,
            weights,
            Box::new(angles),
        )?;
        Ok(GpuModel {
            model,
            vocab: config.shape.vocab,
            chunk,
        })
    }
}

impl<E: Executor> GpuModel<E> {
    /// Number of layers on the device.
    pub fn layers(&self) -> usize {
        self.model.layers()
    }

    /// Frees the memory of the first layer, if it is not the only one. The cache is empty then.
    pub fn drop_first_layer(&mut self) -> Result<bool, DeviceError> {
        Ok(self.model.drop_first_layer()?)
    }

    /// Makes an empty cache.
    pub fn take_sequence(&mut self) -> Result<DeviceSequence<E>, DeviceError> {
        Ok(self.model.take_sequence()?)
    }

    /// Extends a sequence by `input`, tokens or the residual stream `[m, E]` of the previous layers.
    pub fn append(
        &mut self,
        sequence: &mut DeviceSequence<E>,
        input: PassInput<'_>,
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        let complete = self.with(sequence, |model| model.append(input, want, cancel, logits))?;
        Ok(if complete {
            Pass::Complete
        } else {
            Pass::Cancelled
        })
    }

    /// Cost of a token, given its sequence.
    pub fn profile_of(
        &mut self,
        sequence: &mut DeviceSequence<E>,
    ) -> Result<Option<Profile>, DeviceError> {
        Ok(Some(Profile {
            kernels: self.with(sequence, DeviceModel::profile)?,
            bandwidth: self.model.read_bandwidth()?,
        }))
    }

    /// Runs the model on a sequence.
    fn with<T>(
        &mut self,
        sequence: &mut DeviceSequence<E>,
        run: impl FnOnce(&mut DeviceModel<E>) -> T,
    ) -> T {
        self.model.swap_sequence(sequence);
        let out = run(&mut self.model);
        self.model.swap_sequence(sequence);
        out
    }

    /// Allocates an empty cache of this type for `positions` positions; false if it does not fit.
    pub fn reserve_kv(&mut self, kv: KvType, positions: usize) -> Result<bool, DeviceError> {
        Ok(self.model.set_kv_type(kv, positions)?)
    }

    /// Compiles the kernels, which would otherwise delay the first pass.
    pub fn prepare(&mut self) -> Result<(), DeviceError> {
        Ok(self.model.prepare()?)
    }
}

impl<E: Executor + 'static> Cache for DeviceSequence<E> {
    fn positions(&self) -> usize {
        self.len()
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }

    fn bytes(&self) -> usize {
        self.kv_bytes()
    }
}

impl<E: Executor + 'static> Evaluate for GpuModel<E> {
    fn new_cache(&mut self) -> Result<Box<dyn Cache>, DeviceError> {
        Ok(Box::new(self.take_sequence()?))
    }

    fn forward(
        &mut self,
        slots: &mut [PassSlot<'_>],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        check_slots(slots, self.chunk, self.vocab)?;
        one_by_one(slots, logits, |slot, logits| {
            let sequence = cache_of(slot.cache)?;
            self.append(
                sequence,
                PassInput::Ids(slot.ids),
                slot.want,
                cancel,
                logits,
            )
        })
    }

    fn chunk(&self) -> usize {
        self.chunk
    }

    fn profile(&mut self, cache: &mut dyn Cache) -> Result<Option<Profile>, DeviceError> {
        self.profile_of(cache_of(cache)?)
    }

    fn sampler(&mut self) -> Option<&mut dyn DeviceSampler> {
        Some(self)
    }
}

impl<E: Executor + 'static> DeviceSampler for GpuModel<E> {
    fn configure(&mut self, sampling: &Sampling, suppressed: &[u32]) -> Result<bool, DeviceError> {
        if sampling.penalises() {
            return Ok(false);
        }
        let how = DeviceSampling {
            temperature: if sampling.is_greedy() {
                0.0
            } else {
                sampling.temperature
            },
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            top_k: u32::try_from(sampling.top_k).unwrap_or(0),
        };
        self.model.set_sampling(how, suppressed)?;
        Ok(true)
    }

    fn submit(
        &mut self,
        cache: &mut dyn Cache,
        id: Option<u32>,
        u: f64,
    ) -> Result<(), DeviceError> {
        #[expect(clippy::cast_possible_truncation, reason = "the device samples in f32")]
        let u = u as f32;
        Ok(self.with(cache_of(cache)?, |model| model.submit(id, u))?)
    }

    fn in_flight(&mut self, cache: &mut dyn Cache) -> Result<usize, DeviceError> {
        let sequence: &mut DeviceSequence<E> = cache_of(cache)?;
        Ok(sequence.in_flight())
    }

    fn wait(&mut self, cache: &mut dyn Cache) -> Result<Option<u32>, DeviceError> {
        Ok(self.with(cache_of(cache)?, DeviceModel::wait)?)
    }
}
