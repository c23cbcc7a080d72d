//! Tools of MCP servers, by the fake server of their crate's tests, which is a script of Node.

use std::time::{Duration, Instant};

use testing::running;

use super::*;

/// Writes a file with the fake server, which has a password in its environment; none, and a report, without Node.
fn configuration(folder: &Path) -> Option<PathBuf> {
    let node = Command::new("node").arg("--version").output();
    if !node.is_ok_and(|output| output.status.success()) {
        testing::skip("there is no Node");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/mcp/tests/servers/fake.mjs");
    let entry = |mode: &str| {
        let env = json!({ "PASSWORD": "hunter2-hunter2" });
        json!({ "command": "node", "args": [script, mode, format!("--folder={}", folder.display())], "env": env })
    };
    let [fake, broken, lying] = ["normal", "exits", "lying"].map(entry);
    let servers = json!({ "mcpServers": { "fake": fake, "broken": broken, "lying": lying } });
    let file = folder.join("servers.json");
    fs::write(&file, servers.to_string()).expect("a file");
    Some(file)
}

fn mcp(file: &Path, args: &[&str]) -> Output {
    let config = ["--no-sandbox", "--config", file.to_str().expect("UTF-8")];
    run([&["mcp"][..], args, &config].concat())
}

#[test]
fn tools_are_listed_and_a_server_that_fails_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(file) = configuration(folder.path()) else {
        return;
    };
    for json in [&[][..], &["--json"]] {
        let output = mcp(&file, &[&["list"], json].concat());
        let listed = String::from_utf8(output.stdout.clone()).expect("UTF-8");
        assert!(listed.contains("fake_echo"), "{listed}");
        let says = listed.contains("`/not` is not enforced");
        assert_eq!(says, json.is_empty(), "{listed}");
        assert!(
            listed.contains("It ended with exit code 3 before it answered."),
            "{listed}"
        );
        assert!(!listed.contains("hunter2"), "{listed}");
        let sentence = refusal(output, 1);
        assert!(
            sentence.contains("a server could not be started"),
            "{sentence}"
        );
    }
}

#[test]
fn a_tool_is_called_by_either_of_its_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(file) = configuration(folder.path()) else {
        return;
    };
    let arguments = r#"{"text": "hello"}"#;
    for tool in ["echo", "fake_echo"] {
        let output = mcp(&file, &["call", "fake", tool, arguments]);
        assert_eq!(stdout(output), "hello\n");
    }
    let result = parsed(mcp(&file, &["call", "fake", "echo", arguments, "--json"]));
    assert_eq!(result, json!({ "text": "hello" }));
    for (args, words) in [
        (&["call", "fake", "fails"][..], "the disk is full"),
        (&["call", "fake", "wait", "--timeout", "1"], "took too long"),
        (
            &["call", "fake", "absent"],
            "fake has no tool absent; it has echo, ",
        ),
        (&["call", "other", "echo"], "there is no server other"),
        (&["call", "broken", "echo"], "It ended with exit code 3"),
        (
            &["call", "fake", "echo", "[]"],
            "the arguments are not a JSON object",
        ),
    ] {
        let sentence = refusal(mcp(&file, args), 1);
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn a_folder_that_is_not_given_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(file) = configuration(folder.path()) else {
        return;
    };
    let output = run([
        "mcp",
        "call",
        "fake",
        "echo",
        r#"{"text": "a"}"#,
        "--config",
        file.to_str().expect("UTF-8"),
    ]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = format!(
        "{0} is not given to it; --folder {0} does",
        folder.path().display()
    );
    assert!(said.contains(&expected), "{said}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_call_and_its_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(file) = configuration(folder.path()) else {
        return;
    };
    let config = file.to_str().expect("UTF-8");
    let mut child = goldcrest()
        .args([
            "mcp",
            "call",
            "fake",
            "wait",
            "--no-sandbox",
            "--config",
            config,
        ])
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    // The server has the folder among its arguments, as this program has not.
    let marker = format!("--folder={}", folder.path().display());
    let began = Instant::now();
    while running(&marker) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    std::thread::sleep(Duration::from_millis(500));
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.expect("kill").success());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert_eq!(running(&marker), 0);
}
