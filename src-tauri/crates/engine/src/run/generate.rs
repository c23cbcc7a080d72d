//! From a prompt to an answer, token by token.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::model::error::DeviceError;
use crate::model::evaluate::Pass;
use crate::run::random::fresh_seed;
use crate::run::sampler::{Sampler, Sampling};
use crate::run::session::Session;
use crate::run::speculative::Speculator;
use crate::text::think::{Part, PartTracker};
use crate::text::tokenizer::Tokenizer;

/// How an answer is made.
#[derive(Clone, Debug)]
pub struct GenerateParams {
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Most tokens to generate; `None` leaves it to the context.
    pub max_tokens: Option<usize>,
    /// What the first token belongs to; thinking when an answer goes on that was stopped in mid-thought.
    pub starts_in: Part,
    /// Guess text that repeats the context, and check the guesses several at once, where that is found to pay. The
    /// answer is the same either way.
    pub lookup: bool,
}

impl Default for GenerateParams {
    fn default() -> Self {
        GenerateParams {
            sampling: Sampling::default(),
            max_tokens: None,
            starts_in: Part::Answer,
            lookup: false,
        }
    }
}

/// Something that happened on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The prompt is being read.
    Prefill {
        /// Tokens in the cache.
        done: usize,
        /// Tokens in the prompt.
        total: usize,
        /// Tokens that were in the cache already.
        cached: usize,
    },
    /// A token was generated. The token that ends the turn is not reported.
    Token {
        /// Its id.
        id: u32,
        /// The text that is complete with it: whole characters, sometimes none.
        piece: &'a str,
        /// What the token belongs to.
        part: Part,
    },
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended its turn.
    EndOfTurn,
    /// As many tokens as were asked for.
    MaxTokens,
    /// The context is full.
    ContextFull,
    /// The cancel flag was set.
    Cancelled,
}

/// What an answer took. Times in seconds, rates in tokens per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Tokens in the prompt.
    pub prompt: usize,
    /// Of these, tokens that were in the cache already.
    pub cached: usize,
    /// Tokens generated.
    pub generated: usize,
    /// Of these, tokens of thinking.
    pub thinking: usize,
    /// Time to read the prompt.
    pub prefill_s: f64,
    /// Rate of reading the tokens that were new.
    pub prefill_rate: f64,
    /// Time to the first token.
    pub first_token_s: f64,
    /// Rate of generating, the first token not counted.
    pub decode_rate: f64,
    /// Tokens that were guessed from the context.
    pub drafted: usize,
    /// Of these, tokens that were right.
    pub accepted: usize,
    /// The seed that would give this answer again.
    pub seed: u64,
}

/// An answer's end.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Why it ended.
    pub reason: StopReason,
    /// What it took.
    pub stats: Stats,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// There is nothing to go on from.
    #[error("the prompt is empty")]
    Empty,
    /// The prompt leaves no room for an answer.
    #[error(
        "the conversation is too long: {} where the context has room for {}",
        figures::tokens(*prompt),
        figures::count(*context)
    )]
    TooLong {
        /// Tokens in the prompt.
        prompt: usize,
        /// Length of the context.
        context: usize,
    },
    /// A token that the model does not have.
    #[error("the model has no token {id}; its ids end at {last}", last = vocabulary.saturating_sub(1))]
    UnknownToken {
        /// The id that was asked for.
        id: u32,
        /// Number of tokens in the vocabulary.
        vocabulary: usize,
    },
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(#[from] DeviceError),
}

/// What generating needs of a loaded model.
pub(crate) struct Generator<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) tokenizer: &'a Tokenizer,
    /// Most tokens in the cache.
    pub(crate) context: usize,
}

