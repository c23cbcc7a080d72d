use ::devices::DeviceRequest;
use engine::{LoadOptions, ModelFile};

use super::*;
use crate::bundled_model;
use crate::cli::args::AnswerArgs;

/// Makes a chat with the bundled model, whose answers have at most this many tokens.
fn short(max_tokens: u32) -> TerminalChat {
    with_context(max_tokens, None)
}

fn with_context(max_tokens: u32, context: Option<usize>) -> TerminalChat {
    let file = bundled_model::file().expect("the bundled model");
    let options = LoadOptions {
        threads: Some(1),
        context,
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
        left_out: LeftOut::default(),
        lengths: BTreeMap::new(),
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
    let mut chat = short(400);
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
    assert_eq!(
        chat.conversation.messages[0].text,
        ::chat::summary_question(None)
    );
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

#[test]
fn a_summary_that_is_not_whole_leaves_the_chat_as_it_was() {
    let mut chat = short(5);
    take(&mut chat, "What is Goldcrest?");
    let before = chat.conversation.messages.clone();
    // It ends at the limit, and then by Ctrl+C.
    for pressed in [false, true] {
        chat.interrupt.pressed = pressed;
        take(&mut chat, "/summarize");
        assert_eq!(chat.conversation.messages, before);
    }
}

#[test]
fn an_answer_that_is_interrupted_before_it_begins_replaces_none() {
    let mut chat = short(5);
    take(&mut chat, "What is Goldcrest?");
    let before = chat.conversation.messages.clone();
    chat.interrupt.pressed = true;
    for line in ["/regenerate", "/regenerate longer", "/continue", "Why?"] {
        take(&mut chat, line);
        assert_eq!(chat.conversation.messages, before, "{line}");
    }
    assert!(chat.lengths.is_empty());
}

#[test]
fn a_chat_that_fills_the_context_goes_on_without_its_beginning() {
    let mut chat = with_context(8, Some(512));
    let long = "What does the goldcrest eat in a hard winter? ".repeat(8);
    for _ in 0..8 {
        take(&mut chat, &long);
    }
    let words = chat.left_out.words().expect("turns are left out");
    assert!(words.starts_with("the first "), "{words}");
    assert_eq!(chat.conversation.messages.len(), 16, "nothing is forgotten");
    take(&mut chat, "/summarize");
    take(&mut chat, "/new");
    assert_eq!(chat.left_out, LeftOut::default());
}

#[test]
fn the_last_answer_is_written_again_in_another_way() {
    let mut chat = short(5);
    take(&mut chat, "What is Goldcrest?");
    take(&mut chat, "/regenerate Shorter");
    let asked = chat.asked().messages[0].text.clone();
    assert!(asked.contains("Keep the answer short"), "{asked}");
    assert_eq!(chat.conversation.messages[0].text, "What is Goldcrest?");
    take(&mut chat, "/regenerate thinking");
    assert!(chat.conversation.messages[1].thinking.is_some());
    assert!(!chat.conversation.thinking, "for this answer alone");
    assert_eq!(chat.asked().messages[0].text, "What is Goldcrest?");
    let before = chat.conversation.messages.clone();
    take(&mut chat, "/regenerate briefly");
    assert_eq!(chat.conversation.messages, before);
}

#[test]
fn what_stands_behind_a_mode_is_a_message() {
    let mut chat = short(5);
    take(&mut chat, "/no_think /new");
    assert_eq!(chat.conversation.messages[0].text, "/new");
}

#[test]
fn a_file_that_is_there_is_not_replaced() {
    let folder = tempfile::tempdir().expect("made");
    let file = folder.path().join("notes.md");
    std::fs::write(&file, "mine").expect("written");
    let mut chat = short(5);
    take(&mut chat, "Hi");
    let refused = chat.take(&format!("/export {}", file.display()));
    assert!(matches!(refused, Err(CliError::Message(text)) if text.contains("is there already")));
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "mine");
    take(
        &mut chat,
        &format!("/export {}", folder.path().join("new.md").display()),
    );
}
