//! A process that is killed mid-answer, and one that closes properly.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chat::{AtEnd, ChatEvent, MessageState, Timing};
use store::Store;

use crate::scripted::{Bench, Script, Step, TIMING, TODAY, last_row, texts};

/// Variable with the file that the child writes to; without it, the child's test does nothing.
const FILE: &str = "GOLDCREST_CRASH_TEST_FILE";
const PER_TOKEN: Duration = Duration::from_millis(5);

/// Runs as the child: answers endlessly, and prints each delta that the window received.
#[test]
#[ignore = "the child process of the test below"]
fn answers_until_it_is_killed() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let script = Script::default();
    let ms = u64::try_from(PER_TOKEN.as_millis()).unwrap();
    let steps = (0..20_000).flat_map(|_| [Step::Say("x"), Step::Sleep(ms)]);
    script.answer(steps.collect::<Vec<_>>());
    let mut bench = Bench::on_file(Path::new(&file), &script);
    bench.chat.send(None, "Go on for ever.", true).unwrap();
    let mut out = std::io::stdout();
    loop {
        writeln!(out, "delta {}", bench.until_delta()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn the_app_saves_as_often_as_it_is_said_to() {
    let promised = Timing {
        purge_after: Duration::from_secs(5),
        copy_after: Duration::from_secs(20),
        journal_after: Duration::from_millis(250),
        retry_after: Duration::from_secs(5),
        minute: Duration::from_secs(60),
        idle_after: Duration::from_secs(2),
        close_within: Duration::from_secs(5),
    };
    assert_eq!(Timing::default(), promised);
}

#[test]
fn a_killed_process_loses_at_most_half_a_second_and_the_answer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crashing::answers_until_it_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env(FILE, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let reader = BufReader::new(child.stdout.take().unwrap());
    let received = thread::spawn(move || {
        let lines = reader.lines().map_while(Result::ok);
        let pieces = lines.filter_map(|line| line.strip_prefix("delta ").map(str::len));
        pieces.sum::<usize>()
    });
    thread::sleep(Duration::from_millis(2000));
    child.kill().unwrap();
    child.wait().unwrap();
    let received = received.join().unwrap();
    assert!(received > 20, "the child wrote: {received}");

    let script = Script::default();
    let mut bench = Bench::on_file(&path, &script);
    let chat = bench.chat.snapshot().unwrap().chats[0].id;
    let view = bench.chat.open_chat(chat).unwrap();
    let answer = &view.messages[1];
    assert_eq!(view.messages[0].text(), "Go on for ever.");
    assert_eq!(answer.state, MessageState::Interrupted);
    let lost = received.saturating_sub(answer.text().len());
    let half_a_second = 500 / usize::try_from(PER_TOKEN.as_millis()).unwrap();
    assert!(
        lost <= half_a_second,
        "{lost} of {received} tokens are lost"
    );

    script.answer([Step::Say("y")]);
    bench.chat.continue_answer(answer.id).unwrap();
    let whole = bench.until_ended();
    assert_eq!(whole.text(), format!("{}y", answer.text()));
    let ids = script.last_turn().history[1].ids.clone().unwrap();
    assert_eq!(ids.len(), answer.text().len(), "one id per character");
}

/// Runs as the child: exits before its model generates anything.
#[test]
#[ignore = "the child process of the test below"]
fn sends_and_is_gone() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let script = Script::default();
    script.answer([Step::Wait]);
    let bench = Bench::on_file(Path::new(&file), &script);
    bench.chat.send(None, "How heavy?", true).unwrap();
    std::process::abort();
}

#[test]
fn a_message_survives_a_crash_before_the_first_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashing::sends_and_is_gone", "--ignored"])
        .env(FILE, &path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(ended.code(), None, "it was aborted: {ended}");

    let mut bench = Bench::on_file(&path, &Script::default());
    let chats = bench.chat.snapshot().unwrap().chats;
    assert_eq!(chats.len(), 1);
    let view = bench.chat.open_chat(chats[0].id).unwrap();
    assert_eq!(texts(&view), ["How heavy?", ""]);
    assert_eq!(view.messages[1].state, MessageState::Interrupted);
    bench.chat.continue_answer(view.messages[1].id).unwrap();
    assert_eq!(bench.until_ended().text(), "Yes.");
}

#[test]
fn closing_waits_for_the_last_report_of_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let script = Script::default();
    let mut bench = Bench::on_file(&path, &script);
    script.answer([
        Step::Say("Six "),
        Step::Wait,
        Step::LastWords(&["grams", " or ", "so"]),
    ]);
    bench.chat.send(None, "How heavy?", true).unwrap();
    bench.until_delta();
    bench.chat.shutdown();

    let row = last_row(&path);
    assert_eq!(
        (&*row.progress.parts.text(), row.state),
        ("Six grams or so", MessageState::Interrupted)
    );
    assert!(row.stats.is_some(), "what it took is known at its end");
}

