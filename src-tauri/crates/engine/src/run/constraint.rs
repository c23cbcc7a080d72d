//! An answer that is held to a form: the tokens that are allowed next, and the calls that are complete.
//!
//! Thinking is free. Outside of it an answer is text until a call is opened, by a special token or by ordinary text. From
//! there on, or from its beginning if its whole form is given, llguidance decides: the logits of other tokens are
//! masked, and tokens that the form determines are not sampled at all. Everything depends on the tokens alone, so that a
//! draft, another request, or a failover changes nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use llguidance::Matcher;
use llguidance::toktrie::SimpleVob;

use crate::grammar::{AnswerRules, Form, MAX_CALLS, OpeningTag, reason_of};
use crate::run::error::GenerateError;
use crate::run::sampler::suppress;
use crate::text::think::PartTracker;
use crate::text::tokenizer::Tokenizer;

/// The state of an answer that is held to a form.
pub(crate) struct ConstrainedAnswer {
    rules: Arc<AnswerRules>,
    tokenizer: Arc<Tokenizer>,
    state: FormState,
    /// True once the answer may not think any more.
    thought: bool,
    /// Bytes at the end of the text that may be the beginning of an opening.
    begun: Vec<u8>,
    /// True as long as the text is white space alone.
    at_start: bool,
    calls: usize,
    /// Tokens that the form determines, and that are not in the answer yet.
    forced: VecDeque<u32>,
    mask: Option<SimpleVob>,
}

enum FormState {
    /// Text, in which a call may be opened.
    Text,
    /// A form that holds, and the text so far.
    Form(Box<Matcher>, Vec<u8>),
}

/// Result of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenRole {
    /// Text of the answer or its thinking.
    Text,
    /// Text whose last bytes, this number of them, may be the beginning of an opening.
    MayOpen(usize),
    /// The last bytes of the text, this number of them, opened a call.
    Opens(usize),
    /// A part of a call.
    Call,
    /// The last token of a call.
    EndsCall {
        name: String,
        arguments: String,
        /// True if the answer ends with it.
        is_last: bool,
    },
    /// The last token of an answer.
    EndsAnswer,
}

impl ConstrainedAnswer {
    /// Begins an answer behind these tokens.
    pub fn new(rules: Arc<AnswerRules>, tokenizer: Arc<Tokenizer>, prompt: &[u32]) -> Self {
        /// Tokens at the end of a prompt among which the end of an empty thinking may be.
        const TAIL: usize = 4;
        let [_, close] = tokenizer.think_tags();
        let tail = &prompt[prompt.len().saturating_sub(TAIL)..];
        ConstrainedAnswer {
            thought: close.is_some_and(|close| tail.contains(&close)),
            rules,
            tokenizer,
            state: FormState::Text,
            begun: Vec::new(),
            at_start: true,
            calls: 0,
            forced: VecDeque::new(),
            mask: None,
        }
    }

    /// The rules.
    pub fn rules(&self) -> &Arc<AnswerRules> {
        &self.rules
    }

    /// Tokens that are never sampled: the tags of calls depend on the state.
    pub fn suppressed(rules: &AnswerRules, tokenizer: &Tokenizer) -> Vec<u32> {
        let suppressed = tokenizer.suppressed().iter().copied();
        suppressed.filter(|id| !rules.tags.contains(id)).collect()
    }

    /// The next token that the form determines.
    pub fn forced(&mut self) -> Option<u32> {
        self.forced.pop_front()
    }

    /// Masks the logits of the tokens that are not allowed next.
    pub fn mask(&mut self, logits: &mut [f32], parts: &PartTracker) -> Result<(), GenerateError> {
        self.mask = None;
        if parts.is_thinking() {
            self.suppress_tags(logits, false);
            return Ok(());
        }
        if let FormState::Text = self.state {
            let start = match &self.rules.form {
                Form::Json(start) => Some(&**start),
                Form::Calls(calls) => calls.required.as_ref(),
                Form::Text => None,
            };
            match start {
                Some(start) => self.begin(start.deep_clone(), Vec::new()),
                None => {
                    self.suppress_tags(logits, true);
                    return Ok(());
                }
            }
        }
        let FormState::Form(matcher, text) = &mut self.state else {
            return Ok(());
        };
        let mut mask = matcher.compute_mask().map_err(|error| form_error(&error))?;
        let may_think = !self.thought && !parts.position().1 && text.is_empty();
        if let [Some(open), Some(_)] = self.tokenizer.think_tags()
            && may_think
        {
            mask.allow_token(open);
        }
        for (at, logit) in logits.iter_mut().enumerate() {
            if at >= mask.len() || !mask.get(at) {
                *logit = f32::NEG_INFINITY;
            }
        }
        self.mask = Some(mask);
        Ok(())
    }

