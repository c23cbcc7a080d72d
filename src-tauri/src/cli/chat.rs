//! `goldcrest chat`: a conversation in the terminal. It is not stored.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};

use ::chat::{Failure, LeftOut, LengthWish, Limits, SlashCommand, SlashName, Typed};
use engine::{Conversation, Finished, GenerateParams, Role, StopReason, Turn};
use figures::{count, tokens};

use super::answer::{Stream, generate};
use super::args::{ChatArgs, ModelArgs};
use super::input::Input;
use super::interrupt::Interrupt;
use super::output::{self, CliError};
use super::{export, load, models, suggestion};
use crate::visible::on_one_line;

const KEYS: &str = "Ctrl+C stops an answer, Ctrl+D leaves. On a terminal, Up and Down recall earlier lines, Tab completes a \
    command, and a \\ at the end continues in the next line. A line that begins with a space is a message, whatever \
    follows.";

pub fn run(args: &ChatArgs) -> Result<(), CliError> {
    let args = ChatArgs {
        answer: args.answer.clone().over_preset()?,
        ..args.clone()
    };
    let mut terminal = TerminalChat::open(args, Interrupt::listen())?;
    let mut input = Input::new(SlashCommand::in_terminal().map(|command| command.name.text()))?;
    if input.is_terminal() {
        writeln!(
            output::stdout(),
            "{}. /help lists the commands.",
            terminal.model_line()
        )?;
    }
    while let Some(line) = input.read()? {
        match terminal.take(line.trim_end()) {
            Ok(AfterLine::Read) => {}
            Ok(AfterLine::Leave) => break,
            // A failed question does not end the chat; an output that is gone does.
            Err(error @ CliError::Message(_)) => note(&error.sentence())?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
    args: ChatArgs,
    interrupt: Interrupt,
    model: load::LoadedModel,
    conversation: Conversation,
    /// End of the last answer.
    ended: Option<Finished>,
    /// Parts that its prompt left out.
    left_out: LeftOut,
    /// Requested lengths of the answers to these messages.
    lengths: BTreeMap<usize, LengthWish>,
}

impl TerminalChat {
    fn open(args: ChatArgs, interrupt: Interrupt) -> Result<Self, CliError> {
        Ok(Self {
            model: load::open(&args.model)?,
            conversation: args.answer.conversation(),
            args,
            interrupt,
            ended: None,
            left_out: LeftOut::default(),
            lengths: BTreeMap::new(),
        })
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
                self.begin();
                note("A new chat.")
            }
            SlashName::Temp => {
                self.begin();
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
                let file = Path::new(argument);
                let chats = export::conversation(&self.conversation.messages, file)?;
                note(&format!("{chats} in {argument}"))
            }
            SlashName::Model if argument.is_empty() => self.list_models(),
            SlashName::Model => self.use_model(argument),
            SlashName::Status => self.status(),
            SlashName::Help => Ok(help(&mut output::stdout())?),
            // These work in the window only, or are handled by the caller.
            SlashName::Theme | SlashName::Settings | SlashName::Quit => Ok(()),
        }
    }

    /// Clears the conversation.
    fn begin(&mut self) {
        self.keep_from(self.conversation.messages.len());
        self.ended = None;
    }

    /// Drops the first messages of the conversation.
    fn keep_from(&mut self, first: usize) {
        self.conversation.messages.drain(..first);
        self.left_out = LeftOut::default();
        self.lengths.clear();
    }

    fn think(&mut self, thinking: bool, message: &str) -> Result<(), CliError> {
        if thinking && !self.model.engine().summary().can_think {
            return note("This model does not think.");
        }
        self.conversation.thinking = thinking;
        if message.is_empty() {
            return note(if thinking {
                "Answers are thought about first."
            } else {
                "Answers come at once."
            });
        }
        self.say(message)
    }

    fn say(&mut self, text: &str) -> Result<(), CliError> {
        let messages = &mut self.conversation.messages;
        messages.push(Turn::new(Role::User, text));
        let answered = self.answer(0);
        if !matches!(answered, Ok(Some(_))) {
            self.conversation.messages.pop();
        }
        answered.map(|_| ())
    }

    /// Regenerates the last answer, in one of the ways of [`SlashCommand::options`].
    fn regenerate(&mut self, way: &str) -> Result<(), CliError> {
        let length = match way {
            "shorter" => Some(LengthWish::Shorter),
            "longer" => Some(LengthWish::Longer),
            _ => None,
        };
        let thinking = match way {
            "thinking" if !self.model.engine().summary().can_think => {
                return note("This model does not think.");
            }
            "thinking" => true,
            "no thinking" => false,
            _ => self.conversation.thinking,
        };
        let Some(before) = self.take_answer() else {
            return note("There is no answer yet.");
        };
        let question = self.conversation.messages.len().saturating_sub(1);
        let wished = self.lengths.remove(&question);
        self.lengths.extend(length.map(|length| (question, length)));
        let usual = mem::replace(&mut self.conversation.thinking, thinking);
        let answered = self.answer(0);
        self.conversation.thinking = usual;
        if !matches!(answered, Ok(Some(_))) {
            self.conversation.messages.push(before);
            self.lengths.remove(&question);
            self.lengths.extend(wished.map(|length| (question, length)));
        }
        answered.map(|_| ())
    }

    /// Continues the last answer.
    fn go_on(&mut self) -> Result<(), CliError> {
        let Some(answer) = self.take_answer() else {
            return note("There is no answer yet.");
        };
        let begun = Turn {
            open: true,
            ..answer.clone()
        };
        self.conversation.messages.push(begun);
        let answered = self.answer(0);
        let rest = match answered {
            Ok(Some(_)) => self.conversation.messages.pop(),
            _ => None,
        };
        self.conversation.messages.pop();
        self.conversation.messages.push(match rest {
            Some(rest) => joined(answer, rest),
            None => answer,
        });
        answered.map(|_| ())
    }

    /// Continues with only a summary of the chat, which is written from all of it. Without a complete summary the chat
    /// stays as it is.
    fn summarize(&mut self) -> Result<(), CliError> {
        let messages = &mut self.conversation.messages;
        if !messages.iter().any(|turn| turn.role == Role::Assistant) {
            return note("There is nothing to sum up in this chat yet.");
        }
        let before = messages.len();
        messages.push(Turn::new(Role::User, ::chat::summary_question(None)));
        let (ended, left_out) = (self.ended.clone(), self.left_out);
        let thinking = mem::replace(&mut self.conversation.thinking, false);
        let answered = self.answer(before);
        self.conversation.thinking = thinking;
        if matches!(answered, Ok(Some(StopReason::EndOfTurn))) {
            self.keep_from(before);
            return note("A new chat, which begins with this summary.");
        }
        self.conversation.messages.truncate(before);
        (self.ended, self.left_out) = (ended, left_out);
        answered?;
        note("The summary is not whole, so the chat stays as it was.")
    }

    /// Takes the last answer out of the conversation, if it ends with one.
    fn take_answer(&mut self) -> Option<Turn> {
        let messages = &mut self.conversation.messages;
        messages.pop_if(|turn| turn.role == Role::Assistant)
    }

    /// Adds an answer, unless it is empty after Ctrl+C. `summed_up`: the number of messages to summarize.
    fn answer(&mut self, summed_up: usize) -> Result<Option<StopReason>, CliError> {
        let summary = self.model.engine().summary();
        let thinking = self.conversation.thinking && summary.can_think;
        let (usual, context) = (
            summary.sampling.of(thinking).clone(),
            summary.context_length,
        );
        let longest_token = self.model.engine().tokenizer().longest_token();
        let limits = Limits::without_remedy(context, longest_token);
        let goes_on = self
            .conversation
            .messages
            .last()
            .is_some_and(|turn| turn.open);
        let was_complete = |it: &Finished| it.reason == StopReason::EndOfTurn;
        let params = GenerateParams {
            goes_on: goes_on && self.ended.as_ref().is_some_and(was_complete),
            ..self.args.answer.params(usual)
        };
        let asked = self.asked();
        let mut left_out = self.left_out;
        let prompt = left_out.fit(asked, &params, limits, summed_up, &mut |conversation| {
            let prompt = self.model.engine().prompt(conversation);
            prompt.map_err(|error| Failure::other(error.to_string()))
        });
        let prompt = prompt.map_err(|failure| CliError::message(failure.message))?;
        if let Some(what) = left_out.words().filter(|_| left_out != self.left_out) {
            note(&format!(
                "This chat is longer than the model can read. It does not see {what}."
            ))?;
        }
        self.left_out = left_out;
        let model = &mut self.model;
        let mut stream = Stream::new(false);
        let (answered, _) = self.interrupt.during(|cancel| {
            model.run(|engine| generate(engine, &prompt, &params, cancel, &mut stream))
        });
        let (answer, finished) = answered?;
        let reason = finished.reason;
        if reason == StopReason::Cancelled && answer.ids.is_empty() {
            return Ok(None);
        }
        // Blanks around an answer are not part of it, except where it is continued.
        let mut text = answer.text.as_str();
        if !goes_on {
            text = text.trim_start();
        }
        if reason == StopReason::EndOfTurn {
            text = text.trim_end();
        }
        if answer.is_thinking_alone(&finished) {
            note(
                "The model ended after its thinking and wrote no answer. /regenerate tries again.",
            )?;
        }
        self.ended = Some(finished);
        self.conversation.messages.push(Turn {
            role: Role::Assistant,
            text: text.to_owned(),
            thinking: Some(answer.thinking).filter(|thinking| !thinking.is_empty()),
            ids: Some(answer.ids),
            open: false,
        });
        Ok(Some(reason))
    }

    /// Returns the conversation for the prompt: each question with the requested length of its answer.
    fn asked(&self) -> Conversation {
        let mut asked = self.conversation.clone();
        for (question, length) in &self.lengths {
            if let Some(turn) = asked.messages.get_mut(*question) {
                *turn = ::chat::asking_for(Some(*length), turn.clone());
            }
        }
        asked
    }

    fn model_line(&self) -> String {
        let engine = self.model.engine();
        let (summary, device) = (engine.summary(), engine.device());
        format!("{}, {}", on_one_line(&summary.name), device.name)
    }

    fn list_models(&self) -> Result<(), CliError> {
        let mut out = output::stdout();
        writeln!(
            out,
            "{} is in use. /model takes the name of one of these files:",
            self.model_line()
        )?;
        for file in models::here()? {
            writeln!(out, "  {}", on_one_line(&file.path.display().to_string()))?;
        }
        Ok(())
    }

    /// Opens another model; if that fails, keeps the present one.
    fn use_model(&mut self, name: &str) -> Result<(), CliError> {
        let file = named_model(name)?;
        let args = ModelArgs {
            model: Some(file),
            ..self.args.model.clone()
        };
        self.model = load::open(&args)?;
        self.args.model = args;
        // Token ids belong to the model that generated them.
        for turn in &mut self.conversation.messages {
            turn.ids = None;
        }
        note(&format!("{}. The chat goes on with it.", self.model_line()))
    }

    fn status(&self) -> Result<(), CliError> {
        let summary = self.model.engine().summary();
        let used = self
            .ended
            .as_ref()
            .map_or(0, |it| it.stats.prompt_tokens + it.stats.tokens);
        let mut out = output::stdout();
        writeln!(out, "{}", self.model_line())?;
        writeln!(out, "{}", self.model.device_reason())?;
        writeln!(
            out,
            "Context: {} of {}",
            count(used),
            tokens(summary.context_length)
        )?;
        Ok(writeln!(
            out,
            "Offline: this program opens no network socket"
        )?)
    }
}

/// Joins an answer with its continuation.
fn joined(answer: Turn, rest: Turn) -> Turn {
    let text = format!("{}{}", answer.text, rest.text);
    let thinking = answer.thinking.unwrap_or_default() + &rest.thinking.unwrap_or_default();
    let ids = answer
        .ids
        .zip(rest.ids)
        .map(|(before, after)| [before, after].concat());
    Turn {
        text,
        thinking: Some(thinking).filter(|thinking| !thinking.is_empty()),
        ids,
        ..rest
    }
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