#[test]
fn closing_does_not_wait_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let script = Script::default();
    let stuck = script.stuck();
    script.answer([Step::Say("Six "), Step::Stuck]);
    let timing = Timing {
        close_within: Duration::from_millis(50),
        ..TIMING
    };
    let mut bench = Bench::timed(Store::open(&path).unwrap(), &script, TODAY, timing);
    bench.chat.send(None, "How heavy?", true).unwrap();
    bench.until_delta();
    assert_eq!(bench.chat.shutdown(), AtEnd::Stuck);
    let row = last_row(&path);
    assert_eq!(
        (&*row.progress.parts.text(), row.state),
        ("Six ", MessageState::Interrupted)
    );
    drop(stuck);
}

#[test]
fn closing_does_not_wait_for_ever_for_a_model_that_is_not_dropped() {
    let script = Script::default();
    let dropped = script.slow_drop();
    let timing = Timing {
        close_within: Duration::from_millis(50),
        ..TIMING
    };
    let mut bench = Bench::timed(Store::in_memory().unwrap(), &script, TODAY, timing);
    bench.until_ready();
    let begun = Instant::now();
    assert_eq!(bench.chat.shutdown(), AtEnd::Stuck);
    assert!(begun.elapsed() < Duration::from_secs(2));
    drop(dropped);
}

#[test]
fn closing_waits_for_the_model_to_be_dropped() {
    let script = Script::default();
    let dropped = script.slow_drop();
    let bench = Bench::scripted(&script);
    let begun = Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        drop(dropped);
    });
    assert_eq!(bench.chat.shutdown(), AtEnd::Stopped);
    assert!(begun.elapsed() >= Duration::from_millis(100));
}

#[test]
fn closing_saves_the_answer_as_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let script = Script::default();
    let mut bench = Bench::on_file(&path, &script);
    script.answer([Step::Say("Six "), Step::Wait]);
    script.answer([Step::Wait]);
    bench.chat.send(None, "How heavy?", true).unwrap();
    bench.chat.send(None, "How long?", true).unwrap();
    bench.until_delta();
    let begun = Instant::now();
    bench.chat.shutdown();
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "it waits for no answer to end"
    );
    bench.chat.shutdown();
    assert!(bench.chat.snapshot().is_err());
    let ended = bench.events.try_iter();
    let ended = ended.filter(|event| matches!(event, ChatEvent::Ended { .. }));
    assert_eq!(ended.count(), 2, "the window learns of both");

    let store = Store::open(&path).unwrap();
    let rows = store.chats().list().unwrap();
    let answers = rows
        .iter()
        .map(|row| store.messages().get(row.leaf.unwrap()).unwrap());
    let answers: Vec<_> = answers
        .map(|row| (row.progress.parts.text().into_owned(), row.state))
        .collect();
    assert_eq!(
        answers,
        [
            (String::new(), MessageState::Interrupted),
            ("Six ".to_owned(), MessageState::Interrupted)
        ]
    );
}

#[test]
fn dropping_the_last_handle_closes_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let script = Script::default();
    script.answer([Step::Say("Six "), Step::Wait]);
    let Bench { chat, events, .. } = Bench::on_file(&path, &script);
    let other = chat.clone();
    drop(chat);
    other.send(None, "How heavy?", true).unwrap();
    while !matches!(events.recv().unwrap(), ChatEvent::Delta { .. }) {}
    drop(other);
    // The actor drops its listener at its end.
    while events.recv().is_ok() {}
    assert_eq!(last_row(&path).progress.parts.text(), "Six ");
}
