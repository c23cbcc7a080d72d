//! Texts that repeat themselves in the ways that answers do, for speculative decoding.

use engine::run::random::Random;

/// Tokens of the context before an answer, and tokens of an answer.
pub const CONTEXT: usize = 384;
pub const ANSWER: usize = 192;

/// A prompt and the answer to it.
pub struct Script {
    pub text: &'static str,
    pub prompt: Vec<u32>,
    pub answer: Vec<u32>,
}

/// A text of every kind.
pub fn scripts(vocab: u64) -> [Script; 4] {
    [edit(vocab), summary(vocab), list(vocab), prose(vocab)]
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

/// Phrases that recur with different continuations: the most misleading text for drafts.
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
