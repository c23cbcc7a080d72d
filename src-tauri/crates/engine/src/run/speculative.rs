//! Speculative decoding by prompt lookup: text that repeats its context is drafted from it, and a draft is verified in
//! one pass.
//!
//! A pass over several tokens may cost little more than one over a single token, because the weights come from memory
//! once. If the last few tokens have occurred before, the tokens that followed them then are a draft of the next ones.
//! One pass over it gives the logits after each of its tokens. The sampler then goes through them one by one as if
//! there were no draft; as long as its samples match the draft, the next logits are available, and from the first token
//! that differs the draft is dropped.
//!
//! Drafts change how fast an answer comes, not which answer: every token is drawn by the same sampler, with the same
//! random numbers in the same order, from the same logits. Drafts are made only where a pass over a few tokens gives
//! bit for bit what passes over each of them give
//! ([`Evaluate::batch_limit`](crate::model::evaluate::Evaluate::batch_limit)).
//!
//! Both the machine and the text decide if a draft saves time, so both are measured. A session measures its passes
//! ([`PassCosts`]). Whenever the context predicts the next tokens, the acceptance rate is updated, drafted or not: a
//! text whose predictions are wrong costs nothing, and better predictions raise the rate again. The draft with the
//! largest expected speedup is made, if any has one. Last, a [`Drafter`] has a budget, in passes over one token: the
//! savings of drafts are added, their costs subtracted, and a draft that exceeds the budget is not made.

use std::collections::HashMap;

use crate::run::costs::{DRAFTS, PassCosts, assumed_ratio};

/// Tokens that must have occurred before; fewer match by accident.
const NGRAM: usize = 3;
/// Tokens that are predicted: the longest draft.
const LONGEST: usize = DRAFTS[DRAFTS.len() - 1];
/// The weight of the latest prediction in the acceptance rates.
const LEARNING_RATE: f64 = 0.25;
/// Least expected speedup of a draft.
const MIN_GAIN: f64 = 1.1;
/// Budget added per generated token: the largest slowdown of a long answer by drafts.
const BUDGET_PER_TOKEN: f64 = 0.02;
/// The budget at the start.
const INITIAL_BUDGET: f64 = 1.0;
/// The largest budget, so that accepted drafts do not pay for many rejected ones. With all of it left, costs that make
/// drafts look too expensive are measured once more.
const MAX_BUDGET: f64 = 4.0;

/// Decides about the draft that is read together with a sampled token.
pub struct Speculator {
    drafter: Option<Drafter>,
    /// The draft that the last pass read, and how many of its tokens are accepted.
    draft: Vec<u32>,
    accepted_now: usize,
    /// Tokens of all drafts.
    pub drafted: usize,
    /// Accepted tokens of all drafts.
    pub accepted: usize,
}

impl Speculator {
    /// A speculator that makes drafts if `speculate`.
    pub fn new(speculate: bool) -> Speculator {
        Speculator {
            drafter: speculate.then(Drafter::new),
            draft: Vec::new(),
            accepted_now: 0,
            drafted: 0,
            accepted: 0,
        }
    }

    /// Row of the logits after the last token, among those of the last pass.
    pub(crate) fn row(&self) -> usize {
        self.accepted_now
    }

    /// Returns true if the next token is that of the draft: the last pass has read it.
    pub(crate) fn accepts(&mut self, id: u32) -> bool {
        if let Some(drafter) = &mut self.drafter {
            drafter.observe(id);
        }
        let accepts = self.draft.get(self.accepted_now) == Some(&id);
        if accepts {
            self.accepted_now += 1;
            self.accepted += 1;
        }
        accepts
    }

    /// Learns from a token that was not sampled.
    pub(crate) fn observes(&mut self, id: u32) {
        if let Some(drafter) = &mut self.drafter {
            drafter.observe(id);
        }
    }

    /// Drops the draft, whose logits are lost.
    pub(crate) fn drop_draft(&mut self) {
        self.draft.clear();
        self.accepted_now = 0;
    }

