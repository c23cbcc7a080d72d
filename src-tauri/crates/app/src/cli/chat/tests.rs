use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use ::chat::{Failure, ModelOptions, Opening};
use engine::{Conversation, Event, Finished, ModelRequest, Prompt, RequestId};

use super::*;

/// The bundled model, which begins no answer while the flag is set.
struct Waiting(EngineModel, Arc<AtomicBool>);

impl ModelHost for Waiting {
    fn open(
        &mut self,
        model: &ModelChoice,
        options: &ModelOptions,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure> {
        self.0.open(model, options, on_progress)
    }

    fn close(&mut self) {
        self.0.close();
    }

    fn info(&self) -> Option<&ModelInfo> {
        self.0.info()
    }

    fn prompt(
        &mut self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, Failure> {
        self.0.prompt(conversation, cancel)
    }

    fn submit(&mut self, request: ModelRequest) -> Result<(), Failure> {
        self.0.submit(request)
    }

    fn step(
        &mut self,
        preempt: &AtomicBool,
        on_event: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Vec<(RequestId, Result<Finished, Failure>)> {
        if !self.1.load(Ordering::Relaxed) || preempt.load(Ordering::Relaxed) {
            return self.0.step(preempt, on_event);
        }
        thread::sleep(Duration::from_millis(1));
        Vec::new()
    }
}

fn with(host: impl ModelHost + 'static, max_tokens: u32, context: Option<u32>) -> TerminalChat {
    let answer = AnswerArgs {
        no_think: true,
        temperature: Some(0.0),
        max_tokens: Some(max_tokens),
        ..AnswerArgs::default()
    };
    let settings = Settings {
        device: "cpu".to_owned(),
        threads: Some(1),
        context_length: context,
        ..settings(&answer)
    };
    let file = testing::tiny_model();
    let (model, interrupt) = (ModelChoice::File(file.clone()), Interrupt::default());
    let chat = TerminalChat::start(model, &settings, Box::new(host), interrupt);
    let chat = chat.expect("it starts");
    let opened = chat.opened(&model_file(&file).expect("a model"));
    opened.expect("it opens");
    chat
}

/// Makes a chat with the bundled model, whose answers have at most this many tokens.
fn short(max_tokens: u32) -> TerminalChat {
    with(EngineModel::default(), max_tokens, None)
}

fn take(chat: &mut TerminalChat, line: &str) {
    let next = chat.take(line).expect("it is done");
    assert_eq!(next, AfterLine::Read, "{line}");
}

fn messages(chat: &TerminalChat) -> Vec<Message> {
    let view = chat.current.map(|id| chat.chat.open_chat(id));
    view.map_or_else(Vec::new, |view| view.expect("a chat").messages)
}

fn texts(chat: &TerminalChat) -> Vec<(Role, String)> {
    let messages = messages(chat).into_iter();
    messages.map(|it| (it.role, it.text())).collect()
}

#[test]
fn every_flag_of_an_answer_is_a_setting() {
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
    let given = settings(&flags);
    assert_eq!(given.sampling_changes, flags.sampling());
    assert_eq!(
        (given.max_tokens, given.thinking_budget),
        (Some(33), Some(44))
    );
    assert_eq!(given.instructions, "Be brief.");
    assert!(!given.thinking && !given.lookup);
    let usual = settings(&AnswerArgs::default());
    assert!(usual.thinking && usual.lookup && usual.instructions.is_empty());
}

#[test]
fn an_answer_is_kept_as_it_was_written() {
    let mut chat = short(5);
    take(&mut chat, "Hi");
    let said = messages(&chat).pop().expect("an answer");
    assert_eq!(
        (said.role, said.state),
        (Role::Assistant, MessageState::Limit)
    );
    assert!(!said.text().is_empty() && said.thinking().is_none());
    assert_eq!(said.stats.map(|it| it.figures.tokens), Some(5));
}

#[test]
fn an_answer_is_gone_on_with_where_it_ended() {
    let mut whole = short(12);
    take(&mut whole, "What is Goldcrest?");
    let mut chat = short(6);
    take(&mut chat, "What is Goldcrest?");
    take(&mut chat, "/continue");
    assert_eq!(texts(&chat), texts(&whole));
    assert_eq!(texts(&chat).len(), 2);
}

#[test]
fn a_complete_answer_goes_on() {
    let mut chat = short(200);
    take(&mut chat, "Hello!");
    let before = messages(&chat).remove(1);
    assert_eq!(before.state, MessageState::Done);
    take(&mut chat, "/continue");
    let after = messages(&chat).remove(1).text();
    assert!(
        after.len() > before.text().len() && after.starts_with(&*before.text()),
        "{after:?}"
    );
}

#[test]
fn the_last_answer_is_written_again_in_its_place() {
    let mut chat = short(5);
    take(&mut chat, "/regenerate");
    assert!(messages(&chat).is_empty(), "there is none yet");
    take(&mut chat, "Hi");
    let before = texts(&chat);
    take(&mut chat, "/regenerate");
    assert_eq!(texts(&chat), before);
    assert_eq!(messages(&chat)[1].siblings.len(), 2);
}

#[test]
fn thinking_is_switched_and_a_new_chat_begun() {
    let mut chat = short(5);
    take(&mut chat, "/think");
    assert!(chat.thinking && messages(&chat).is_empty());
    take(&mut chat, "/no_think Hi");
    assert!(!chat.thinking);
    assert_eq!(texts(&chat)[0].1, "Hi");
    take(&mut chat, "/clear");
    assert!(messages(&chat).is_empty());
}

#[test]
fn a_chat_goes_on_with_its_summary_alone() {
    let mut chat = short(400);
    take(&mut chat, "/summarize");
    assert!(messages(&chat).is_empty(), "there is nothing yet");
    take(&mut chat, "/no_think What is Goldcrest?");
    take(&mut chat, "/think");
    take(&mut chat, "/summarize");
    let said = texts(&chat);
    let roles: Vec<Role> = said.iter().map(|(role, _)| *role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant]);
    assert!(said[0].1.starts_with("Sum up our chat"), "{said:?}");
    assert!(chat.thinking, "as before");
}

#[test]
fn a_model_that_is_not_there_leaves_the_chat_as_it_is() {
    let mut chat = short(5);
    take(&mut chat, "Hi");
    let before = texts(&chat);
    let failed = chat.take("/model no-such-model-anywhere");
    assert!(
        matches!(failed, Err(CliError::Message(text)) if text.contains("no-such-model-anywhere"))
    );
    assert_eq!(texts(&chat), before);
}

#[test]
fn a_model_of_a_path_goes_on_with_the_chat() {
    let mut chat = short(5);
    take(&mut chat, "Hi");
    let file = testing::tiny_model();
    take(&mut chat, &format!("/model {}", file.display()));
    let model = chat.model().expect("it is open");
    assert!(!model.bundled_model && model.file.is_some(), "{model:?}");
    take(&mut chat, "And then?");
    assert_eq!(texts(&chat).len(), 4);
}

#[test]
fn what_is_no_command_and_what_takes_nothing_is_no_message() {
    let mut chat = short(5);
    for line in ["/foo", "/theme dark", "/new car", ""] {
        take(&mut chat, line);
    }
    assert!(messages(&chat).is_empty());
    take(&mut chat, " /foo");
    assert_eq!(texts(&chat)[0].1, "/foo");
    assert!(matches!(chat.take("/quit"), Ok(AfterLine::Leave)));
}

#[test]
fn a_summary_that_is_not_whole_leaves_the_chat_as_it_was() {
    let mut chat = short(5);
    take(&mut chat, "What is Goldcrest?");
    let before = texts(&chat);
    // It ends at the limit, and then by Ctrl+C.
    for pressed in [false, true] {
        chat.interrupt.pressed = pressed;
        take(&mut chat, "/summarize");
        assert_eq!(texts(&chat), before);
    }
}

#[test]
fn an_answer_that_is_interrupted_before_it_begins_replaces_none() {
    let waits = Arc::new(AtomicBool::new(false));
    let host = Waiting(EngineModel::default(), Arc::clone(&waits));
    let mut chat = with(host, 5, None);
    waits.store(true, Ordering::Relaxed);
    chat.interrupt.pressed = true;
    take(&mut chat, "Never answered");
    assert!(messages(&chat).is_empty());
    chat.interrupt.pressed = false;
    waits.store(false, Ordering::Relaxed);
    take(&mut chat, "What is Goldcrest?");
    let before = texts(&chat);
    waits.store(true, Ordering::Relaxed);
    chat.interrupt.pressed = true;
    for line in ["/regenerate", "/regenerate longer", "/continue", "Why?"] {
        take(&mut chat, line);
        assert_eq!(texts(&chat), before, "{line}");
    }
    assert_eq!(messages(&chat)[1].length, None);
}

#[test]
fn a_chat_that_fills_the_context_goes_on_without_its_beginning() {
    let mut chat = with(EngineModel::default(), 8, Some(512));
    let long = "What does the goldcrest eat in a hard winter? ".repeat(8);
    for _ in 0..8 {
        take(&mut chat, &long);
    }
    let words = in_words(chat.omitted).expect("turns are left out");
    assert!(words.starts_with("the first "), "{words}");
    assert_eq!(messages(&chat).len(), 16, "nothing is forgotten");
    take(&mut chat, "/summarize");
    take(&mut chat, "/new");
    assert_eq!(chat.omitted, Omitted::default());
}

#[test]
fn what_is_left_out_is_named() {
    let words = |messages, thinking| in_words(Omitted { messages, thinking });
    assert_eq!(words(0, 0), None);
    assert_eq!(words(1_200, 0).as_deref(), Some("the first 1,200 messages"));
    let both = "the first message or earlier thinking";
    assert_eq!(words(1, 3).as_deref(), Some(both));
}

#[test]
fn a_message_that_is_too_long_leaves_the_chat_as_it_was() {
    let mut chat = with(EngineModel::default(), 5, Some(512));
    let long = "word ".repeat(2_000);
    for (line, before) in [("Hi", 0), ("And then?", 2)] {
        let failed = chat.take(&long);
        assert!(matches!(failed, Err(CliError::Message(text)) if text.contains("too long")));
        assert_eq!(messages(&chat).len(), before);
        take(&mut chat, line);
    }
    assert_eq!(messages(&chat).len(), 4);
}

#[test]
fn the_last_answer_is_written_again_in_another_way() {
    let mut chat = short(5);
    take(&mut chat, "What is Goldcrest?");
    take(&mut chat, "/regenerate Shorter");
    assert_eq!(messages(&chat)[1].length, Some(LengthWish::Shorter));
    assert_eq!(texts(&chat)[0].1, "What is Goldcrest?");
    take(&mut chat, "/regenerate thinking");
    let answer = messages(&chat).remove(1);
    assert!(answer.thinking().is_some() && answer.length.is_none());
    assert!(!chat.thinking, "for this answer alone");
    let before = messages(&chat);
    take(&mut chat, "/regenerate briefly");
    assert_eq!(messages(&chat), before);
}

#[test]
fn what_stands_behind_a_mode_is_a_message() {
    let mut chat = short(5);
    take(&mut chat, "/no_think /new");
    assert_eq!(texts(&chat)[0].1, "/new");
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
