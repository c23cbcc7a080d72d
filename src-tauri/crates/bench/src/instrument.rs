//! A model under measurement: a sequence of arbitrary tokens, and medians of the timings.

use std::sync::atomic::AtomicBool;

use engine::run::random::Random;
use engine::run::sampler::Sampler;
use engine::run::sequence::Sequence;
use engine::{Engine, GenerateError};

/// A model under measurement.
pub(crate) struct Instrument<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) sequence: Sequence,
}

impl<'a> Instrument<'a> {
    pub(crate) fn new(engine: &'a mut Engine) -> Instrument<'a> {
        let sequence = Sequence::default();
        Instrument { engine, sequence }
    }

    pub(crate) fn arbitrary_tokens(&self, count: usize) -> Vec<u32> {
        let (vocab, mut random) = (self.engine.config().shape.vocab as u64, Random::new(1));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "vocabularies are counted in u32"
        )]
        (0..count.max(1))
            .map(|_| (random.bits() % vocab) as u32)
            .collect()
    }

    /// Makes the sequence hold exactly `tokens`; a common prefix is reused.
    pub(crate) fn fill(&mut self, tokens: &[u32]) -> Result<(), GenerateError> {
        self.sequence.truncate(tokens.len());
        if self.sequence.tokens().len() < tokens.len() {
            self.prefill(tokens)?;
        }
        Ok(())
    }

    /// Reads a prompt; the last token is read in any case.
    pub(crate) fn prefill(&mut self, prompt: &[u32]) -> Result<(), GenerateError> {
        let (session, never) = (self.engine.session(), AtomicBool::new(false));
        let _complete = session.prefill(&mut self.sequence, prompt, &never, &mut |_| {})?;
        Ok(())
    }

    /// Returns true if the device samples.
    pub(crate) fn samples_on_device(&mut self, sampler: &Sampler) -> Result<bool, GenerateError> {
        let session = self.engine.session();
        Ok(session.samples_on_device(&mut self.sequence, sampler)?)
    }

    /// Reads `id` and has the device sample `count` tokens.
    pub(crate) fn decode_on_device(
        &mut self,
        mut id: u32,
        count: usize,
        sampler: &mut Sampler,
    ) -> Result<(), GenerateError> {
        let session = self.engine.session();
        let never = AtomicBool::new(false);
        for left in (0..count).rev() {
            let next = session.step_on_device(&mut self.sequence, id, sampler, left > 0, &never)?;
            id = next.unwrap_or(id);
        }
        Ok(())
    }
}

pub(crate) fn median(
    repeats: usize,
    mut once: impl FnMut() -> Result<f64, GenerateError>,
) -> Result<f64, GenerateError> {
    let seconds = (0..repeats).map(|_| once()).collect::<Result<_, _>>()?;
    Ok(median_of(seconds))
}

pub(crate) fn median_of(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
