//! Variables of the environment, and the flags that have precedence over them.

use super::*;

/// Runs `goldcrest` with these variables.
fn with<const N: usize>(variables: [(&str, &str); N], args: &[&str]) -> Output {
    let mut command = goldcrest();
    command.envs(variables).args(args);
    command.output().expect("the binary starts")
}

const ASK: [&str; 4] = ["ask", "--json", "--max-tokens", "1"];

#[test]
fn threads_and_context_are_those_of_the_flag_else_of_the_environment() {
    let variables = [("GOLDCREST_THREADS", "1"), ("GOLDCREST_CONTEXT", "1000")];
    let ask = |flags: &[&str]| parsed(with(variables, &[&ASK, flags, &["Hi"]].concat()));
    let report = ask(&[]);
    assert_eq!(
        (&report["threads"], &report["context_tokens"]),
        (&json!(1), &json!(1000))
    );
    let report = ask(&["--threads", "2", "--context", "500"]);
    assert_eq!(
        (&report["threads"], &report["context_tokens"]),
        (&json!(2), &json!(500))
    );
    // An empty variable counts as unset.
    let report = parsed(with(
        [("GOLDCREST_THREADS", ""), ("GOLDCREST_CONTEXT", "")],
        &[&ASK[..], &["Hi"]].concat(),
    ));
    assert_eq!(report["context_tokens"], 2048);
}

#[test]
fn every_command_that_runs_a_model_takes_a_context() {
    let tokens = ["1"; 300].join(",");
    let too_long = ["logits", "--tokens", &tokens];
    let error = refusal(run([&too_long[..], &["--context", "256"]].concat()), 1);
    assert!(error.contains("300") && error.contains("256"), "{error}");
    parsed(run([&too_long[..], &["--context", "300"]].concat()));

    let bench = ["bench", "--json", "-p", "300", "-n", "0", "-r", "1"];
    let error = refusal(run([&bench[..], &["--context", "256"]].concat()), 1);
    assert!(error.contains("256"), "{error}");
    parsed(run([&bench[..], &["--context", "400"]].concat()));

    let chat = ["chat", "--no-think", "--max-tokens", "3"];
    let chat = run_with_input(&[&chat[..], &["--context", "256"]].concat(), "Hi\n");
    assert!(!stdout(chat).trim().is_empty());

    let tiny_model = tiny_model();
    let verify = ["verify", tiny_model.to_str().expect("UTF-8"), "-n", "300"];
    let error = refusal(run([&verify[..], &["--context", "256"]].concat()), 2);
    assert!(error.contains("300") && error.contains("256"), "{error}");

    let devices = ["devices", "--json"];
    let report = parsed(run([&devices[..], &["--context", "300"]].concat()));
    assert_eq!(report["context_tokens"], 300);
    let memory = |report: &Value| report["memory_bytes"].as_u64().expect("a number");
    let all = parsed(run(devices));
    assert!(memory(&report) < memory(&all), "{report} {all}");
}

#[test]
fn every_command_that_runs_a_model_takes_threads() {
    let tiny_model = tiny_model();
    let model = tiny_model.to_str().expect("UTF-8");
    let bench = ["bench", "--json", "-p", "8", "-n", "0", "-r", "1"];
    let verify = ["verify", "--json", "-n", "20", "--device", "cpu", model];
    let logits = ["logits", "--tokens", "1,2"];
    let commands: [&[&str]; 6] = [
        &[&ASK[..], &["Hi"]].concat(),
        &["chat", "--no-think", "--max-tokens", "1"],
        &bench,
        &verify,
        &logits,
        &["devices", "--json"],
    ];
    for command in commands {
        let with = |threads: &str| run([command, &["--threads", threads]].concat());
        let report = stdout(with("1"));
        // The commands that report the number.
        if command[0] == "ask" || command[0] == "bench" || command[0] == "verify" {
            assert!(report.contains("\"threads\":1"), "{report}");
        }
        let error = refusal(with("0"), 2);
        assert!(error.contains("--threads"), "{error}");
    }
}

#[test]
fn the_window_takes_them_too_and_so_does_the_terminal_in_its_place() {
    let long = format!("{}\n", "word ".repeat(400));
    let tiny_model = tiny_model();
    let model = tiny_model.to_str().expect("UTF-8");
    let output = run_with_input(&["--context", "256", "--threads", "1", model], &long);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("No window opens here"), "{said}");
    // A quarter of the 256 is reserved for the answer, and 63 are the instructions.
    assert!(said.contains("room for 129"), "{said}");
    let error = refusal(run(["--context", "255", model]), 2);
    assert!(error.contains("from 256"), "{error}");
}

#[test]
fn a_context_that_the_model_cannot_have_is_limited_with_a_note() {
    let output = run([&ASK[..], &["--context", "100000", "Hi"]].concat());
    let note = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(parsed(output)["context_tokens"], 4096);
    assert!(
        note.contains("100,000 tokens were requested, but 4,096 are used"),
        "{note}"
    );
}

#[test]
fn the_model_is_that_of_the_flag_else_of_the_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let named = altered(folder.path(), "named.gguf", "Tiny model", "Other one!");
    let named = named.to_str().expect("UTF-8");
    let variables = [("GOLDCREST_MODEL", named)];
    let command = [&ASK[..], &["Hi"]].concat();
    assert_eq!(parsed(with(variables, &command))["model"], "Other one!");
    let tiny_model = tiny_model();
    let flag = ["--model", tiny_model.to_str().expect("UTF-8")];
    let report = parsed(with(variables, &[&command[..], &flag].concat()));
    assert_eq!(report["model"], "Tiny model");
}

#[test]
fn a_variable_that_makes_no_sense_is_refused_with_its_name() {
    for (variable, value) in [
        ("GOLDCREST_THREADS", "0"),
        ("GOLDCREST_THREADS", "many"),
        ("GOLDCREST_CONTEXT", "255"),
        ("GOLDCREST_CONTEXT", "-4096"),
        ("GOLDCREST_MODEL", "/none/model.gguf"),
    ] {
        let error = refusal(with([(variable, value)], &["ask", "Hi"]), 1);
        assert!(
            error.contains(variable) && error.contains(value),
            "{variable}: {error}"
        );
    }
    // A flag leaves the variable unread.
    let command = [&ASK[..], &["--context", "1000", "Hi"]].concat();
    parsed(with([("GOLDCREST_CONTEXT", "none")], &command));
}