impl Generator<'_> {
    pub(crate) fn run(
        &mut self,
        prompt: &[u32],
        params: &GenerateParams,
        cancel: &AtomicBool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Finished, GenerateError> {
        if prompt.is_empty() {
            return Err(GenerateError::Empty);
        }
        if prompt.len() >= self.context {
            return Err(GenerateError::TooLong {
                prompt: prompt.len(),
                context: self.context,
            });
        }
        let started = Instant::now();
        let seed = params.sampling.seed.unwrap_or_else(fresh_seed);
        let mut stats = Stats {
            prompt: prompt.len(),
            seed,
            ..Stats::default()
        };
        if self.read(prompt, &mut stats, cancel, on_event)? == Pass::Cancelled {
            return Ok(Finished {
                reason: StopReason::Cancelled,
                stats,
            });
        }
        stats.prefill_s = started.elapsed().as_secs_f64();
        stats.prefill_rate = rate(stats.prompt - stats.cached, stats.prefill_s);
        let reason = self.answer(seed, params, &mut stats, started, cancel, on_event)?;
        Ok(Finished { reason, stats })
    }

    fn read(
        &mut self,
        prompt: &[u32],
        stats: &mut Stats,
        cancel: &AtomicBool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Pass, DeviceError> {
        let mut cached = None;
        let pass = self.session.read(prompt, cancel, &mut |done| {
            let cached = *cached.get_or_insert(done);
            on_event(Event::Prefill {
                done,
                total: prompt.len(),
                cached,
            });
        });
        stats.cached = cached.unwrap_or(0);
        pass
    }

    fn answer(
        &mut self,
        seed: u64,
        params: &GenerateParams,
        stats: &mut Stats,
        started: Instant,
        cancel: &AtomicBool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<StopReason, DeviceError> {
        let mut sampler =
            Sampler::new(params.sampling.clone(), seed).suppressing(self.tokenizer.suppressed());
        let mut parts = PartTracker::new(self.tokenizer, params.starts_in);
        let mut text = self.tokenizer.decoder_after(self.session.tokens());
        let most = params.max_tokens.unwrap_or(usize::MAX);
        let mut recent = self.session.tokens().to_vec();
        let lookup = params.lookup && self.session.batch_limit() > 1;
        let mut speculator = Speculator::new(lookup);
        let on_device = !lookup && self.session.samples_on_device(&sampler)?;
        let mut chosen = None;
        let reason = loop {
            if stats.generated >= most {
                break StopReason::MaxTokens;
            }
            if cancel.load(Ordering::Relaxed) {
                break StopReason::Cancelled;
            }
            let id = chosen
                .take()
                .unwrap_or_else(|| sampler.sample(speculator.logits(self.session), &recent));
            if self.tokenizer.turn_ends().contains(&id) {
                break StopReason::EndOfTurn;
            }
            recent.push(id);
            stats.generated += 1;
            if stats.generated == 1 {
                stats.first_token_s = started.elapsed().as_secs_f64();
            }
            let part = parts.part(id);
            stats.thinking += usize::from(part == Part::Thinking);
            on_event(Event::Token {
                id,
                piece: text.push(id),
                part,
            });
            if recent.len() >= self.context {
                break StopReason::ContextFull;
            }
            if stats.generated == most {
                break StopReason::MaxTokens;
            }
            if on_device {
                let more = recent.len() + 1 < self.context && stats.generated + 1 < most;
                chosen = Some(self.session.step_on_device(id, &mut sampler, more)?);
                continue;
            }
            // The last token of a context or an answer is not read.
            let room = (self.context - recent.len()).min(most - stats.generated) - 1;
            if speculator.advance(self.session, &recent, room, cancel)? == Pass::Cancelled {
                break StopReason::Cancelled;
            }
        };
        (stats.drafted, stats.accepted) = (speculator.drafted, speculator.accepted);
        self.session.truncate(recent.len());
        let decoding = started.elapsed().as_secs_f64() - stats.first_token_s;
        stats.decode_rate = rate(stats.generated.saturating_sub(1), decoding);
        Ok(reason)
    }
}

/// Tokens per second; 0 in no time.
pub fn rate(tokens: usize, seconds: f64) -> f64 {
    if seconds > 0.0 {
        tokens as f64 / seconds
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
