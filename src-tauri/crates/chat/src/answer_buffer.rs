//! An answer while it is written: its text, the part already sent to the window, and the deadlines for sending and
//! journaling.

use std::time::{Duration, Instant};

use inference::Part;
use store::Progress;

use crate::view::Stage;

/// Interval in which tokens are batched for the window. The first token goes at once.
const GATHER: Duration = Duration::from_millis(50);

pub(crate) struct AnswerBuffer {
    progress: Progress,
    /// True if the ids of the whole answer are known, not only of its end.
    keeps_ids: bool,
    pub seq: u32,
    pub tokens: u32,
    /// Bytes of the thinking and of the text that the window has.
    flushed: (usize, usize),
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

/// Text that the window does not have yet.
pub(crate) struct Delta {
    pub thinking: String,
    pub text: String,
}

impl AnswerBuffer {
    /// Makes a buffer from the initial progress: empty, or the answer to be continued.
    pub fn new(mut progress: Progress, model: &str, journal_after: Duration) -> AnswerBuffer {
        let empty = progress.text.is_empty() && progress.thinking.is_none();
        let keeps_ids =
            empty || (progress.model.as_deref() == Some(model) && !progress.tokens.is_empty());
        if !keeps_ids || empty {
            progress.tokens.clear();
        }
        progress.model = keeps_ids.then(|| model.to_owned());
        progress.guide = None;
        let flushed = (
            progress.thinking.as_ref().map_or(0, String::len),
            progress.text.len(),
        );
        AnswerBuffer {
            progress,
            keeps_ids,
            seq: 0,
            tokens: 0,
            flushed,
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
    pub fn token(&mut self, at: Instant, id: u32, text: &str, part: Part) -> Option<Stage> {
        self.first_token.get_or_insert(at);
        self.tokens += 1;
        if self.keeps_ids {
            self.progress.tokens.push(id);
        }
        self.journal_due.get_or_insert(at + self.journal_after);
        let stage = match part {
            Part::Control => {
                self.thought = self.progress.thinking.is_some();
                return None;
            }
            Part::Thinking => {
                self.thought = false;
                self.thinking_since.get_or_insert(at);
                let thinking = self.progress.thinking.get_or_insert_default();
                append(thinking, text);
                Stage::Thinking
            }
            Part::Answer => {
                self.end_thinking(at);
                append(&mut self.progress.text, text);
                Stage::Writing
            }
        };
        if self.has_delta() {
            let due = self.last_flush.map_or(at, |last| last + GATHER);
            self.flush_due.get_or_insert(due);
        }
        (std::mem::replace(&mut self.stage, stage) != stage).then_some(stage)
    }

    /// Returns the next deadline.
    pub fn due(&self) -> Option<Instant> {
        [self.flush_due, self.journal_due]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the text that the window lacks, if a flush is due or at the end.
    pub fn delta(&mut self, now: Instant, end: bool) -> Option<Delta> {
        let time = self.flush_due.is_some_and(|due| due <= now);
        if !(time || end && self.has_delta()) {
            return None;
        }
        let (thinking, text) = self.flushed;
        let delta = Delta {
            thinking: self
                .progress
                .thinking
                .as_ref()
                .map_or_else(String::new, |all| all[thinking..].to_owned()),
            text: self.progress.text[text..].to_owned(),
        };
        self.flushed = (thinking + delta.thinking.len(), text + delta.text.len());
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
        if let Some(thinking) = &mut progress.thinking
            && (whole || self.thought || !progress.text.is_empty())
        {
            thinking.truncate(thinking.trim_end().len());
        }
        progress.thinking = progress
            .thinking
            .filter(|thinking| !thinking.trim().is_empty());
        progress
    }

    /// Returns the progress that the window has.
    pub fn flushed(&self, now: Instant) -> Progress {
        let mut progress = self.progress_at(now);
        if let Some(thinking) = &mut progress.thinking {
            thinking.truncate(self.flushed.0);
        }
        progress.text.truncate(self.flushed.1);
        progress
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
        let (thinking, text) = self.flushed;
        self.progress.text.len() > text
            || self
                .progress
                .thinking
                .as_ref()
                .is_some_and(|all| all.len() > thinking)
    }
}

/// Appends text. The template drops the newlines before an answer, so they are no part of it.
fn append(whole: &mut String, text: &str) {
    whole.push_str(if whole.is_empty() {
        text.trim_start_matches(['\n', '\r'])
    } else {
        text
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_of_the_tokens_after_the_first() {
        let begun = Instant::now();
        let mut buffer = AnswerBuffer::new(Progress::default(), "m", Duration::from_millis(250));
        let after = |seconds| begun + Duration::from_secs(seconds);
        buffer.token(begun, 1, "a", Part::Answer);
        assert_eq!(buffer.tokens_per_second(after(2)), 0.0);
        buffer.token(after(1), 2, "b", Part::Answer);
        buffer.token(after(2), 3, "c", Part::Answer);
        assert_eq!(buffer.tokens_per_second(after(2)), 1.0);
    }
}
