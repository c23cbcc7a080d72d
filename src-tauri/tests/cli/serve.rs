//! The local API without a window.

use std::io::{BufRead, BufReader};

use super::*;

/// Starts it, and returns the line of JSON that it prints.
fn serving(args: &[&str]) -> (std::process::Child, Value) {
    let mut child = goldcrest()
        .args(["serve", "--json"])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let printed = serde_json::from_str(&line).expect("JSON");
    (child, printed)
}

fn port(printed: &Value) -> String {
    let address = printed["base_url"].as_str().expect("an address");
    let port = address.strip_prefix("http://127.0.0.1:");
    let port = port.and_then(|it| it.strip_suffix("/v1"));
    port.expect("an address of this computer").to_owned()
}

#[cfg(unix)]
#[test]
fn it_prints_its_address_and_a_new_key_and_ends_with_ctrl_c() {
    let (mut child, printed) = serving(&["--port", "0"]);
    assert_ne!(port(&printed), "0");
    assert!(printed["key"].as_str().is_some_and(|key| key.len() > 40));
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.expect("kill").success());
}

#[cfg(target_os = "linux")]
#[test]
fn the_program_with_the_socket_has_no_variables() {
    let (mut child, _) = serving(&["--port", "0"]);
    let id = child.id();
    let threads = fs::read_dir(format!("/proc/{id}/task")).expect("its threads");
    let children = threads.map(|thread| {
        let path = thread.expect("a thread").path().join("children");
        fs::read_to_string(path).expect("its children")
    });
    let children: String = children.collect();
    let serving = children.split_whitespace().next().expect("the program");
    let variables = fs::read(format!("/proc/{serving}/environ")).expect("its variables");
    assert_eq!(String::from_utf8_lossy(&variables), "");
    interrupt(&child);
    child.wait().expect("it ends");
}

#[test]
fn a_port_in_use_is_named_and_a_given_key_is_not_printed() {
    let (mut child, printed) = serving(&["--port", "0", "--key", "long-enough"]);
    assert_eq!(printed.get("key"), None);
    let port = port(&printed);
    let says = refusal(run(["serve", "--port", &port]), 1);
    assert!(
        says.contains(&format!("Port {port} is used by another program")),
        "{says}"
    );
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn bad_keys_and_origins_are_refused() {
    let says = refusal(run(["serve", "--key", "short"]), 1);
    assert!(says.contains("too short"), "{says}");
    let says = refusal(run(["serve", "--origin", "*"]), 1);
    assert!(says.contains("not the address of a web page"), "{says}");
}
