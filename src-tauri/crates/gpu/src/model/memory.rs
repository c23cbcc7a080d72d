//! The device memory of a model, and how it is reduced.

use kernels::KvType;

use super::DeviceModel;
use crate::error::GpuError;
use crate::exec::executor::Executor;
use crate::plan::kv_cache::GpuKvCache;

impl<E: Executor> DeviceModel<E> {
    /// Number of layers on the device, the last of the model.
    pub fn layers(&self) -> usize {
        self.weights.layers.len()
    }

    /// Frees the memory of the first layer on the device and empties the KV cache. Returns false, with nothing changed,
    /// if it is the only layer.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn drop_first_layer(&mut self) -> Result<bool, GpuError> {
        if self.layers() <= 1 {
            return Ok(false);
        }
        self.weights.layers.remove(0);
        self.clear_cache(self.options.kv)?;
        self.exec.wait_idle()?;
        Ok(true)
    }

    /// Empties the KV cache and sets its type. Returns true if the device has room for `positions`, without keeping the
    /// memory.
    ///
    /// # Errors
    /// Fails if the device fails for another reason than memory.
    pub fn set_kv_type(&mut self, kv: KvType, positions: usize) -> Result<bool, GpuError> {
        self.options.kv = kv;
        self.clear_cache(kv)?;
        let layers = self.layers();
        let mut trial = GpuKvCache::new(&mut self.exec, &self.shape, layers, kv)?;
        let rotary = self.shape.rotary;
        let any_angles = move |_, count| vec![0.0; count * rotary];
        match trial.reserve(&mut self.exec, &self.shape, positions, &any_angles) {
            Ok(()) => Ok(true),
            Err(GpuError::OutOfMemory(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces the KV cache by an empty one.
    fn clear_cache(&mut self, kv: KvType) -> Result<(), GpuError> {
        self.truncate(0);
        self.sequence.plans = None;
        let layers = self.layers();
        self.sequence.cache = GpuKvCache::new(&mut self.exec, &self.shape, layers, kv)?;
        Ok(())
    }

    /// Compiles the kernels and allocates the first part of the KV cache, instead of the first pass. Drivers that
    /// compile at the first dispatch, such as llvmpipe, still do so then.
    ///
    /// # Errors
    /// Fails if the driver refuses a kernel, or the device is out of memory.
    pub fn prepare(&mut self) -> Result<(), GpuError> {
        // Memory of trial allocations is free only once the device is idle.
        self.exec.wait_idle()?;
        self.reserve(1)?;
        if self.sequence.plans.is_none() {
            self.sequence.plans = Some(self.build_plans()?);
        }
        Ok(())
    }
}
