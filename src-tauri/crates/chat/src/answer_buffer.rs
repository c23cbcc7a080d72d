//! An answer while it is written: its text, the part already sent to the window, and the deadlines for sending and
//! journaling.

use std::time::{Duration, Instant};

use inference::{Part, Parts, TokenKind};
use store::Progress;

use crate::rounds::{self, ROUND_END};
use crate::view::Stage;

/// Interval in which tokens are batched for the window. The first token goes at once.
const GATHER: Duration = Duration::from_millis(50);

pub(crate) struct AnswerBuffer {
    progress: Progress,
    /// True if the ids of the whole answer are known, not only of its end.
    keeps_ids: bool,
    /// Ids of a call that is not complete.
    call_ids: Vec<u32>,
    pub seq: u32,
    pub tokens: u32,
    /// Bytes of the parts that the window has.
    flushed: usize,
    stage: Stage,
    first_token: Option<Instant>,
    thinking_since: Option<Instant>,
    /// True once a tag has closed the thinking.
    thought: bool,
    flush_due: Option<Instant>,
    last_flush: Option<Instant>,
    journal_due: Option<Instant>,
    /// Maximum delay before a token is journaled.
    journal_after: Duration,
}

impl AnswerBuffer {
    /// Makes a buffer from the initial progress: empty, or the answer to be continued.
    pub fn new(mut progress: Progress, model: &str, journal_after: Duration) -> AnswerBuffer {
        let empty = progress.parts.0.is_empty();
        let keeps_ids =
            empty || (progress.model.as_deref() == Some(model) && !progress.tokens.is_empty());
        if !keeps_ids || empty {
            progress.tokens.clear();
        }
        if let Some(Part::ToolResult { .. }) = progress.parts.0.last() {
            // A round that was stopped before its first word.
            let end = progress.tokens.iter().rposition(|id| *id == ROUND_END);
            progress.tokens.truncate(end.map_or(0, |end| end + 1));
        }
        progress.model = keeps_ids.then(|| model.to_owned());
        progress.guide = None;
        AnswerBuffer {
            flushed: progress.parts.bytes(),
            progress,
            keeps_ids,
            call_ids: Vec::new(),
            seq: 0,
            tokens: 0,
            stage: Stage::Waiting,
            first_token: None,
            thinking_since: None,
            thought: false,
            flush_due: None,
            last_flush: None,
            journal_due: None,
            journal_after,
        }
    }

    /// Appends a token that was made at this time. Returns the stage if it is a new one.
    pub fn token(&mut self, at: Instant, id: u32, text: &str, kind: TokenKind) -> Option<Stage> {
        self.first_token.get_or_insert(at);
        self.tokens += 1;
        if self.keeps_ids && kind == TokenKind::Call {
            self.call_ids.push(id);
        } else if self.keeps_ids {
            self.progress.tokens.push(id);
        }
        self.journal_due.get_or_insert(at + self.journal_after);
        let stage = match kind {
            TokenKind::Control => {
                self.thought = self.progress.parts.thinking().is_some();
                return None;
            }
            TokenKind::Call => {
                self.end_thinking(at);
                self.thought = true;
                Stage::Calling
            }
            TokenKind::Thinking => {
                self.thought = false;
                self.thinking_since.get_or_insert(at);
                let text = self.appended(text, |last| matches!(last, Part::Thinking { .. }));
                self.progress.parts.push_thinking(text);
                Stage::Thinking
            }
            TokenKind::Answer => {
                self.end_thinking(at);
                let text = self.appended(text, Part::is_text);
                if !text.is_empty() {
                    self.progress.parts.push_text(text);
                }
                Stage::Writing
            }
        };
        if self.has_delta() {
            let due = self.last_flush.map_or(at, |last| last + GATHER);
            self.flush_due.get_or_insert(due);
        }
        (std::mem::replace(&mut self.stage, stage) != stage).then_some(stage)
    }

