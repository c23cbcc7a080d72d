//! Stop, at every stage of the answer, and continuing afterwards.

use chat::{ChatEvent, FailureCode, MessageState, ModelChoice, Stage};
use inference::StopReason;

use crate::scripted::{Bench, Step};

#[test]
fn a_stopped_answer_keeps_what_it_has_and_goes_on_in_the_same_message() {
    let mut bench = Bench::new();
    bench.script.answer([
        Step::Tag(1),
        Step::Think("Hm."),
        Step::Tag(2),
        Step::Say("Six "),
        Step::Wait,
    ]);
    let view = bench.chat.send(None, "How heavy?", true).unwrap();
    bench.until(|event| matches!(event, ChatEvent::Delta { parts, .. } if parts.text() == "Six "));
    bench.chat.stop(view.chat.id).unwrap();
    let ended = bench.until_ended();
    assert_eq!(
        (ended.state, &*ended.text()),
        (MessageState::Stopped, "Six ")
    );

    bench.script.answer([Step::Say("grams.")]);
    let view = bench.chat.continue_answer(ended.id).unwrap();
    assert_eq!(view.messages[0].state, MessageState::Writing);
    assert_eq!(bench.until_delta(), "grams.", "the window has the rest");
    let whole = bench.until_ended();
    assert_eq!(whole.id, ended.id);
    assert_eq!(
        (whole.state, &*whole.text()),
        (MessageState::Done, "Six grams.")
    );
    assert_eq!(whole.thinking().as_deref(), Some("Hm."));
    assert_eq!(whole.seq, 1, "deltas are numbered from 1 again");

    let turn = bench.script.last_turn();
    assert!(turn.resume);
    let partial = turn.history.last().unwrap();
    assert_eq!(partial.text, "Six ");
    assert_eq!(
        partial.ids.as_deref(),
        Some([1, 101, 2, 103].as_slice()),
        "verbatim, tags included"
    );

    // The ids of the whole answer are known: the former and the new ones.
    bench
        .chat
        .send(Some(view.chat.id), "Really?", true)
        .unwrap();
    bench.until_ended();
    let turn = bench.script.last_turn();
    assert_eq!(
        turn.history[1].ids.as_deref(),
        Some([1, 101, 2, 103, 100].as_slice())
    );
}

#[test]
fn stop_works_while_the_prompt_is_read() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Read(512, 2040), Step::Wait, Step::Say("never")]);
    let view = bench.chat.send(None, "A long one.", true).unwrap();
    bench.until(|event| {
        matches!(
            event,
            ChatEvent::Stage {
                stage: Stage::Reading {
                    done: 512,
                    total: 2040,
                    ..
                },
                ..
            }
        )
    });
    bench.chat.stop(view.chat.id).unwrap();
    let ended = bench.until_ended();
    assert_eq!((ended.state, &*ended.text()), (MessageState::Stopped, ""));

    bench.script.answer([Step::Say("Now.")]);
    bench.chat.continue_answer(ended.id).unwrap();
    assert_eq!(bench.until_ended().text(), "Now.");
    let turn = bench.script.last_turn();
    assert!(!turn.resume, "there was nothing to go on with");
    assert_eq!(turn.history.len(), 1);
}

#[test]
fn stop_works_while_the_answer_waits() {
    let mut bench = Bench::new();
    let (_, go) = bench.begin_first();
    // Later answers wait for the model.
    bench.chat.open_model(ModelChoice::BundledModel).unwrap();
    let waiting = bench.chat.send(None, "Two", true).unwrap();
    bench.until(|event| {
        matches!(
            event,
            ChatEvent::Stage {
                stage: Stage::Waiting,
                ..
            }
        )
    });
    bench.chat.stop(waiting.chat.id).unwrap();
    let ended = bench.until_ended();
    assert_eq!(
        (ended.id, ended.state),
        (waiting.messages[1].id, MessageState::Stopped)
    );
    go.send(()).unwrap();
    assert_eq!(bench.until_ended().text(), "first");
    assert_eq!(
        bench.script.turns().len(),
        1,
        "the stopped one never reached the model"
    );
    assert!(
        !bench
            .chat
            .snapshot()
            .unwrap()
            .chats
            .iter()
            .any(|chat| chat.writing)
    );
}

#[test]
fn stopping_a_chat_at_rest_does_nothing() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "Hello?");
    bench.chat.stop(view.chat.id).unwrap();
    assert_eq!(
        bench.chat.open_chat(view.chat.id).unwrap().messages[1].state,
        MessageState::Done
    );
}

#[test]
fn stopping_one_chat_leaves_another_alone() {
    let mut bench = Bench::new();
    let go = bench.script.go();
    bench
        .script
        .answer([Step::Say("first"), Step::Wait, Step::Say(" and last")]);
    bench.chat.send(None, "One", true).unwrap();
    bench.until_delta();
    let other = bench.chat.send(None, "Two", true).unwrap();
    bench.chat.stop(other.chat.id).unwrap();
    bench.until_ended();
    go.send(()).unwrap();
    let ended = bench.until_ended();
    assert_eq!(
        (ended.state, &*ended.text()),
        (MessageState::Done, "first and last")
    );
}

