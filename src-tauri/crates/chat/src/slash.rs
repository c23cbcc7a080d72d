//! Slash commands: one table for the window and the terminal.

use serde::Serialize;

/// A slash command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct SlashCommand {
    /// Command, with its name after the slash.
    pub name: SlashName,
    /// Argument after the name; in brackets if optional.
    pub argument: Option<&'static str>,
    /// Description of its effect.
    pub does: &'static str,
    /// Place where it works.
    pub place: SlashPlace,
}

/// Places where a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "snake_case")]
pub enum SlashPlace {
    /// The window only.
    Window,
    /// `goldcrest chat` only.
    Terminal,
    /// The window and `goldcrest chat`.
    Both,
}

macro_rules! names {
    ($($(#[$doc:meta])+ $name:ident = $text:literal),+ $(,)?) => {
        /// The name of a command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[cfg_attr(feature = "specta", derive(specta::Type))]
        pub enum SlashName {
            $($(#[$doc])+ #[serde(rename = $text)] $name),+
        }

        impl SlashName {
            /// Returns the name as it is typed, without the slash.
            pub const fn text(self) -> &'static str {
                match self {
                    $(SlashName::$name => $text),+
                }
            }
        }
    };
}

names! {
    /// A new chat.
    New = "new",
    /// A new chat in place of this one.
    Clear = "clear",
    /// A temporary chat.
    Temp = "temp",
    /// With thinking.
    Think = "think",
    /// Without thinking.
    NoThink = "no_think",
    /// The last answer again.
    Regenerate = "regenerate",
    /// More of the last answer.
    Continue = "continue",
    /// This chat as a file.
    Export = "export",
    /// Another model.
    Model = "model",
    /// A new chat with a summary.
    Summarize = "summarize",
    /// The tools of this chat.
    Tools = "tools",
    /// The model and settings in use.
    Status = "status",
    /// Other colours.
    Theme = "theme",
    /// The settings.
    Settings = "settings",
    /// This list.
    Help = "help",
    /// The end.
    Quit = "quit",
}

/// All commands, the most used first.
pub const SLASH_COMMANDS: [SlashCommand; 16] = [
    both(SlashName::New, None, "Start a new chat"),
    both(SlashName::Clear, None, "Start over with an empty chat"),
    both(
        SlashName::Temp,
        None,
        "Start a chat that is never written to disk",
    ),
    both(
        SlashName::Think,
        Some("[MESSAGE]"),
        "Think before answering",
    ),
    both(
        SlashName::NoThink,
        Some("[MESSAGE]"),
        "Answer without thinking",
    ),
    both(
        SlashName::Regenerate,
        Some("[shorter|longer|thinking|no thinking]"),
        "Write the last answer again",
    ),
    both(SlashName::Continue, None, "Go on with the last answer"),
    both(
        SlashName::Summarize,
        None,
        "Start a new chat with a summary of this one",
    ),
    both(
        SlashName::Export,
        Some("[FILE]"),
        "Write this chat to a file",
    ),
    both(
        SlashName::Model,
        Some("[NAME]"),
        "Show the models, or open one by its name",
    ),
    window(SlashName::Tools, None, "Choose the tools of this chat"),
    both(
        SlashName::Status,
        None,
        "Show the model, the device and the context in use",
    ),
    window(
        SlashName::Theme,
        Some("system|light|dark"),
        "Change the colours",
    ),
    window(SlashName::Settings, None, "Open the settings"),
    both(SlashName::Help, None, "List the commands and the keys"),
    terminal(SlashName::Quit, "Leave"),
];

const fn both(name: SlashName, argument: Option<&'static str>, does: &'static str) -> SlashCommand {
    SlashCommand {
        name,
        argument,
        does,
        place: SlashPlace::Both,
    }
}

const fn window(
    name: SlashName,
    argument: Option<&'static str>,
    does: &'static str,
) -> SlashCommand {
    SlashCommand {
        place: SlashPlace::Window,
        ..both(name, argument, does)
    }
}

const fn terminal(name: SlashName, does: &'static str) -> SlashCommand {
    SlashCommand {
        place: SlashPlace::Terminal,
        ..both(name, None, does)
    }
}

/// Input that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed<'t> {
    /// A message; if it begins with two slashes and the name of a command, one slash is removed.
    Message(&'t str),
    /// A command with its argument.
    Command(SlashName, &'t str),
    /// A command that takes no argument, with one.
    Extra(&'static SlashCommand),
    /// A command with an argument that is not one of its [`SlashCommand::options`].
    Other(&'static SlashCommand),
    /// A name that no command of the terminal has.
    Unknown(&'t str),
}

impl SlashCommand {
    /// Returns the commands of the terminal.
    pub fn in_terminal() -> impl Iterator<Item = &'static SlashCommand> {
        let here = |command: &&SlashCommand| command.place != SlashPlace::Window;
        SLASH_COMMANDS.iter().filter(here)
    }

    /// Returns the command as it is listed, with its argument.
    pub fn usage(&self) -> String {
        let argument = self.argument.map(|argument| format!(" {argument}"));
        format!("/{}{}", self.name.text(), argument.unwrap_or_default())
    }

    /// Returns the allowed words of its argument, if it takes no others.
    pub fn options(&self) -> impl Iterator<Item = &'static str> {
        let words = self.argument.unwrap_or_default();
        let words = words.trim_matches(['[', ']']).split('|');
        words.filter(|_| self.argument.is_some_and(|words| words.contains('|')))
    }

    /// Parses input of the terminal. Neither a path nor a text after a space is a command.
    pub fn read(text: &str) -> Typed<'_> {
        let Some(rest) = text.strip_prefix('/') else {
            return Typed::Message(text.trim());
        };
        if let Some(escaped) = rest.strip_prefix('/') {
            return match named(word(escaped)) {
                Some(_) => Typed::Message(rest.trim_end()),
                None => Typed::Message(text.trim_end()),
            };
        }
        let typed = word(rest);
        let is_name = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '-';
        if typed.is_empty() || !typed.chars().all(is_name) {
            return Typed::Message(text.trim_end());
        }
        let argument = rest[typed.len()..].trim();
        match named(typed) {
            None => Typed::Unknown(typed),
            Some(command) if command.argument.is_none() && !argument.is_empty() => {
                Typed::Extra(command)
            }
            Some(command) if !argument.is_empty() && command.options().next().is_some() => {
                let is_typed = |option: &&str| option.eq_ignore_ascii_case(argument);
                match command.options().find(is_typed) {
                    Some(option) => Typed::Command(command.name, option),
                    None => Typed::Other(command),
                }
            }
            Some(command) => Typed::Command(command.name, argument),
        }
    }
}

fn word(text: &str) -> &str {
    text.split(char::is_whitespace).next().unwrap_or_default()
}

/// Finds the command of the terminal with this name, ignoring case; a hyphen stands for an underscore.
fn named(typed: &str) -> Option<&'static SlashCommand> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    SlashCommand::in_terminal().find(|command| command.name.text() == typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_what_stands_behind_them() {
        for (text, name, argument) in [
            ("/new", SlashName::New, ""),
            ("/NEW \n", SlashName::New, ""),
            ("/no-think", SlashName::NoThink, ""),
            (
                "/think  Why is it so?\nSay more. ",
                SlashName::Think,
                "Why is it so?\nSay more.",
            ),
            ("/model my model.gguf", SlashName::Model, "my model.gguf"),
            ("/regenerate", SlashName::Regenerate, ""),
            (
                "/regenerate No thinking",
                SlashName::Regenerate,
                "no thinking",
            ),
        ] {
            assert_eq!(
                SlashCommand::read(text),
                Typed::Command(name, argument),
                "{text}"
            );
        }
    }

    #[test]
    fn a_message_may_begin_with_a_slash() {
        for (text, message) in [
            ("/etc/hosts is what?", "/etc/hosts is what?"),
            ("/", "/"),
            ("/ alone", "/ alone"),
            ("/2 is half", "/2 is half"),
            ("/élan", "/élan"),
            ("// a comment", "// a comment"),
            ("//todo: mend", "//todo: mend"),
            ("//new is a command", "/new is a command"),
            (" /new", "/new"),
            ("What is /new?", "What is /new?"),
        ] {
            assert_eq!(SlashCommand::read(text), Typed::Message(message), "{text}");
        }
    }

    #[test]
    fn what_is_no_command_is_said_to_be_none() {
        assert_eq!(SlashCommand::read("/ne now"), Typed::Unknown("ne"));
        // It works in the window only.
        assert_eq!(SlashCommand::read("/theme dark"), Typed::Unknown("theme"));
        assert!(
            matches!(SlashCommand::read("/new car"), Typed::Extra(command) if command.name == SlashName::New)
        );
        assert!(
            matches!(SlashCommand::read("/regenerate short"), Typed::Other(command) if command.options().count() == 4)
        );
    }

    #[test]
    fn no_two_commands_have_one_name() {
        for (at, command) in SLASH_COMMANDS.iter().enumerate() {
            let same = |other: &SlashCommand| other.name == command.name;
            assert_eq!(SLASH_COMMANDS.iter().position(same), Some(at));
            assert!(!command.does.ends_with('.'), "{}", command.does);
        }
    }
}
