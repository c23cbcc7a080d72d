//! Tools, called by name.

use super::*;

fn call(name: &str, arguments: &Value) -> Output {
    run(["tools", "call", name, &arguments.to_string()])
}

#[test]
fn tools_are_listed_with_what_they_may_touch() {
    let listed = stdout(run(["tools", "list"]));
    for line in [
        "calculator        built in    nothing         Calculator",
        "search_chats      built in    reads chats     Search in chats",
    ] {
        assert!(listed.contains(line), "{listed}");
    }
    let tools = parsed(run(["tools", "list", "--json"]));
    let names: Vec<&Value> = tools
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["name"])
        .collect();
    let expected = [
        "calculator",
        "date_time",
        "search_chats",
        "goldcrest_help",
        "run_python",
    ];
    assert_eq!(names, expected);
    assert_eq!(tools[2]["effects"]["readsChats"], true);
}

#[test]
fn a_call_prints_its_result_and_a_failure_is_a_sentence() {
    let sum = stdout(call("calculator", &json!({ "expression": "0.1 + 0.2" })));
    assert_eq!(sum, "0.3\n");
    let code = json!({ "code": "print(calculator('6 * 7') + 1)" });
    assert_eq!(stdout(call("run_python", &code)), "43\n");
    let report = run([
        "tools",
        "call",
        "calculator",
        "--json",
        r#"{"expression": "1/0"}"#,
    ]);
    let object: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let text = "This cannot be calculated: division by zero.";
    let expected = json!({ "name": "calculator", "outcome": "failed", "text": text });
    assert_eq!(object, expected);
    assert!(refusal(report, 1).contains(text));
    let says = refusal(call("calculator", &json!({})), 1);
    assert!(
        says.contains("calculator: `expression` is missing."),
        "{says}"
    );
    let says = refusal(call("calculater", &json!({})), 1);
    assert!(says.contains("did you mean calculator?"), "{says}");
}

#[test]
fn chats_are_searched_in_the_data_folder() {
    let home = tempfile::tempdir().expect("a folder");
    let with_data = |args: &[&OsStr]| {
        let mut command = goldcrest();
        command.env("GOLDCREST_DATA_DIR", home.path().join("data"));
        command.args(args).output().expect("the binary starts")
    };
    let query = json!({ "query": "wren" }).to_string();
    let search = ["tools", "call", "search_chats", &query].map(OsStr::new);
    let says = refusal(with_data(&search), 1);
    assert!(
        says.contains("The chats cannot be searched: there are no chats in"),
        "{says}"
    );

    let file = home.path().join("conversations.json");
    let message = json!({ "sender": "human", "text": "How heavy is a wren?", "created_at": "2025-05-01T10:00:00Z" });
    let chats = json!([{ "uuid": "a", "name": "Birds", "chat_messages": [message] }]);
    fs::write(&file, chats.to_string()).expect("written");
    let imported = with_data(&["import".as_ref(), file.as_os_str()]);
    assert!(imported.status.success());
    let found: Value = serde_json::from_str(&stdout(with_data(&search))).expect("JSON");
    let expected = json!([{ "chat": "Birds", "date": "2025-05-01", "who": "user", "excerpt": "How heavy is a wren?" }]);
    assert_eq!(found, expected);
}

#[test]
fn an_answer_is_json_of_the_schema_and_says_what_is_not_enforced() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("schema.json");
    let schema = json!({
        "type": "object",
        "properties": { "bird": { "enum": ["wren", "kinglet"] }, "grams": { "type": "integer", "minimum": 1, "maximum": 99 } },
        "required": ["bird", "grams"],
        "not": { "required": ["plane"] },
    });
    fs::write(&file, schema.to_string()).expect("written");
    for seed in ["1", "2", "3"] {
        let output = goldcrest()
            .args(["ask", "--no-think", "--seed", seed, "--temperature", "1"])
            .args(["--schema".as_ref(), file.as_os_str()])
            .arg("Name a bird.")
            .output()
            .expect("the binary starts");
        let says = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(says.contains("`/not` is not enforced"), "{says}");
        let answer = parsed(output);
        let fields = answer.as_object().expect("an object");
        assert_eq!(fields.len(), 2, "{answer}");
        assert!(
            ["wren", "kinglet"]
                .map(Value::from)
                .contains(&fields["bird"])
        );
        assert!(
            fields["grams"]
                .as_u64()
                .is_some_and(|it| (1..=99).contains(&it))
        );
    }
}

#[test]
fn a_call_of_an_answer_is_run_and_reported_with_its_result() {
    // Without this variable the tiny model, which is not trained for it, calls nothing.
    let output = goldcrest()
        .env("GOLDCREST_REQUIRE_CALLS", "1")
        .args(["ask", "--no-think", "--tools", "date_time", "--seed", "3"])
        .args(["--temperature", "1", "Which day is it?"])
        .output()
        .expect("the binary starts");
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_call = |line: &str| line.starts_with("date_time {") && line.contains(" → ");
    assert!(report.lines().any(is_call), "{report}");
    assert!(output.status.success(), "{report}");
}
