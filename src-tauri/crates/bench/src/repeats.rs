//! What speculative decoding is worth, on texts that are written in advance: the model reads each token at its real
//! cost, and the script stands for the answer.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use engine::GenerateError;
use engine::run::generate::rate;
use engine::run::random::Random;
use engine::run::speculative::Speculator;
use serde::Serialize;

use crate::instrument::{Instrument, median_of};
use repetitive_texts::{ANSWER, Script, scripts};

#[path = "../../repetitive_texts.rs"]
mod repetitive_texts;

/// One text written with drafts and without. Rates in tokens per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LookupReport {
    /// The kind of text.
    pub text: &'static str,
    /// Rate without drafts.
    pub plain_tok_s: f64,
    /// Rate with drafts.
    pub lookup_tok_s: f64,
    /// The second over the first.
    pub ratio: f64,
    /// Tokens drafted.
    pub drafted: usize,
    /// Of these, the ones that were right.
    pub accepted: usize,
}

impl Instrument<'_> {
    /// Measures every kind of text `repeats` times, with drafts and without in turns; the medians count.
    pub(crate) fn lookup_reports(
        &mut self,
        repeats: usize,
    ) -> Result<Vec<LookupReport>, GenerateError> {
        let vocab = self.engine.config().shape.vocab as u64;
        let mut reports = Vec::new();
        for script in scripts(vocab) {
            let (mut plain, mut drafts_used) = (Vec::new(), Vec::new());
            let (mut drafted, mut accepted) = (0, 0);
            for _ in 0..repeats {
                plain.push(self.write_out(&script, false)?.0);
                let (seconds, steps) = self.write_out(&script, true)?;
                drafts_used.push(seconds);
                (drafted, accepted) = (steps.drafted, steps.accepted);
            }
            let [plain, drafts_used] = [plain, drafts_used].map(median_of);
            reports.push(LookupReport {
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

    /// Seconds to write the answer, and how the drafts fared.
    fn write_out(
        &mut self,
        script: &Script,
        lookup: bool,
    ) -> Result<(f64, Speculator), GenerateError> {
        let never = AtomicBool::new(false);
        self.fill(&script.prompt)?;
        let session = self.engine.session();
        let (mut tokens, mut steps) = (script.prompt.clone(), Speculator::new(lookup));
        let started = Instant::now();
        for (at, &id) in script.answer.iter().enumerate() {
            tokens.push(id);
            let room = script.answer.len() - at - 1;
            let _complete = steps.advance(session, &tokens, room, &never)?;
        }
        Ok((started.elapsed().as_secs_f64(), steps))
    }
}
