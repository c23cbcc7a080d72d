//! Access: keys, hosts and origins.

use serde_json::json;

use super::program::{KEY, Program, post};

fn key() -> String {
    format!("Authorization: Bearer {KEY}\r\n")
}

#[test]
fn only_the_key_opens_it() {
    let program = Program::start();
    for wrong in [
        String::new(),
        "Authorization: Bearer\r\n".to_owned(),
        "Authorization: Bearer wrong\r\n".to_owned(),
        format!("Authorization: Basic {KEY}\r\n"),
        format!("Authorization: Bearer {KEY}x\r\n"),
        format!("X-Api-Key: {KEY}\r\n"),
    ] {
        for path in ["/v1/models", "/metrics", "/nothing"] {
            let reply = program.get(path, &wrong);
            assert_eq!(reply.status, 401, "{wrong}");
            let (_, message) = reply.error();
            assert!(message.contains("key"), "{message}");
            assert!(reply.head.contains("www-authenticate: bearer"));
        }
    }
    assert_eq!(program.get("/nothing", &key()).status, 404);
    assert_eq!(program.get("/health", "").status, 200);
}

#[test]
fn a_name_that_points_here_is_refused() {
    let program = Program::start();
    let ask = |host: &str| {
        let head = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        program.raw(head.as_bytes()).status
    };
    let port = program.port;
    for own in ["localhost", "127.0.0.1", "[::1]"] {
        assert_eq!(ask(own), 200);
        assert_eq!(ask(&format!("{own}:{port}")), 200);
    }
    for foreign in ["evil.example", "localhost.evil.example", "192.168.1.2", ""] {
        assert_eq!(ask(foreign), 403, "{foreign}");
    }
    // The target of a request has precedence over the header for some servers.
    let head =
        "GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(program.raw(head.as_bytes()).status, 403);
    let none = "GET /health HTTP/1.0\r\n\r\n";
    assert_eq!(program.raw(none.as_bytes()).status, 403);
}

#[test]
fn web_pages_may_ask_only_if_they_are_named() {
    let program = Program::with_origins(&["http://localhost:3000"]);
    let named = "Origin: http://localhost:3000\r\n";
    for foreign in [
        "https://evil.example",
        "null",
        "http://localhost:3001",
        "http://localhost",
    ] {
        let headers = format!("{}Origin: {foreign}\r\n", key());
        let reply = program.get("/metrics", &headers);
        assert_eq!(reply.status, 403, "{foreign}");
        assert!(!reply.head.contains("access-control-allow-origin"));
    }
    let reply = program.get("/metrics", &format!("{}{named}", key()));
    assert_eq!(reply.status, 200);
    let allowed = "access-control-allow-origin: http://localhost:3000";
    assert!(
        reply.head.contains(allowed) && reply.head.contains("vary: origin"),
        "{}",
        reply.head
    );
    // A page needs the key, too, but a browser asks first without it.
    let reply = program.get("/metrics", named);
    assert_eq!(reply.status, 401);
    assert!(reply.head.contains(allowed), "the page can read the reason");
    let preflight = format!(
        "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{named}\
         Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,x-stainless-os\r\n\r\n"
    );
    let reply = program.raw(preflight.as_bytes());
    assert_eq!(reply.status, 204);
    assert!(reply.head.contains("x-stainless-os") && reply.head.contains(allowed));
    let foreign = preflight.replace("localhost:3000", "evil.example");
    assert_eq!(program.raw(foreign.as_bytes()).status, 403);
    let none = preflight.replace(named, "");
    assert_eq!(program.raw(none.as_bytes()).status, 401);
}

#[test]
fn pages_of_editors_and_extensions_may_be_named() {
    let origins = ["vscode-webview://1f2e-3d", "app://obsidian.md"];
    let program = Program::with_origins(&origins);
    for origin in origins {
        let headers = format!("{}Origin: {origin}\r\n", key());
        let reply = program.get("/metrics", &headers);
        assert_eq!(reply.status, 200, "{origin}");
        let allowed = format!("access-control-allow-origin: {origin}");
        assert!(reply.head.contains(&allowed), "{}", reply.head);
    }
    let foreign = format!("{}Origin: vscode-webview://another\r\n", key());
    assert_eq!(program.get("/metrics", &foreign).status, 403);
}

#[test]
fn a_new_key_replaces_the_one_before_at_once() {
    let program = Program::start();
    let config = api::ApiConfig {
        port: program.port,
        key: api::ApiKey::of("another key"),
        origins: Vec::new(),
    };
    program.reply(&api::ToServer::Configure(config));
    let new = "Authorization: Bearer another key\r\n";
    while program.get("/metrics", new).status != 200 {}
    assert_eq!(program.get("/metrics", &key()).status, 401);
}

#[test]
fn it_listens_for_this_computer_alone() {
    let program = Program::start();
    let mut families = vec!["127.0.0.1"];
    if std::net::TcpStream::connect(("::1", program.port)).is_ok() {
        families.push("::1");
    }
    for family in families {
        assert!(std::net::TcpStream::connect((family, program.port)).is_ok());
    }
    // Another address of this computer.
    assert!(std::net::TcpStream::connect(("127.0.0.2", program.port)).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_can_be_opened_once_it_listens() {
    let program = Program::start();
    // 2 is the mode of a filter.
    assert_eq!(program.seccomp().as_deref(), Some("2"));
    let reply = program.raw(post("/v1/chat/completions", "", &json!({}).to_string()).as_bytes());
    assert_eq!(reply.status, 400);
}