    /// Appends a call that is complete. `id`: a new one.
    pub fn call(&mut self, at: Instant, id: String, name: &str, arguments: &str) {
        self.progress.tokens.append(&mut self.call_ids);
        self.progress.parts.0.push(Part::ToolCall {
            id,
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        });
        self.journal_due.get_or_insert(at + self.journal_after);
        self.flush_due.get_or_insert(at);
    }

    /// Returns the number of its calls.
    pub fn calls(&self) -> usize {
        rounds::calls(&self.progress.parts).count()
    }

    /// Returns the next deadline.
    pub fn due(&self) -> Option<Instant> {
        [self.flush_due, self.journal_due]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the parts that the window lacks, if a flush is due or at the end. The first one continues the last that it
    /// has, if that is of the same kind.
    pub fn delta(&mut self, now: Instant, end: bool) -> Option<Parts> {
        let time = self.flush_due.is_some_and(|due| due <= now);
        if !(time || end && self.has_delta()) {
            return None;
        }
        let delta = self.split().1;
        self.flushed += delta.bytes();
        self.flush_due = None;
        self.last_flush = Some(now);
        self.seq += 1;
        Some(delta)
    }

    /// Returns the progress to journal, if that is due.
    pub fn journal(&mut self, now: Instant) -> Option<Progress> {
        if self.journal_due.is_none_or(|due| due > now) {
            return None;
        }
        self.journal_due = None;
        Some(self.progress_at(now))
    }

    /// Returns the whole answer once the model has stopped. Thinking that can be continued keeps its trailing blanks:
    /// they precede what comes then. `whole`: the answer is not to be continued.
    pub fn finish(&mut self, now: Instant, whole: bool) -> Progress {
        self.end_thinking(now);
        let mut progress = self.progress.clone();
        let parts = &mut progress.parts.0;
        let is_open = !(whole || self.thought);
        let last = parts.len().saturating_sub(1);
        for (at, kind) in parts.iter_mut().enumerate() {
            if let Part::Thinking { text } = kind
                && (at < last || !is_open)
            {
                text.truncate(text.trim_end().len());
            }
        }
        parts.retain(|part| match part {
            Part::Thinking { text } => !text.trim().is_empty(),
            Part::Text { .. } | Part::ToolCall { .. } | Part::ToolResult { .. } => true,
        });
        progress
    }

    /// Returns the progress that the window has.
    pub fn flushed(&self, now: Instant) -> Progress {
        Progress {
            parts: self.split().0,
            ..self.progress_at(now)
        }
    }

    /// Returns the rate since the first token.
    pub fn tokens_per_second(&self, now: Instant) -> f32 {
        let seconds = self
            .first_token
            .map_or(0.0, |first| now.duration_since(first).as_secs_f32());
        if self.tokens < 2 || seconds <= 0.0 {
            return 0.0;
        }
        (self.tokens - 1) as f32 / seconds
    }

    fn progress_at(&self, now: Instant) -> Progress {
        Progress {
            thinking_ms: self.thinking_ms(now),
            ..self.progress.clone()
        }
    }

    fn thinking_ms(&self, now: Instant) -> Option<u32> {
        let Some(since) = self.thinking_since else {
            return self.progress.thinking_ms;
        };
        let ms = u32::try_from(now.duration_since(since).as_millis()).unwrap_or(u32::MAX);
        Some(self.progress.thinking_ms.unwrap_or(0).saturating_add(ms))
    }

    fn end_thinking(&mut self, now: Instant) {
        self.progress.thinking_ms = self.thinking_ms(now);
        self.thinking_since = None;
    }

    fn has_delta(&self) -> bool {
        self.progress.parts.bytes() > self.flushed
    }

    /// Returns the parts that the window has, and those that it lacks.
    fn split(&self) -> (Parts, Parts) {
        let (mut flushed, mut rest) = (Parts::default(), Parts::default());
        let mut left = self.flushed;
        for kind in &self.progress.parts.0 {
            let bytes = kind.content().len();
            let (mut before, mut after) = (kind.clone(), kind.clone());
            before.content_mut().truncate(left);
            after.content_mut().drain(..left.min(bytes));
            if bytes == 0 || left > 0 {
                flushed.0.push(before);
            }
            if bytes > left {
                rest.0.push(after);
            }
            left = left.saturating_sub(bytes);
        }
        (flushed, rest)
    }

    /// Returns what a piece appends to the last part, if that is of its kind, or to a new one. The template drops the
    /// newlines before an answer, so they are no part of it.
    fn appended<'t>(&self, text: &'t str, is_of_kind: impl Fn(&Part) -> bool) -> &'t str {
        match self.progress.parts.0.last() {
            Some(last) if is_of_kind(last) && !last.content().is_empty() => text,
            _ => text.trim_start_matches(['\n', '\r']),
        }
    }
}

