//! The command line as a script sees it: the built binary on the tiny model.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

mod bundled_model;
mod data;
mod environment;
mod fetch;
mod hostile_names;

mod mcp;
mod models;
mod presets;
mod quantize;
mod says;
mod serve;
mod stdin;
mod terminal;
mod tokenize;
mod tools;
mod verify;

/// A question that the guide does not answer.
const QUESTION: &str = "What is the capital of France?";

fn goldcrest() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goldcrest"));
    for variable in [
        "RUST_LOG",
        "GOLDCREST_MODEL",
        "GOLDCREST_DEVICE",
        "GOLDCREST_THREADS",
        "GOLDCREST_CONTEXT",
        "DISPLAY",
        "WAYLAND_DISPLAY",
    ] {
        command.env_remove(variable);
    }
    command.env("GOLDCREST_BUNDLED_MODEL", tiny_model());
    command.stdin(Stdio::null());
    command
}

fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    goldcrest().args(args).output().expect("the binary starts")
}

fn run_with_input(args: &[&str], input: impl AsRef<[u8]>) -> Output {
    let mut child = goldcrest()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_ref()).expect("taken");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

#[track_caller]
fn stdout(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[track_caller]
fn parsed(output: Output) -> Value {
    serde_json::from_str(&stdout(output)).expect("JSON")
}

/// Checks that it failed with this code and a sentence, and did not crash.
#[track_caller]
fn refusal(output: Output, code: i32) -> String {
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
    assert!(!errors.trim().is_empty(), "no reason was given");
    errors
}

fn tiny_model() -> PathBuf {
    testing::tiny_model()
}

/// Returns paths without a model, each with a unique name.
fn not_models(folder: &Path) -> Vec<PathBuf> {
    let whole = fs::read(tiny_model()).expect("the tiny model");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let mut wild = whole.clone();
    wild[16..24].fill(0xff);
    // A file that is longer than its disk, like a download that was begun.
    let endless = write("endless.gguf", &whole[..1000]);
    let file = fs::File::options().write(true).open(&endless);
    file.and_then(|file| file.set_len(1 << 40))
        .expect("a sparse file");
    vec![
        write("empty.gguf", b""),
        write("header.gguf", &whole[..100]),
        write("truncated.gguf", &whole[..whole.len() / 2]),
        write("foreign.gguf", b"%PDF-1.7 this is no model"),
        write("wild.gguf", &wild),
        endless,
        folder.to_owned(),
        folder.join("missing.gguf"),
    ]
}

#[test]
fn ask_answers_on_stdout_and_reasons_on_stderr() {
    let exact = ["ask", "--temperature", "0", QUESTION];
    let output = run(exact);
    let reasoning = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = stdout(output);
    assert!(!answer.trim().is_empty());

    let report = parsed(run([&exact[..3], &["--json", QUESTION]].concat()));
    assert_eq!(report["text"].as_str(), Some(answer.trim()));
    assert_eq!(report["thinking"].as_str(), Some(reasoning.trim()));
}

#[test]
fn ask_answers_from_the_guide_at_once_unless_another_model_or_no_guide_is_chosen() {
    let question = "how do I delete a chat?";
    let output = run(["ask", question]);
    let note = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(note.contains("goldcrest guide delete-a-chat"), "{note}");
    assert!(stdout(output).starts_with("Choose Delete in the chat"));
    let report = parsed(run(["ask", "--json", question]));
    assert_eq!(report["guide"], "delete-a-chat");
    let limit = ["ask", "--json", "--max-tokens", "2"];
    let model = tiny_model();
    let model = model.to_str().expect("UTF-8");
    for args in [&["--no-guide", question][..], &["--model", model, question]] {
        let report = parsed(run([&limit[..], args].concat()));
        assert_eq!(report["tokens"], 2, "{args:?}");
    }
}

#[test]
fn ask_reports_what_it_did() {
    let report = parsed(run([
        "ask",
        "--json",
        "--no-think",
        "--seed",
        "7",
        QUESTION,
    ]));
    assert_eq!(report["seed"], 7);
    assert_eq!(report["thinking"], "");
    assert_eq!(report["stop_reason"], "end_of_turn");
    assert_eq!(
        report["tokens"].as_u64(),
        report["ids"].as_array().map(|ids| ids.len() as u64)
    );
    for key in [
        "prompt_tokens",
        "prefill_tok_s",
        "decode_tok_s",
        "first_token_s",
        "threads",
    ] {
        assert!(
            report[key].as_f64().is_some_and(|x| x > 0.0),
            "{key}: {}",
            report[key]
        );
    }
    assert_eq!(report["cached_tokens"], 0);
    for key in [
        "model",
        "device",
        "device_name",
        "device_reason",
        "cpu_level",
        "quantisation",
    ] {
        assert!(
            report[key].as_str().is_some_and(|text| !text.is_empty()),
            "{key}"
        );
    }
    let again = parsed(run([
        "ask",
        "--json",
        "--no-think",
        "--seed",
        "7",
        QUESTION,
    ]));
    assert_eq!(again["ids"], report["ids"]);
}

#[test]
fn ask_obeys_its_limits_and_reads_stdin() {
    let report = run_with_input(&["ask", "--json", "--max-tokens", "3", "-"], QUESTION);
    let report = parsed(report);
    assert_eq!(report["tokens"], 3);
    assert_eq!(report["stop_reason"], "max_tokens");
    let threads = parsed(run([
        "ask",
        "--json",
        "--max-tokens",
        "1",
        "--threads",
        "1",
        "Hi",
    ]));
    assert_eq!(threads["threads"], 1);
}

#[test]
fn a_device_that_is_not_there_gives_way_to_the_cpu_with_the_reason() {
    for (device, reason) in [("cpu", "The CPU was chosen"), ("gpu:none", "none")] {
        let command = [
            "ask",
            "--json",
            "--max-tokens",
            "1",
            "--device",
            device,
            "Hi",
        ];
        let by_flag = parsed(run(command));
        let by_variable = goldcrest()
            .env("GOLDCREST_DEVICE", device)
            .args(["ask", "--json", "--max-tokens", "1", "Hi"])
            .output()
            .expect("the binary starts");
        for report in [by_flag, parsed(by_variable)] {
            assert_eq!(report["device"], "cpu");
            let said = report["device_reason"].as_str().unwrap_or_default();
            assert!(said.contains(reason), "{said}");
        }
    }
    let other_api = run(["ask", "--device", "metal", "Hi"]);
    assert!(!other_api.status.success());
    let said = String::from_utf8_lossy(&other_api.stderr).into_owned();
    assert!(said.contains("is reached as gpu"), "{said}");
    let nonsense = goldcrest()
        .env("GOLDCREST_DEVICE", "abacus")
        .args(["ask", "Hi"])
        .output();
    assert!(refusal(nonsense.expect("the binary starts"), 1).contains("abacus"));
}

#[test]
fn a_cpu_level_is_this_machines_or_refused() {
    let ask = |level: &str| {
        let mut command = goldcrest();
        command.env("GOLDCREST_CPU", level);
        command.args(["ask", "--json", "--max-tokens", "1", "Hi"]);
        command.output().expect("the binary starts")
    };
    assert_eq!(parsed(ask("Scalar"))["cpu_level"], "scalar");
    let foreign = if cfg!(target_arch = "x86_64") {
        "i8mm"
    } else {
        "avx2"
    };
    for level in ["abacus", foreign] {
        let reason = refusal(ask(level), 1);
        assert!(
            reason.contains("GOLDCREST_CPU") && reason.contains(level),
            "{reason}"
        );
        assert!(reason.contains("scalar"), "{reason}");
    }
}

#[test]
fn render_prints_the_prompt_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    };
    let context = json!({ "messages": [{ "role": "user", "content": "Grüße" }] });
    let dated = file(
        "dated.json",
        &json!({ "context": context, "today": "2026-03-05" }).to_string(),
    );
    let bare = file("bare.json", &context.to_string());
    let render = |messages: &str| run(["render", "--messages", messages]);
    let text = stdout(render(&dated));
    assert!(
        text.contains("Today Date: 05 March 2026") && text.contains("Grüße"),
        "{text}"
    );
    assert!(stdout(render(&bare)).contains("Grüße"));

    for (name, text) in [
        ("none.json", ""),
        ("list.json", "[1, 2]"),
        (
            "day.json",
            r#"{"context": {"messages": []}, "today": "tomorrow"}"#,
        ),
    ] {
        refusal(render(&file(name, text)), 1);
    }
}

