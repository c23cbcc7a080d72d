//! `goldcrest tokenize`: one text, several, and those of a file or of stdin.

use super::*;

#[test]
fn tokenize_parses_special_tokens_unless_no_special_is_set() {
    let text = "Hi <|im_end|>";
    let special = parsed(run(["tokenize", "--", text]));
    let plain = parsed(run(["tokenize", "--no-special", "--", text]));
    let count = |ids: &Value| ids.as_array().map_or(0, Vec::len);
    assert!(count(&special) < count(&plain), "{special} {plain}");
    let named = run([
        OsStr::new("tokenize"),
        OsStr::new("--model"),
        tiny_model().as_os_str(),
        OsStr::new("--"),
        OsStr::new(text),
    ]);
    assert_eq!(parsed(named), special);
    assert_eq!(parsed(run(["tokenize", "--", ""])), json!([]));
    assert!(count(&parsed(run(["tokenize", "--", "--help"]))) > 0);
}

/// Returns the values on the lines of an output.
#[track_caller]
fn lines(output: Output) -> Vec<Value> {
    let values = stdout(output);
    let value = |line: &str| serde_json::from_str(line).expect("JSON");
    values.lines().map(value).collect()
}

#[test]
fn many_texts_give_a_line_each_wherever_they_come_from() {
    let texts = ["Hello there", "", "Grüße, 你好"];
    let alone: Vec<Value> = texts
        .iter()
        .map(|text| parsed(run(["tokenize", "--", *text])))
        .collect();
    assert_eq!(lines(run([&["tokenize"], &texts[..]].concat())), alone);

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("texts.txt");
    let path = file.to_str().expect("UTF-8");
    // The last line needs no end, and those of Windows have another one.
    for text in [texts.join("\n"), texts.join("\r\n") + "\r\n"] {
        fs::write(&file, &text).expect("written");
        assert_eq!(lines(run(["tokenize", "--file", path])), alone, "{text:?}");
        let piped = run_with_input(&["tokenize", "--file", "-"], &text);
        assert_eq!(lines(piped), alone, "{text:?}");
    }
    fs::write(&file, "").expect("written");
    assert_eq!(lines(run(["tokenize", "--file", path])), [] as [Value; 0]);

    let several = ["one\ntwo\r\n", "three"];
    let alone = lines(run([&["tokenize"], &several[..]].concat()));
    let piped = run_with_input(&["tokenize", "-0", "-f", "-"], several.join("\0"));
    assert_eq!(lines(piped), alone);
}

#[test]
fn json_has_the_text_beside_its_ids() {
    let ids = lines(run(["tokenize", "One", "Two"]));
    let objects = lines(run(["tokenize", "--json", "One", "Two"]));
    let expected = [
        json!({ "text": "One", "ids": ids[0] }),
        json!({ "text": "Two", "ids": ids[1] }),
    ];
    assert_eq!(objects, expected);
}

#[test]
fn a_file_that_cannot_be_read_as_text_is_refused_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("texts.txt");
    fs::write(&file, b"good\nbad \xff\n").expect("written");
    let output = run(["tokenize", "--file", file.to_str().expect("UTF-8")]);
    assert!(!output.stdout.is_empty(), "the texts before it are printed");
    let error = refusal(output, 1);
    assert!(error.contains("texts.txt: text 2 is not UTF-8"), "{error}");
    let missing = folder.path().join("missing.txt");
    let error = refusal(
        run(["tokenize", "--file", missing.to_str().expect("UTF-8")]),
        1,
    );
    assert!(error.contains("missing.txt"), "{error}");
}
