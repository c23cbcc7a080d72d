//! The fake server in bubblewrap.

use std::fs;
use std::process::{Command, Stdio};

use mcp::{GivenFolder, Sandbox, Secret};
use serde_json::json;

use super::*;

fn confined(folders: &[(&Path, bool)], network: bool) -> ServerConfig {
    let folders = folders.iter().map(|&(path, writable)| GivenFolder {
        path: path.to_owned(),
        writable,
    });
    ServerConfig {
        folders: folders.collect(),
        network,
        sandboxed: true,
        ..fake("normal")
    }
}

#[test]
fn a_server_reads_and_writes_the_folders_given_to_it_alone() {
    if !has_node() || !has_sandbox() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["shared", "drafts", "private"] {
        fs::create_dir(path(name)).expect("a folder");
        fs::write(path(name).join("note"), name).expect("a file");
    }
    let servers = started(confined(
        &[(&path("shared"), false), (&path("drafts"), true)],
        false,
    ));
    assert_eq!(servers.states()[0].sandbox, Sandbox::Full);
    let read = |path: PathBuf| call(&servers, "read", json!({ "path": path }));
    let write = |path: PathBuf| call(&servers, "write", json!({ "path": path }));
    assert_eq!(read(path("shared/note")), Ok("shared".to_owned()));
    let refused = read(path("private/note")).expect_err("it is not given");
    assert!(refused.to_string().contains("ENOENT"), "{refused}");
    let home = std::env::home_dir().expect("a home");
    for hidden in [
        home.join(".profile"),
        home.join(".bashrc"),
        "/etc/shadow".into(),
        "/etc/group".into(),
    ] {
        let refused = read(hidden.clone()).expect_err("it is hidden");
        assert!(
            refused.to_string().contains("ENOENT"),
            "{hidden:?}: {refused}"
        );
    }
    for fixed in [
        path("shared/new"),
        "/usr/new".into(),
        "/new".into(),
        fake_script(),
    ] {
        let refused = write(fixed.clone()).expect_err("it is fixed");
        assert!(
            refused.to_string().contains("EROFS"),
            "{fixed:?}: {refused}"
        );
    }
    assert_eq!(write(path("drafts/note")), Ok("written".to_owned()));
    assert_eq!(
        fs::read_to_string(path("drafts/note")).expect("a file"),
        "written"
    );
    assert_eq!(write("/tmp/user/cache".into()), Ok("written".to_owned()));
    assert!(!Path::new("/tmp/user/cache").exists());
    let effects = tool(&servers, "read").info().effects;
    assert!(
        effects.reads_files && effects.changes && !effects.network,
        "{effects:?}"
    );
}

#[test]
fn a_server_has_the_network_only_if_allowed() {
    if !has_node() || !has_sandbox() {
        return;
    }
    // A listener outside, which says its port.
    let script = "const s = require('net').createServer(() => {}).listen(0, '127.0.0.1', () => console.log(s.address().port))";
    let mut listener = Command::new("node")
        .args(["-e", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut port = String::new();
    let stdout = listener.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut port).expect("a port");
    let connect = |network| {
        let servers = started(confined(&[], network));
        call(&servers, "connect", json!({ "port": port.trim() }))
    };
    assert_eq!(connect(true), Ok("connected".to_owned()));
    assert_eq!(
        connect(false),
        Err(ToolError::Failed("ECONNREFUSED".to_owned()))
    );
    listener.kill().expect("it runs");
    listener.wait().expect("it ends");
}

#[test]
fn a_server_gets_few_variables_and_its_own() {
    if !has_node() {
        return;
    }
    let mut config = confined(&[], false);
    config
        .env
        .insert("TOKEN".to_owned(), Secret::from("hunter2".to_owned()));
    for sandboxed in [false, true] {
        if sandboxed && !has_sandbox() {
            continue;
        }
        config.sandboxed = sandboxed;
        let servers = started(config.clone());
        let names = call(&servers, "environment", json!({})).expect("names");
        let has = |name: &str| names.split(' ').any(|it| it == name);
        assert!(has("TOKEN") && has("PATH") && has("HOME"), "{names}");
        // Cargo sets these for a test.
        assert!(!has("CARGO_MANIFEST_DIR") && !has("CARGO"), "{names}");
    }
}

#[test]
fn an_installer_without_network_is_explained() {
    if !has_node() || !has_sandbox() {
        return;
    }
    let mut config = program(
        "absent",
        "npx",
        &["-y", "@modelcontextprotocol/server-memory"],
    );
    config.sandboxed = true;
    let began = Instant::now();
    let servers = started(config);
    measured("npx without network", began);
    let reason = reason(&servers);
    assert!(
        reason.contains("Allow it the network, or install the package"),
        "{reason}"
    );
}

#[test]
fn a_folder_that_is_gone_is_named() {
    if !has_node() || !has_sandbox() {
        return;
    }
    let servers = started(confined(&[(Path::new("/nonexistent/notes"), false)], false));
    assert_eq!(
        reason(&servers),
        "The folder /nonexistent/notes, which is given to it, is not there."
    );
}
