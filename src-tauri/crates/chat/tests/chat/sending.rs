//! Messages and their answers.

use std::time::{Duration, Instant};

use chat::{ChatEvent, FailureCode, MessageState, Role, Stage};
use inference::StopReason;

use crate::scripted::{Bench, Step, texts};

#[test]
fn a_message_makes_a_chat_and_is_answered() {
    let mut bench = Bench::new();
    assert!(bench.chat.snapshot().unwrap().first_start);
    bench
        .script
        .answer([Step::Read(10, 10), Step::Say("Six "), Step::Say("grams.")]);

    let view = bench
        .chat
        .send(None, "How heavy is a goldcrest?\nIn grams.\n", true)
        .unwrap();
    assert_eq!(view.chat.title, "How heavy is a goldcrest?");
    assert!(view.chat.writing);
    assert_eq!(texts(&view), ["How heavy is a goldcrest?\nIn grams.", ""]);
    let answer = &view.messages[1];
    assert_eq!(
        (answer.role, answer.state),
        (Role::Assistant, MessageState::Writing)
    );
    assert_eq!(answer.parent, Some(view.messages[0].id));

    let ended = bench.until_ended();
    assert_eq!(
        (&*ended.text(), ended.state),
        ("Six grams.", MessageState::Done)
    );
    assert_eq!(ended.id, answer.id);
    assert_eq!(ended.stats.as_ref().unwrap().figures.tokens, 2);
    assert_eq!((ended.thinking(), ended.thinking_ms), (None, None));

    let snapshot = bench.chat.snapshot().unwrap();
    assert!(!snapshot.first_start);
    assert_eq!(snapshot.current, Some(view.chat.id));
    assert!(!snapshot.chats[0].writing);
}

#[test]
fn events_come_in_the_order_of_the_work() {
    let mut bench = Bench::new();
    bench.script.answer([
        Step::Read(5, 10),
        Step::Read(10, 10),
        Step::Tag(1),
        Step::Think("Hm."),
        Step::Tag(2),
        Step::Say("Yes."),
    ]);
    bench.chat.send(None, "Is it?", true).unwrap();
    let events = bench.until(|event| matches!(event, ChatEvent::Ended { .. }));

    let mut story = Vec::new();
    for event in events {
        match event {
            ChatEvent::ChatChanged { chat } if chat.writing => story.push("begins".to_owned()),
            ChatEvent::ChatChanged { .. } => story.push("rests".into()),
            ChatEvent::Stage {
                stage: Stage::Reading { done, total, .. },
                ..
            } => {
                story.push(format!("reading {done}/{total}"));
            }
            ChatEvent::Stage { stage, .. } => story.push(format!("{stage:?}")),
            ChatEvent::Ended { .. } => story.push("ended".into()),
            ChatEvent::Delta { .. }
            | ChatEvent::Called { .. }
            | ChatEvent::SettingsChanged { .. }
            | ChatEvent::ToolsChanged
            | ChatEvent::Model { .. }
            | ChatEvent::ChatsChanged { .. }
            | ChatEvent::ChatsRemoved { .. }
            | ChatEvent::FoldersChanged { .. }
            | ChatEvent::Presets { .. }
            | ChatEvent::PresetChosen { .. }
            | ChatEvent::CopyFailed { .. } => {}
        }
    }
    let expected = [
        "begins",
        "Waiting",
        "reading 5/10",
        "reading 10/10",
        "Thinking",
        "Writing",
        "rests",
        "ended",
    ];
    assert_eq!(story, expected);
}

