//! Servers of others: those of the protocol's authors for Node, and one over the Python SDK.

use std::fs;

use mcp::GivenFolder;
use serde_json::json;

use super::*;

/// Returns the script of a server that `npm install` brings, or reports that the test is skipped.
fn package(name: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let script = root
        .join("node_modules/@modelcontextprotocol")
        .join(name)
        .join("dist/index.js");
    let script = script.canonicalize().ok();
    if script.is_none() {
        testing::skip("npm install has not run");
    }
    script.map(|it| it.display().to_string())
}

/// Returns a server of Node, in a sandbox where there is one.
fn node(script: &str, args: &[&str]) -> ServerConfig {
    let args: Vec<&str> = [script].iter().chain(args).copied().collect();
    let mut config = program("real", "node", &args);
    config.sandboxed = has_sandbox();
    config
}

#[test]
fn the_reference_server_works() {
    let Some(script) = package("server-everything").filter(|_| has_node()) else {
        return;
    };
    let began = Instant::now();
    let servers = started(node(&script, &[]));
    measured("handshake of server-everything", began);
    let state = servers.states().swap_remove(0);
    assert!(
        state.tools.iter().all(|it| it.unusable.is_none()),
        "{state:?}"
    );
    assert_eq!(
        call(&servers, "echo", json!({ "message": "hello" })),
        Ok("Echo: hello".to_owned())
    );
    let sum = call(&servers, "get-sum", json!({ "a": 2, "b": 40 })).expect("a sum");
    assert!(sum.contains("42"), "{sum}");
    let image = call(&servers, "get-tiny-image", json!({})).expect("an image");
    assert!(image.contains("[image, image/png, "), "{image}");
    let wrong = call(&servers, "get-sum", json!({ "a": "x" })).expect_err("wrong arguments");
    assert!(wrong.to_string().contains("expected number"), "{wrong}");
}

#[test]
fn the_server_of_files_sees_the_folder_given_to_it() {
    let Some(script) = package("server-filesystem").filter(|_| has_node()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a folder");
    fs::write(root.join("note.txt"), "Grüße").expect("a file");
    let mut config = node(&script, &[root.to_str().expect("UTF-8")]);
    config.folders.push(GivenFolder {
        path: root.clone(),
        writable: false,
    });
    let began = Instant::now();
    let servers = started(config);
    measured("handshake of server-filesystem", began);
    let read = call(
        &servers,
        "read_text_file",
        json!({ "path": root.join("note.txt") }),
    );
    assert_eq!(read, Ok("Grüße".to_owned()));
    let outside =
        call(&servers, "read_text_file", json!({ "path": "/etc/hosts" })).expect_err("outside");
    assert!(
        outside.to_string().contains("outside allowed directories"),
        "{outside}"
    );
    if has_sandbox() {
        let write = json!({ "path": root.join("new"), "content": "x" });
        let refused = call(&servers, "write_file", write).expect_err("it may not write");
        assert!(refused.to_string().contains("EROFS"), "{refused}");
    }
}

/// Returns the Python with the SDK that `npm test` installs, or reports that the test is skipped.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python/bin/python");
    if !python.is_file() {
        testing::skip("npm test has installed no packages of Python");
        return None;
    }
    Some(python)
}

#[test]
fn a_server_over_the_python_sdk_works() {
    let Some(python) = python() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("server.py");
    let source = "from mcp.server.mcpserver import MCPServer\n\
                  server = MCPServer('sums')\n\
                  @server.tool()\n\
                  def add(a: int, b: int) -> int:\n    \
                      \"\"\"Adds two numbers.\"\"\"\n    \
                      return a + b\n\
                  server.run()\n";
    fs::write(&script, source).expect("a file");
    let python = python.to_str().expect("UTF-8");
    let mut config = program("sums", python, &[script.to_str().expect("UTF-8")]);
    config.sandboxed = has_sandbox();
    let began = Instant::now();
    let servers = started(config);
    measured("handshake of a server over the Python SDK", began);
    let sum = call(&servers, "add", json!({ "a": 2, "b": 40 }));
    assert_eq!(sum, Ok("42".to_owned()), "{:?}", servers.states());
}
