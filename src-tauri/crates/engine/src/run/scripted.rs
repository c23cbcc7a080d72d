//! A scripted model for tests.

use std::sync::atomic::{AtomicBool, Ordering};

use kernels::Cpu;

use crate::model::error::DeviceError;
use crate::model::evaluate::{Evaluate, Pass, Want};

/// Logits after the tokens so far.
type Logits = dyn Fn(&[u32]) -> Vec<f32> + Send;

/// A model whose logits a test computes.
pub struct Scripted {
    logits: Box<Logits>,
    /// Called with the number of tokens of each pass.
    on_pass: Box<dyn Fn(usize) + Send>,
    tokens: Vec<u32>,
}

impl Scripted {
    pub fn new(
        logits: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
        on_pass: impl Fn(usize) + Send + 'static,
    ) -> Scripted {
        Scripted {
            logits: Box::new(logits),
            on_pass: Box::new(on_pass),
            tokens: Vec::new(),
        }
    }
}

impl Evaluate for Scripted {
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        out: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        if cancel.load(Ordering::Relaxed) {
            return Ok(Pass::Cancelled);
        }
        (self.on_pass)(ids.len());
        out.clear();
        for (i, &id) in ids.iter().enumerate() {
            self.tokens.push(id);
            if want == Want::All || want == Want::Last && i + 1 == ids.len() {
                out.extend((self.logits)(&self.tokens));
            }
        }
        Ok(Pass::Complete)
    }

    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
    }

    fn chunk(&self) -> usize {
        64
    }

    fn batch_limit(&self) -> usize {
        Cpu::BATCH_INVARIANT_MAX
    }

    fn kv_bytes(&self) -> usize {
        0
    }
}
