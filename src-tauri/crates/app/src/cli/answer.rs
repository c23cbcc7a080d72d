//! An answer in progress: its request, its tokens, and its output.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chat::SamplingSettings;
use engine::{
    Conversation, Engine, Event, Finished, GenerateParams, Prompt, Sampling, Signals, StopReason,
    TokenKind, ToolCall,
};

use super::args::AnswerArgs;
use super::folders::data_folder;
use super::output::{self, CliError};
use super::progress::ProgressLine;

impl AnswerArgs {
    /// Applies the preset to values without a flag.
    pub fn over_preset(self) -> Result<AnswerArgs, CliError> {
        let Some(name) = &self.preset else {
            return Ok(self);
        };
        let preset = chat::preset::named(&data_folder()?.database(), name)?;
        let (instructions, sampling) = (preset.instructions.trim().to_owned(), preset.sampling);
        Ok(AnswerArgs {
            no_think: self.no_think || preset.thinking == Some(false),
            system: self
                .system
                .or(Some(instructions).filter(|text| !text.is_empty())),
            temperature: self.temperature.or(sampling.temperature),
            top_p: self.top_p.or(sampling.top_p),
            top_k: self.top_k.or(sampling.top_k),
            min_p: self.min_p.or(sampling.min_p),
            repeat_penalty: self.repeat_penalty.or(sampling.repeat_penalty),
            seed: self.seed.or(sampling.seed),
            ..self
        })
    }

    /// Returns the overrides of the sampling parameters.
    pub fn sampling(&self) -> SamplingSettings {
        SamplingSettings {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            repeat_penalty: self.repeat_penalty,
            seed: self.seed,
        }
    }

    /// Returns the parameters of an answer, by a model with the `usual` sampling.
    pub fn params(&self, usual: &Sampling) -> GenerateParams {
        GenerateParams {
            sampling: self.sampling().over(usual),
            max_tokens: self.max_tokens.map(|tokens| tokens as usize),
            thinking_budget: self.thinking_budget.map(|tokens| tokens as usize),
            goes_on: false,
            lookup: !self.no_lookup,
            stops_repetition: true,
            logprobs: None,
            constraint: None,
        }
    }

    /// Returns a conversation without messages.
    pub fn conversation(&self) -> Conversation {
        Conversation {
            messages: Vec::new(),
            instructions: self.system.clone(),
            thinking: !self.no_think,
            tools: std::sync::Arc::default(),
            today: chat::now().date(),
        }
    }
}

/// An answer as it grows.
#[derive(Default)]
pub struct Answer {
    pub text: String,
    pub thinking: String,
    pub ids: Vec<u32>,
    /// Calls that are complete.
    pub calls: Vec<ToolCall>,
}

impl Answer {
    /// Returns whether the model ended its turn after its thinking.
    pub fn is_thinking_alone(&self, finished: &Finished) -> bool {
        finished.reason == StopReason::EndOfTurn
            && self.text.trim().is_empty()
            && !self.thinking.trim().is_empty()
    }

    /// Appends the next round of an answer.
    pub fn extend(&mut self, next: &Answer) {
        for (text, more) in [
            (&mut self.text, &next.text),
            (&mut self.thinking, &next.thinking),
        ] {
            if !text.is_empty() && !more.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(more);
        }
        self.ids.extend(&next.ids);
        self.calls.extend(next.calls.iter().cloned());
    }

    /// Appends a token to the part that it belongs to.
    pub fn push(&mut self, id: u32, piece: &str, kind: TokenKind) {
        self.ids.push(id);
        match kind {
            TokenKind::Thinking => self.thinking.push_str(piece),
            TokenKind::Answer => self.text.push_str(piece),
            TokenKind::Call | TokenKind::Control => {}
        }
    }
}

