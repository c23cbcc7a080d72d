//! Usage of the context, counted beside the model; and parts that were left out and are read again. The scripted model
//! counts a token per word, and ten for the header.

use std::time::Instant;

use chat::{ChatId, ContextUsage, FailureCode, ModelChoice, Omitted, Settings};
use store::Store;

use crate::bench::Bench;
use crate::clocks::TODAY;
use crate::scripted::{Script, Step};

/// Makes a bench with answers of at most 20 tokens: prompts up to 80 tokens fit.
fn bench() -> Bench {
    let script = Script::default();
    script.context(100);
    let bench = Bench::scripted(&script);
    let settings = Settings {
        max_tokens: Some(20),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    bench
}

fn words(n: usize) -> String {
    vec!["word"; n].join(" ")
}

fn usage(bench: &Bench, chat: Option<ChatId>, draft: &str) -> ContextUsage {
    let usage = bench.chat.context_usage(chat, draft, 0, true).unwrap();
    usage.expect("a model is open")
}

fn taken(usage: &ContextUsage) -> u32 {
    usage.instructions + usage.chat + usage.thinking + usage.pasted + usage.message
}

#[test]
fn what_is_counted_is_what_is_sent_then() {
    let mut bench = bench();
    let mut chat = None;
    let mut left_out = 0;
    for turn in 0..12 {
        bench.script.answer([
            Step::Think("a b c d e"),
            Step::Say(if turn % 3 == 0 {
                "One two three."
            } else {
                "Yes."
            }),
        ]);
        let draft = words(3 + turn % 5 * 4);
        let counted = usage(&bench, chat, &draft);
        let view = bench.ask(chat, &draft);
        let sent = bench.script.last_prompt();
        assert_eq!(taken(&counted) as usize, sent, "message {turn}");
        let answer = view.messages.last().unwrap();
        assert_eq!(counted.omitted, answer.omitted, "message {turn}");
        left_out += usize::from(answer.omitted.is_some_and(|it| it.messages > 0));
        chat = Some(view.chat.id);
    }
    assert!(left_out > 2, "{left_out}");
}

#[test]
fn each_part_is_counted() {
    let mut bench = bench();
    let empty = usage(&bench, None, "");
    assert_eq!((empty.context, empty.reserved), (100, 20));
    assert_eq!((empty.instructions, taken(&empty)), (10, 10));
    assert_eq!(empty.message_room, 70);
    let new = bench.chat.context_usage(None, " How heavy? \n", 40, true);
    let new = new.unwrap().unwrap();
    assert_eq!((new.message, new.pasted, taken(&new)), (2, 40, 52));

    bench
        .script
        .answer([Step::Think("a b c"), Step::Say("Six grams.")]);
    let chat = bench.ask(None, "How heavy is it?").chat.id;
    bench.script.counter().set_cached(17);
    let whole = usage(&bench, Some(chat), "And now?");
    assert_eq!((whole.chat, whole.thinking, whole.message), (6, 3, 2));
    assert_eq!(
        (whole.cached, whole.written, whole.omitted),
        (17, None, None)
    );
    assert_eq!((whole.whole, whole.without_thinking), (21, 21));
    // Without thinking mode none of it is sent.
    let without = bench.chat.context_usage(Some(chat), "", 0, false);
    let without = without.unwrap().unwrap();
    assert_eq!((without.chat, without.thinking), (6, 0));
}

#[test]
fn nothing_waits_for_an_answer_that_is_written() {
    let mut bench = Bench::new();
    let (view, go) = bench.begin_first();
    let chat = view.chat.id;
    let started = Instant::now();
    let counted = usage(&bench, Some(chat), "Two");
    assert!(started.elapsed().as_secs() < 5, "it waits for nothing");
    assert_eq!((counted.chat, counted.message), (2, 1));
    assert_eq!(counted.written, Some(1), "“first” is counted, too");
    assert_eq!(counted.cached, taken(&counted), "all of it is in memory");
    go.send(()).unwrap();
    bench.until_ended();
    let counted = usage(&bench, Some(chat), "");
    assert_eq!((counted.chat, counted.written), (2, None));
}

#[test]
fn a_branch_that_changes_is_counted_again_and_only_what_is_new_of_it() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "One two three").chat.id;
    let view = bench.ask(Some(chat), "Four five");
    let count = |bench: &Bench| usage(bench, Some(chat), "").chat;
    assert_eq!(count(&bench), 7);
    let before = bench.script.counter().messages();
    assert_eq!(count(&bench), 7);
    assert_eq!(bench.script.counter().messages(), before, "nothing is new");
    usage(&bench, Some(chat), "a draft");
    assert_eq!(bench.script.counter().messages(), before + 1, "the draft");

    let question = view.messages[2].id;
    bench.chat.edit_message(question, "Four", None).unwrap();
    assert_eq!(count(&bench), 5);
    bench.chat.show_sibling(question).unwrap();
    assert_eq!(count(&bench), 7);
    let other = bench.ask(None, "Another chat").chat.id;
    assert_eq!(usage(&bench, Some(other), "").chat, 3);
    assert_eq!(count(&bench), 7);
    let settings = Settings {
        instructions: "In verse.".into(),
        ..Settings::default()
    };
    let frames = bench.script.counter().frames();
    bench.chat.save_settings(settings).unwrap();
    count(&bench);
    assert_eq!(bench.script.counter().frames(), frames + 1);
}