#[test]
fn logits_are_rows_of_the_vocabulary() {
    let one = parsed(run(["logits", "--tokens", "1,2,3"]));
    let all = parsed(run(["logits", "--tokens", "1,2,3", "--all"]));
    let rows = |value: &Value| value.as_array().map_or(0, Vec::len);
    assert_eq!((rows(&one), rows(&all)), (1, 3));
    assert_eq!(rows(&one[0]), rows(&all[2]));
    let last = |value: &Value| value.as_f64().expect("a number");
    assert!((last(&one[0][0]) - last(&all[2][0])).abs() < 1e-2);

    let unknown = refusal(run(["logits", "--tokens", "4000000000"]), 1);
    assert!(unknown.contains("no token 4000000000"), "{unknown}");
    refusal(run(["logits", "--tokens", "one"]), 2);
    refusal(run(["logits"]), 2);
}

#[test]
fn inspect_shows_file_and_model() {
    let tiny_model = tiny_model();
    let command = [OsStr::new("inspect"), tiny_model.as_os_str()];
    let text = stdout(run(command));
    for part in [
        "general.architecture",
        "token_embd.weight",
        "Q4_K",
        "KV cache",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let long = ["--context", "1000"].map(OsStr::new);
    let text = stdout(run([command, long].concat()));
    assert!(text.contains("Memory with 1,000 tokens"), "{text}");
    let report = parsed(run([command[0], command[1], OsStr::new("--json")]));
    assert_eq!(report["metadata"]["general.architecture"], "smollm3");
    assert_eq!(report["problem"], Value::Null);
    assert!(
        report["tensors"]
            .as_array()
            .is_some_and(|tensors| tensors.len() > 10)
    );
}

/// Copies the tiny model's file with one text in its metadata replaced by another of the same length.
fn altered(folder: &Path, name: &str, from: &str, to: &str) -> PathBuf {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(tiny_model()).expect("the tiny model");
    let at = bytes
        .windows(from.len())
        .position(|it| it == from.as_bytes());
    let at = at.expect("it is in the file");
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    let path = folder.join(name);
    fs::write(&path, bytes).expect("written");
    path
}

#[test]
fn a_file_cannot_speak_to_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    // A window's title, a colour in one C1 character, and a carriage return.
    let named = altered(
        folder.path(),
        "named.gguf",
        "Tiny guide and ti",
        "\u{1b}]0;x\u{7}\u{9b}31m\r\u{7f}abcd",
    );
    let foreign = altered(folder.path(), "foreign.gguf", "smollm3", "\u{1b}[31mhm");
    let quiet = |text: &str| {
        let loud = text
            .chars()
            .find(|it| it.is_control() && !"\n\t".contains(*it));
        assert_eq!(loud, None, "{text:?}");
    };
    let inspect = |file: &Path, more: &[&str]| {
        let mut command = goldcrest();
        command.arg("inspect").arg(file).args(more);
        command.output().expect("the binary starts")
    };
    let shown = stdout(inspect(&named, &[]));
    quiet(&shown);
    assert!(shown.contains("abcd"), "{shown}");
    let json = stdout(inspect(&named, &["--json"]));
    quiet(&json);
    let read: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        read["metadata"]["general.description"]
            .as_str()
            .and_then(|text| text
                .strip_suffix("ny model of the Goldcrest app, trained on generated text")),
        Some("\u{1b}]0;x\u{7}\u{9b}31m\r\u{7f}abcd")
    );
    quiet(&stdout(inspect(&foreign, &[])));
    let of_foreign = |command: &str| {
        let arguments = [command, "--model"].map(OsStr::new);
        run([&arguments[..], &[foreign.as_os_str(), OsStr::new("Hi")]].concat())
    };
    for command in ["ask", "tokenize"] {
        let output = of_foreign(command);
        quiet(&String::from_utf8_lossy(&output.stderr));
        quiet(&String::from_utf8_lossy(&output.stdout));
    }
    let error = refusal(of_foreign("ask"), 1);
    assert!(error.contains("\\u{1b}[31mhm"), "{error}");
}

