//! A model under measurement: its cache filled with arbitrary tokens, and medians of the timings.

use std::sync::atomic::AtomicBool;

use engine::run::random::Random;
use engine::{Engine, GenerateError};

/// A model under measurement.
pub(crate) struct Instrument<'a> {
    pub(crate) engine: &'a mut Engine,
}

impl Instrument<'_> {
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

    /// Makes the cache hold exactly `tokens`; a common prefix is reused.
    pub(crate) fn fill(&mut self, tokens: &[u32]) -> Result<(), GenerateError> {
        self.engine.session().truncate(tokens.len());
        if self.engine.session().tokens().len() < tokens.len() {
            let _complete =
                self.engine
                    .session()
                    .prefill(tokens, &AtomicBool::new(false), &mut |_| {})?;
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