    /// Drafts at most `max_draft` tokens behind `tokens`, for the next pass.
    pub(crate) fn draft(&mut self, tokens: &[u32], max_draft: usize, costs: &PassCosts) -> &[u32] {
        if let Some(drafter) = &mut self.drafter {
            drafter.record(self.draft.len(), self.accepted_now, costs);
            self.draft = drafter.draft(tokens, max_draft, costs);
            self.drafted += self.draft.len();
            self.accepted_now = 0;
        }
        &self.draft
    }
}

/// Makes the drafts of one answer.
pub(crate) struct Drafter {
    /// Position of the token after the last occurrence of each n-gram.
    followers: HashMap<[u32; NGRAM], usize>,
    /// Number of tokens indexed in `followers`.
    indexed: usize,
    /// The prediction under observation, and the number of its tokens that were right.
    observed: Option<([u32; LONGEST], usize)>,
    /// Acceptance rates: how often the first token of a prediction is right, the first two, and so on.
    acceptance: [f64; LONGEST],
    /// Budget, in passes over one token.
    budget: f64,
}

impl Drafter {
    pub fn new() -> Drafter {
        Drafter {
            followers: HashMap::new(),
            indexed: 0,
            observed: None,
            acceptance: [0.0; LONGEST],
            budget: INITIAL_BUDGET,
        }
    }

    /// At most `max_draft` tokens that may follow `tokens`, often none. From call to call, `tokens` may only grow.
    pub fn draft(&mut self, tokens: &[u32], max_draft: usize, costs: &PassCosts) -> Vec<u32> {
        self.index(tokens);
        let Some(prediction) = self.predict(tokens) else {
            return Vec::new();
        };
        self.observed.get_or_insert((prediction, 0));
        let best = |ratio: &dyn Fn(usize) -> f64| {
            (0..DRAFTS.len())
                .filter(|&i| DRAFTS[i] <= max_draft && costs.ratio(i) - 1.0 <= self.budget)
                .map(|i| (DRAFTS[i], self.tokens_per_pass(DRAFTS[i]) / ratio(i)))
                .filter(|&(_, gain)| gain > MIN_GAIN)
                .max_by(|(_, a), (_, b)| a.total_cmp(b))
        };
        let mut choice = best(&|i| costs.ratio(i));
        if choice.is_none() && self.budget >= MAX_BUDGET {
            choice = best(&assumed_ratio);
        }
        choice.map_or_else(Vec::new, |(length, _)| prediction[..length].to_vec())
    }

    /// Compares the next token with the prediction.
    pub fn observe(&mut self, id: u32) {
        let Some((prediction, accepted)) = &mut self.observed else {
            return;
        };
        let is_right = prediction[*accepted] == id;
        *accepted += usize::from(is_right);
        if is_right && *accepted < LONGEST {
            return;
        }
        for (i, rate) in self.acceptance.iter_mut().enumerate() {
            *rate += LEARNING_RATE * (f64::from(u8::from(i < *accepted)) - *rate);
        }
        self.observed = None;
    }

    /// Updates the budget after a pass over `drafted` tokens and one before them, with `accepted` of them accepted.
    pub fn record(&mut self, drafted: usize, accepted: usize, costs: &PassCosts) {
        let saved = BUDGET_PER_TOKEN * (accepted + 1) as f64 + accepted as f64;
        let cost = DRAFTS
            .iter()
            .position(|&draft| draft == drafted)
            .map_or(0.0, |i| costs.ratio(i) - 1.0);
        self.budget = (self.budget + saved - cost).min(MAX_BUDGET);
    }

    /// Expected tokens of a pass over a draft, including the one after the accepted ones.
    fn tokens_per_pass(&self, draft: usize) -> f64 {
        1.0 + self.acceptance[..draft].iter().sum::<f64>()
    }

    /// The tokens after the last occurrence of the last n-gram.
    fn predict(&self, tokens: &[u32]) -> Option<[u32; LONGEST]> {
        let &at = self.followers.get(&last_ngram(tokens)?)?;
        // A repetition that is shorter than the prediction repeats.
        Some(std::array::from_fn(|i| {
            tokens[at + i % (tokens.len() - at)]
        }))
    }

    /// Indexes the n-grams that are followed by a token.
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
