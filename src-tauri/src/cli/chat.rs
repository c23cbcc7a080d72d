//! `goldcrest chat`: a conversation in the terminal. It is not kept.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chat::{SlashCommand, SlashName, Typed};
use engine::{Conversation, Finished, GenerateParams, Role, StopReason, Turn};
use figures::{count, tokens};

use super::answer::{Stream, generate};
use super::args::{ChatArgs, ModelArgs};
use super::input::Input;
use super::interrupt::Interrupt;
use super::output::{CliError, visible};
use super::{export, load, models};

/// The user reads it, and the model is asked by it.
const SUMMARY: &str = "Sum up our chat, so that we can go on here: what it is about, what we found or decided, and what is \
    still open. Keep the names, figures and code that matter.";

const KEYS: &str = "Ctrl+C stops an answer, Ctrl+D leaves. On a terminal, Up and Down recall earlier lines, Tab completes a \
    command, and a \\ at the end continues in the next line. A line that begins with a blank is a message, whatever it \
    begins with.";

pub fn run(args: &ChatArgs) -> Result<(), CliError> {
    let args = ChatArgs {
        answer: args.answer.clone().over_preset()?,
        ..args.clone()
    };
    let mut terminal = TerminalChat::open(args, Interrupt::listen())?;
    let mut input = Input::new(SlashCommand::in_terminal().map(|command| command.name.text()))?;
    if input.is_terminal() {
        writeln!(
            io::stdout(),
            "{}. /help lists the commands.",
            terminal.model_line()
        )?;
    }
    while let Some(line) = input.read()? {
        match terminal.take(line.trim_end()) {
            Ok(AfterLine::Read) => {}
            Ok(AfterLine::Leave) => break,
            // A question that failed is no reason to leave; an output that is gone is.
            Err(CliError::Message(message)) => note(&message)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Says something that is no answer.
fn note(text: &str) -> Result<(), CliError> {
    Ok(writeln!(io::stderr(), "{}", visible(text))?)
}

/// What follows a line.
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
    /// How the last answer ended.
    ended: Option<Finished>,
}

impl TerminalChat {
    fn open(args: ChatArgs, interrupt: Interrupt) -> Result<Self, CliError> {
        Ok(Self {
            model: load::open(&args.model)?,
            conversation: args.answer.conversation(),
            args,
            interrupt,
            ended: None,
        })
    }

    /// Does what a line says.
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
            Typed::Unknown(name) => note(&format!(
                "There is no command /{name} here. /help lists them; a message that begins with a slash is written \
                 behind a blank."
            ))?,
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
            SlashName::Regenerate => self.regenerate(),
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
            SlashName::Help => Ok(help(&mut io::stdout())?),
            // These are read in the window alone, and by the caller.
            SlashName::Theme | SlashName::Settings | SlashName::Quit => Ok(()),
        }
    }

    /// Forgets the conversation.
    fn begin(&mut self) {
        self.conversation.messages.clear();
        self.ended = None;
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
        let answered = self.answer();
        if answered.is_err() {
            self.conversation.messages.pop();
        }
        answered
    }

    fn regenerate(&mut self) -> Result<(), CliError> {
        let Some(before) = self.take_answer() else {
            return note("There is no answer yet.");
        };
        let answered = self.answer();
        if answered.is_err() {
            self.conversation.messages.push(before);
        }
        answered
    }

    /// Goes on with the last answer.
    fn go_on(&mut self) -> Result<(), CliError> {
        let Some(answer) = self.take_answer() else {
            return note("There is no answer yet.");
        };
        let begun = Turn {
            open: true,
            ..answer.clone()
        };
        self.conversation.messages.push(begun);
        let answered = self.answer();
        let rest = self
            .conversation
            .messages
            .pop()
            .filter(|_| answered.is_ok());
        if rest.is_some() {
            self.conversation.messages.pop();
        }
        self.conversation.messages.push(match rest {
            Some(rest) => joined(answer, rest),
            None => answer,
        });
        answered
    }

    /// Goes on with no more of the chat than a summary, which is written from all of it.
    fn summarize(&mut self) -> Result<(), CliError> {
        let messages = &self.conversation.messages;
        if !messages.iter().any(|turn| turn.role == Role::Assistant) {
            return note("There is nothing to sum up in this chat yet.");
        }
        let thinking = std::mem::replace(&mut self.conversation.thinking, false);
        let summed_up = self.say(SUMMARY);
        self.conversation.thinking = thinking;
        summed_up?;
        let before = self.conversation.messages.len() - 2;
        self.conversation.messages.drain(..before);
        note("A new chat, which begins with this summary.")
    }

    /// Takes the last answer out of the conversation, if it ends with one.
    fn take_answer(&mut self) -> Option<Turn> {
        let messages = &mut self.conversation.messages;
        messages.pop_if(|turn| turn.role == Role::Assistant)
    }

    /// Adds an answer.
    fn answer(&mut self) -> Result<(), CliError> {
        let usual = self.model.engine().summary().sampling.clone();
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
        let (model, conversation) = (&mut self.model, &self.conversation);
        let mut stream = Stream::new(false);
        let (answered, _) = self.interrupt.during(|cancel| {
            model.run(|engine| generate(engine, conversation, &params, cancel, &mut stream))
        });
        let (answer, finished) = answered?;
        // Blanks around an answer are not part of it, but those where one is gone on with are.
        let mut text = answer.text.as_str();
        if !goes_on {
            text = text.trim_start();
        }
        if finished.reason == StopReason::EndOfTurn {
            text = text.trim_end();
        }
        self.ended = Some(finished);
        self.conversation.messages.push(Turn {
            role: Role::Assistant,
            text: text.to_owned(),
            thinking: Some(answer.thinking).filter(|thinking| !thinking.is_empty()),
            ids: Some(answer.ids),
            open: false,
        });
        Ok(())
    }

    fn model_line(&self) -> String {
        let engine = self.model.engine();
        let (summary, device) = (engine.summary(), engine.device());
        format!("{}, {}", visible(&summary.name), device.name)
    }

    fn list_models(&self) -> Result<(), CliError> {
        let mut out = io::stdout().lock();
        writeln!(
            out,
            "{} is in use. /model takes the name of one of these files:",
            self.model_line()
        )?;
        for file in models::here()? {
            writeln!(out, "  {}", visible(&file.path.display().to_string()))?;
        }
        Ok(())
    }

    /// Goes on with another model; where it does not open, with the one in use.
    fn use_model(&mut self, name: &str) -> Result<(), CliError> {
        let file = named_model(name)?;
        let args = ModelArgs {
            model: Some(file),
            ..self.args.model.clone()
        };
        self.model = load::open(&args)?;
        self.args.model = args;
        // Token ids are those of the model that wrote them.
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
        let mut out = io::stdout().lock();
        writeln!(out, "{}", self.model_line())?;
        writeln!(out, "{}", visible(&self.model.device_reason()))?;
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

/// An answer with what has come of going on with it.
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

/// The file at a path, or the one on this computer whose name has these words.
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
mod tests {
    use ::devices::DeviceRequest;
    use engine::{LoadOptions, ModelFile};

    use super::*;
    use crate::cli::args::AnswerArgs;
    use crate::demo_model;

    /// A chat with the demo model, whose answers have this many tokens at most.
    fn short(max_tokens: u32) -> TerminalChat {
        let file = demo_model::file().expect("the demo model");
        let options = LoadOptions {
            threads: Some(1),
            ..LoadOptions::default()
        };
        let file = ModelFile::open(&file).expect("a model");
        let model = load::open_unchecked(&file, &DeviceRequest::Cpu, false, &options);
        let args = ChatArgs {
            answer: AnswerArgs {
                no_think: true,
                temperature: Some(0.0),
                max_tokens: Some(max_tokens),
                ..AnswerArgs::default()
            },
            ..ChatArgs::default()
        };
        TerminalChat {
            model: model.expect("it opens"),
            conversation: args.answer.conversation(),
            args,
            interrupt: Interrupt::default(),
            ended: None,
        }
    }

    fn take(chat: &mut TerminalChat, line: &str) {
        let next = chat.take(line).expect("it is done");
        assert_eq!(next, AfterLine::Read, "{line}");
    }

    #[test]
    fn an_answer_is_kept_with_the_tokens_that_were_written() {
        let mut chat = short(5);
        take(&mut chat, "Hi");
        let said = chat.conversation.messages.pop().expect("an answer");
        assert_eq!((said.role, said.open), (Role::Assistant, false));
        assert!(!said.text.is_empty() && said.thinking.is_none());
        assert_eq!(said.ids.map(|ids| ids.len()), Some(5));
    }

    #[test]
    fn an_answer_is_gone_on_with_where_it_ended() {
        let mut whole = short(12);
        take(&mut whole, "What is Goldcrest?");
        let mut chat = short(6);
        take(&mut chat, "What is Goldcrest?");
        take(&mut chat, "/continue");
        assert_eq!(chat.conversation.messages, whole.conversation.messages);
        assert_eq!(chat.conversation.messages.len(), 2);
    }

    #[test]
    fn a_complete_answer_goes_on() {
        let mut chat = short(200);
        take(&mut chat, "Hello!");
        let ended = chat.ended.as_ref().map(|it| it.reason);
        assert_eq!(ended, Some(StopReason::EndOfTurn));
        let before = chat.conversation.messages[1].text.clone();
        take(&mut chat, "/continue");
        let after = &chat.conversation.messages[1].text;
        assert!(
            after.len() > before.len() && after.starts_with(&before),
            "{after:?}"
        );
    }

    #[test]
    fn the_last_answer_is_written_again_in_its_place() {
        let mut chat = short(5);
        take(&mut chat, "/regenerate");
        assert!(chat.conversation.messages.is_empty(), "there is none yet");
        take(&mut chat, "Hi");
        let before = chat.conversation.messages.clone();
        take(&mut chat, "/regenerate");
        assert_eq!(chat.conversation.messages, before);
    }

    #[test]
    fn thinking_is_switched_and_a_new_chat_begun() {
        let mut chat = short(5);
        take(&mut chat, "/think");
        assert!(chat.conversation.thinking && chat.conversation.messages.is_empty());
        take(&mut chat, "/no_think Hi");
        assert!(!chat.conversation.thinking);
        assert_eq!(chat.conversation.messages[0].text, "Hi");
        take(&mut chat, "/clear");
        assert!(chat.conversation.messages.is_empty());
    }

    #[test]
    fn a_chat_goes_on_with_its_summary_alone() {
        let mut chat = short(5);
        take(&mut chat, "/summarize");
        assert!(
            chat.conversation.messages.is_empty(),
            "there is nothing yet"
        );
        take(&mut chat, "/no_think What is Goldcrest?");
        take(&mut chat, "/think");
        take(&mut chat, "/summarize");
        let roles: Vec<Role> = chat
            .conversation
            .messages
            .iter()
            .map(|turn| turn.role)
            .collect();
        assert_eq!(roles, [Role::User, Role::Assistant]);
        assert_eq!(chat.conversation.messages[0].text, SUMMARY);
        assert!(chat.conversation.thinking, "as before");
    }

    #[test]
    fn a_model_that_is_not_there_leaves_the_chat_as_it_is() {
        let mut chat = short(5);
        take(&mut chat, "Hi");
        let before = chat.conversation.messages.clone();
        let failed = chat.take("/model no-such-model-anywhere");
        assert!(
            matches!(failed, Err(CliError::Message(text)) if text.contains("no-such-model-anywhere"))
        );
        assert_eq!(chat.conversation.messages, before);
    }

    #[test]
    fn what_is_no_command_and_what_takes_nothing_is_no_message() {
        let mut chat = short(5);
        for line in ["/foo", "/theme dark", "/new car", ""] {
            take(&mut chat, line);
        }
        assert!(chat.conversation.messages.is_empty());
        take(&mut chat, " /foo");
        assert_eq!(chat.conversation.messages[0].text, "/foo");
        assert!(matches!(chat.take("/quit"), Ok(AfterLine::Leave)));
    }
}
