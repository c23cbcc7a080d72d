//! `goldcrest chat`: a conversation in the terminal. It is a [`Chat`] in memory: nothing is written to the disk.

use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use ::chat::{
    Chat, ChatEvent, ChatId, ChatView, LengthWish, Message, MessageState, ModelChoice, ModelHost,
    ModelInfo, ModelStatus, Omitted, Part, Settings, SlashCommand, SlashName, Stage, Typed,
};
use engine::{ModelFile, Role, TokenKind};
use figures::{count, tokens};
use host::{EngineModel, environment};

use super::answer::Stream;
use super::args::{AnswerArgs, ChatArgs};
use super::input::Input;
use super::interrupt::Interrupt;
use super::output::{self, CliError};
use super::progress::ProgressLine;
use super::{export, load, models, suggestion};
use crate::visible::on_one_line;

const KEYS: &str = "Ctrl+C stops an answer, Ctrl+D leaves. On a terminal, Up and Down recall earlier lines, Tab completes a \
    command, and a \\ at the end continues in the next line. A line that begins with a space is a message, whatever \
    follows.";
/// Interval in which Ctrl+C is noticed.
const POLL: Duration = Duration::from_millis(50);

pub fn run(args: &ChatArgs) -> Result<(), CliError> {
    let answer = args.answer.clone().over_preset()?;
    let settings = Settings {
        kv_type: args.model.place.kv.unwrap_or_default(),
        ..settings(&answer)
    };
    let (choice, path) = load::for_chat(&args.model)?;
    let file = model_file(&path)?;
    let host = Box::new(EngineModel::choosing(load::devices()));
    let mut terminal = TerminalChat::start(choice, &settings, host, Interrupt::listen())?;
    let ended = terminal.opened(&file).and_then(|()| terminal.converse());
    terminal.chat.shutdown();
    ended
}

/// Returns the settings of a chat with these flags.
fn settings(answer: &AnswerArgs) -> Settings {
    Settings {
        sampling_changes: answer.sampling(),
        max_tokens: answer.max_tokens,
        thinking_budget: answer.thinking_budget,
        lookup: !answer.no_lookup,
        instructions: answer.system.clone().unwrap_or_default(),
        thinking: !answer.no_think,
        unload_minutes: None,
        guide_answers: false,
        ..Settings::default()
    }
}

/// Reads the header of a model's file.
fn model_file(path: &Path) -> Result<ModelFile, CliError> {
    ModelFile::open(path).map_err(|error| CliError::file(path, error))
}

/// Prints a note to stderr.
fn note(text: &str) -> Result<(), CliError> {
    Ok(writeln!(output::stderr(), "{text}")?)
}

/// Next step after a line.
#[derive(Debug, PartialEq, Eq)]
enum AfterLine {
    Read,
    Leave,
}

/// A conversation, and the model that answers.
struct TerminalChat {
    chat: Chat,
    events: Receiver<ChatEvent>,
    interrupt: Interrupt,
    /// The chat that goes on; `None` before its first message.
    current: Option<ChatId>,
    thinking: bool,
    /// Parts that the last prompt left out.
    omitted: Omitted,
}

impl TerminalChat {
    /// Begins to open a model.
    fn start(
        model: ModelChoice,
        settings: &Settings,
        host: Box<dyn ModelHost>,
        interrupt: Interrupt,
    ) -> Result<Self, CliError> {
        let (sender, events) = channel();
        let on_event = move |event| {
            // An error means that the conversation has ended.
            let _ = sender.send(event);
        };
        Ok(Self {
            chat: Chat::start_in_memory(model, settings, host, Box::new(on_event))?,
            events,
            interrupt,
            current: None,
            thinking: settings.thinking,
            omitted: Omitted::default(),
        })
    }

    /// Waits until the requested model is open, and prints what is uncertain about it. `file`: the model's file.
    fn opened(&self, file: &ModelFile) -> Result<(), CliError> {
        let mut bar = ProgressLine::new();
        let view = loop {
            let ChatEvent::Model { model } = self.events.recv().map_err(|_| ended())? else {
                continue;
            };
            match model.status {
                ModelStatus::Checking { .. } => load::tell_of_check(),
                ModelStatus::Loading { progress, .. } => {
                    bar.show("Loading the model", (progress * 1000.0) as u64, 1000);
                }
                _ => break model,
            }
        };
        bar.clear();
        if let Some(failure) = view.error {
            return Err(failure.into());
        }
        load::tell_of_format(file);
        if let Ok(Some(_)) = environment::context() {
            load::tell_of_context(self.model()?.context_note.as_deref());
        }
        Ok(())
    }

