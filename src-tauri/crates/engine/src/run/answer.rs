//! An answer in progress: from logits to tokens, text and parts, up to the reason for its end.

use std::sync::Arc;
use std::time::Instant;

use inference::{
    Event, Finished, GenerateParams, ModelRequest, Signals, Stats, StopReason, TokenKind,
};

use crate::grammar::AnswerRules;
use crate::run::constraint::{ConstrainedAnswer, TokenRole};
use crate::run::error::GenerateError;
use crate::run::logprobs::Logprobs;
use crate::run::random::random_seed;
use crate::run::repetition::Repetition;
use crate::run::sampler::{Sampler, suppress};
use crate::run::thinking_end::ThinkingEnd;
use crate::text::think::PartTracker;
use crate::text::tokenizer::{Decoder, Tokenizer};

/// An answer in progress. Whoever evaluates its tokens calls [`AnswerWriter::stops`] before each of them, takes the token from
/// [`AnswerWriter::forced`] or [`AnswerWriter::sample`], and passes it to [`AnswerWriter::push`].
pub(crate) struct AnswerWriter {
    tokenizer: Arc<Tokenizer>,
    /// Length of the context, in tokens.
    context: usize,
    params: GenerateParams,
    signals: Signals,
    started: Instant,
    /// Time of the first pass over its prompt.
    reading_since: Option<Instant>,
    pub(crate) sampler: Sampler,
    parts: PartTracker,
    text: Decoder,
    thinking: ThinkingEnd,
    repetition: Option<Repetition>,
    constraint: Option<ConstrainedAnswer>,
    logprobs: Option<Logprobs>,
    /// Tokens that may open a call and are not reported yet, with their text.
    held: Vec<(u32, String)>,
    /// The prompt and the answer.
    tokens: Vec<u32>,
    pub(crate) stats: Stats,
}

impl AnswerWriter {
    /// Begins the answer to a request, in a context of this length.
    pub(crate) fn new(
        tokenizer: &Arc<Tokenizer>,
        context: usize,
        request: &ModelRequest,
        rules: Option<Arc<AnswerRules>>,
    ) -> AnswerWriter {
        let ModelRequest {
            prompt,
            params,
            signals,
            ..
        } = request;
        let seed = params.sampling.seed.unwrap_or_else(random_seed);
        let suppressed = match &rules {
            Some(rules) => ConstrainedAnswer::suppressed(rules, tokenizer),
            None => tokenizer.suppressed().to_vec(),
        };
        let constraint =
            rules.map(|rules| ConstrainedAnswer::new(rules, Arc::clone(tokenizer), &prompt.ids));
        AnswerWriter {
            tokenizer: Arc::clone(tokenizer),
            context,
            params: params.clone(),
            signals: signals.clone(),
            started: Instant::now(),
            reading_since: None,
            sampler: Sampler::new(params.sampling.clone(), seed).with_suppressed(&suppressed),
            parts: PartTracker::new(tokenizer, prompt.starts_in, prompt.begun),
            text: tokenizer.decoder_after(&prompt.ids),
            thinking: ThinkingEnd::new(params.thinking_budget, Arc::clone(&signals.answer_now)),
            repetition: params.stops_repetition.then(Repetition::new),
            constraint,
            logprobs: params.logprobs.map(Logprobs::new),
            held: Vec::new(),
            tokens: prompt.ids.clone(),
            stats: Stats {
                prompt_tokens: prompt.ids.len(),
                seed,
                ..Stats::default()
            },
        }
    }

    /// Records the begin of the prefill. Returns false if it has begun before.
    pub(crate) fn begins_reading(&mut self) -> bool {
        let begins = self.reading_since.is_none();
        self.reading_since.get_or_insert_with(Instant::now);
        begins
    }

    /// Records the end of the prefill.
    pub(crate) fn prompt_is_read(&mut self) {
        let evaluated = self.stats.prompt_tokens - self.stats.cached_tokens;
        let since = self.reading_since.unwrap_or(self.started);
        self.stats.read_per_second = rate(evaluated, since.elapsed().as_secs_f64());
    }

