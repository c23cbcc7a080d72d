//! What drafts from the context are worth, on texts that are written in advance: the model reads each token at its
//! real cost, and the script stands for what it would have said.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;

use crate::engine::Engine;
use crate::run::generate::{GenerateError, rate};
use crate::run::lookup::Steps;
use crate::run::random::Random;

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

/// Tokens that are there before an answer, and those of an answer.
const CONTEXT: usize = 384;
const ANSWER: usize = 192;

/// A prompt and the answer to it.
pub(crate) struct Script {
    pub text: &'static str,
    pub prompt: Vec<u32>,
    pub answer: Vec<u32>,
}

/// A text of every kind.
pub(crate) fn scripts(vocab: u64) -> [Script; 4] {
    [edit(vocab), summary(vocab), list(vocab), prose(vocab)]
}

impl Engine {
    /// Measures every kind of text `repeats` times, with drafts and without in turns; the medians count.
    pub(super) fn lookup_reports(
        &mut self,
        repeats: usize,
    ) -> Result<Vec<LookupReport>, GenerateError> {
        let vocab = self.config().vocab as u64;
        let mut reports = Vec::new();
        for script in scripts(vocab) {
            let (mut plain, mut guessed) = (Vec::new(), Vec::new());
            let (mut drafted, mut accepted) = (0, 0);
            for _ in 0..repeats {
                plain.push(self.write_out(&script, false)?.0);
                let (seconds, steps) = self.write_out(&script, true)?;
                guessed.push(seconds);
                (drafted, accepted) = (steps.drafted, steps.right);
            }
            let [plain, guessed] = [plain, guessed].map(super::middle);
            reports.push(LookupReport {
                text: script.text,
                plain_tok_s: rate(ANSWER, plain),
                lookup_tok_s: rate(ANSWER, guessed),
                ratio: plain / guessed,
                drafted,
                accepted,
            });
        }
        Ok(reports)
    }

    /// Seconds to write the answer, and how the drafts fared.
    fn write_out(&mut self, script: &Script, lookup: bool) -> Result<(f64, Steps), GenerateError> {
        let never = AtomicBool::new(false);
        self.fill(&script.prompt)?;
        let session = self.session();
        let (mut tokens, mut steps) = (script.prompt.clone(), Steps::new(lookup));
        let started = Instant::now();
        for (at, &id) in script.answer.iter().enumerate() {
            tokens.push(id);
            let room = script.answer.len() - at - 1;
            let _complete = steps.advance(session, &tokens, room, &never)?;
        }
        Ok((started.elapsed().as_secs_f64(), steps))
    }
}

/// Random tokens and pieces of earlier ones.
struct Writer {
    random: Random,
    vocab: u64,
}

impl Writer {
    fn new(seed: u64, vocab: u64) -> Writer {
        let random = Random::new(seed);
        Writer { random, vocab }
    }

    fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.random.bits() % (high - low + 1) as u64) as usize
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "vocabularies are counted in u32"
    )]
    fn fresh(&mut self, count: usize) -> Vec<u32> {
        (0..count)
            .map(|_| (self.random.bits() % self.vocab) as u32)
            .collect()
    }
}

/// The prompt again, with a word or two changed in every line or so.
fn edit(vocab: u64) -> Script {
    let mut writer = Writer::new(1, vocab);
    let prompt = writer.fresh(CONTEXT);
    let (mut answer, mut at) = (Vec::new(), 0);
    while answer.len() < ANSWER {
        let (same, changed) = (writer.between(8, 32), writer.between(1, 3));
        answer.extend(&prompt[at..at + same]);
        answer.extend(writer.fresh(changed));
        at += same + changed;
    }
    answer.truncate(ANSWER);
    Script {
        text: "edit",
        prompt,
        answer,
    }
}

/// Phrases of the prompt among words of its own.
fn summary(vocab: u64) -> Script {
    let mut writer = Writer::new(2, vocab);
    let prompt = writer.fresh(CONTEXT);
    let mut answer = Vec::new();
    while answer.len() < ANSWER {
        let (own, quoted) = (writer.between(2, 6), writer.between(8, 20));
        answer.extend(writer.fresh(own));
        let at = writer.between(0, CONTEXT - quoted);
        answer.extend(&prompt[at..at + quoted]);
    }
    answer.truncate(ANSWER);
    Script {
        text: "summary",
        prompt,
        answer,
    }
}

/// Turns of phrase that come back and go on differently each time: what misleads drafts most.
fn list(vocab: u64) -> Script {
    let mut writer = Writer::new(3, vocab);
    let phrases: Vec<_> = (0..6).map(|_| writer.fresh(4)).collect();
    let mut text = Vec::new();
    while text.len() < CONTEXT + ANSWER {
        let phrase = writer.between(0, phrases.len() - 1);
        text.extend(&phrases[phrase]);
        let own = writer.between(3, 8);
        text.extend(writer.fresh(own));
    }
    text.truncate(CONTEXT + ANSWER);
    let answer = text.split_off(CONTEXT);
    Script {
        text: "list",
        prompt: text,
        answer,
    }
}

/// Nothing comes back.
fn prose(vocab: u64) -> Script {
    let mut writer = Writer::new(4, vocab);
    Script {
        text: "prose",
        prompt: writer.fresh(CONTEXT),
        answer: writer.fresh(ANSWER),
    }
}