/// Runs on a terminal that `script` creates.
#[cfg(target_os = "linux")]
#[test]
fn a_rendered_prompt_cannot_speak_to_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let messages = folder.path().join("messages.json");
    let said = "\u{1b}]0;title\u{7}Grüße\u{9b}31m";
    let context = json!({"messages": [{"role": "user", "content": said}]});
    fs::write(&messages, context.to_string()).expect("written");
    let messages = messages.display().to_string();
    let piped = stdout(run(["render", "--messages", &messages]));
    assert!(piped.contains(said), "{piped:?}");
    let binary = env!("CARGO_BIN_EXE_goldcrest");
    let shown = Command::new("script")
        .args(["--quiet", "--return", "--command"])
        .arg(format!("'{binary}' render --messages '{messages}'"))
        .arg("/dev/null")
        .env("GOLDCREST_BUNDLED_MODEL", tiny_model())
        .stdin(Stdio::null())
        .output();
    let shown = stdout(shown.expect("script"));
    let spelt = "\\u{1b}]0;title\\u{7}Grüße\\u{9b}31m";
    assert!(shown.contains(spelt), "{shown:?}");
    let loud = |it: &char| it.is_control() && !"\r\n\t".contains(*it);
    assert_eq!(shown.chars().find(loud), None, "{shown:?}");
}

