//! Generation: prefill, then sample and evaluate one token after another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use inference::{Event, Finished, GenerateParams, Part, Prompt, Signals, Stats, StopReason};

use crate::model::error::DeviceError;
use crate::model::evaluate::Pass;
use crate::run::random::random_seed;
use crate::run::repetition::Repetition;
use crate::run::sampler::{Sampler, suppress};
use crate::run::session::Session;
use crate::run::speculative::Speculator;
use crate::run::thinking_end::ThinkingEnd;
use crate::text::think::{self, PartTracker};
use crate::text::tokenizer::Tokenizer;

/// Error of generating an answer.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The prompt has no tokens.
    #[error("the prompt is empty")]
    Empty,
    /// The prompt fills the context.
    #[error(
        "the conversation is too long: {} in a context of {}",
        figures::tokens(*prompt),
        figures::count(*context)
    )]
    TooLong {
        /// Tokens in the prompt.
        prompt: usize,
        /// Length of the context.
        context: usize,
    },
    /// A token outside of the vocabulary.
    #[error("the model has no token {id}; its ids end at {last}", last = vocabulary.saturating_sub(1))]
    UnknownToken {
        /// Its id.
        id: u32,
        /// Number of tokens in the vocabulary.
        vocabulary: usize,
    },
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(#[from] DeviceError),
}

/// The parts of a loaded model that generate an answer.
pub(crate) struct Generator<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) tokenizer: &'a Tokenizer,
    /// Length of the context, in tokens.
    pub(crate) context: usize,
}

impl Generator<'_> {
    pub(crate) fn run(
        &mut self,
        prompt: &Prompt,
        params: &GenerateParams,
        signals: Signals<'_>,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Finished, GenerateError> {
        let ids = &prompt.ids;
        if ids.is_empty() {
            return Err(GenerateError::Empty);
        }
        if ids.len() >= self.context {
            return Err(GenerateError::TooLong {
                prompt: ids.len(),
                context: self.context,
            });
        }
        let started = Instant::now();
        let mut stats = Stats {
            prompt_tokens: ids.len(),
            seed: params.sampling.seed.unwrap_or_else(random_seed),
            ..Stats::default()
        };
        if self.prefill(prompt, &mut stats, signals.cancel, on_event)? == Pass::Cancelled {
            return Ok(Finished {
                reason: StopReason::Cancelled,
                stats,
            });
        }
        let evaluated = stats.prompt_tokens - stats.cached_tokens;
        stats.read_per_second = rate(evaluated, started.elapsed().as_secs_f64());
        let parts = PartTracker::new(self.tokenizer, prompt.starts_in, prompt.begun);
        let reason = self.answer(parts, params, &mut stats, started, signals, on_event)?;
        Ok(Finished { reason, stats })
    }

    fn prefill(
        &mut self,
        prompt: &Prompt,
        stats: &mut Stats,
        cancel: &AtomicBool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Pass, DeviceError> {
        let total = prompt.ids.len();
        let mut cached = None;
        let pass = self.session.prefill(&prompt.ids, cancel, &mut |done| {
            let cached = *cached.get_or_insert(done);
            on_event(Event::Prefill {
                done,
                total,
                cached,
            });
        });
        stats.cached_tokens = cached.unwrap_or(0);
        pass
    }

    fn answer(
        &mut self,
        mut parts: PartTracker<'_>,
        params: &GenerateParams,
        stats: &mut Stats,
        started: Instant,
        signals: Signals<'_>,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<StopReason, DeviceError> {
        let mut sampler = Sampler::new(params.sampling.clone(), stats.seed)
            .with_suppressed(self.tokenizer.suppressed());
        let mut text = self.tokenizer.decoder_after(self.session.tokens());
        let max_tokens = params.max_tokens.unwrap_or(usize::MAX);
        let mut recent = self.session.tokens().to_vec();
        let lookup = params.lookup && self.session.batch_limit() > 1;
        let mut speculator = Speculator::new(lookup);
        let mut on_device = !lookup && self.session.samples_on_device(&sampler)?;
        let mut thinking =
            ThinkingEnd::new(self.tokenizer, params.thinking_budget, signals.answer_now);
        let mut repetition = params.stops_repetition.then(Repetition::new);
        let mut sampled = None;
        let reason = loop {
            if stats.tokens >= max_tokens {
                break StopReason::MaxTokens;
            }
            if signals.cancel.load(Ordering::Relaxed) {
                break StopReason::Cancelled;
            }
            if thinking.begins(&parts, stats.thinking_tokens, recent.last().copied()) {
                // The model may not think again.
                if let Some(open) = self.tokenizer.special(think::OPEN) {
                    sampler.suppress(open);
                }
                if on_device {
                    self.session.truncate(recent.len());
                    on_device = self.session.samples_on_device(&sampler)?;
                }
            }
            let forced = thinking.next();
            let id = if let Some(id) = forced {
                // Drops the token sampled in its place, and the pass over that token.
                if sampled.take().is_some() {
                    self.session.truncate(recent.len());
                }
                id
            } else if let Some(id) = sampled.take() {
                id
            } else {
                let logits = speculator.logits(self.session);
                if params.goes_on && stats.tokens == 0 {
                    suppress(logits, self.tokenizer.turn_ends());
                }
                sampler.sample(logits, &recent)
            };
            if self.tokenizer.turn_ends().contains(&id) {
                break StopReason::EndOfTurn;
            }
            recent.push(id);
            stats.tokens += 1;
            if stats.tokens == 1 {
                stats.first_token_ms = started.elapsed().as_secs_f64() * 1000.0;
            }
            let mut part = parts.part(id);
            if forced.is_some() && parts.is_thinking() {
                // A token of the end, not of the thinking.
                part = Part::Control;
            }
            stats.thinking_tokens += usize::from(part == Part::Thinking);
            let piece = text.push(id);
            let repeats = repetition.as_mut().is_some_and(|it| it.push(id, piece));
            on_event(Event::Token { id, piece, part });
            if repeats {
                stats.repeated = true;
                break StopReason::Repetition;
            }
            if recent.len() >= self.context {
                break StopReason::ContextFull;
            }
            if stats.tokens == max_tokens {
                break StopReason::MaxTokens;
            }
            if on_device {
                let more = recent.len() + 1 < self.context
                    && stats.tokens + 1 < max_tokens
                    && !thinking.is_under_way();
                sampled = Some(self.session.step_on_device(id, &mut sampler, more)?);
                continue;
            }
            // The last token of a context or an answer is not evaluated.
            let max_draft = (self.context - recent.len()).min(max_tokens - stats.tokens) - 1;
            if speculator.advance(self.session, &recent, max_draft, signals.cancel)?
                == Pass::Cancelled
            {
                break StopReason::Cancelled;
            }
        };
        stats.thinking_cut = thinking.cut();
        (stats.drafted_tokens, stats.accepted_tokens) = (speculator.drafted, speculator.accepted);
        // Drafted tokens that the answer does not have.
        self.session.truncate_to_common(&recent);
        let decoding = started.elapsed().as_secs_f64() - stats.first_token_ms / 1000.0;
        stats.tokens_per_second = rate(stats.tokens.saturating_sub(1), decoding);
        Ok(reason)
    }
}

/// Tokens per second; 0 for a duration of 0.
pub fn rate(tokens: usize, seconds: f64) -> f64 {
    if seconds > 0.0 {
        tokens as f64 / seconds
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