    /// Suppresses the tags of calls in text, and the tokens that would complete a forbidden opening. Only in an answer can a
    /// call be opened.
    fn suppress_tags(&self, logits: &mut [f32], is_answer: bool) {
        let is_control = |id: &u32| self.tokenizer.is_control(*id);
        let opens = |id: &u32| {
            let openings = self.rules.openings.iter();
            is_answer && openings.filter_map(|it| it.tag.token()).any(|it| it == *id)
        };
        let tags = self.rules.tags.iter().copied();
        let tags: Vec<u32> = tags.filter(|id| is_control(id) && !opens(id)).collect();
        suppress(logits, &tags);
        if !is_answer {
            return;
        }
        for forbidden in &self.rules.forbidden {
            match forbidden {
                OpeningTag::Token(id) => suppress(logits, &[*id]),
                OpeningTag::Text(_) => {
                    for rest in self.rests_of(*forbidden) {
                        self.suppress_beginning(logits, rest);
                    }
                }
            }
        }
        suppress(logits, &self.rules.forbidden_tokens);
    }

    /// The texts that would complete an opening here.
    fn rests_of(&self, opening: OpeningTag) -> Vec<&'static [u8]> {
        let text = opening.text().unwrap_or_default().as_bytes();
        if opening.is_at_start() && !self.at_start {
            return Vec::new();
        }
        let begun = &self.begun;
        let shortest = usize::from(!opening.is_at_start() || !begun.is_empty());
        let lengths = shortest..=begun.len().min(text.len() - 1);
        let lengths = lengths.filter(|length| begun.ends_with(&text[..*length]));
        lengths.map(|length| &text[length..]).collect()
    }

    fn suppress_beginning(&self, logits: &mut [f32], rest: &[u8]) {
        for (id, logit) in (0..).zip(logits.iter_mut()) {
            let piece = self.tokenizer.piece(id);
            // White space may stand before an opening at the start.
            let trimmed = piece.trim_ascii_start();
            if piece.starts_with(rest) || self.begun.is_empty() && trimmed.starts_with(rest) {
                *logit = f32::NEG_INFINITY;
            }
        }
    }

    /// Returns the token to take in place of a sampled one: an allowed one, or the end of an opening without what the
    /// token has behind it.
    pub fn corrected(&mut self, id: u32, parts: &PartTracker) -> u32 {
        if let Some(mask) = &self.mask {
            let is_allowed = (id as usize) < mask.len() && mask.is_allowed(id);
            // Logits that are all NaN or −∞ have no likeliest one.
            let first = mask
                .first_bit_set()
                .and_then(|first| u32::try_from(first).ok());
            return if is_allowed { id } else { first.unwrap_or(id) };
        }
        if parts.is_thinking() {
            return id;
        }
        let piece = self.tokenizer.piece(id);
        let Some((_, behind)) = self.opened_by(piece).filter(|(_, behind)| *behind > 0) else {
            return id;
        };
        let kept = &piece[..piece.len() - behind];
        let mut ids = Vec::new();
        match std::str::from_utf8(kept) {
            Ok(text) => self.tokenizer.encode_ordinary(text, &mut ids),
            Err(_) => return id,
        }
        let mut ids = ids.into_iter();
        let first = ids.next().unwrap_or(id);
        self.forced.extend(ids);
        first
    }

    /// The opening that these bytes complete, and the number of bytes behind it.
    fn opened_by(&self, piece: &[u8]) -> Option<(usize, usize)> {
        let text = [&self.begun, piece].concat();
        let openings = self.rules.openings.iter().enumerate();
        let found = openings.filter_map(|(which, opening)| {
            let tag = opening.tag.text()?.as_bytes();
            let at = if opening.tag.is_at_start() {
                let blank = text.len() - text.trim_ascii_start().len();
                let starts = self.at_start && text[blank..].starts_with(tag);
                starts.then_some(blank)
            } else {
                text.windows(tag.len()).position(|part| part == tag)
            }?;
            Some((at, which, text.len() - at - tag.len()))
        });
        let (_, which, behind) = found.min()?;
        Some((which, behind))
    }

    /// Adds a token of the answer, whose part `parts` knows.
    pub fn push(&mut self, id: u32, parts: &PartTracker) -> Result<TokenRole, GenerateError> {
        if parts.is_thinking() {
            // A form that had begun, with the tag that opens the thinking.
            self.state = FormState::Text;
            self.thought = true;
            return Ok(TokenRole::Text);
        }
        match &mut self.state {
            FormState::Text if self.tokenizer.think_tags().contains(&Some(id)) => {
                Ok(TokenRole::Text)
            }
            FormState::Text => Ok(self.push_text(id)),
            FormState::Form(matcher, text) => {
                matcher
                    .consume_token(id)
                    .map_err(|error| form_error(&error))?;
                text.extend_from_slice(self.tokenizer.piece(id));
                // The token may be one of several that were determined together.
                if self.forced.is_empty() {
                    self.forced.extend(matcher.compute_ff_tokens());
                }
                if let Some(error) = matcher.get_error() {
                    return Err(GenerateError::Form(reason_of(&error)));
                }
                let is_done = matcher.is_stopped();
                let is_json = match &self.rules.form {
                    Form::Calls(rules) if rules.or_json && self.calls == 0 => {
                        let before = text.len() - self.tokenizer.piece(id).len();
                        let blank = text.len() - text.trim_ascii_start().len();
                        match text.get(blank) {
                            None => return Ok(TokenRole::MayOpen(text.len())),
                            Some(b'<') if blank >= before => {
                                return Ok(TokenRole::Opens(text.len()));
                            }
                            Some(first) => *first != b'<',
                        }
                    }
                    form => matches!(form, Form::Json(_)),
                };
                Ok(match (is_done, is_json) {
                    (true, true) => TokenRole::EndsAnswer,
                    (true, false) => self.end_call()?,
                    (false, true) => TokenRole::Text,
                    (false, false) => TokenRole::Call,
                })
            }
        }
    }

    fn push_text(&mut self, id: u32) -> TokenRole {
        let piece = self.tokenizer.piece(id);
        let openings = &self.rules.openings;
        if let Some(opening) = openings.iter().find(|it| it.tag == OpeningTag::Token(id)) {
            let (rest, text) = (opening.rest.deep_clone(), opening.text);
            self.begin(rest, text.as_bytes().to_vec());
            return TokenRole::Opens(text.len());
        }
        if let Some((which, 0)) = self.opened_by(piece) {
            let (rest, text) = (openings[which].rest.deep_clone(), openings[which].text);
            self.begin(rest, text.as_bytes().to_vec());
            return TokenRole::Opens(text.len());
        }
        self.begun.extend_from_slice(piece);
        let length = self.length_begun();
        if length == 0 {
            self.at_start &= self.begun.trim_ascii().is_empty();
        }
        self.begun.drain(..self.begun.len() - length);
        if length == 0 || openings.is_empty() {
            TokenRole::Text
        } else {
            TokenRole::MayOpen(length)
        }
    }

    /// Bytes at the end of the text with which an opening, allowed or not, may begin.
    fn length_begun(&self) -> usize {
        let openings = self.rules.openings.iter().map(|it| it.tag);
        let openings = openings.chain(self.rules.forbidden.iter().copied());
        let lengths = openings.filter_map(|tag| {
            let text = tag.text()?.as_bytes();
            if tag.is_at_start() {
                let begun = self.begun.trim_ascii_start();
                return (self.at_start && text.starts_with(begun)).then_some(begun.len());
            }
            let longest = self.begun.len().min(text.len() - 1);
            let mut lengths = (0..=longest).rev();
            lengths.find(|length| self.begun.ends_with(&text[..*length]))
        });
        lengths.max().unwrap_or(0)
    }

    /// Holds the answer to a form from here on.
    fn begin(&mut self, mut matcher: Matcher, text: Vec<u8>) {
        self.forced.clear();
        // At the start of a whole answer a thinking may come first.
        if !text.is_empty() {
            self.forced.extend(matcher.compute_ff_tokens());
        }
        self.begun.clear();
        self.state = FormState::Form(Box::new(matcher), text);
    }

    /// Ends a call, after which another one may follow.
    fn end_call(&mut self) -> Result<TokenRole, GenerateError> {
        let call = self.call_so_far();
        let (name, arguments) =
            call.ok_or_else(|| GenerateError::Form("a call has no name".to_owned()))?;
        self.calls += 1;
        let next = match &self.rules.form {
            Form::Calls(calls) => calls.next.as_ref().filter(|_| self.calls < MAX_CALLS),
            Form::Text | Form::Json(_) => None,
        };
        let is_last = next.is_none();
        if let Some(next) = next {
            self.begin(next.deep_clone(), Vec::new());
        }
        Ok(TokenRole::EndsCall {
            name,
            arguments,
            is_last,
        })
    }

    /// The call of a form that the end of the turn completes.
    pub fn call_at_end(&mut self) -> Option<(String, String)> {
        let FormState::Form(matcher, text) = &mut self.state else {
            return None;
        };
        let is_complete = !text.is_empty() && matcher.is_accepting().unwrap_or(false);
        is_complete.then(|| self.call_so_far()).flatten()
    }

    fn call_so_far(&self) -> Option<(String, String)> {
        let (FormState::Form(_, text), Form::Calls(calls)) = (&self.state, &self.rules.form) else {
            return None;
        };
        calls.read(&String::from_utf8_lossy(text))
    }
}

fn form_error(error: &impl std::fmt::Display) -> GenerateError {
    GenerateError::Form(reason_of(&error.to_string()))
}

#[cfg(test)]
mod tests;