#[cfg(test)]
mod tests {
    use inference::ToolOutcome;

    use super::*;

    #[test]
    fn the_rate_is_of_the_tokens_after_the_first() {
        let begun = Instant::now();
        let mut buffer = AnswerBuffer::new(Progress::default(), "m", Duration::from_millis(250));
        let after = |seconds| begun + Duration::from_secs(seconds);
        buffer.token(begun, 1, "a", TokenKind::Answer);
        assert_eq!(buffer.tokens_per_second(after(2)), 0.0);
        buffer.token(after(1), 2, "b", TokenKind::Answer);
        buffer.token(after(2), 3, "c", TokenKind::Answer);
        assert_eq!(buffer.tokens_per_second(after(2)), 1.0);
    }

    #[test]
    fn a_round_that_was_stopped_before_its_first_word_begins_again() {
        let result = Part::ToolResult {
            id: "1".to_owned(),
            text: "6".to_owned(),
            outcome: ToolOutcome::Done,
            server: None,
        };
        let progress = Progress {
            parts: Parts(vec![result]),
            tokens: vec![5, ROUND_END, 7, 8],
            model: Some("m".to_owned()),
            ..Progress::default()
        };
        let mut buffer = AnswerBuffer::new(progress, "m", Duration::ZERO);
        let finished = buffer.finish(Instant::now(), false);
        assert_eq!(finished.tokens, [5, ROUND_END]);
    }

    #[test]
    fn the_deltas_are_the_answer_and_what_was_flushed_is_its_beginning() {
        let begun = Instant::now();
        let mut buffer = AnswerBuffer::new(Progress::default(), "m", Duration::from_secs(9));
        let pieces = [
            ("\n", TokenKind::Thinking),
            ("H", TokenKind::Thinking),
            ("m. ", TokenKind::Thinking),
            ("", TokenKind::Control),
            ("\n", TokenKind::Answer),
            ("Si", TokenKind::Answer),
            ("x.", TokenKind::Answer),
        ];
        let mut sent = Parts::default();
        for (at, (text, kind)) in (0..).zip(pieces) {
            let now = begun + at * GATHER / 2;
            buffer.token(now, at, text, kind);
            for part in buffer.delta(now, false).unwrap_or_default().0 {
                match part {
                    Part::Thinking { text } => sent.push_thinking(&text),
                    part => sent.push_text(part.content()),
                }
            }
            assert_eq!(buffer.flushed(now).parts.bytes(), sent.bytes(), "{text:?}");
            if sent.bytes() > 0 {
                assert_eq!(buffer.flushed(now).parts, sent);
            }
        }
        let last = buffer.delta(begun, true).expect("the rest");
        sent.push_text(&last.text());
        assert_eq!(sent, Parts::of_answer(Some("Hm. ".into()), "Six."));
        let whole = buffer.finish(begun, true).parts;
        assert_eq!(whole, Parts::of_answer(Some("Hm.".into()), "Six."));
    }
}
