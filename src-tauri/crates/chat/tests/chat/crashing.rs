//! A process that is killed mid-answer, and one that closes in order.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chat::{MessageState, Store};

use crate::scripted::{Bench, Script, Step};

/// Tells the child where to write; without it, the child's test does nothing.
const FILE: &str = "GOLDCREST_CRASH_TEST_FILE";
const PER_TOKEN: Duration = Duration::from_millis(5);

/// The child: answers without end, and tells its parent each piece that the window was told.
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
        writeln!(out, "told {}", bench.until_delta()).unwrap();
        out.flush().unwrap();
    }
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
    let told = thread::spawn(move || {
        let lines = reader.lines().map_while(Result::ok);
        let pieces = lines.filter_map(|line| line.strip_prefix("told ").map(str::len));
        pieces.sum::<usize>()
    });
    thread::sleep(Duration::from_millis(2000));
    child.kill().unwrap();
    child.wait().unwrap();
    let told = told.join().unwrap();
    assert!(told > 20, "the child wrote: {told}");

    let script = Script::default();
    let mut bench = Bench::on_file(&path, &script);
    let chat = bench.chat.snapshot().unwrap().chats[0].id;
    let view = bench.chat.open_chat(chat).unwrap();
    let answer = &view.messages[1];
    assert_eq!(view.messages[0].text, "Go on for ever.");
    assert_eq!(answer.state, MessageState::Interrupted);
    let lost = told.saturating_sub(answer.text.len());
    let half_a_second = 500 / usize::try_from(PER_TOKEN.as_millis()).unwrap();
    assert!(lost <= half_a_second, "{lost} of {told} tokens are lost");

    script.answer([Step::Say("y")]);
    bench.chat.continue_answer(answer.id).unwrap();
    let whole = bench.until_ended();
    assert_eq!(whole.text, format!("{}y", answer.text));
    let ids = script.last_turn().history[1].ids.clone().unwrap();
    assert_eq!(ids.len(), answer.text.len(), "an id for each letter");
}

#[test]
fn closing_saves_the_answer_as_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let script = Script::default();
    let mut bench = Bench::on_file(&path, &script);
    script.answer([Step::Say("Six "), Step::Wait]);
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

    let store = Store::open(&path).unwrap();
    let rows = store.chats().list().unwrap();
    let answers = rows
        .iter()
        .map(|row| store.messages().get(row.leaf.unwrap()).unwrap());
    let answers: Vec<_> = answers.map(|row| (row.progress.text, row.state)).collect();
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
    while !matches!(events.recv().unwrap(), chat::Event::Delta { .. }) {}
    drop(other);
    // The desk lets go of its listener at its end.
    while events.recv().is_ok() {}
    let store = Store::open(&path).unwrap();
    let leaf = store.chats().list().unwrap()[0].leaf.unwrap();
    assert_eq!(store.messages().get(leaf).unwrap().progress.text, "Six ");
}
