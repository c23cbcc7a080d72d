//! Conversations in the terminal, and ends of the program from outside.

use super::*;

#[test]
fn chat_goes_on_without_a_terminal() {
    let input = format!("/no_think\n{QUESTION}\n/new\n{QUESTION}\n/help\n/quit\nnot read\n");
    let output = stdout(run_with_input(&["chat", "--temperature", "0"], &input));
    let answer = stdout(run(["ask", "--temperature", "0", "--no-think", QUESTION]));
    assert_eq!(output.matches(answer.trim()).count(), 2, "{output}");
    assert!(output.contains("/no_think"));
    assert!(!output.contains('\x1b'));
}

#[test]
fn every_command_of_the_table_does_something_in_the_terminal() {
    let help = stdout(run_with_input(&["chat"], "/help\n"));
    let names: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix('/')?.split_whitespace().next())
        .collect();
    assert!(names.contains(&"new") && names.contains(&"quit"), "{help}");
    for name in names {
        let input = format!("/no_think {QUESTION}\n/{name}\n");
        let output = run_with_input(&["chat", "--max-tokens", "4"], &input);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {errors}");
        assert!(!errors.contains("no command"), "{name}: {errors}");
    }
}

#[test]
fn a_message_that_begins_with_a_slash_is_answered_and_an_unknown_command_is_not() {
    let question = "/etc/hosts is what?";
    let answer = stdout(run(["ask", "--temperature", "0", "--no-think", question]));
    let input = format!("/no_think\n/nonsense\n/sttaus\n{question}\n");
    let output = run_with_input(&["chat", "--temperature", "0"], &input);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("There is no command /nonsense"), "{errors}");
    assert!(errors.contains("Did you mean /status?"), "{errors}");
    assert_eq!(stdout(output).trim(), answer.trim());
}

