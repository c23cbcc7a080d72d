//! A model that does not fit on the GPU: the CPU runs the first layers, the GPU the others and the head.

use std::sync::atomic::AtomicBool;

use gpu::{DeviceSequence, Executor, PassInput};

use crate::model::error::DeviceError;
use crate::model::evaluate::{Cache, Evaluate, Pass, PassSlot, Profile, cache_of, one_by_one};
use crate::model::forward::{CpuModel, CpuSlot};
use crate::model::gpu::GpuModel;
use crate::model::kv_cache::KvCache;

/// A model split between CPU and GPU. Only the residual stream of a pass is copied between them.
pub struct Split<E: Executor> {
    first: CpuModel,
    last: GpuModel<E>,
}

impl<E: Executor> Split<E> {
    /// Joins the embedding and the first layers with the other layers and the head.
    pub fn new(first: CpuModel, last: GpuModel<E>) -> Split<E> {
        Split { first, last }
    }
}

/// The cache of a sequence of a [`Split`].
struct SplitCache<E: Executor> {
    first: KvCache,
    last: DeviceSequence<E>,
}

impl<E: Executor + 'static> Cache for SplitCache<E> {
    fn positions(&self) -> usize {
        self.last.len()
    }

    fn truncate(&mut self, len: usize) {
        self.first.truncate(len);
        self.last.truncate(len);
    }

    fn bytes(&self) -> usize {
        self.first.bytes() + self.last.kv_bytes()
    }
}

impl<E: Executor> Split<E> {
    fn append(
        &mut self,
        slot: &mut PassSlot<'_>,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError>
    where
        E: 'static,
    {
        let cache: &mut SplitCache<E> = cache_of(slot.cache)?;
        let before = cache.positions();
        let first = CpuSlot {
            cache: &mut cache.first,
            ids: slot.ids,
            want: slot.want,
        };
        let Some(rows) = self.first.residual(first, cancel)? else {
            return Ok(Pass::Cancelled);
        };
        let rows = PassInput::Rows(rows);
        let pass = self
            .last
            .append(&mut cache.last, rows, slot.want, cancel, logits);
        if !matches!(pass, Ok(Pass::Complete)) {
            cache.first.truncate(before);
        }
        pass
    }
}

impl<E: Executor + 'static> Evaluate for Split<E> {
    fn new_cache(&mut self) -> Result<Box<dyn Cache>, DeviceError> {
        Ok(Box::new(SplitCache {
            first: self.first.empty_cache(),
            last: self.last.take_sequence()?,
        }))
    }

    fn forward(
        &mut self,
        slots: &mut [PassSlot<'_>],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        self.first.check(slots)?;
        one_by_one(slots, logits, |slot, logits| {
            self.append(slot, cancel, logits)
        })
    }

    fn chunk(&self) -> usize {
        self.first.chunk()
    }

    /// Cost of the layers on the GPU, the head and the sampler.
    fn profile(&mut self, cache: &mut dyn Cache) -> Result<Option<Profile>, DeviceError> {
        let cache: &mut SplitCache<E> = cache_of(cache)?;
        self.last.profile_of(&mut cache.last)
    }
}