#[test]
fn deltas_are_gathered_and_numbered_without_a_gap() {
    let mut bench = Bench::new();
    let mut steps = Vec::new();
    for _ in 0..60 {
        steps.extend([Step::Say("word "), Step::Sleep(3)]);
    }
    bench.script.answer(steps);
    let begun = Instant::now();
    bench.chat.send(None, "Sixty words.", false).unwrap();

    let (mut text, mut last, mut rate) = (String::new(), 0, 0.0);
    let ended = loop {
        match bench.until(|_| true).pop().unwrap() {
            ChatEvent::Delta {
                seq,
                parts: more,
                tokens,
                tokens_per_second,
                ..
            } => {
                rate = tokens_per_second;
                assert_eq!(seq, last + 1);
                if seq == 1 {
                    assert_eq!(
                        (&*more.text(), tokens),
                        ("word ", 1),
                        "the first goes at once"
                    );
                }
                last = seq;
                text.push_str(&more.text());
            }
            ChatEvent::Ended { message, .. } => break message,
            _ => {}
        }
    };
    assert_eq!(text, "word ".repeat(60));
    assert_eq!(ended.text(), text);
    assert_eq!(ended.seq, last);
    assert!(
        rate > 1.0 && rate < 1000.0 / 3.0,
        "a token every 3 ms at most: {rate}"
    );
    assert!(last >= 3, "deltas while it was written: {last}");
    let most = begun.elapsed().as_millis() / 50 + 2;
    assert!(u128::from(last) <= most, "{last} deltas, {most} at most");
}

#[test]
fn a_chat_opened_mid_answer_has_what_was_emitted() {
    let mut bench = Bench::new();
    let go = bench.script.go();
    bench.script.answer([
        Step::Say("Six "),
        Step::Wait,
        Step::Say("grams."),
        Step::Wait,
        Step::Say(" Or five."),
    ]);
    let chat = bench.chat.send(None, "How heavy?", true).unwrap().chat.id;
    bench.until_delta();
    let view = bench.chat.open_chat(chat).unwrap();
    assert_eq!(
        (&*view.messages[1].text(), view.messages[1].seq),
        ("Six ", 1)
    );
    assert_eq!(view.messages[1].state, MessageState::Writing);
    go.send(()).unwrap();
    assert_eq!(bench.until_delta(), "grams.");
    assert_eq!(bench.chat.open_chat(chat).unwrap().messages[1].seq, 2);
    go.send(()).unwrap();
    bench.until_ended();
    let view = bench.chat.open_chat(chat).unwrap();
    assert_eq!(view.messages[1].text(), "Six grams. Or five.");
}

#[test]
fn an_answer_keeps_its_thinking_apart_with_its_time() {
    let mut bench = Bench::new();
    bench.script.answer([
        Step::Tag(1),
        Step::Think("\nIt is "),
        Step::Sleep(40),
        Step::Think("light.\n"),
        Step::Tag(2),
        Step::Say("\n\nSix grams."),
        Step::Sleep(300),
    ]);
    let begun = Instant::now();
    bench.chat.send(None, "How heavy?", true).unwrap();
    let ended = bench.until_ended();
    assert_eq!(ended.thinking().as_deref(), Some("It is light."));
    assert_eq!(
        ended.text(),
        "Six grams.",
        "newlines before the text are not part of it"
    );
    let ms = Duration::from_millis(ended.thinking_ms.unwrap().into());
    assert!(ms >= Duration::from_millis(40));
    assert!(
        ms <= begun.elapsed() - Duration::from_millis(150),
        "the answer's time is not counted"
    );
}

#[test]
fn the_end_says_why() {
    let mut bench = Bench::new();
    for reason in [StopReason::MaxTokens, StopReason::ContextFull] {
        bench
            .script
            .answer([Step::Say("Once upon"), Step::End(reason)]);
        bench.chat.send(None, "A story.", true).unwrap();
        let ended = bench.until_ended();
        assert_eq!(
            (ended.state, &*ended.text()),
            (MessageState::Limit, "Once upon")
        );
    }
}