/// Runs a conversation in a separate terminal. Each group of keys is typed once the text before it is shown.
#[cfg(target_os = "linux")]
fn typed(steps: &[(&str, &str)]) -> String {
    let program = format!("{} chat", env!("CARGO_BIN_EXE_goldcrest"));
    let script = ["script", "--quiet", "--return", "--command", &program];
    // A prompt that does not appear fails the test instead of blocking it.
    let mut child = Command::new("timeout")
        .args(["--foreground", "120"])
        .args(script)
        .arg("/dev/null")
        .env("TERM", "xterm")
        .env("GOLDCREST_BUNDLED_MODEL", tiny_model())
        .env_remove("GOLDCREST_DEVICE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is script");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = child.stdout.take().expect("piped");
    let mut shown = Vec::new();
    for (awaited, keys) in steps {
        let begun = shown.len();
        while !String::from_utf8_lossy(&shown[begun..]).contains(awaited) {
            let mut byte = [0];
            stdout.read_exact(&mut byte).expect("what is awaited");
            shown.push(byte[0]);
        }
        stdin.write_all(keys.as_bytes()).expect("taken");
    }
    stdout.read_to_end(&mut shown).expect("it ends");
    assert!(child.wait().expect("it ends").success());
    String::from_utf8_lossy(&shown).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn a_line_in_the_terminal_is_completed_edited_and_comes_back() {
    const LIST: &str = "Answer without thinking";
    const PROMPT: &str = "› ";
    let completed = typed(&[(PROMPT, "/h\t\r/quit\r")]);
    assert_eq!(completed.matches(LIST).count(), 1, "{completed}");
    // Left, and the missing letter.
    let edited = typed(&[(PROMPT, "/hep\x1b[Dl\r/quit\r")]);
    assert_eq!(edited.matches(LIST).count(), 1, "{edited}");
    let again = typed(&[(PROMPT, "/help\r\x1b[A\r/quit\r")]);
    assert_eq!(again.matches(LIST).count(), 2, "{again}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_line_is_dropped() {
    let dropped = typed(&[("› ", "/hel\x03"), ("leaves.", "/quit\r")]);
    assert!(dropped.contains("/hel"), "{dropped}");
}

#[test]
fn a_new_chat_knows_nothing_of_the_one_before() {
    let question = "What is my name?";
    let alone = stdout(run(["ask", "--temperature", "0", "--no-think", question]));
    let chat = |between: &str| {
        let input = format!("/no_think\nMy name is Ada.\n{between}{question}\n");
        stdout(run_with_input(&["chat", "--temperature", "0"], &input))
    };
    assert!(chat("/new\n").ends_with(&alone));
    assert!(!chat("").ends_with(&alone), "it is remembered otherwise");
}

#[test]
fn without_a_display_the_chat_is_in_the_terminal() {
    let output = run_with_input(&[], format!("/no_think\n{QUESTION}\n"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("display"));
    assert!(!stdout(output).trim().is_empty());
}

#[test]
fn a_file_by_itself_is_opened_in_the_terminal_where_there_is_no_display() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = folder.path().join("mine.gguf");
    fs::write(&mine, "this is no model").expect("written");
    let failed = run([&mine]);
    assert!(failed.stdout.is_empty());
    let error = refusal(failed, 1);
    assert!(error.contains("mine.gguf"), "{error}");
    fs::copy(tiny_model(), &mine).expect("copied");
    let input = format!("/no_think\n{QUESTION}\n");
    let said = stdout(run_with_input(&[mine.to_str().expect("UTF-8")], &input));
    assert!(!said.trim().is_empty());
}

#[test]
fn a_byte_that_is_not_utf8_does_not_end_a_conversation() {
    let question = format!("\u{feff}/no_think\nf\u{fc}r\n/new\n{QUESTION}\n");
    // The ü in Latin-1.
    let question = question.into_bytes();
    let at = question.windows(2).position(|it| it == "\u{fc}".as_bytes());
    let mut input = question;
    let at = at.expect("it is there");
    input.splice(at..at + 2, [0xfc]);
    let output = run_with_input(&["chat", "--temperature", "0"], input);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors.matches("not UTF-8").count(), 1, "{errors}");
    let answer = stdout(run(["ask", "--temperature", "0", "--no-think", QUESTION]));
    assert!(stdout(output).ends_with(&answer));
}

#[test]
fn what_is_neither_a_command_nor_a_file_is_refused() {
    for (typed, meant) in [("aks", "ask"), ("modles", "models"), ("benhc", "bench")] {
        let error = refusal(run([typed]), 2);
        assert!(error.contains("no such command"), "{error}");
        assert!(
            error.contains(&format!("did you mean `{meant}`?")),
            "{error}"
        );
    }
    let error = refusal(run(["modles", "--json"]), 2);
    assert!(error.contains("did you mean `models`?"), "{error}");
    let error = refusal(run(["xyzzy.txt"]), 2);
    assert!(!error.contains("did you mean"), "{error}");
    let hidden = refusal(run(["gpu-chekc"]), 2);
    assert!(!hidden.contains("gpu-check`"), "{hidden}");
    let error = refusal(run(["lost.gguf"]), 1);
    assert!(error.contains("lost.gguf"), "{error}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = goldcrest()
        .args(["inspect", tiny_model().to_str().expect("UTF-8")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let mut errors = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut errors)
        .expect("UTF-8");
    assert!(child.wait().expect("it ends").success(), "{errors}");
    assert_eq!(errors, "");
}

#[cfg(unix)]
#[test]
fn an_interrupted_answer_ends_with_its_own_exit_code() {
    // Random tokens only, of which one in thousands ends the answer.
    let by_chance = "ask --no-think --seed 1 --temperature 5 --top-k 0 --top-p 1 --min-p 0 Hi";
    let mut child = goldcrest()
        .args(by_chance.split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut [0]).expect("it answers");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("there is kill").success());
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).expect("it ends");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}
