//! candle beside the engine: `verify`, and `ask --device reference`.

use super::*;

fn verify<S: AsRef<OsStr>>(file: &Path, more: &[S]) -> Output {
    let mut command = goldcrest();
    command.arg("verify").arg(file).args(more);
    command.output().expect("the binary starts")
}

#[test]
fn goldcrest_and_candle_agree_on_the_tiny_model() {
    let report = parsed(verify(&tiny_model(), &["--json", "--device", "cpu"]));
    assert_eq!(
        (&report["verdict"], &report["tokens"]),
        (&json!("agree"), &json!(256))
    );
    for (side, most) in [("engine", 0.03), ("candle", 0.05), ("between", 0.06)] {
        let distance = &report[side];
        let figure = |key: &str| distance[key].as_f64().expect("a figure");
        assert!(figure("relative_error") < most, "{distance}");
        assert!(figure("mean_kl") < 0.02, "{distance}");
        assert!(figure("top1") > 0.9, "{distance}");
    }
    assert!(report["perplexity"].as_f64().is_some_and(|it| it > 1.0));
    let partings = report["partings"].as_array().expect("a list");
    for parting in partings {
        assert_ne!(parting["engine"]["id"], parting["candle"]["id"]);
        let probability = parting["engine"]["probability"].as_f64();
        assert!(probability.is_some_and(|it| it > 0.0 && it < 1.0));
    }

    let text = stdout(verify(&tiny_model(), &["-n", "20", "--device", "cpu"]));
    for part in [
        "20 tokens",
        "relative error",
        "candle from the exact",
        "Goldcrest and candle agree: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_wrong_result_is_found_and_has_an_exit_status_of_its_own() {
    let mut command = goldcrest();
    command.args(["verify", "--json", "-n", "20", "--device", "cpu"]);
    command.arg(tiny_model());
    let output = command
        .env("GOLDCREST_DISTURB_LOGITS", "1")
        .output()
        .expect("the binary starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["verdict"], "engine_differs");
    let sentence = report["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("do not agree"), "{sentence}");
    assert!(
        report["partings"]
            .as_array()
            .is_some_and(|them| !them.is_empty())
    );
}

#[test]
fn weights_that_are_nan_are_called_damaged() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = fs::read(tiny_model()).expect("the tiny model");
    let middle = bytes.len() / 2;
    // Scales in 16 bits become NaN.
    bytes[middle..middle + 50_000].fill(0xff);
    let damaged = folder.path().join("damaged.gguf");
    fs::write(&damaged, bytes).expect("written");
    let output = verify(&damaged, &["-n", "8", "--device", "cpu"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("weights in this file are damaged"), "{text}");
}

#[test]
fn a_file_that_cannot_be_compared_is_refused_with_its_name_and_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in not_models(folder.path()) {
        let name = file.file_name().expect("a name").to_string_lossy();
        let error = refusal(verify::<&str>(&file, &[]), 2);
        assert!(error.contains(&*name), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let mut ask = goldcrest();
        ask.args(["ask", "--device", "reference", "--model"]);
        ask.arg(&file).arg("Hi");
        let error = refusal(ask.output().expect("the binary starts"), 1);
        assert!(error.contains(&*name), "{error}");
    }
    let yarn = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates/engine/tests/fixtures/tiny-yarn-q8_0.gguf");
    let error = refusal(verify::<&str>(&yarn, &[]), 2);
    assert!(error.contains("does not support YaRN"), "{error}");
    refusal(run(["verify"]), 2);
    refusal(verify(&tiny_model(), &["-n", "1"]), 2);
}

#[test]
fn the_reference_answers_as_the_engine_does() {
    let exact = ["ask", "--temperature", "0", "--no-think", "--json"];
    let ask = |device: &str| {
        let device = ["--device", device, QUESTION];
        parsed(run([&exact[..], &device[..]].concat()))
    };
    let (reference, engine) = (ask("reference"), ask("cpu"));
    assert_eq!(reference["device"], "reference");
    assert_eq!(reference["device_name"], "candle, on the CPU");
    assert_eq!(reference["stop_reason"], "end_of_turn");
    assert_eq!(reference["prompt_tokens"], engine["prompt_tokens"]);
    assert_eq!(reference["text"], engine["text"]);
    let streamed = run([
        "ask",
        "--temperature",
        "0",
        "--no-think",
        "--device",
        "reference",
        QUESTION,
    ]);
    let streamed = stdout(streamed);
    assert_eq!(reference["text"].as_str(), Some(streamed.trim()));
}

#[test]
fn only_ask_takes_the_reference() {
    for command in [
        vec!["logits", "--device", "reference", "--tokens", "1"],
        vec!["bench", "--device", "reference"],
        vec!["chat", "--device", "reference"],
    ] {
        let error = refusal(run(&command), 1);
        assert!(error.contains("`reference`"), "{error}");
    }
    let by_variable = goldcrest()
        .env("GOLDCREST_DEVICE", "reference")
        .args(["ask", "Hi"])
        .output();
    refusal(by_variable.expect("the binary starts"), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_of_the_reference_is_cancelled_and_its_process_ends() {
    // Random tokens only, of which one in thousands ends the answer.
    let by_chance = "--no-think --seed 1 --temperature 5 --top-k 0 --top-p 1 --min-p 0 Hi";
    let mut child = goldcrest()
        .args(["ask", "--device", "reference"])
        .args(by_chance.split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut [0]).expect("an answer begins");
    let tasks = format!("/proc/{0}/task/{0}/children", child.id());
    let candle = fs::read_to_string(tasks).expect("its children");
    let candle = candle.trim().to_owned();
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.is_ok_and(|status| status.success()));
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).expect("it ends");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(!candle.is_empty() && !Path::new("/proc").join(&candle).exists());
}

/// Simulates the window's user stopping a check, or the window closing or crashing.
#[cfg(target_os = "linux")]
#[test]
fn the_steps_end_with_the_window_that_reads_them_and_so_does_candle() {
    use std::time::{Duration, Instant};
    let mut child = goldcrest()
        .args(["verify", "--steps", "--device", "cpu"])
        .arg(tiny_model())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut [0]).expect("a step");
    let tasks = format!("/proc/{0}/task/{0}/children", child.id());
    let candle = fs::read_to_string(tasks).expect("its children");
    let candle = candle.trim().to_owned();
    assert!(!candle.is_empty());
    drop(child.stdin.take());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("it ends");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest}");
    assert!(!rest.contains("report"), "{rest}");
    // An orphan that is not reaped has no command line any more.
    let command_line = Path::new("/proc").join(candle).join("cmdline");
    let is_gone = || fs::read(&command_line).map_or(true, |line| line.is_empty());
    let began = Instant::now();
    while !is_gone() {
        assert!(began.elapsed() < Duration::from_secs(10), "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}
