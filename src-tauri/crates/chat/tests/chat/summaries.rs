//! A new chat that begins with a summary of another one.

use chat::{ChatId, ChatView, FailureCode, MessageState, Omitted, Role, Settings};
use inference::StopReason;

use crate::bench::Bench;
use crate::scripted::{Script, Step};

fn words(n: usize) -> String {
    vec!["word"; n].join(" ")
}

fn start(bench: &mut Bench, of: ChatId) -> ChatView {
    let view = bench.chat.start_summary(of).unwrap();
    bench.until_ended();
    bench.chat.open_chat(view.chat.id).unwrap()
}

#[test]
fn the_summary_is_written_from_the_other_chat_and_read_alone_from_then_on() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Think("Hm."), Step::Say("Six grams.")]);
    let of = bench.ask(None, "How heavy is a goldcrest?").chat.id;
    bench.script.answer([Step::Say("A bird of six grams.")]);
    let view = start(&mut bench, of);
    assert_eq!(view.chat.title, "How heavy is a goldcrest? (continued)");
    assert_eq!(view.chat.continues, Some(of));
    let [question, summary] = &view.messages[..] else {
        panic!("{view:?}");
    };
    assert!(
        question.text().contains("“How heavy is a goldcrest?”"),
        "{}",
        question.text()
    );
    assert_eq!(summary.text(), "A bird of six grams.");
    assert_eq!(
        (summary.thinks, summary.thinking().as_deref()),
        (false, None)
    );

    let asked = bench.script.last_turn();
    let texts: Vec<_> = asked
        .history
        .iter()
        .map(|turn| turn.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "How heavy is a goldcrest?",
            "Six grams.",
            &question.text(),
            ""
        ]
    );
    // The header is that of the chat, so that its cache is reused; the thinking is over before it begins.
    assert!(asked.thinking);
    assert_eq!(asked.history[1].thinking.as_deref(), Some("Hm."));
    let begun = asked.history.last().unwrap();
    assert!(
        begun.open && begun.thinking.as_deref() == Some(""),
        "{begun:?}"
    );
    assert_eq!(bench.chat.snapshot().unwrap().current, Some(view.chat.id));

    bench.ask(Some(view.chat.id), "And how long?");
    let asked = bench.script.last_turn();
    let roles: Vec<_> = asked.history.iter().map(|turn| turn.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
    assert_eq!(asked.history[1].text, "A bird of six grams.");
}

#[test]
fn a_chat_without_thinking_stays_one() {
    let mut bench = Bench::new();
    let view = bench.chat.send(None, "How heavy?", false).unwrap();
    bench.until_ended();
    start(&mut bench, view.chat.id);
    let asked = bench.script.last_turn();
    assert!(!asked.thinking && !asked.resume);
    assert_eq!(asked.history.len(), 3);
}

