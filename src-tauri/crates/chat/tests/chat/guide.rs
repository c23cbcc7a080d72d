//! Answers from the guide.

use chat::{MessageState, ModelChoice, Settings};

use crate::scripted::Bench;

const ABOUT_APP: &str = "how do I delete a chat?";

#[test]
fn a_question_about_the_app_is_answered_without_the_model() {
    let mut bench = Bench::new();
    let view = bench.ask(None, ABOUT_APP);
    let [_, answer] = &view.messages[..] else {
        panic!("{:?}", view.messages)
    };
    assert_eq!(answer.guide.as_deref(), Some("delete-a-chat"));
    assert_eq!(answer.state, MessageState::Done);
    assert!(answer.text().contains("**Delete**"), "{}", answer.text());
    assert!(answer.stats.is_none());
    assert!(bench.script.turns().is_empty());

    // It is stored, found, and part of later prompts.
    let chat = view.chat.id;
    let stored = bench.chat.open_chat(chat).unwrap();
    assert_eq!(stored.messages[1], *answer);
    assert_eq!(bench.chat.search("bin 30 days").unwrap().chats.len(), 1);
    let view = bench.ask(Some(chat), "And how heavy is a wren?");
    assert_eq!(view.messages[3].guide, None);
    assert_eq!(bench.script.last_turn().history[1].text, answer.text());
}

#[test]
fn regenerating_has_the_model_answer() {
    let mut bench = Bench::new();
    let view = bench.ask(None, ABOUT_APP);
    bench
        .chat
        .regenerate(view.messages[1].id, false, None)
        .unwrap();
    bench.until_ended();
    let view = bench.chat.open_chat(view.chat.id).unwrap();
    assert_eq!(view.messages[1].guide, None);
    assert_eq!(view.messages[1].text(), "Yes.");
    assert_eq!(view.messages[1].siblings.len(), 2);
}

#[test]
fn an_edited_question_is_looked_up_as_well() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "How heavy is a wren?");
    let question = view.messages[0].id;
    bench
        .chat
        .edit_message(question, ABOUT_APP, Some(false))
        .unwrap();
    bench.until_ended();
    let view = bench.chat.open_chat(view.chat.id).unwrap();
    assert_eq!(view.messages[1].guide.as_deref(), Some("delete-a-chat"));
}

#[test]
fn a_fragment_within_a_chat_is_for_the_model() {
    let mut bench = Bench::new();
    let first = bench.ask(None, "dark mode");
    assert_eq!(first.messages[1].guide.as_deref(), Some("theme"));
    let view = bench.ask(Some(first.chat.id), "dark mode");
    assert_eq!(view.messages[3].guide, None);
}

#[test]
fn other_models_and_the_setting_keep_the_guide_out() {
    let mut bench = Bench::new();
    let settings = Settings {
        guide_answers: false,
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    assert_eq!(bench.ask(None, ABOUT_APP).messages[1].guide, None);

    let mut bench = Bench::new();
    let file = ModelChoice::File("mine.gguf".into());
    bench.chat.open_model(file).unwrap();
    bench.until_ready();
    assert_eq!(bench.ask(None, ABOUT_APP).messages[1].guide, None);
}
