//! Passes over given tokens: prefill, and the verification of drafted tokens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::plans::PassPlans;
use super::{DeviceModel, InFlight};
use crate::error::GpuError;
use crate::exec::executor::{Dispatch, Executor};
use crate::model::input::{PassInput, Want};
use crate::plan::pass::PassParams;
use crate::plan::tiling::{MAT_VEC_MAX_TOKENS, MAX_CHUNKS, max_pass_tokens};

/// Submits in flight during prefill: enough that the device is never idle, few enough that Stop does not wait long.
const MAX_IN_FLIGHT: usize = 2;

impl<E: Executor> DeviceModel<E> {
    /// Runs `input` behind the positions in the KV cache and writes the wanted logits, `[positions, V]`. Returns false
    /// when `cancel` was set; the KV cache is then unchanged.
    ///
    /// # Errors
    /// Returns the device's error; the content of the KV cache is then undefined.
    pub fn append(
        &mut self,
        input: PassInput<'_>,
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<bool, GpuError> {
        let width = self.shape.embedding;
        let (mut rest, mut left) = (input, input.tokens(width));
        self.reserve(self.sequence.len + left)?;
        logits.clear();
        let (before, capacity) = (self.sequence.len, max_pass_tokens(&self.exec.limits()));
        while left > 0 {
            let most = self.budget.tokens(self.layer_work(1)).min(capacity);
            let tokens = left.min(most);
            let (now, later) = rest.split_at(tokens, width);
            (rest, left) = (later, left - tokens);
            let here = match want {
                Want::Last if left > 0 => Want::Nothing,
                want => want,
            };
            let pass = self.pass(now, here, cancel, logits);
            if pass != Ok(true) {
                self.sequence.len = before;
                // Nobody waits for these: the time until the next pass is not theirs.
                self.submits.clear();
                return pass;
            }
            self.sequence.len += tokens;
        }
        if logits.iter().any(|logit| !logit.is_finite()) {
            return Err(GpuError::Wrong("NaN or infinite logits".to_owned()));
        }
        Ok(true)
    }

    fn pass(
        &mut self,
        input: PassInput<'_>,
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<bool, GpuError> {
        let plans = self
            .sequence
            .plans
            .take()
            .map_or_else(|| self.build_plans(), Ok)?;
        let tokens = input.tokens(self.shape.embedding);
        let pass_plans = match tokens {
            1 => &plans.decode,
            2..=MAT_VEC_MAX_TOKENS => &plans.small_batch,
            _ => &plans.prefill,
        };
        let max_chunks = if tokens > MAT_VEC_MAX_TOKENS {
            1
        } else {
            MAX_CHUNKS
        };
        let params = PassParams::new(self.sequence.len, tokens, max_chunks);
        let (buffer, bytes) = match input {
            PassInput::Ids(ids) => (&self.buffers.tokens, bytemuck::cast_slice(ids)),
            PassInput::Rows(rows) => (&self.buffers.x, bytemuck::cast_slice(rows)),
        };
        self.exec.write(buffer, 0, bytes)?;
        let mut dispatches = Vec::new();
        if matches!(input, PassInput::Ids(_)) {
            params.record(&pass_plans.embed, &mut dispatches);
        }
        let complete = self.run_layers(pass_plans, params, dispatches, cancel)?;
        if complete {
            self.logits(pass_plans, params, want, logits)?;
        }
        self.sequence.plans = Some(plans);
        Ok(complete)
    }

    /// Runs the layers behind other dispatches, as many per submit as the budget allows; false when cancelled.
    fn run_layers<'a>(
        &mut self,
        plans: &'a PassPlans<E::BoundKernel>,
        params: PassParams,
        mut dispatches: Vec<Dispatch<'a, E::BoundKernel>>,
        cancel: &AtomicBool,
    ) -> Result<bool, GpuError> {
        let work = self.layer_work(params.tokens);
        let mut left = &plans.layers[..];
        while !left.is_empty() {
            if cancel.load(Ordering::Relaxed) {
                return Ok(false);
            }
            // A small batch fits in one submit on any device.
            let most = if params.tokens > MAT_VEC_MAX_TOKENS {
                self.budget.pieces(work)
            } else {
                left.len()
            };
            let (now, later) = left.split_at(left.len().min(most));
            for plan in now {
                params.record(plan, &mut dispatches);
            }
            while self.submits.len() >= MAX_IN_FLIGHT {
                self.retire()?;
            }
            let submission = self.exec.submit(&dispatches, None)?;
            self.submits.push_back(InFlight {
                submission,
                work: work * now.len() as f64,
                started: Instant::now(),
            });
            dispatches.clear();
            left = later;
        }
        Ok(true)
    }

    /// Waits for the first submit in flight and records its duration.
    fn retire(&mut self) -> Result<(), GpuError> {
        if let Some(submit) = self.submits.pop_front() {
            self.exec.wait(submit.submission)?;
            let now = Instant::now();
            let started = self
                .last_retired
                .map_or(submit.started, |at| at.max(submit.started));
            self.budget.record(submit.work, now - started);
            self.last_retired = Some(now);
        }
        Ok(())
    }

    /// Computes and reads the wanted logits.
    fn logits(
        &mut self,
        plans: &PassPlans<E::BoundKernel>,
        params: PassParams,
        want: Want,
        logits: &mut Vec<f32>,
    ) -> Result<(), GpuError> {
        let (first, all) = match want {
            Want::Nothing => return Ok(()),
            Want::Last => (params.tokens - 1, false),
            Want::All => (0, params.tokens > 1),
        };
        let mut dispatches = Vec::new();
        if all {
            params.record(&plans.normed, &mut dispatches);
        }
        for column in (first..params.tokens).step_by(MAT_VEC_MAX_TOKENS) {
            let params = PassParams { column, ..params };
            params.record(if all { &plans.head } else { &plans.last }, &mut dispatches);
            let rows = MAT_VEC_MAX_TOKENS.min(params.tokens - column);
            let bytes = (4 * rows * self.shape.vocab) as u64;
            let readback = Some((&self.buffers.logits, bytes));
            let submission = self.exec.submit(&dispatches, readback)?;
            let read = self.exec.wait(submission)?;
            logits.extend(bytemuck::pod_collect_to_vec::<u8, f32>(&read));
            dispatches.clear();
        }
        // The submits before the logits are done; their end times are unknown.
        self.submits.clear();
        Ok(())
    }

    /// Multiply–adds of a layer over `tokens` tokens.
    fn layer_work(&self, tokens: usize) -> f64 {
        let shape = &self.shape;
        let attention = 2 * shape.embedding * (shape.q_width() + shape.kv_width());
        let weights = attention + 3 * shape.embedding * shape.feed_forward;
        // Every token attends to the whole KV cache.
        let cache = 2 * (self.sequence.len + tokens) * shape.q_width();
        tokens as f64 * (weights + cache) as f64
    }
}
