//! `goldcrest fetch`, over goldcrest-fetch and a server on this computer.

#[expect(dead_code, reason = "the downloader's own tests use more of it")]
#[path = "../../crates/fetch/tests/fetch/server.rs"]
mod server;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::json;

use server::{Reply, Server};

use super::{goldcrest, parsed, refusal, stdout, tiny_model};

/// The SHA-256 of the tiny model.
const TINY_SHA256: &str = "806b065fdf01ec3447b44e62f6f772204eae26bcf2d73e73fa9e4de4bf32e17a";

fn tiny() -> Vec<u8> {
    fs::read(tiny_model()).expect("committed")
}

/// Returns whether the program that downloads is built; in CI it must be.
fn has_program() -> bool {
    let app = Path::new(env!("CARGO_BIN_EXE_goldcrest"));
    let program = format!("goldcrest-fetch{}", std::env::consts::EXE_SUFFIX);
    let is_built = app.with_file_name(program).is_file();
    if !is_built {
        assert!(
            std::env::var_os("CI").is_none(),
            "goldcrest-fetch is not built"
        );
        testing::skip("goldcrest-fetch is not built: cargo build --package fetch");
    }
    is_built
}

fn command(folder: &Path) -> Command {
    let mut command = goldcrest();
    for variable in ["HTTPS_PROXY", "ALL_PROXY", "HF_TOKEN", "HF_ENDPOINT"] {
        command.env_remove(variable);
    }
    command.env("HF_HOME", folder.join("hf"));
    command
}

fn fetch(folder: &Path, args: &[&str]) -> Command {
    let mut command = command(folder);
    command.arg("fetch").args(args).arg("--folder").arg(folder);
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    fetch(folder, args).output().expect("the binary starts")
}

#[test]
fn a_file_is_downloaded_verified_and_named() {
    if !has_program() {
        return;
    }
    let server = Server::new(|asked| Reply::file(&tiny(), "a", asked));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tiny.gguf");
    let address = server.address("tiny.gguf");
    let args = [address.as_str(), "--sha256", TINY_SHA256];
    let said = stdout(run(folder.path(), &args));
    assert_eq!(said.trim(), file.display().to_string());
    assert_eq!(fs::read(&file).expect("a file"), tiny());
    let report = parsed(run(folder.path(), &[&args[..], &["--json"]].concat()));
    let expected = json!({ "file": file, "bytes": tiny().len(), "sha256": TINY_SHA256 });
    assert_eq!(report, expected);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn what_is_not_downloaded_is_a_sentence() {
    if !has_program() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::new(|_| Reply::status(404));
    let address = server.address("tiny.gguf");
    let wrong = "0".repeat(64);
    for (args, words) in [
        (
            &["SmolLM4"][..],
            "there are SmolLM3-3B:Q4_K_M, SmolLM3-3B:Q8_0",
        ),
        (&["http://example.com/x.gguf"], "has to begin with https://"),
        (
            &["https://example.com/x.zip"],
            "does not lead to a GGUF file",
        ),
        (
            &["https://me:secret@example.com/x.gguf"],
            "name or a password",
        ),
        (
            &["SmolLM3-3B", "--sha256", &wrong],
            "--sha256 is for addresses",
        ),
        (&[&address, "--sha256", "12"], "64 hexadecimal digits"),
        (&[&address, "--sha256", &wrong], "There is no such file"),
    ] {
        let refused = refusal(run(folder.path(), args), 1);
        assert!(refused.contains(words), "{args:?}: {refused}");
        assert_eq!(refused.trim().lines().count(), 1, "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
}

#[test]
fn the_reason_is_said_while_the_connection_is_tried_again() {
    if !has_program() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let address = "http://127.0.0.1:9/tiny.gguf";
    let mut command = fetch(folder.path(), &[address, "--sha256", TINY_SHA256]);
    command.env("GOLDCREST_FETCH_UNIT", "10");
    let said = refusal(command.output().expect("the binary starts"), 1);
    let reason = "goldcrest: Can't reach 127.0.0.1: the connection was refused.";
    let lines: Vec<_> = said.lines().collect();
    let [first, last] = lines[..] else {
        panic!("each reason once, and the end: {said}");
    };
    assert_eq!(first, reason);
    assert!(last.starts_with(reason) && last.ends_with("and try again."));
}

#[test]
fn a_file_of_the_hub_goes_to_its_cache() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    if !has_program() {
        return;
    }
    let server = Server::new(|asked| {
        if !asked.path.starts_with("/owner/name/resolve/") {
            return Reply::file(&tiny(), "a", asked);
        }
        let size = tiny().len().to_string();
        let headers = [
            ("X-Linked-ETag", TINY_SHA256),
            ("X-Linked-Size", &size),
            ("X-Repo-Commit", COMMIT),
            ("Location", "/store/of/files"),
            ("Content-Length", "0"),
        ];
        Reply::new(302, &headers, b"")
    });
    let folder = tempfile::tempdir().expect("a folder");
    let to_cache = |address: &str, more: &[&str]| {
        let mut command = command(folder.path());
        command.arg("fetch").arg(address).args(more);
        command.env("HF_ENDPOINT", server.address(""));
        command.output().expect("the binary starts")
    };
    let page = "https://huggingface.co/owner/name/blob/main/tiny.gguf";
    let repository = folder.path().join("hf/hub/models--owner--name");
    let file = repository.join("snapshots").join(COMMIT).join("tiny.gguf");
    let said = stdout(to_cache(page, &[]));
    assert_eq!(said.trim(), file.display().to_string());
    assert_eq!(fs::read(&file).expect("a file"), tiny());
    let report = parsed(to_cache(page, &["--json"]));
    let expected = json!({ "file": file, "bytes": tiny().len(), "sha256": TINY_SHA256 });
    assert_eq!(report, expected);
    // A known model whose list and the hub differ: nothing is downloaded.
    let known = refusal(to_cache("SmolLM3-3B", &[]), 1);
    assert!(
        known.contains("There is no such file") || known.contains("asked for"),
        "{known}"
    );
    assert!(
        !folder
            .path()
            .join("hf/hub/models--ggml-org--SmolLM3-3B-GGUF/snapshots")
            .exists()
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_was_written_and_says_how_to_go_on() {
    if !has_program() {
        return;
    }
    let server = Server::new(|asked| match asked.before {
        0 => Reply::file(&tiny(), "a", asked).slowly(4_000),
        _ => Reply::file(&tiny(), "a", asked),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let address = server.address("tiny.gguf");
    let args = [address.as_str(), "--sha256", TINY_SHA256];
    let child = fetch(folder.path(), &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let incomplete = format!(".tiny.gguf.{}.incomplete", &TINY_SHA256[..8]);
    let incomplete = folder.path().join(incomplete);
    while fs::metadata(&incomplete).map_or(0, |it| it.len()) == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.is_ok_and(|status| status.success()));
    let stopped = refusal(child.wait_with_output().expect("it ends"), 130);
    assert!(
        stopped.contains("the same command goes on from there"),
        "{stopped}"
    );
    let kept = fs::metadata(&incomplete).expect("kept").len();
    stdout(run(folder.path(), &args));
    let from = server.asked()[1].from();
    assert_eq!(from, usize::try_from(kept).ok());
}
