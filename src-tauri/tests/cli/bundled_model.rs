//! The small model that comes with the app: the real file where set-up has fetched it, and none.

use std::path::Path;

use super::*;

/// Returns a command that finds the real file; `None` if set-up could not fetch it.
fn with_real_file() -> Option<Command> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/bundled");
    if !folder.join("SmolLM2-135M-Instruct.Q4_1.gguf").is_file() {
        testing::skip("set-up could not fetch the small model that comes with the app");
        return None;
    }
    let mut command = goldcrest();
    command.env_remove("GOLDCREST_BUNDLED_MODEL");
    Some(command)
}

#[test]
fn it_answers() {
    let Some(mut command) = with_real_file() else {
        return;
    };
    let question = "What is the capital of France?";
    command.args([
        "ask",
        "--no-guide",
        "--json",
        "--temperature",
        "0",
        question,
    ]);
    let report = parsed(command.output().expect("the binary starts"));
    let text = report["text"].as_str().expect("an answer");
    assert!(text.contains("Paris"), "{text}");
    assert_eq!(report["quantisation"], "Q4_1");
}

#[test]
fn it_is_listed_as_official_under_its_name() {
    let Some(mut command) = with_real_file() else {
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    command.env("HOME", home.path());
    command.env("GOLDCREST_DATA_DIR", home.path().join("data"));
    command.args(["models", "--json"]);
    let report = parsed(command.output().expect("the binary starts"));
    let entries = report.as_array().expect("a list");
    let entry = entries.iter().find(|it| it["place"] == "bundled-model");
    let entry = entry.expect("it is listed");
    assert_eq!(
        (&entry["name"], &entry["authenticity"], &entry["licence"]),
        (
            &json!("SmolLM2-135M-Instruct"),
            &json!("official"),
            &json!("Apache-2.0")
        )
    );
}

#[test]
fn without_it_a_command_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let damaged = folder.path().join("damaged.gguf");
    let whole = fs::read(tiny_model()).expect("the tiny model");
    fs::write(&damaged, &whole[..whole.len() / 2]).expect("written");
    let refused = |file: &Path| {
        let mut command = goldcrest();
        command.env("GOLDCREST_BUNDLED_MODEL", file);
        let output = command.args(["ask", "--no-guide", QUESTION]).output();
        refusal(output.expect("the binary starts"), 1)
    };
    let missing = refused(&folder.path().join("missing.gguf"));
    assert!(missing.contains("goldcrest fetch SmolLM3-3B"), "{missing}");
    assert!(refused(&damaged).contains("damaged.gguf"), "{damaged:?}");
}
