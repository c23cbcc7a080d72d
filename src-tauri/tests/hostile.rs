//! Model files, exports and chats that try to crash, hang or exhaust the app: each is refused in a sentence, or does no
//! harm, in time.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

#[path = "hostile/files.rs"]
mod files;

/// Time limit that is never reached, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);
/// Number of concurrent cases.
const WORKERS: usize = 3;

fn goldcrest<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    let started = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_goldcrest"));
    for variable in ["RUST_LOG", "GOLDCREST_DEVICE", "DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(variable);
    }
    let output = command.stdin(Stdio::null()).args(arguments).output();
    let output = output.expect("the binary starts");
    assert!(started.elapsed() < LONGEST, "{:?}", started.elapsed());
    output
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs all cases, a few at a time.
fn each<T: Send>(cases: Vec<T>, run: impl Fn(T) + Sync) {
    let cases = Mutex::new(cases);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                // A statement of its own, so that the lock is free while the case runs.
                let next = || cases.lock().expect("not poisoned").pop();
                while let Some(case) = next() {
                    run(case);
                }
            });
        }
    });
}

/// Makes the tiny model with this chat template.
fn model(folder: &TempDir, source: &str) -> PathBuf {
    let image = fs::read(testing::tiny_model()).expect("the tiny model");
    let usual = include_bytes!("../crates/engine/tests/fixtures/tiny-smollm3.jinja");
    let usual = usual.trim_ascii_end();
    let at = image.windows(usual.len()).position(|part| part == usual);
    let at = at.expect("the template is in the file");
    let stored = u64::from_le_bytes(image[at - 8..at].try_into().expect("a length"));
    let end = at + usize::try_from(stored).expect("a length");
    // Tensors are aligned, so later data may only move by whole units.
    let mut text = source.as_bytes().to_vec();
    while text.len() % 32 != (end - at) % 32 {
        text.push(b' ');
    }
    let length = u64::try_from(text.len()).expect("a length").to_le_bytes();
    let file = folder.path().join("model.gguf");
    let image = [&image[..at - 8], &length, &text, &image[end..]].concat();
    fs::write(&file, image).expect("written");
    file
}

#[test]
fn a_template_of_unknown_text_never_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    for source in [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set a = 'x' * 9999999999 %}{{ a }}",
        "{{ raise_exception('no') }}",
        "{% if",
        &"{{ (".repeat(15_000),
        &"{{ 1|string }}".repeat(4000),
        "\0\u{202e}",
        "",
    ] {
        let model = model(&folder, source);
        let model = model.to_str().expect("UTF-8");
        let expected = "Chat format: SmolLM3, chosen by the file's tokens";
        let inspected = goldcrest(&["inspect", model]);
        assert!(inspected.status.success(), "{}", errors(&inspected));
        let text = String::from_utf8_lossy(&inspected.stdout).into_owned();
        assert!(text.contains(expected), "{text}");
        let ask = [
            "ask",
            "--model",
            model,
            "--max-tokens",
            "1",
            "--no-think",
            "Hi",
        ];
        let answered = goldcrest(&ask);
        assert!(answered.status.success(), "{}", errors(&answered));
        assert!(
            errors(&answered).contains(expected),
            "{}",
            errors(&answered)
        );
    }
}

#[test]
fn a_template_that_is_longer_than_any_is_refused_by_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = model(&folder, &"x".repeat(1 << 20));
    let model = model.to_str().expect("UTF-8");
    let refused = goldcrest(&["ask", "--model", model, "Hi"]);
    assert_eq!(refused.status.code(), Some(1));
    let errors = errors(&refused);
    for words in ["`tokenizer.chat_template`", "65,536", "are read"] {
        assert!(errors.contains(words), "{errors}");
    }
    let inspected = goldcrest(&["inspect", model]);
    let text = String::from_utf8_lossy(&inspected.stdout).into_owned();
    assert!(text.contains("cannot run it: its chat template"), "{text}");
}