#[test]
fn a_chat_that_is_full_is_summed_up_from_what_fits() {
    let script = Script::default();
    script.context(200);
    let mut bench = Bench::scripted(&script);
    let settings = Settings {
        max_tokens: Some(40),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    let of = bench.ask(None, &words(80)).chat.id;
    bench.ask(Some(of), &words(50));
    let view = start(&mut bench, of);
    let summary = view.messages.last().unwrap();
    assert_eq!(summary.state, MessageState::Done);
    let omitted = Some(Omitted {
        messages: 2,
        thinking: 0,
    });
    assert_eq!(summary.omitted, omitted);
    let view = bench.ask(Some(view.chat.id), "Go on");
    assert_eq!(view.messages.last().unwrap().omitted, None);
}

#[test]
fn a_turn_that_fills_the_context_alone_is_not_summed_up_from_nothing() {
    let script = Script::default();
    script.context(200);
    let mut bench = Bench::scripted(&script);
    let of = bench.ask(None, &words(130)).chat.id;
    let view = start(&mut bench, of);
    let failed = view.messages.last().unwrap();
    assert_eq!(failed.state, MessageState::Failed);
    let error = failed.error.clone().unwrap();
    assert!(
        error.message.contains("longer than this model can read"),
        "{}",
        error.message
    );
    script.context(1000);
    let other = chat::ModelChoice::File("other.gguf".into());
    bench.chat.open_model(other).unwrap();
    bench.until_ready();
    bench.chat.regenerate(failed.id, false, None).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
}

#[test]
fn a_summary_that_was_stopped_or_failed_is_written_again_from_the_chat() {
    let mut bench = Bench::new();
    let of = bench.ask(None, "How heavy?").chat.id;
    bench
        .script
        .answer([Step::Say("A bird"), Step::End(StopReason::MaxTokens)]);
    let view = start(&mut bench, of);
    let summary = view.messages.last().unwrap();
    assert_eq!(summary.state, MessageState::Limit);
    bench.script.answer([Step::Say(" of six grams.")]);
    bench.chat.continue_answer(summary.id).unwrap();
    assert_eq!(bench.until_ended().text(), "A bird of six grams.");
    let asked = bench.script.last_turn();
    assert!(asked.resume);
    assert_eq!(asked.history[0].text, "How heavy?");

    bench.script.answer([Step::Fail("The device is gone.")]);
    bench.chat.regenerate(summary.id, false, None).unwrap();
    let failed = bench.until_ended();
    assert_eq!(failed.state, MessageState::Failed);
    bench.chat.regenerate(failed.id, false, None).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
    assert_eq!(bench.script.last_turn().history[0].text, "How heavy?");

    // Another question is answered from the chat, too.
    let question = view.messages[0].id;
    bench
        .chat
        .edit_message(question, "In one line?", Some(false))
        .unwrap();
    bench.until_ended();
    let asked = bench.script.last_turn();
    assert_eq!(asked.history[0].text, "How heavy?");
    assert_eq!(asked.history[2].text, "In one line?");
}

#[test]
fn without_the_other_chat_the_summary_stays_and_is_not_written_again() {
    let mut bench = Bench::new();
    let of = bench.ask(None, "How heavy?").chat.id;
    let view = start(&mut bench, of);
    bench.chat.delete([of]).unwrap();
    let chat = view.chat.id;
    let kept = bench.chat.open_chat(chat).unwrap();
    assert_eq!(kept.messages, view.messages);
    bench.ask(Some(chat), "Go on");

    let summary = view.messages.last().unwrap();
    bench.chat.regenerate(summary.id, false, None).unwrap();
    let failed = bench.until_ended();
    let error = failed.error.unwrap();
    assert_eq!(error.code, FailureCode::Other);
    assert!(error.message.contains("was deleted"), "{}", error.message);
    bench.chat.restore([of]).unwrap();
    bench.chat.regenerate(failed.id, false, None).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
}

#[test]
fn a_chat_is_summed_up_while_its_answer_is_written_and_never_without_one() {
    let mut bench = Bench::new();
    let (view, go) = bench.begin_first();
    bench.chat.start_summary(view.chat.id).unwrap();
    go.send(()).unwrap();
    bench.until_ended();
    bench.until_ended();
    let asked = bench.script.last_turn();
    assert_eq!(asked.history[1].text, "first");

    bench.script.answer([Step::Fail("The device is gone.")]);
    let view = bench.ask(None, "How heavy?");
    let error = bench.chat.start_summary(view.chat.id).unwrap_err();
    assert_eq!(
        error.message,
        "There is nothing to sum up in this chat yet."
    );
}

#[test]
fn starting_it_is_undone_and_the_other_chat_is_as_it_was() {
    let mut bench = Bench::new();
    let of = bench.ask(None, "How heavy?").chat.id;
    let view = start(&mut bench, of);
    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.label, "started “How heavy? (continued)”");
    let chats = bench.chat.snapshot().unwrap().chats;
    assert_eq!(chats.iter().map(|chat| chat.id).collect::<Vec<_>>(), [of]);
    bench.chat.redo().unwrap();
    assert_eq!(
        bench.chat.open_chat(view.chat.id).unwrap().messages,
        view.messages
    );
}

#[test]
fn while_it_is_written_the_context_has_the_other_chat() {
    let mut bench = Bench::new();
    let of = bench.ask(None, &words(50)).chat.id;
    let go = bench.script.go();
    bench.script.answer([Step::Say("first"), Step::Wait]);
    let view = bench.chat.start_summary(of).unwrap();
    let question = view.messages[0].text().split_whitespace().count();
    bench.until_delta();
    let chat = view.chat.id;
    let count = |bench: &Bench| {
        let usage = bench.chat.context_usage(Some(chat), "", 0, true).unwrap();
        usage.unwrap().chat as usize
    };
    assert_eq!(count(&bench), 51 + question + 1);
    go.send(()).unwrap();
    bench.until_ended();
    assert_eq!(count(&bench), question + 1, "then it has the summary alone");
}
