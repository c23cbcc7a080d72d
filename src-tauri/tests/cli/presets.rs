//! `--preset`: a preset of the app on the command line.

use std::path::Path;
use std::process::Output;

use chat::PresetId;
use serde_json::json;
use store::{PresetRow, Store};

use super::{QUESTION, goldcrest, parsed, refusal};

fn with_data(folder: &Path, args: &[&str]) -> Output {
    goldcrest()
        .env("GOLDCREST_DATA_DIR", folder)
        .args(["ask", "--json", "--max-tokens", "4"])
        .args(args)
        .output()
        .expect("the binary starts")
}

#[test]
fn a_preset_of_the_app_is_used_where_no_flag_says_otherwise() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(&folder.path().join("goldcrest.db")).expect("a new file");
    let preset = PresetRow {
        id: PresetId(0),
        name: "Short answers".into(),
        instructions: "Be brief.".into(),
        thinking: Some(false),
        sampling: json!({ "temperature": 0.5, "seed": 7 }),
        tools: None,
    };
    store.presets().add(&preset).expect("it is added");
    let ask = |args: &[&str]| parsed(with_data(folder.path(), args));

    // The window is open meanwhile.
    let with = ask(&["--preset", "short ANSWERS", QUESTION]);
    assert_eq!(
        (&with["seed"], &with["thinking_tokens"]),
        (&json!(7), &json!(0))
    );
    let by_hand = [
        "--no-think",
        "--system",
        "Be brief.",
        "--temperature",
        "0.5",
        "--seed",
        "7",
    ];
    let same = ask(&[&by_hand[..], &[QUESTION]].concat());
    assert_eq!(with["ids"], same["ids"]);
    let flag = ask(&["--preset", "Short answers", "--seed", "8", QUESTION]);
    assert_eq!(flag["seed"], json!(8));
}

#[test]
fn a_preset_that_is_not_there_is_refused_with_those_that_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let ask = || refusal(with_data(folder.path(), &["--preset", "Poet", "Hi"]), 1);
    assert!(ask().contains("no preset “Poet”: the app has none"));
    assert!(
        !folder.path().join("goldcrest.db").exists(),
        "nothing is made"
    );
    let store = Store::open(&folder.path().join("goldcrest.db")).expect("a new file");
    let preset = PresetRow {
        id: PresetId(0),
        name: "Coder".into(),
        instructions: String::new(),
        thinking: None,
        sampling: json!({}),
        tools: None,
    };
    store.presets().add(&preset).expect("it is added");
    assert!(ask().contains("no preset “Poet”. The app has: Coder."));
}