    /// The tokens of the prompt and the answer.
    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Number of tokens that may follow the last one.
    pub(crate) fn room(&self) -> usize {
        let max_tokens = self.params.max_tokens.unwrap_or(usize::MAX);
        (self.context - self.tokens.len()).min(max_tokens - self.stats.tokens)
    }

    /// Returns the reason if the answer ends before another token.
    pub(crate) fn stops(&self) -> Option<StopReason> {
        if self.params.max_tokens == Some(self.stats.tokens) {
            return Some(StopReason::MaxTokens);
        }
        let is_cancelled = self.signals.is_cancelled();
        is_cancelled.then_some(StopReason::Cancelled)
    }

    /// Decides if the thinking ends now. Returns true if so; [`AnswerWriter::forced`] then returns the closing tokens, and the
    /// sampler has changed.
    pub(crate) fn ends_thinking(&mut self) -> bool {
        let (tokens, last) = (self.stats.thinking_tokens, self.tokens.last().copied());
        let ends = self
            .thinking
            .begins(&self.tokenizer, &self.parts, tokens, last);
        if ends && let [Some(open), _] = self.tokenizer.think_tags() {
            // The model may not think again.
            self.sampler.suppress(open);
        }
        ends
    }

    /// Returns the next token if it is forced.
    pub(crate) fn forced(&mut self) -> Option<u32> {
        self.thinking.next().or_else(|| self.determined())
    }

    /// Returns the next token if the form of the answer determines it.
    pub(crate) fn determined(&mut self) -> Option<u32> {
        self.constraint.as_mut()?.forced()
    }

    /// Returns true if the host has to see the logits of every token.
    pub(crate) fn needs_logits(&self) -> bool {
        self.constraint.is_some() || self.logprobs.is_some()
    }

    /// The form of the answer.
    pub(crate) fn rules(&self) -> Option<&Arc<AnswerRules>> {
        self.constraint.as_ref().map(ConstrainedAnswer::rules)
    }

    /// Returns true if the token after the next one may be sampled before the next one is known.
    pub(crate) fn may_look_ahead(&self) -> bool {
        self.room() > 1 && !self.thinking.is_under_way()
    }

    /// Samples the next token from the logits `[vocab]` after the last one.
    ///
    /// # Errors
    /// Fails if the answer cannot be held to its form any longer.
    pub(crate) fn sample(&mut self, logits: &mut [f32]) -> Result<u32, GenerateError> {
        if let Some(logprobs) = &mut self.logprobs {
            logprobs.read(logits);
        }
        if self.params.goes_on && self.stats.tokens == 0 {
            suppress(logits, self.tokenizer.turn_ends());
        }
        if let Some(constraint) = &mut self.constraint {
            constraint.mask(logits, &self.parts)?;
        }
        let id = self.sampler.sample(logits, &self.tokens);
        Ok(match &mut self.constraint {
            Some(constraint) => constraint.corrected(id, &self.parts),
            None => id,
        })
    }

