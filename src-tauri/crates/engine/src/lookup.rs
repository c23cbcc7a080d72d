//! Prompt lookup: text that repeats its context is guessed from it, and a guess is checked in one pass.
//!
//! Reading several tokens costs far less than reading them one by one, for the weights come from memory once. So
//! where the last few tokens have occurred before, what followed them then is a draft of what follows now. One pass
//! over it gives the logits after each of its tokens. The sampler then goes through them one by one as if there were
//! no draft, and as long as it chooses what the draft says, the next logits are there already; from the first token
//! that differs on, the draft is forgotten.
//!
//! Every token is thus drawn from the model's own distribution, with the same random numbers in the same order:
//! drafts change how fast an answer comes, not which. What can differ is what differs between any two ways to read
//! the same tokens, the rounding of sums in passes of another size.
//!
//! A draft that fails has cost time. [`Lookup`] keeps an account, in units of a pass over one token: what drafts save
//! is paid in, what they cost is taken out, and what cannot be paid is not tried.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use crate::backend::BackendError;
use crate::forward::Pass;
use crate::session::Session;

/// Tokens that must have occurred before; fewer match by accident.
const NGRAM: usize = 4;
/// Shortest and longest draft: shorter ones do not earn what they cost, and a pass over many more tokens is bound by
/// arithmetic.
const SHORTEST: usize = 4;
const LONGEST: usize = 16;
/// What a pass over several tokens costs more than one over a single token, and what each drafted token adds: as
/// measured on SmolLM3-3B in Q4_K_M with AVX-512 VNNI.
const PASS_COST: f32 = 1.5;
const TOKEN_COST: f32 = 0.2;
/// What every generated token pays in, so that a context that begins to repeat itself late is noticed: the most that
/// drafts may slow a long answer down.
const INCOME: f32 = 0.02;
/// The account at the start: enough for one draft.
const START: f32 = 2.5;
/// The most in the account, so that good times do not pay for long bad ones.
const SAVINGS: f32 = 6.0;

fn cost(drafted: usize) -> f32 {
    match drafted {
        0 => 0.0,
        _ => PASS_COST + TOKEN_COST * drafted as f32,
    }
}

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
    ) -> Result<Pass, BackendError> {
        let Some((&id, before)) = tokens.split_last() else {
            return Ok(Pass::Complete);
        };
        if self.draft.get(self.accepted) == Some(&id) {
            self.accepted += 1;
            self.right += 1;
            return Ok(Pass::Complete);
        }
        session.truncate(before.len());
        if let Some(lookup) = &mut self.lookup {
            lookup.account(self.draft.len(), self.accepted);
            self.draft = lookup.draft(tokens, room);
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
    account: f32,
    /// Tokens to draft, as far as the account allows.
    length: usize,
}

impl Lookup {
    pub fn new() -> Lookup {
        Lookup {
            followers: HashMap::new(),
            indexed: 0,
            account: START,
            length: SHORTEST,
        }
    }

    /// At most `most` tokens that may follow `tokens`, often none. From call to call, `tokens` may only grow.
    pub fn draft(&mut self, tokens: &[u32], most: usize) -> Vec<u32> {
        self.index(tokens);
        let affordable = ((self.account - PASS_COST) / TOKEN_COST) as usize;
        let length = self.length.min(affordable).min(most);
        if length < SHORTEST {
            return Vec::new();
        }
        let follower = last_ngram(tokens).and_then(|ngram| self.followers.get(&ngram));
        match follower {
            // A repetition that has just begun may be shorter than the draft: it goes on repeating itself.
            Some(&at) => (0..length)
                .map(|i| tokens[at + i % (tokens.len() - at)])
                .collect(),
            None => Vec::new(),
        }
    }

    /// Takes note that a pass was made over `drafted` tokens and one before them, and that `accepted` were right.
    pub fn account(&mut self, drafted: usize, accepted: usize) {
        let saved = INCOME * (accepted + 1) as f32 + accepted as f32;
        self.account = (self.account + saved - cost(drafted)).min(SAVINGS);
        if drafted > 0 {
            let next = if accepted == drafted {
                2 * drafted
            } else {
                accepted + 1
            };
            self.length = next.clamp(SHORTEST, LONGEST);
        }
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
