//! Speedup of speculative decoding on fixed texts: the model evaluates each token at its real cost, and a script
//! replaces the sampled answer.

use std::time::Instant;

use engine::GenerateError;
use engine::run::answer::rate;
use engine::run::speculative::Speculator;
use serde::Serialize;

use crate::instrument::{Instrument, median_of};
use crate::repetitive_texts::{ANSWER, Script, scripts};

/// One text decoded with drafts and without. Rates in tokens per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpeculativeReport {
    /// The kind of text.
    pub text: &'static str,
    /// Rate without drafts.
    pub plain_tok_s: f64,
    /// Rate with drafts.
    pub lookup_tok_s: f64,
    /// The rate with drafts over the rate without.
    pub ratio: f64,
    /// Tokens drafted.
    pub drafted: usize,
    /// Drafted tokens that were accepted.
    pub accepted: usize,
}

impl Instrument<'_> {
    /// Measures every kind of text `repeats` times, alternately with drafts and without; the medians count.
    pub(crate) fn speculative_reports(
        &mut self,
        repeats: usize,
    ) -> Result<Vec<SpeculativeReport>, GenerateError> {
        let vocab = self.engine.config().shape.vocab as u64;
        let mut reports = Vec::new();
        for script in scripts(vocab) {
            let (mut plain, mut drafts_used) = (Vec::new(), Vec::new());
            let (mut drafted, mut accepted) = (0, 0);
            for _ in 0..repeats {
                plain.push(self.write_out(&script, false)?.0);
                let (seconds, speculator) = self.write_out(&script, true)?;
                drafts_used.push(seconds);
                (drafted, accepted) = (speculator.drafted, speculator.accepted);
            }
            let [plain, drafts_used] = [plain, drafts_used].map(median_of);
            reports.push(SpeculativeReport {
                text: script.text,
                plain_tok_s: rate(ANSWER, plain),
                lookup_tok_s: rate(ANSWER, drafts_used),
                ratio: plain / drafts_used,
                drafted,
                accepted,
            });
        }
        Ok(reports)
    }

    /// Measures the seconds to decode the answer; also returns the speculator with its acceptance figures.
    fn write_out(
        &mut self,
        script: &Script,
        lookup: bool,
    ) -> Result<(f64, Speculator), GenerateError> {
        self.fill(&script.prompt)?;
        let session = self.engine.session();
        let (mut tokens, mut speculator) = (script.prompt.clone(), Speculator::new(lookup));
        let started = Instant::now();
        for (at, &id) in script.answer.iter().enumerate() {
            tokens.push(id);
            let room = script.answer.len() - at - 1;
            session.step_drafted(&mut self.sequence, &mut speculator, &tokens, room)?;
        }
        Ok((started.elapsed().as_secs_f64(), speculator))
    }
}
