//! `goldcrest serve`: the local API without a window. The model is that of a [`Chat`] in memory, which has no chats.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ::chat::{Chat, ChatEvent, ModelStatus, Settings};
use api::{ApiConfig, ApiKey};
use host::EngineModel;
use serde_json::json;

use super::args::ServeArgs;
use super::interrupt::Interrupt;
use super::load;
use super::output::{self, CliError};
use super::progress::ProgressLine;
use crate::local_api::{self, ServeEvent};

/// Variable with the key.
const KEY: &str = "GOLDCREST_API_KEY";
/// Characters that a key has at least.
const SHORTEST_KEY: usize = 8;
/// Interval in which Ctrl+C is noticed.
const POLL: Duration = Duration::from_millis(50);

pub fn run(args: &ServeArgs) -> Result<(), CliError> {
    let given = args.key.clone().or_else(|| std::env::var(KEY).ok());
    let is_new = given.is_none();
    let key = match given {
        Some(key) if key.trim().len() < SHORTEST_KEY => {
            let message = format!("The key is too short: it needs {SHORTEST_KEY} characters.");
            return Err(CliError::message(message));
        }
        Some(key) => key.trim().to_owned(),
        None => local_api::new_key()?,
    };
    let origins = local_api::checked(args.origins.clone())?;
    let program = api::program().map_err(|error| CliError::message(error.to_string()))?;
    let (choice, _) = load::for_chat(&args.model)?;
    let settings = Settings {
        kv_type: args.model.place.kv.unwrap_or_default(),
        unload_minutes: None,
        ..Settings::default()
    };
    let host = Box::new(EngineModel::choosing(load::devices()));
    let (sender, events) = channel();
    let on_event = move |event| {
        // An error means that the command has ended.
        let _ = sender.send(event);
    };
    let interrupt = Interrupt::listen();
    let chat = Chat::start_in_memory(choice, &settings, host, Box::new(on_event))?;
    opened(&events)?;
    let (sender, serving) = channel();
    let config = ApiConfig {
        port: args.port,
        key: ApiKey::of(&key),
        origins,
    };
    let server = local_api::serve(&chat, &program, &config, move |event| {
        // An error means that the command has ended.
        let _ = sender.send(event);
    });
    let server = server.map_err(|error| CliError::message(error.to_string()))?;
    let (ended, _) = interrupt.during(|cancel| {
        while !cancel.load(Ordering::Relaxed) {
            // Events that nobody reads.
            events.try_iter().for_each(drop);
            match serving.recv_timeout(POLL) {
                Ok(ServeEvent::Listening(port)) => {
                    tell(args, &local_api::base_url(port), &key, is_new)?;
                }
                Ok(ServeEvent::Failed(message)) => return Err(CliError::message(message)),
                Ok(ServeEvent::Load(..)) | Err(_) => {}
            }
        }
        Ok(())
    });
    // In this order, so that clients have the ends of their answers.
    chat.shutdown();
    drop(server);
    ended
}

/// Waits until the model is open.
fn opened(events: &Receiver<ChatEvent>) -> Result<(), CliError> {
    let mut bar = ProgressLine::new();
    while let Ok(event) = events.recv() {
        let ChatEvent::Model { model } = event else {
            continue;
        };
        match model.status {
            ModelStatus::Checking { .. } => load::tell_of_check(),
            ModelStatus::Loading { progress, .. } => {
                bar.show("Loading the model", (progress * 1000.0) as u64, 1000);
            }
            _ => {
                bar.clear();
                return model.error.map_or(Ok(()), |failure| Err(failure.into()));
            }
        }
    }
    Err(CliError::message("The model did not open."))
}

/// Prints the address, and the key if it is new.
fn tell(args: &ServeArgs, base_url: &str, key: &str, is_new: bool) -> Result<(), CliError> {
    let mut out = output::stdout();
    if args.json {
        let mut line = json!({ "base_url": base_url });
        if is_new {
            line["key"] = json!(key);
        }
        writeln!(out, "{line}")?;
    } else {
        writeln!(out, "OPENAI_BASE_URL={base_url}")?;
        if is_new {
            writeln!(out, "OPENAI_API_KEY={key}")?;
        }
    }
    Ok(out.flush()?)
}