#[test]
fn an_answer_at_its_limit_goes_on() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Say("Once "), Step::End(StopReason::MaxTokens)]);
    bench.chat.send(None, "A story.", true).unwrap();
    let answer = bench.until_ended();
    bench.script.answer([Step::Say("upon")]);
    bench.chat.continue_answer(answer.id).unwrap();
    assert_eq!(bench.until_ended().text(), "Once upon");
}

#[test]
fn time_of_thinking_adds_up_over_a_stop() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Think("One. "), Step::Sleep(30), Step::Wait]);
    let chat = bench.chat.send(None, "Think.", true).unwrap().chat.id;
    bench.until_delta();
    std::thread::sleep(std::time::Duration::from_millis(30));
    bench.chat.stop(chat).unwrap();
    let stopped = bench.until_ended();
    assert!(stopped.thinking_ms.unwrap() >= 30);

    bench
        .script
        .answer([Step::Think("Two."), Step::Sleep(30), Step::Say("Three.")]);
    bench.chat.continue_answer(stopped.id).unwrap();
    let whole = bench.until_ended();
    assert!(whole.thinking_ms.unwrap() >= stopped.thinking_ms.unwrap() + 30);
    assert_eq!(
        bench
            .script
            .last_turn()
            .history
            .last()
            .unwrap()
            .thinking
            .as_deref(),
        Some("One. "),
        "it goes on after the blank"
    );
    assert_eq!(whole.thinking().as_deref(), Some("One. Two."));
}

#[test]
fn blanks_at_the_end_of_thinking_go_once_it_has_ended() {
    let mut bench = Bench::new();
    // Stopped in the thinking, after its closing tag, and in the answer.
    let thinking = [Step::Tag(1), Step::Think("Hm.\n\n")];
    let closed = [&thinking[..], &[Step::Tag(2)][..]].concat();
    let answering = [&closed[..], &[Step::Say("Six ")][..]].concat();
    for (steps, expected) in [
        (&thinking[..], "Hm.\n\n"),
        (&closed[..], "Hm."),
        (&answering[..], "Hm."),
    ] {
        let last = Step::End(StopReason::MaxTokens);
        bench.script.answer([steps, &[last][..]].concat());
        bench.chat.send(None, "How heavy?", true).unwrap();
        assert_eq!(bench.until_ended().thinking().as_deref(), Some(expected));
    }
    // A turn that ends in its thinking has nothing to continue.
    bench.script.answer(thinking);
    bench.chat.send(None, "How heavy?", true).unwrap();
    assert_eq!(bench.until_ended().thinking().as_deref(), Some("Hm."));
    // Thinking that begins again after its tag can be continued.
    let again = [&closed[..], &[Step::Think("More ")][..]].concat();
    let last = Step::End(StopReason::MaxTokens);
    bench.script.answer([&again[..], &[last][..]].concat());
    bench.chat.send(None, "How heavy?", true).unwrap();
    let ended = bench.until_ended();
    assert_eq!(ended.thinking().as_deref(), Some("Hm.\n\nMore "));
    // Blanks are no thinking.
    bench
        .script
        .answer([Step::Think(" \n"), Step::End(StopReason::MaxTokens)]);
    bench.chat.send(None, "How heavy?", true).unwrap();
    assert_eq!(bench.until_ended().thinking(), None);
}

#[test]
fn stopping_one_answer_leaves_the_others() {
    let mut bench = Bench::new();
    let (first, go) = bench.begin_first();
    bench.script.answer([Step::Say("second"), Step::Wait]);
    let second = bench.chat.send(None, "Two", true).unwrap();
    bench.until_delta();
    bench.chat.open_model(ModelChoice::BundledModel).unwrap();
    let [third, fourth] = ["Three", "Four"].map(|text| bench.chat.send(None, text, true).unwrap());
    // One that is written, and one that waits for the model.
    for stopped in [&second, &third] {
        bench.chat.stop(stopped.chat.id).unwrap();
        let ended = bench.until_ended();
        let expected = (stopped.messages[1].id, MessageState::Stopped);
        assert_eq!((ended.id, ended.state), expected);
    }
    go.send(()).unwrap();
    for whole in [&first, &fourth] {
        let ended = bench.until_ended();
        let expected = (whole.messages[1].id, MessageState::Done);
        assert_eq!((ended.id, ended.state), expected);
    }
}

#[test]
fn an_answer_that_is_written_or_waits_is_not_continued() {
    let mut bench = Bench::new();
    let (first, _go) = bench.begin_first();
    bench.chat.open_model(ModelChoice::BundledModel).unwrap();
    let second = bench.chat.send(None, "Two", true).unwrap();
    for view in [&first, &second] {
        assert_eq!(view.messages[1].state, MessageState::Writing);
        let refused = bench.chat.continue_answer(view.messages[1].id).unwrap_err();
        assert_eq!(refused.code, FailureCode::Other);
        let shown = bench.chat.open_chat(view.chat.id).unwrap();
        assert_eq!(shown.messages[1].state, MessageState::Writing);
    }
    bench.chat.stop(first.chat.id).unwrap();
    assert_eq!(bench.until_ended().text(), "first");
    assert_eq!(bench.until_ended().text(), "Yes.");
}