    /// Reads lines until the end.
    fn converse(&mut self) -> Result<(), CliError> {
        let names = SlashCommand::in_terminal().map(|command| command.name.text());
        let mut input = Input::new(names)?;
        if input.is_terminal() {
            let line = self.model_line()?;
            writeln!(output::stdout(), "{line}. /help lists the commands.")?;
        }
        while let Some(line) = input.read()? {
            match self.take(line.trim_end()) {
                Ok(AfterLine::Read) => {}
                Ok(AfterLine::Leave) => break,
                // A failed question does not end the chat; an output that is gone does.
                Err(error @ CliError::Message(_)) => note(&error.sentence())?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Handles a line.
    fn take(&mut self, line: &str) -> Result<AfterLine, CliError> {
        match SlashCommand::read(line) {
            Typed::Message("") => {}
            Typed::Message(text) => self.say(text)?,
            Typed::Command(SlashName::Quit, _) | Typed::Unknown("exit") => {
                return Ok(AfterLine::Leave);
            }
            Typed::Command(name, argument) => self.command(name, argument)?,
            Typed::Extra(command) => {
                note(&format!(
                    "/{} takes nothing behind it.",
                    command.name.text()
                ))?;
            }
            Typed::Other(command) => {
                let options: Vec<&str> = command.options().collect();
                note(&format!(
                    "/{} takes one of these: {}.",
                    command.name.text(),
                    options.join(", ")
                ))?;
            }
            Typed::Unknown(name) => {
                let names = SlashCommand::in_terminal().map(|it| it.name.text());
                let suggestion = suggestion::likely(name, names)
                    .map_or(String::new(), |name| format!(" Did you mean /{name}?"));
                note(&format!(
                    "There is no command /{name} here.{suggestion} /help lists them; a message that begins with a \
                     slash is written after a space."
                ))?;
            }
        }
        Ok(AfterLine::Read)
    }

    fn command(&mut self, name: SlashName, argument: &str) -> Result<(), CliError> {
        match name {
            SlashName::New | SlashName::Clear => {
                self.begin()?;
                note("A new chat.")
            }
            SlashName::Temp => {
                self.begin()?;
                note("A temporary chat: like all chats in the terminal, it is not written to disk.")
            }
            SlashName::Summarize => self.summarize(),
            SlashName::Think => self.think(true, argument),
            SlashName::NoThink => self.think(false, argument),
            SlashName::Regenerate => self.regenerate(argument),
            SlashName::Continue => self.go_on(),
            SlashName::Export if argument.is_empty() => {
                note("Name a file behind it: /export chat.md, or one ending in .html or .jsonl.")
            }
            SlashName::Export => {
                let chat = self
                    .current
                    .ok_or_else(|| CliError::message("nothing was said yet"))?;
                export::conversation(self.chat.record(chat)?, Path::new(argument))?;
                note(&format!("this chat in {argument}"))
            }
            SlashName::Model if argument.is_empty() => self.list_models(),
            SlashName::Model => self.use_model(argument),
            SlashName::Status => self.status(),
            SlashName::Help => Ok(help(&mut output::stdout())?),
            // These work in the window only, or are handled by the caller.
            SlashName::Theme | SlashName::Settings | SlashName::Tools | SlashName::Quit => Ok(()),
        }
    }

    /// Starts over with an empty chat.
    fn begin(&mut self) -> Result<(), CliError> {
        self.omitted = Omitted::default();
        if let Some(chat) = self.current.take() {
            self.chat.delete([chat])?;
        }
        Ok(())
    }

    fn think(&mut self, thinking: bool, message: &str) -> Result<(), CliError> {
        if thinking && !self.model()?.can_think {
            return note("This model does not think.");
        }
        self.thinking = thinking;
        if message.is_empty() {
            return note(if thinking {
                "Answers are thought about first."
            } else {
                "Answers come at once."
            });
        }
        self.say(message)
    }

    /// Sends a message. Without an answer it is taken back.
    fn say(&mut self, text: &str) -> Result<(), CliError> {
        let view = self.chat.send(self.current, text, self.thinking)?;
        self.current = Some(view.chat.id);
        let answered = self.follow(&view);
        if !matches!(answered, Ok(Some(_))) {
            match view.messages.first() {
                Some(question) if question.parent.is_some() => {
                    self.chat.delete_message(question.id)?;
                }
                _ => self.begin()?,
            }
        }
        answered.map(drop)
    }

    /// Regenerates the last answer, in one of the ways of [`SlashCommand::options`].
    fn regenerate(&mut self, way: &str) -> Result<(), CliError> {
        let length = match way {
            "shorter" => Some(LengthWish::Shorter),
            "longer" => Some(LengthWish::Longer),
            _ => None,
        };
        let thinking = match way {
            "thinking" if !self.model()?.can_think => return note("This model does not think."),
            "thinking" => true,
            "no thinking" => false,
            _ => self.thinking,
        };
        let Some(answer) = self.last_answer()? else {
            return note("There is no answer yet.");
        };
        let view = self.chat.regenerate(answer.id, thinking, length)?;
        self.follow_or_undo(&view)
    }

    /// Continues the last answer.
    fn go_on(&mut self) -> Result<(), CliError> {
        let Some(answer) = self.last_answer()? else {
            return note("There is no answer yet.");
        };
        let view = self.chat.continue_answer(answer.id)?;
        self.follow_or_undo(&view)
    }

    /// Continues with only a summary of the chat, which is written from all of it. Without a complete summary the chat
    /// stays as it is.
    fn summarize(&mut self) -> Result<(), CliError> {
        let Some(chat) = self.current else {
            return note("There is nothing to sum up in this chat yet.");
        };
        let view = self.chat.start_summary(chat)?;
        let omitted = self.omitted;
        let summary = self.follow(&view);
        if matches!(&summary, Ok(Some(summary)) if summary.state == MessageState::Done) {
            (self.current, self.omitted) = (Some(view.chat.id), Omitted::default());
            return note("A new chat, which begins with this summary.");
        }
        self.omitted = omitted;
        self.chat.delete([view.chat.id])?;
        summary?;
        note("The summary is not whole, so the chat stays as it was.")
    }

    /// Returns the last message, if it is an answer.
    fn last_answer(&self) -> Result<Option<Message>, CliError> {
        let Some(chat) = self.current else {
            return Ok(None);
        };
        let last = self.chat.open_chat(chat)?.messages.pop();
        Ok(last.filter(|message| message.role == Role::Assistant))
    }

    /// Prints an answer in progress; without one, undoes the request.
    fn follow_or_undo(&mut self, view: &ChatView) -> Result<(), CliError> {
        let answered = self.follow(view);
        if !matches!(answered, Ok(Some(_))) {
            self.chat.undo()?;
        }
        answered.map(drop)
    }

    /// Prints the answer in progress until it ends; Ctrl+C stops it. `None` if it was stopped before it began.
    fn follow(&mut self, view: &ChatView) -> Result<Option<Message>, CliError> {
        let chat = view.chat.id;
        let (mut stream, mut bar) = (Stream::new(false), ProgressLine::new());
        let (mut has_prompt, mut has_begun, mut printed) = (false, false, Ok(()));
        let interrupt = self.interrupt.clone();
        let (answer, _) = interrupt.during(|cancel| {
            loop {
                if cancel.load(Ordering::Relaxed) || printed.is_err() {
                    self.chat.stop(chat)?;
                }
                match self.events.recv_timeout(POLL) {
                    Ok(ChatEvent::Stage {
                        stage: Stage::Reading { done, total, .. },
                        ..
                    }) => {
                        if !mem::replace(&mut has_prompt, true) {
                            printed = self.note_omitted(chat);
                        }
                        bar.show("Reading", done.into(), total.into());
                    }
                    Ok(ChatEvent::Delta { parts, .. }) if printed.is_ok() => {
                        bar.clear();
                        has_begun = true;
                        printed = parts.0.iter().try_for_each(|part| {
                            let kind = match part {
                                Part::Thinking { .. } => TokenKind::Thinking,
                                _ => TokenKind::Answer,
                            };
                            Ok(stream.write(part.content(), kind)?)
                        });
                    }
                    Ok(ChatEvent::Ended { message, .. }) => return Ok(*message),
                    Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Err(ended()),
                }
            }
        });
        bar.clear();
        printed?;
        let answer = answer?;
        stream.end()?;
        if let Some(failure) = answer.error {
            return Err(failure.into());
        }
        if answer.state == MessageState::Stopped && !has_begun {
            return Ok(None);
        }
        let is_done = answer.state == MessageState::Done;
        let says = |part: &Part| match part {
            Part::Text { text } => !text.trim().is_empty(),
            Part::Thinking { .. } => false,
            Part::ToolCall { .. } | Part::ToolResult { .. } => true,
        };
        if is_done && answer.thinking().is_some() && !answer.parts.0.iter().any(says) {
            note(
                "The model ended after its thinking and wrote no answer. /regenerate tries again.",
            )?;
        }
        Ok(Some(answer))
    }

    /// Prints what the prompt of the answer in progress leaves out, unless the one before left out the same.
    fn note_omitted(&mut self, chat: ChatId) -> Result<(), CliError> {
        let answer = self.chat.open_chat(chat)?.messages.pop();
        let omitted = answer.and_then(|it| it.omitted).unwrap_or_default();
        if omitted != mem::replace(&mut self.omitted, omitted)
            && let Some(what) = in_words(omitted)
        {
            note(&format!(
                "This chat is longer than the model can read. It does not see {what}."
            ))?;
        }
        Ok(())
    }

    /// Returns the open model.
    fn model(&self) -> Result<ModelInfo, CliError> {
        let model = self.chat.snapshot()?.model;
        let info = model.status.ready().cloned();
        info.ok_or_else(|| CliError::message("no model is open"))
    }

    fn model_line(&self) -> Result<String, CliError> {
        let model = self.model()?;
        Ok(format!(
            "{}, {}",
            on_one_line(&model.name),
            model.device.name
        ))
    }

    fn list_models(&self) -> Result<(), CliError> {
        let mut out = output::stdout();
        writeln!(
            out,
            "{} is in use. /model takes the name of one of these files:",
            self.model_line()?
        )?;
        for file in models::here()? {
            writeln!(out, "  {}", on_one_line(&file.path.display().to_string()))?;
        }
        Ok(())
    }

    /// Opens another model; if that fails, keeps the present one.
    fn use_model(&mut self, name: &str) -> Result<(), CliError> {
        let path = named_model(name)?;
        let file = model_file(&path)?;
        // Events of the present model.
        while self.events.try_recv().is_ok() {}
        self.chat.open_model(ModelChoice::File(path))?;
        self.opened(&file)?;
        note(&format!(
            "{}. The chat goes on with it.",
            self.model_line()?
        ))
    }

    fn status(&self) -> Result<(), CliError> {
        let model = self.model()?;
        let stats = self.last_answer()?.and_then(|answer| answer.stats);
        let used = stats.map_or(0, |it| it.figures.prompt_tokens + it.figures.tokens);
        let mut out = output::stdout();
        writeln!(out, "{}", self.model_line()?)?;
        writeln!(out, "{}", model.device.reason)?;
        writeln!(
            out,
            "Context: {} of {}",
            count(used),
            tokens(model.context_length)
        )?;
        Ok(writeln!(
            out,
            "Offline: this program opens no network socket"
        )?)
    }
}

fn ended() -> CliError {
    CliError::message("the chat has stopped working")
}

/// Describes parts that were left out, for a sentence after "not"; `None` if nothing was.
fn in_words(omitted: Omitted) -> Option<String> {
    let messages = match omitted.messages {
        0 => None,
        1 => Some("the first message".to_owned()),
        more => Some(format!("the first {} messages", count(more as usize))),
    };
    let thinking = (omitted.thinking > 0).then(|| "earlier thinking".to_owned());
    let parts: Vec<String> = messages.into_iter().chain(thinking).collect();
    (!parts.is_empty()).then(|| parts.join(" or "))
}

/// Returns the file at a path, or the one on this computer whose name contains these words.
fn named_model(name: &str) -> Result<PathBuf, CliError> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let wanted = name.to_lowercase();
    let has_words = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().to_lowercase().contains(&wanted)
    };
    let mut found = models::here()?
        .into_iter()
        .map(|file| file.path)
        .filter(|path| has_words(path));
    match (found.next(), found.next()) {
        (Some(file), None) => Ok(file),
        (Some(_), Some(_)) => Err(CliError::message(format!(
            "several models have `{name}` in their names"
        ))),
        (None, _) => Err(CliError::message(format!(
            "there is no model file `{name}`"
        ))),
    }
}

fn help(out: &mut impl Write) -> io::Result<()> {
    for command in SlashCommand::in_terminal() {
        writeln!(out, "{:<20} {}", command.usage(), command.does)?;
    }
    writeln!(out, "{KEYS}")
}

#[cfg(test)]
mod tests;