#[test]
fn a_chat_gives_one_answer_at_a_time_and_chats_do_not_wait_for_each_other() {
    let mut bench = Bench::new();
    let (first, go) = bench.begin_first();
    bench
        .script
        .answer([Step::Say("sec"), Step::Wait, Step::Say("ond")]);
    let second = bench.chat.send(None, "Two", true).unwrap();
    assert_eq!(bench.until_delta(), "sec");
    for view in [&first, &second] {
        let refused = bench.chat.send(Some(view.chat.id), "Again", true);
        assert_eq!(refused.unwrap_err().code, FailureCode::Other);
    }
    let chats = bench.chat.snapshot().unwrap().chats;
    assert!(chats.iter().all(|chat| chat.writing));

    bench.script.answer([Step::Say("third")]);
    let third = bench.chat.send(None, "Three", true).unwrap();
    assert_eq!(bench.until_ended().id, third.messages[1].id);
    for _ in 0..2 {
        go.send(()).unwrap();
    }
    let mut ended = [bench.until_ended().text(), bench.until_ended().text()];
    ended.sort();
    assert_eq!(ended, ["first", "second"]);
    let view = bench.chat.open_chat(first.chat.id).unwrap();
    assert_eq!(
        texts(&view),
        ["One", "first"],
        "what was refused left nothing behind"
    );
}

#[test]
fn an_empty_message_is_refused() {
    let bench = Bench::new();
    assert_eq!(
        bench.chat.send(None, " \n\t", true).unwrap_err().code,
        FailureCode::Other
    );
    assert!(bench.chat.snapshot().unwrap().chats.is_empty());
    let missing = bench
        .chat
        .send(Some(chat::ChatId(99)), "Hello?", true)
        .unwrap_err();
    assert_eq!(missing.code, FailureCode::Other);
}

#[test]
fn a_view_has_exactly_what_its_number_says() {
    let mut bench = Bench::new();
    let mut steps = vec![Step::Tag(1)];
    for say in [Step::Think("thought "), Step::Say("word ")] {
        if matches!(say, Step::Say(_)) {
            steps.push(Step::Tag(2));
        }
        for _ in 0..60 {
            steps.extend([say, Step::Sleep(3)]);
        }
    }
    bench.script.answer(steps);
    let chat = bench.chat.send(None, "Sixty words.", true).unwrap().chat.id;
    let (mut thinking, mut text) = (String::new(), String::new());
    let (mut last, mut views) = (0, 0);
    loop {
        let view = bench.chat.open_chat(chat).unwrap();
        let shown = &view.messages[1];
        if shown.state != MessageState::Writing {
            break;
        }
        // Deltas from before the view was made are still on their way.
        while last < shown.seq {
            let Some(ChatEvent::Delta { seq, parts, .. }) = bench
                .until(|event| matches!(event, ChatEvent::Delta { .. }))
                .pop()
            else {
                panic!("no delta")
            };
            last = seq;
            thinking += &parts.thinking().unwrap_or_default();
            text += &parts.text();
        }
        let shown_thinking = shown.thinking().unwrap_or_default();
        assert_eq!((&*shown_thinking, &*shown.text()), (&*thinking, &*text));
        views += usize::from(shown.seq > 0);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(views > 0, "it was looked at while it was written");
}

#[test]
fn a_text_of_more_than_four_megabytes_is_refused_at_once() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "How heavy?");
    let (chat, asked) = (view.chat.id, view.messages[0].id);
    let long = "x".repeat(4_000_001);
    let refused = [
        bench.chat.send(None, &long, true).map(drop),
        bench.chat.send(Some(chat), &long, true).map(drop),
        bench.chat.edit_message(asked, &long, Some(true)).map(drop),
        bench.chat.edit_message(asked, &long, None).map(drop),
        bench.chat.save_draft(Some(chat), &long),
        bench.chat.save_draft(None, &long),
    ];
    for refused in refused {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, FailureCode::TooLong);
        assert!(
            refused.message.contains("at most 4 MB"),
            "{}",
            refused.message
        );
    }
    assert_eq!(bench.chat.snapshot().unwrap().chats.len(), 1);
    assert_eq!(bench.chat.open_chat(chat).unwrap(), view);
    bench.chat.save_draft(None, &long[1..]).unwrap();
    bench.chat.send(Some(chat), &long[1..], true).unwrap();
}
