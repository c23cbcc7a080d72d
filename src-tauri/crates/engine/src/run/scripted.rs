//! A scripted model for tests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use inference::Sampling;
use kernels::Cpu;

use crate::model::error::DeviceError;
use crate::model::evaluate::{
    Cache, DeviceSampler, Evaluate, Pass, PassSlot, Want, cache_of, one_by_one,
};
use crate::model::external::Tokens;
use crate::run::sampler::{Sampler, suppress};

/// Logits after the tokens so far.
type Logits = dyn Fn(&[u32]) -> Vec<f32> + Send;

/// A model whose logits a test computes.
pub struct Scripted {
    logits: Box<Logits>,
    /// Called with the number of tokens of each pass.
    on_pass: Box<dyn Fn(usize) + Send>,
}

impl Scripted {
    pub fn new(
        logits: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
        on_pass: impl Fn(usize) + Send + 'static,
    ) -> Scripted {
        Scripted {
            logits: Box::new(logits),
            on_pass: Box::new(on_pass),
        }
    }
}

impl Scripted {
    fn append(
        &self,
        slot: &mut PassSlot<'_>,
        cancel: &AtomicBool,
        out: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        if cancel.load(Ordering::Relaxed) {
            return Ok(Pass::Cancelled);
        }
        (self.on_pass)(slot.ids.len());
        out.clear();
        let Tokens(tokens) = cache_of(slot.cache)?;
        for (i, &id) in slot.ids.iter().enumerate() {
            tokens.push(id);
            if slot.want == Want::All || slot.want == Want::Last && i + 1 == slot.ids.len() {
                out.extend((self.logits)(tokens));
            }
        }
        Ok(Pass::Complete)
    }
}

impl Evaluate for Scripted {
    fn new_cache(&mut self) -> Result<Box<dyn Cache>, DeviceError> {
        Ok(Box::new(Tokens(Vec::new())))
    }

    fn forward(
        &mut self,
        slots: &mut [PassSlot<'_>],
        cancel: &AtomicBool,
        out: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        one_by_one(slots, out, |slot, out| self.append(slot, cancel, out))
    }

    fn chunk(&self) -> usize {
        64
    }

    fn batch_limit(&self) -> usize {
        Cpu::BATCH_INVARIANT_MAX
    }
}

/// A scripted model that samples its likeliest token by itself, as a GPU does.
pub struct SelfSampling {
    model: Scripted,
    suppressed: Vec<u32>,
    /// Tokens sampled by the passes in flight, each with the length of the sequence after its pass.
    in_flight: VecDeque<(usize, u32)>,
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
    fn new_cache(&mut self) -> Result<Box<dyn Cache>, DeviceError> {
        self.model.new_cache()
    }

    fn forward(
        &mut self,
        slots: &mut [PassSlot<'_>],
        cancel: &AtomicBool,
        out: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        self.model.forward(slots, cancel, out)
    }

    fn chunk(&self) -> usize {
        self.model.chunk()
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

    fn submit(
        &mut self,
        cache: &mut dyn Cache,
        id: Option<u32>,
        u: f64,
    ) -> Result<(), DeviceError> {
        let (id, mut logits) = (id.unwrap_or(self.last), Vec::new());
        let never = AtomicBool::new(false);
        let slot = PassSlot {
            cache,
            ids: &[id],
            want: Want::Last,
        };
        let _complete = self.model.forward(&mut [slot], &never, &mut logits)?;
        suppress(&mut logits, &self.suppressed);
        let greedy = Sampling {
            temperature: 0.0,
            ..Sampling::default()
        };
        self.last = Sampler::new(greedy, 0).sample_with(&mut logits, &[], u);
        self.in_flight.push_back((cache.positions(), self.last));
        Ok(())
    }

    fn in_flight(&mut self, cache: &mut dyn Cache) -> Result<usize, DeviceError> {
        self.in_flight.retain(|(len, _)| *len <= cache.positions());
        Ok(self.in_flight.len())
    }

    fn wait(&mut self, _: &mut dyn Cache) -> Result<Option<u32>, DeviceError> {
        Ok(self.in_flight.pop_front().map(|(_, id)| id))
    }
}
