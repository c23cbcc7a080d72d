//! Prompt lookup: text that repeats its context is guessed from it, and a guess is checked in one pass.
//!
//! Reading several tokens may cost little more than reading one, for the weights come from memory once. So where the
//! last few tokens have occurred before, what followed them then is a draft of what follows now. One pass over it
//! gives the logits after each of its tokens. The sampler then goes through them one by one as if there were no
//! draft, and as long as it chooses what the draft says, the next logits are there already; from the first token that
//! differs on, the draft is forgotten.
//!
//! Drafts change how fast an answer comes, not which: every token is drawn by the same sampler, with the same random
//! numbers in the same order, from the same logits. For drafts are made only where a pass over a few tokens gives bit
//! for bit what passes over each of them give ([`Evaluate::batch_limit`](crate::model::evaluate::Evaluate::batch_limit)).
//!
//! Whether a draft pays depends on the machine and on the text, and both are learned. A session measures its passes
//! ([`Costs`]). And whenever the context predicts the next tokens, it is watched how many of them come, whether they
//! were drafted or not: so a text that does not do as it did costs nothing, and one that begins to is noticed.
//! The draft that is expected to gain most is made, if it gains at all. Last, [`Lookup`] keeps an account, in passes over one
//! token: what drafts save is paid in, what they cost is taken out, and what cannot be paid is not tried, however
//! promising it looks.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use crate::model::error::DeviceError;
use crate::model::evaluate::Pass;
use crate::run::session::Session;

mod costs;

pub(crate) use costs::Costs;
use costs::{DRAFTS, hoped};

/// Tokens that must have occurred before; fewer match by accident.
const NGRAM: usize = 3;
/// Tokens that are predicted: the longest draft.
const LONGEST: usize = DRAFTS[DRAFTS.len() - 1];
/// How much of what is known about predictions the next one replaces.
const LEARN: f64 = 0.25;
/// How many times as fast a draft must be expected to make the answer.
const GAIN: f64 = 1.1;
/// What every generated token pays in: the most that drafts may slow a long answer down.
const INCOME: f64 = 0.02;
/// The account at the start.
const START: f64 = 1.0;
/// The most in the account, so that good times do not pay for long bad ones. With so much in it, costs that make drafts
/// seem not to pay are measured anew.
const SAVINGS: f64 = 4.0;

/// An answer's way through the model: every token is read once it is chosen, and with it those that may come next.
pub(crate) struct Steps {
    lookup: Option<Lookup>,
    /// What the last pass read on the chance that it comes next, and how much of it has come.
    draft: Vec<u32>,
    accepted: usize,
    /// Tokens of all drafts, and those of them that have come.
    pub drafted: usize,
    pub right: usize,
}

impl Steps {
    pub fn new(lookup: bool) -> Steps {
        Steps {
            lookup: lookup.then(Lookup::new),
            draft: Vec::new(),
            accepted: 0,
            drafted: 0,
            right: 0,
        }
    }

    /// The logits after the last token.
    pub fn logits<'a>(&self, session: &'a mut Session) -> &'a mut [f32] {
        session.logits(self.accepted)
    }

    /// Goes on to the last of `tokens`, of which `session` holds all the others. At most `room` tokens are drafted.
    pub fn advance(
        &mut self,
        session: &mut Session,
        tokens: &[u32],
        room: usize,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let Some((&id, before)) = tokens.split_last() else {
            return Ok(Pass::Complete);
        };
        if let Some(lookup) = &mut self.lookup {
            lookup.watch(id);
        }
        if self.draft.get(self.accepted) == Some(&id) {
            self.accepted += 1;
            self.right += 1;
            return Ok(Pass::Complete);
        }
        session.truncate(before.len());
        if let Some(lookup) = &mut self.lookup {
            lookup.account(self.draft.len(), self.accepted, session.costs());
            let room = room.min(session.batch_limit() - 1);
            self.draft = lookup.draft(tokens, room, session.costs());
            self.drafted += self.draft.len();
            self.accepted = 0;
        }
        session.step(id, &self.draft, cancel)
    }
}