#[test]
fn bench_prints_the_figures_that_scripts_read() {
    let report = parsed(run([
        "bench", "--json", "-p", "16", "-n", "4", "-d", "8", "-r", "1", "-t", "1",
    ]));
    for key in [
        "prefill_tok_s",
        "decode_tok_s",
        "read_bandwidth_gb_s",
        "bytes_per_token",
        "peak_rss_bytes",
        "load_s",
        "threads",
    ] {
        assert!(
            report[key].as_f64().is_some_and(|x| x > 0.0),
            "{key}: {}",
            report[key]
        );
    }
    assert_eq!(report["device"], "cpu");
    assert!(report["cpu_level"].is_string());
    let error = refusal(run(["bench", "--synthetic", "no-such-shape"]), 1);
    assert!(error.contains("no-such-shape"), "{error}");
}

#[test]
fn a_file_that_is_no_model_is_refused_with_its_name_and_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in not_models(folder.path()) {
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let path = file.to_str().expect("UTF-8");
        for command in [
            vec!["ask", "--model", path, "Hi"],
            vec!["chat", "--model", path],
            vec!["tokenize", "--model", path, "--", "Hi"],
            vec!["logits", "--model", path, "--tokens", "1"],
            vec!["bench", "--model", path],
        ] {
            let error = refusal(run(&command), 1);
            assert!(error.contains(&name), "{command:?}: {error}");
            assert!(error.lines().count() == 1, "{command:?}: {error}");
        }
    }
}

#[test]
fn wrong_usage_has_an_exit_status_of_its_own() {
    for command in [
        vec!["ask"],
        vec!["ask", "--temperature=-1", "Hi"],
        vec!["ask", "--temperature", "NaN", "Hi"],
        vec!["ask", "--temperature", "1e-45", "Hi"],
        vec!["ask", "--threads", "65535", "Hi"],
        vec!["ask", "--temperature", "5.5", "Hi"],
        vec!["ask", "--top-k", "200001", "Hi"],
        vec!["ask", "--top-p", "2", "Hi"],
        vec!["ask", "--max-tokens", "0", "Hi"],
        vec!["ask", "--device", "abacus", "Hi"],
        vec!["ask", "--threads", "0", "Hi"],
        vec!["ask", "--context", "255", "Hi"],
        vec!["bench", "--context", "1048577"],
        vec!["logits", "--context", "many", "--tokens", "1"],
        vec!["tokenize"],
        vec!["tokenize", "--null", "Hi"],
        vec!["tokenize", "--file", "texts.txt", "Hi"],
        vec!["nonsense"],
        vec!["inspect"],
        vec!["render", "--template", "a", "--messages", "c"],
        vec!["ask", "--own-template", "Hi"],
    ] {
        refusal(run(&command), 2);
    }
    assert!(stdout(run(["--version"])).contains(env!("CARGO_PKG_VERSION")));
    assert!(stdout(run(["ask", "--help"])).contains("--repeat-penalty"));
}