#[test]
fn without_a_model_nothing_is_counted() {
    let script = Script::default();
    let go = script.slow_open();
    let mut bench = Bench::start(Store::in_memory().unwrap(), &script, TODAY);
    let count = |bench: &Bench| bench.chat.context_usage(None, "", 0, true).unwrap();
    assert_eq!(count(&bench), None);
    assert_eq!(bench.chat.count_tokens(&["a b".into()]).unwrap(), None);
    go.send(()).unwrap();
    bench.until_ready();
    assert!(count(&bench).is_some());
    let texts = ["a b".into(), String::new()];
    assert_eq!(bench.chat.count_tokens(&texts).unwrap(), Some(vec![2, 0]));
    bench.chat.eject_model().unwrap();
    assert_eq!(count(&bench), None);
}

#[test]
fn what_is_too_large_or_gone_is_refused() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "One").chat.id;
    let large = "x".repeat(5_000_000);
    let error = bench.chat.context_usage(None, large.clone(), 0, true);
    assert_eq!(error.unwrap_err().code, FailureCode::TooLong);
    let error = bench.chat.count_tokens(&[large]).unwrap_err();
    assert_eq!(error.code, FailureCode::TooLong);
    bench.chat.delete([chat]).unwrap();
    bench
        .chat
        .context_usage(Some(chat), "", 0, true)
        .unwrap_err();
    assert_eq!(usage(&bench, None, "").chat, 0);
}

/// Makes a chat whose first turn was left out, and would fit if nothing were left out before it has to be.
fn cut_chat(bench: &mut Bench) -> chat::ChatView {
    for _ in 0..3 {
        let thought = Step::Think("a b c d e f g h i j k l m n o");
        bench.script.answer([thought, Step::Say("Yes.")]);
    }
    let chat = bench.ask(None, "One?").chat.id;
    bench.ask(Some(chat), "Two?");
    bench.ask(Some(chat), &words(4));
    bench.ask(Some(chat), &words(10))
}

#[test]
fn what_was_left_out_is_read_again_as_far_as_it_fits_and_that_is_undone() {
    let mut bench = bench();
    let view = cut_chat(&mut bench);
    let chat = view.chat.id;
    let answer = view.messages.last().unwrap();
    let thinking = Some(Omitted {
        messages: 0,
        thinking: 2,
    });
    assert_eq!(
        answer.omitted, thinking,
        "10 + 2 + 34 + 20 + 10 tokens are over 70"
    );
    let from = answer.read_from.unwrap();
    assert_eq!((from.message, from.again), (None, false));
    assert_eq!(from.thinking, Some(view.messages[5].id));
    assert_eq!(usage(&bench, Some(chat), "").omitted, thinking);

    let read = bench.chat.read_again(answer.id).unwrap();
    assert!(read.messages.last().unwrap().read_from.unwrap().again);
    let all = usage(&bench, Some(chat), "");
    assert_eq!((all.omitted, taken(&all)), (None, all.whole));
    let undone = bench.chat.undo().unwrap().unwrap();
    assert!(
        undone.label.starts_with("read all of “One?” again"),
        "{}",
        undone.label
    );
    assert_eq!(usage(&bench, Some(chat), "").omitted, thinking);
    bench.chat.redo().unwrap();

    let view = bench.ask(Some(chat), "Now?");
    assert_eq!(view.messages.last().unwrap().omitted, None);
    let thinks = bench
        .script
        .last_turn()
        .history
        .iter()
        .filter(|turn| turn.thinking.is_some())
        .count();
    assert_eq!(thinks, 3, "all of it was sent");
    // It stays until it has to go.
    let view = bench.ask(Some(chat), &words(9));
    let omitted = view.messages.last().unwrap().omitted;
    assert!(
        omitted.is_some_and(|it| it.thinking > 0),
        "{omitted:?}: it does not fit 80"
    );
}

#[test]
fn what_does_not_fit_is_not_read_again() {
    let mut bench = bench();
    let chat = bench.ask(None, &words(30)).chat.id;
    bench.ask(Some(chat), &words(20));
    let view = bench.ask(Some(chat), &words(25));
    let answer = view.messages.last().unwrap();
    let first_turn = Some(Omitted {
        messages: 2,
        thinking: 0,
    });
    assert_eq!(answer.omitted, first_turn);
    assert_eq!(answer.read_from.unwrap().message, Some(view.messages[2].id));
    let counted = usage(&bench, Some(chat), "");
    assert_eq!(counted.whole, 88);
    assert_eq!(
        counted.context - counted.reserved,
        80,
        "so the window says both"
    );
    bench.chat.read_again(answer.id).unwrap();
    assert!(usage(&bench, Some(chat), "").omitted.is_some());
    let view = bench.ask(Some(chat), "And?");
    assert!(view.messages.last().unwrap().omitted.is_some());
    // A larger context takes everything.
    bench.script.context(1000);
    let other = ModelChoice::File("other.gguf".into());
    bench.chat.open_model(other).unwrap();
    bench.until_ready();
    assert_eq!(usage(&bench, Some(chat), "").omitted, None);
}

#[test]
fn nothing_is_read_again_while_an_answer_is_written() {
    let mut bench = bench();
    let view = cut_chat(&mut bench);
    let go = bench.script.go();
    bench.script.answer([Step::Say("first"), Step::Wait]);
    bench.chat.send(Some(view.chat.id), "And?", true).unwrap();
    bench.until_delta();
    let answer = view.messages.last().unwrap();
    bench.chat.read_again(answer.id).unwrap_err();
    go.send(()).unwrap();
    bench.until_ended();
}

#[test]
fn counting_goes_on_after_a_panic() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "one two three").chat.id;
    let count = || bench.chat.context_usage(Some(chat), "four five", 0, true);
    let before = count().unwrap().unwrap();
    bench.script.counter().panic_next();
    let failed = count().unwrap_err();
    assert!(failed.message.contains("the tokenizer broke"), "{failed}");
    assert_eq!(count().unwrap(), Some(before));
}
