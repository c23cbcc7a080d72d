//! `goldcrest models`, over a separate home folder.

use std::path::Path;

use serde_json::{Value, json};

use super::{fs, goldcrest, parsed, stdout, tiny_model};

/// Runs it with only the files of this home folder.
fn models(home: &Path, args: &[&str]) -> std::process::Output {
    let mut command = goldcrest();
    command.env("GOLDCREST_CONTEXT", "1000");
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if ["XDG_", "HF_", "HUGGINGFACE_", "LLAMA_", "JAN_"]
            .iter()
            .any(|start| name.starts_with(start))
        {
            command.env_remove(&variable);
        }
    }
    command.env("HOME", home).env("USERPROFILE", home);
    command.env("GOLDCREST_DATA_DIR", home.join("data"));
    command.arg("models").args(args);
    command.output().expect("the binary starts")
}

#[test]
fn known_models_files_and_the_tiny_model_are_listed_each_once() {
    let home = tempfile::tempdir().expect("a folder");
    let own = home.path().join(".lmstudio/models/me/it/SmolLM3-own.gguf");
    fs::create_dir_all(own.parent().expect("has one")).expect("made");
    let whole = fs::read(tiny_model()).expect("committed");
    fs::write(&own, &whole[..whole.len() / 2]).expect("written");
    // The app has opened the tiny model as a file.
    let first = parsed(models(home.path(), &["--json"]));
    let entries = first.as_array().expect("a list");
    let tiny = entries.iter().find(|it| it["place"] == "bundled-model");
    let tiny = &tiny.expect("it is a part of the build")["file"];
    let opened = json!({
        "path": tiny, "bytes": 1, "modified": 1, "inode": 1, "opened_as": tiny,
        "sha256": null, "tokens_per_second": null,
    });
    let facts = json!({ "bandwidth": null, "files": [opened] });
    fs::write(home.path().join("data/models.json"), facts.to_string()).expect("written");

    let report = parsed(models(home.path(), &["--json"]));
    let entries = report.as_array().expect("a list");
    let of_place = |place: &str| -> Vec<&Value> {
        let of_place = entries.iter().filter(|it| it["place"] == place);
        of_place.collect()
    };
    assert_eq!(entries[0]["id"], "SmolLM3-Q4_K_M.gguf");
    assert_eq!(
        (&entries[0]["recommended"], &entries[0]["file"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(entries[0]["forecast"]["contextLength"], 1000);
    let damaged = of_place("lm-studio");
    assert_eq!((damaged.len(), &damaged[0]["file"]), (1, &json!(own)));
    assert!(damaged[0]["problem"].is_string(), "{report:#}");
    let tiny = of_place("bundled-model");
    assert_eq!((tiny.len(), &tiny[0]["name"]), (1, &json!("Tiny model")));
    assert!(of_place("opened").is_empty(), "{report:#}");

    let text = stdout(models(home.path(), &[]));
    assert!(
        text.contains("LM Studio: ") && text.contains("part of Goldcrest: "),
        "{text}"
    );
}

#[test]
fn the_folder_of_downloads_that_is_set_in_the_app_is_searched_too() {
    let home = tempfile::tempdir().expect("a folder");
    let set = home.path().join("drive/models");
    let own = set.join("SmolLM3-own.gguf");
    fs::create_dir_all(&set).expect("made");
    fs::create_dir_all(home.path().join("data")).expect("made");
    fs::copy(tiny_model(), &own).expect("copied");
    let is_listed = || {
        let report = parsed(models(home.path(), &["--json"]));
        let entries = report.as_array().expect("a list").clone();
        entries.iter().any(|entry| entry["file"] == json!(own))
    };
    assert!(!is_listed());
    let facts = json!({ "bandwidth": null, "folder": set, "files": [] });
    fs::write(home.path().join("data/models.json"), facts.to_string()).expect("written");
    assert!(is_listed());
}

/// Prints on one line a name that would begin lines, clear the screen or reverse the text.
#[test]
fn the_name_of_a_model_is_one_line() {
    let home = tempfile::tempdir().expect("a folder");
    let own = home.path().join(".lmstudio/models/me/it");
    fs::create_dir_all(&own).expect("made");
    let bad = "\nb\u{1b}[2J\u{202e}c";
    let escaped = "\\nb\\u{1b}[2J\\u{202e}c";
    let whole = fs::read(tiny_model()).expect("committed");
    let name = b"\x0a\0\0\0\0\0\0\0Tiny model";
    let at = whole
        .windows(name.len())
        .position(|it| it == name)
        .expect("its name");
    let mut image = whole[..at].to_vec();
    image.extend((bad.len() as u64).to_le_bytes());
    image.extend(bad.as_bytes());
    // The name has the same length, so that the data after it stay in place.
    assert_eq!(bad.len(), "Tiny model".len());
    image.extend(&whole[at + name.len()..]);
    let file = own.join(format!("{bad}.gguf"));
    fs::write(&file, image).expect("written");
    let report = parsed(models(home.path(), &["--json"]));
    let entries = report.as_array().expect("a list");
    let entry = entries.iter().find(|it| it["file"] == json!(file));
    assert_eq!(entry.expect("it is found")["name"], escaped);
    let text = stdout(models(home.path(), &[]));
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    let named = text.lines().filter(|line| line.contains(escaped));
    assert_eq!(named.count(), 2, "{text}");
    assert!(!text.lines().any(|line| line.starts_with('b')), "{text}");
}