    /// Appends a token. Returns the reason if the answer ends with it, or before it at the end of the turn.
    ///
    /// # Errors
    /// Fails if the answer cannot be held to its form any longer.
    pub(crate) fn push(
        &mut self,
        id: u32,
        is_forced: bool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<StopReason>, GenerateError> {
        if self.tokenizer.turn_ends().contains(&id) {
            self.report_held(on_event);
            let constraint = self.constraint.as_mut();
            if let Some((name, arguments)) = constraint.and_then(ConstrainedAnswer::call_at_end) {
                on_event(Event::Call {
                    name: &name,
                    arguments: &arguments,
                });
            }
            return Ok(Some(StopReason::EndOfTurn));
        }
        if let Some(logprobs) = &self.logprobs {
            logprobs.report(id, is_forced, on_event);
        }
        self.tokens.push(id);
        self.stats.tokens += 1;
        if self.stats.tokens == 1 {
            self.stats.first_token_ms = self.started.elapsed().as_secs_f64() * 1000.0;
        }
        let mut kind = self.parts.kind(&self.tokenizer, id);
        if is_forced && self.parts.is_thinking() {
            // A token of the end, not of the thinking.
            kind = TokenKind::Control;
        }
        self.stats.thinking_tokens += usize::from(kind == TokenKind::Thinking);
        let piece = self.text.push(self.tokenizer.piece(id));
        let repeats = self
            .repetition
            .as_mut()
            .is_some_and(|it| it.push(id, piece));
        let ends = match &mut self.constraint {
            Some(constraint) => {
                let role = constraint.push(id, &self.parts)?;
                let piece = piece.to_owned();
                self.report(id, piece, kind, role, on_event)
            }
            None => {
                on_event(Event::Token { id, piece, kind });
                false
            }
        };
        if ends {
            return Ok(Some(StopReason::EndOfTurn));
        }
        if repeats {
            self.stats.repeated = true;
            return Ok(Some(StopReason::Repetition));
        }
        if self.tokens.len() >= self.context {
            return Ok(Some(StopReason::ContextFull));
        }
        let is_last = self.params.max_tokens == Some(self.stats.tokens);
        Ok(is_last.then_some(StopReason::MaxTokens))
    }

    /// Reports a token of an answer that is held to a form. Returns true if the answer ends with it.
    fn report(
        &mut self,
        id: u32,
        piece: String,
        kind: TokenKind,
        role: TokenRole,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> bool {
        let token = |kind, on_event: &mut dyn FnMut(Event<'_>)| {
            let piece = &*piece;
            on_event(Event::Token { id, piece, kind });
        };
        match role {
            TokenRole::Text | TokenRole::EndsAnswer => {
                self.report_held(on_event);
                token(kind, on_event);
                role == TokenRole::EndsAnswer
            }
            TokenRole::MayOpen(bytes) => {
                self.held.push((id, piece));
                // The first tokens do not belong to it any more.
                let mut left: usize = self.held.iter().map(|(_, piece)| piece.len()).sum();
                let before = self.held.iter().take_while(|(_, piece)| {
                    left -= piece.len();
                    left >= bytes
                });
                let before = before.count();
                for (id, piece) in self.held.drain(..before) {
                    let (piece, kind) = (&*piece, TokenKind::Answer);
                    on_event(Event::Token { id, piece, kind });
                }
                false
            }
            TokenRole::Opens(bytes) => {
                self.held.push((id, piece));
                let all: usize = self.held.iter().map(|(_, piece)| piece.len()).sum();
                let mut before = all.saturating_sub(bytes);
                for (id, piece) in self.held.drain(..) {
                    // Text before the call, in its first token.
                    let kind = match before {
                        0 => TokenKind::Call,
                        _ => TokenKind::Answer,
                    };
                    let length = if before > 0 {
                        before.min(piece.len())
                    } else {
                        piece.len()
                    };
                    before -= length.min(before);
                    let piece = piece.get(..length).unwrap_or(&piece);
                    on_event(Event::Token { id, piece, kind });
                }
                false
            }
            TokenRole::Call => {
                token(TokenKind::Call, on_event);
                false
            }
            TokenRole::EndsCall {
                name,
                arguments,
                is_last,
            } => {
                token(TokenKind::Call, on_event);
                on_event(Event::Call {
                    name: &name,
                    arguments: &arguments,
                });
                is_last
            }
        }
    }

    /// Reports the tokens that opened no call.
    pub(crate) fn report_held(&mut self, on_event: &mut dyn FnMut(Event<'_>)) {
        for (id, piece) in self.held.drain(..) {
            let (piece, kind) = (&*piece, TokenKind::Answer);
            on_event(Event::Token { id, piece, kind });
        }
    }

    /// Ends the answer.
    pub(crate) fn finish(mut self, reason: StopReason) -> Finished {
        self.stats.thinking_cut = self.thinking.cut();
        let decoding = self.started.elapsed().as_secs_f64() - self.stats.first_token_ms / 1000.0;
        self.stats.tokens_per_second = rate(self.stats.tokens.saturating_sub(1), decoding);
        Finished {
            reason,
            stats: self.stats,
        }
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
