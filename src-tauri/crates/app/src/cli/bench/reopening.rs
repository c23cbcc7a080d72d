//! Time to the first token of a chat that is reopened after a restart of the app.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use chat::{Failure, ModelChoice, ModelHost, ModelOptions};
use engine::run::random::Random;
use engine::{
    Conversation, Finished, GenerateParams, ModelRequest, Priority, Prompt, RequestId, Role,
    Sampling, Signals, Turn,
};
use host::EngineModel;
use serde::Serialize;

use crate::cli::output::CliError;

/// Figures of a chat of one length. Times are from a sent question to the first token of its answer.
#[derive(Debug, Serialize)]
pub struct Reopening {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Seconds without cached blocks, with prefill of the whole chat.
    pub cold_s: f64,
    /// Seconds to restore the blocks from the disk and to prefill the rest, when the chat is opened.
    pub restore_s: f64,
    /// Seconds after that.
    pub reopened_s: f64,
    /// Restored tokens of the prompt.
    pub restored: usize,
    /// Bytes of the chat's blocks.
    pub disk_bytes: u64,
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// Measures a chat with `tokens` tokens before the question.
pub fn measure(
    model: &ModelChoice,
    options: &ModelOptions,
    tokens: u32,
) -> Result<Reopening, CliError> {
    let folder = tempfile::tempdir().map_err(|error| CliError::message(error.to_string()))?;
    let mut first = App::open(model, options, folder.path())?;
    let before = first.prompt(&chat(tokens, None))?;
    let cold = first.first_token(&chat(tokens, Some(QUESTION)))?;
    first.keep(&before)?;
    // Two models may exceed the memory.
    drop(first);

    let mut second = App::open(model, options, folder.path())?;
    let started = Instant::now();
    second.run(Priority::ReadAhead, &before)?;
    let restore_s = started.elapsed().as_secs_f64();
    let reopened = second.first_token(&chat(tokens, Some(QUESTION)))?;
    Ok(Reopening {
        prompt: reopened.prompt,
        cold_s: cold.seconds,
        restore_s,
        reopened_s: reopened.seconds,
        restored: reopened.cached,
        disk_bytes: bytes_below(folder.path()),
    })
}

const QUESTION: &str = "Which of them matters most, and why?";

/// Makes a question, an answer of `tokens` arbitrary tokens, and the next question.
fn chat(tokens: u32, question: Option<&str>) -> Conversation {
    let mut random = Random::new(1);
    // Every vocabulary has at least one token per byte.
    let ids = (0..tokens).map(|_| u32::from(random.bits().to_le_bytes()[0]));
    let mut messages = vec![
        Turn::new(Role::User, "What is there to know about goldcrests?"),
        Turn {
            ids: Some(ids.collect()),
            ..Turn::new(Role::Assistant, "")
        },
    ];
    messages.extend(question.map(|text| Turn::new(Role::User, text)));
    Conversation {
        messages,
        instructions: None,
        thinking: false,
        tools: std::sync::Arc::default(),
        today: jiff::civil::Date::constant(2026, 3, 5),
    }
}

struct FirstToken {
    seconds: f64,
    prompt: usize,
    cached: usize,
}

/// A run of the app, reduced to the model.
struct App {
    model: EngineModel,
}

impl App {
    fn open(model: &ModelChoice, options: &ModelOptions, kv: &Path) -> Result<App, CliError> {
        let mut app = App {
            model: EngineModel::default().keeping_caches(kv),
        };
        let opened = app.model.open(model, options, &mut |_| {});
        opened.map_err(|failure| CliError::message(failure.message))?;
        Ok(app)
    }

    fn prompt(&mut self, conversation: &Conversation) -> Result<Prompt, CliError> {
        let prompt = self.model.prompt(conversation, &NEVER);
        prompt.map_err(|failure| CliError::message(failure.message))
    }

    fn first_token(&mut self, conversation: &Conversation) -> Result<FirstToken, CliError> {
        let started = Instant::now();
        let prompt = self.prompt(conversation)?;
        let stats = self.run(Priority::Answer, &prompt)?.stats;
        Ok(FirstToken {
            seconds: started.elapsed().as_secs_f64(),
            prompt: stats.prompt_tokens,
            cached: stats.cached_tokens,
        })
    }

    /// Runs a request to its end; an answer has one token.
    fn run(&mut self, priority: Priority, prompt: &Prompt) -> Result<Finished, CliError> {
        let failed = |failure: Failure| CliError::message(failure.message);
        let submitted = self.model.submit(ModelRequest {
            id: RequestId(0),
            priority,
            conversation: 1,
            prompt: prompt.clone(),
            params: GenerateParams {
                sampling: Sampling {
                    temperature: 0.0,
                    ..Sampling::default()
                },
                max_tokens: Some(1),
                ..GenerateParams::default()
            },
            signals: Signals::default(),
        });
        submitted.map_err(failed)?;
        loop {
            let ended = self.model.step(&NEVER, &mut |_, _| {});
            if let Some((_, result)) = ended.into_iter().next() {
                return result.map_err(failed);
            }
        }
    }

    /// Saves the chat before the question, as the app does in idle time.
    fn keep(&mut self, before: &Prompt) -> Result<(), CliError> {
        self.run(Priority::ReadAhead, before)?;
        while self.model.save_caches() {}
        Ok(())
    }
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}
