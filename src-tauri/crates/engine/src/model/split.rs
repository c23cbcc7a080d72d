//! A model that does not fit on the GPU: the CPU runs the first layers, the GPU the others and the head.

use std::sync::atomic::AtomicBool;

use gpu::Executor;

use crate::model::error::DeviceError;
use crate::model::evaluate::{Evaluate, Pass, Profile, Want};
use crate::model::forward::CpuModel;
use crate::model::gpu::GpuModel;

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

impl<E: Executor> Evaluate for Split<E> {
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        let before = self.first.positions();
        let Some(rows) = self.first.residual(ids, cancel)? else {
            return Ok(Pass::Cancelled);
        };
        let pass = self.last.append_residual(rows, want, cancel, logits);
        if !matches!(pass, Ok(Pass::Complete)) {
            self.first.truncate(before);
        }
        pass
    }

    fn truncate(&mut self, len: usize) {
        self.first.truncate(len);
        self.last.truncate(len);
    }

    fn chunk(&self) -> usize {
        self.first.chunk()
    }

    fn kv_bytes(&self) -> usize {
        self.first.kv_bytes() + self.last.kv_bytes()
    }

    /// Cost of the layers on the GPU, the head and the sampler.
    fn profile(&mut self) -> Result<Option<Profile>, DeviceError> {
        self.last.profile()
    }
}
