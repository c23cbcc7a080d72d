//! `goldcrest chat`: a conversation in the terminal. It is not kept.

use std::io::{self, Write};

use engine::{Conversation, Role, Turn};

use super::answer::{Stream, generate};
use super::args::ChatArgs;
use super::input::Input;
use super::interrupt::Interrupt;
use super::load;
use super::output::{self, CliError};

const COMMANDS: [(&str, &str); 5] = [
    ("/new", "start a new chat"),
    ("/think", "reason before answering"),
    ("/no_think", "answer at once"),
    ("/help", "this list"),
    ("/quit", "leave (Ctrl+D too); Ctrl+C stops an answer"),
];
const KEYS: &str = "On a terminal, Up and Down recall earlier lines, Tab completes a command, and a \\ at the end continues in the next line.";

pub fn run(args: &ChatArgs) -> Result<(), CliError> {
    let interrupt = Interrupt::listen();
    let mut model = load::open(&args.model)?;
    let mut input = Input::new(&COMMANDS)?;
    if input.is_terminal() {
        let (summary, device) = (model.engine().summary(), model.engine().device());
        writeln!(
            io::stdout(),
            "{}, {}. /help lists the commands.",
            output::visible(&summary.name),
            device.name
        )?;
    }
    let mut conversation = args.answer.conversation();
    while let Some(line) = input.read()? {
        match line.trim() {
            "" => {}
            "/quit" | "/exit" => break,
            "/new" => conversation.messages.clear(),
            "/think" => conversation.thinking = true,
            "/no_think" => conversation.thinking = false,
            "/help" => help(&mut io::stdout())?,
            said => {
                conversation.messages.push(Turn::new(Role::User, said));
                if let Err(error) = answer(&mut model, &mut conversation, args, &interrupt) {
                    conversation.messages.pop();
                    recover(error)?;
                }
            }
        }
    }
    Ok(())
}

/// A question that failed is no reason to leave; an output that is gone is.
fn recover(error: CliError) -> Result<(), CliError> {
    let CliError::Message(message) = error else {
        return Err(error);
    };
    Ok(writeln!(io::stderr(), "{}", output::visible(&message))?)
}

fn help(out: &mut impl Write) -> io::Result<()> {
    for (name, what) in COMMANDS {
        writeln!(out, "{name:<10} {what}")?;
    }
    writeln!(out, "{KEYS}")
}

fn answer(
    model: &mut load::LoadedModel,
    conversation: &mut Conversation,
    args: &ChatArgs,
    interrupt: &Interrupt,
) -> Result<(), CliError> {
    let params = args
        .answer
        .params(model.engine().summary().sampling.clone());
    let mut stream = Stream::new(false);
    let (answered, _) = interrupt.during(|cancel| {
        model.run(|engine| generate(engine, conversation, &params, cancel, &mut stream))
    });
    let (answer, _) = answered?;
    conversation.messages.push(Turn {
        role: Role::Assistant,
        text: answer.text.trim().to_owned(),
        thinking: Some(answer.thinking).filter(|thinking| !thinking.is_empty()),
        ids: Some(answer.ids),
        open: false,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use ::devices::DeviceRequest;
    use engine::{LoadOptions, ModelFile};

    use super::*;
    use crate::cli::args::AnswerArgs;
    use crate::demo_model;

    #[test]
    fn an_answer_is_kept_with_the_tokens_that_were_written() {
        let file = demo_model::file().expect("the demo model");
        let options = LoadOptions {
            threads: Some(1),
            ..LoadOptions::default()
        };
        let file = ModelFile::open(&file).expect("a model");
        let model = load::open_unchecked(&file, &DeviceRequest::Cpu, false, &options);
        let mut model = model.expect("it opens");
        let args = ChatArgs {
            answer: AnswerArgs {
                no_think: true,
                max_tokens: Some(5),
                ..AnswerArgs::default()
            },
            ..ChatArgs::default()
        };
        let mut conversation = args.answer.conversation();
        conversation.messages.push(Turn::new(Role::User, "Hi"));
        answer(&mut model, &mut conversation, &args, &Interrupt::default()).expect("an answer");
        let said = conversation.messages.pop().expect("an answer");
        assert_eq!((said.role, said.open), (Role::Assistant, false));
        assert!(!said.text.is_empty() && said.thinking.is_none());
        assert_eq!(said.ids.map(|ids| ids.len()), Some(5));
    }
}
