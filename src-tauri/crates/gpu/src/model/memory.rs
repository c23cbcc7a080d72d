//! How much of a device's memory a model takes, and making do with less.

use kernels::KvType;

use super::DeviceModel;
use crate::error::GpuError;
use crate::exec::executor::Executor;
use crate::plan::buffers::GpuKvCache;

impl<E: Executor> DeviceModel<E> {
    /// Blocks that are on the device.
    pub fn blocks(&self) -> usize {
        self.shape.layers
    }

    /// Gives back the memory of the first block, if it is not the only one. The cache is empty then.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn shed(&mut self) -> Result<bool, GpuError> {
        if self.blocks() <= 1 {
            return Ok(false);
        }
        self.truncate(0);
        self.plans = None;
        self.weights.layers.remove(0);
        self.shape.keep_last(self.weights.layers.len());
        self.cache = GpuKvCache::new(&mut self.exec, &self.shape, self.options.kv)?;
        self.exec.settle()?;
        Ok(true)
    }

    /// Bytes that the cache holds.
    pub fn kv_bytes(&self) -> usize {
        self.cache.bytes(&self.shape)
    }

    /// Keeps keys and values so from now on, in an empty cache, if the device has room for `positions` of them. The
    /// room is not taken yet.
    ///
    /// # Errors
    /// When the device fails otherwise than for want of memory.
    pub fn make_room(&mut self, kv: KvType, positions: usize) -> Result<bool, GpuError> {
        self.truncate(0);
        self.plans = None;
        self.options.kv = kv;
        self.cache = GpuKvCache::new(&mut self.exec, &self.shape, kv)?;
        let mut trial = GpuKvCache::new(&mut self.exec, &self.shape, kv)?;
        let rotary = self.shape.rotary;
        let any_angles = move |_, count| vec![0.0; count * rotary];
        match trial.reserve(&mut self.exec, &self.shape, positions, &any_angles) {
            Ok(_) => Ok(true),
            Err(GpuError::OutOfMemory(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Hands the kernels to the driver and takes the first of the cache's memory, which else the first pass does. A
    /// driver that compiles a kernel only when it first runs, as Mesa's software one, still takes its time then.
    ///
    /// # Errors
    /// When the driver refuses a kernel, or the device has no room.
    pub fn prepare(&mut self) -> Result<(), GpuError> {
        // What was only tried is free once the device has come to rest.
        self.exec.settle()?;
        self.reserve(1)?;
        if self.plans.is_none() {
            self.plans = Some(self.plan()?);
        }
        Ok(())
    }
}
