//! A scripted model for tests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use inference::Sampling;
use kernels::Cpu;

use crate::model::error::DeviceError;
use crate::model::evaluate::{DeviceSampler, Evaluate, Pass, Want};
use crate::run::sampler::{Sampler, suppress};

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

/// A scripted model that samples its likeliest token by itself, as a GPU does.
pub struct SelfSampling {
    model: Scripted,
    suppressed: Vec<u32>,
    /// Tokens sampled by the passes in flight.
    in_flight: VecDeque<u32>,
    last: u32,
}

impl SelfSampling {
    pub fn new(model: Scripted) -> SelfSampling {
        SelfSampling {
            model,
            suppressed: Vec::new(),
            in_flight: VecDeque::new(),
            last: 0,
        }
    }
}

impl Evaluate for SelfSampling {
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        out: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        self.model.append(ids, want, cancel, out)
    }

    fn truncate(&mut self, len: usize) {
        self.in_flight.clear();
        self.model.truncate(len);
    }

    fn chunk(&self) -> usize {
        self.model.chunk()
    }

    fn kv_bytes(&self) -> usize {
        0
    }

    fn sampler(&mut self) -> Option<&mut dyn DeviceSampler> {
        Some(self)
    }
}

impl DeviceSampler for SelfSampling {
    fn configure(&mut self, _: &Sampling, suppressed: &[u32]) -> Result<bool, DeviceError> {
        self.suppressed = suppressed.to_vec();
        Ok(true)
    }

    fn submit(&mut self, id: Option<u32>, u: f64) -> Result<(), DeviceError> {
        let (id, mut logits) = (id.unwrap_or(self.last), Vec::new());
        let never = AtomicBool::new(false);
        let _complete = self.model.append(&[id], Want::Last, &never, &mut logits)?;
        suppress(&mut logits, &self.suppressed);
        let greedy = Sampling {
            temperature: 0.0,
            ..Sampling::default()
        };
        self.last = Sampler::new(greedy, 0).sample_with(&mut logits, &[], u);
        self.in_flight.push_back(self.last);
        Ok(())
    }

    fn in_flight(&mut self) -> usize {
        self.in_flight.len()
    }

    fn wait(&mut self) -> Result<Option<u32>, DeviceError> {
        Ok(self.in_flight.pop_front())
    }
}