/// Lets the model answer and prints it as it comes. Stops when the reader is gone.
pub fn generate(
    engine: &mut Engine,
    prompt: &Prompt,
    params: &GenerateParams,
    cancel: &Arc<AtomicBool>,
    stream: &mut Stream,
) -> Result<(Answer, Finished), CliError> {
    let mut answer = Answer::default();
    let mut written = Ok(());
    let mut bar = ProgressLine::new();
    let signals = Signals::cancelled_by(cancel);
    let finished = engine.generate(prompt, params, &signals, &mut |event| {
        let (id, piece, kind) = match event {
            Event::Prefill { done, total, .. } => {
                return bar.show("Reading", done as u64, total as u64);
            }
            Event::Token { id, piece, kind } => (id, piece, kind),
            Event::Logprobs { .. } => return,
            Event::Call { name, arguments } => {
                answer.calls.push(ToolCall {
                    at: answer.text.len(),
                    name: name.to_owned(),
                    arguments: arguments.to_owned(),
                });
                return;
            }
        };
        bar.clear();
        answer.push(id, piece, kind);
        if written.is_ok() {
            written = stream.write(piece, kind);
            cancel.fetch_or(written.is_err(), Ordering::Relaxed);
        }
    });
    bar.clear();
    written?;
    let finished = finished.map_err(|error| CliError::message(error.to_string()))?;
    stream.end()?;
    Ok((answer, finished))
}

/// Writes pieces as they come: reasoning to stderr, dimmed on a terminal, and the answer to stdout.
pub struct Stream {
    silent: bool,
    last: TokenKind,
    empty: bool,
}

impl Stream {
    pub fn new(silent: bool) -> Self {
        Self {
            silent,
            last: TokenKind::Control,
            empty: true,
        }
    }

    pub fn write(&mut self, piece: &str, kind: TokenKind) -> io::Result<()> {
        let is_shown = matches!(kind, TokenKind::Thinking | TokenKind::Answer);
        if self.silent || !is_shown || piece.is_empty() {
            return Ok(());
        }
        // The template's blank lines before an answer are not part of it.
        let piece = if self.last == kind {
            piece
        } else {
            piece.trim_start_matches('\n')
        };
        if piece.is_empty() {
            return Ok(());
        }
        if self.last == TokenKind::Thinking && kind == TokenKind::Answer {
            writeln!(output::stderr(), "\n")?;
        }
        self.last = kind;
        if kind == TokenKind::Thinking {
            return output::reasoning(piece);
        }
        self.empty = false;
        let mut out = output::content();
        out.write_all(piece.as_bytes())?;
        out.flush()
    }

    /// Ends the last line.
    pub fn end(&mut self) -> io::Result<()> {
        if self.last == TokenKind::Thinking {
            writeln!(output::stderr())?;
        }
        if self.empty {
            Ok(())
        } else {
            writeln!(output::stdout())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_reaches_the_engine_and_the_file_has_the_rest() {
        let usual = Sampling {
            temperature: 0.25,
            top_k: 3,
            top_p: 0.5,
            min_p: 0.125,
            repeat_penalty: 1.75,
            repeat_last_n: 19,
            seed: None,
        };
        let flags = AnswerArgs {
            preset: None,
            no_think: true,
            system: Some("Be brief.".to_owned()),
            max_tokens: Some(33),
            thinking_budget: Some(44),
            temperature: Some(1.25),
            top_p: Some(0.75),
            top_k: Some(17),
            min_p: Some(0.0625),
            repeat_penalty: Some(1.5),
            seed: Some(77),
            no_lookup: true,
        };
        let given = flags.params(&usual);
        let expected = Sampling {
            temperature: 1.25,
            top_k: 17,
            top_p: 0.75,
            min_p: 0.0625,
            repeat_penalty: 1.5,
            repeat_last_n: 19,
            seed: Some(77),
        };
        assert_eq!(given.sampling, expected);
        assert_eq!((given.max_tokens, given.lookup), (Some(33), false));
        assert_eq!((given.thinking_budget, given.goes_on), (Some(44), false));
        let conversation = flags.conversation();
        assert_eq!(conversation.instructions.as_deref(), Some("Be brief."));
        assert!(!conversation.thinking);

        let plain = AnswerArgs::default();
        let given = plain.params(&usual);
        assert_eq!(given.sampling, usual);
        assert_eq!((given.max_tokens, given.lookup), (None, true));
        assert_eq!(given.thinking_budget, None);
        let conversation = plain.conversation();
        assert!(conversation.thinking && conversation.instructions.is_none());
    }

    #[test]
    fn an_answer_is_parted_into_thinking_and_text() {
        let mut answer = Answer::default();
        for (id, piece, kind) in [
            (1, "<think>", TokenKind::Control),
            (2, "Hm.", TokenKind::Thinking),
            (3, "</think>", TokenKind::Control),
            (4, "Yes.", TokenKind::Answer),
        ] {
            answer.push(id, piece, kind);
        }
        assert_eq!((&*answer.thinking, &*answer.text), ("Hm.", "Yes."));
        assert_eq!(answer.ids, [1, 2, 3, 4]);
    }
}