/// Drafts for one answer.
pub(crate) struct Lookup {
    /// Where what followed an n-gram the last time lies.
    followers: HashMap<[u32; NGRAM], usize>,
    /// Tokens that are in `followers`, as the one after an n-gram.
    indexed: usize,
    /// A prediction, and how many of its tokens have come.
    watched: Option<([u32; LONGEST], usize)>,
    /// How likely the first token of a prediction is to come, the first two, and so on.
    outlook: [f64; LONGEST],
    account: f64,
}

impl Lookup {
    pub fn new() -> Lookup {
        Lookup {
            followers: HashMap::new(),
            indexed: 0,
            watched: None,
            outlook: [0.0; LONGEST],
            account: START,
        }
    }

    /// At most `most` tokens that may follow `tokens`, often none. From call to call, `tokens` may only grow.
    pub fn draft(&mut self, tokens: &[u32], most: usize, costs: &Costs) -> Vec<u32> {
        self.index(tokens);
        let Some(prediction) = self.predict(tokens) else {
            return Vec::new();
        };
        self.watched.get_or_insert((prediction, 0));
        let best = |ratio: &dyn Fn(usize) -> f64| {
            (0..DRAFTS.len())
                .filter(|&i| DRAFTS[i] <= most && costs.ratio(i) - 1.0 <= self.account)
                .map(|i| (DRAFTS[i], self.tokens_a_pass(DRAFTS[i]) / ratio(i)))
                .filter(|&(_, gain)| gain > GAIN)
                .max_by(|(_, a), (_, b)| a.total_cmp(b))
        };
        let mut choice = best(&|i| costs.ratio(i));
        if choice.is_none() && self.account >= SAVINGS {
            choice = best(&hoped);
        }
        choice.map_or_else(Vec::new, |(length, _)| prediction[..length].to_vec())
    }

    /// Looks whether the next token is what was predicted.
    pub fn watch(&mut self, id: u32) {
        let Some((prediction, came)) = &mut self.watched else {
            return;
        };
        let right = prediction[*came] == id;
        *came += usize::from(right);
        if right && *came < LONGEST {
            return;
        }
        for (i, chance) in self.outlook.iter_mut().enumerate() {
            *chance += LEARN * (f64::from(u8::from(i < *came)) - *chance);
        }
        self.watched = None;
    }

    /// Takes note that a pass was made over `drafted` tokens and one before them, and that `accepted` were right.
    pub fn account(&mut self, drafted: usize, accepted: usize, costs: &Costs) {
        let saved = INCOME * (accepted + 1) as f64 + accepted as f64;
        let cost = DRAFTS
            .iter()
            .position(|&draft| draft == drafted)
            .map_or(0.0, |i| costs.ratio(i) - 1.0);
        self.account = (self.account + saved - cost).min(SAVINGS);
    }

    /// Tokens that a pass over a draft is expected to give, the one after those that are right included.
    fn tokens_a_pass(&self, draft: usize) -> f64 {
        1.0 + self.outlook[..draft].iter().sum::<f64>()
    }

    /// What followed the last few tokens the last time.
    fn predict(&self, tokens: &[u32]) -> Option<[u32; LONGEST]> {
        let &at = self.followers.get(&last_ngram(tokens)?)?;
        // A repetition that has just begun may be shorter than that: it goes on repeating itself.
        Some(std::array::from_fn(|i| {
            tokens[at + i % (tokens.len() - at)]
        }))
    }

    /// Takes in the n-grams that are followed by a token.
    fn index(&mut self, tokens: &[u32]) {
        for at in self.indexed.max(NGRAM)..tokens.len() {
            if let Some(ngram) = last_ngram(&tokens[..at]) {
                self.followers.insert(ngram, at);
            }
        }
        self.indexed = tokens.len();
    }
}

fn last_ngram(tokens: &[u32]) -> Option<[u32; NGRAM]> {
    tokens.last_chunk().copied()
}

#[cfg(test)]
mod tests;
