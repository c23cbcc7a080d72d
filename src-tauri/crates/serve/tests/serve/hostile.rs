//! Requests that are not what they should be, and clients that are too slow or too many.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::program::{HttpReply, KEY, Program, post};

const CHAT: &str = "/v1/chat/completions";

/// Checks that a request is still answered.
fn answers(program: &Program) {
    assert_eq!(program.get("/health", "").status, 200);
}

#[test]
fn what_is_not_json_is_refused_with_the_place() {
    let program = Program::start();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in ["", "{", "{\"messages\": [}", "\u{feff}{}", "nul", &deep] {
        let reply = program.raw(post(CHAT, "", body).as_bytes());
        assert_eq!(reply.status, 400, "{reply:?}");
        assert!(reply.error().1.contains("not JSON"), "{reply:?}");
    }
    let nested = format!("{{\"tools\": {}{}}}", "[".repeat(100), "]".repeat(100));
    let reply = program.raw(post(CHAT, "", &nested).as_bytes());
    assert!(reply.error().1.contains("64 deep"), "{reply:?}");
    let mut invalid = post(CHAT, "", "{\"messages\": \"**\"}").into_bytes();
    let at = invalid.len() - 4;
    invalid[at] = 0xff;
    let reply = program.raw(&invalid);
    assert_eq!(reply.status, 400, "{reply:?}");
    answers(&program);
}

#[test]
fn a_body_without_end_is_refused_and_takes_no_memory() {
    let program = Program::start();
    let before = program.usage();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n"
    );
    let announced = format!("{head}Content-Length: 104857600\r\n\r\n");
    let reply = program.raw(announced.as_bytes());
    assert_eq!(reply.status, 413);
    // Without a length, it is read up to the limit.
    let mut stream = program.connect();
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    stream.write_all(chunked.as_bytes()).expect("sent");
    let chunk = [
        b"100000\r\n".to_vec(),
        vec![b' '; 1 << 20],
        b"\r\n".to_vec(),
    ]
    .concat();
    let mut sent = 0;
    while sent < 100 && stream.write_all(&chunk).is_ok() {
        sent += 1;
    }
    assert!(sent < 100, "it does not read on");
    answers(&program);
    if let (Some((before, _)), Some((after, _))) = (before, program.usage()) {
        assert!(after < before + 60, "{before} to {after} MB");
    }
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let program = Program::start();
    let many: String = (0..500).map(|at| format!("X-{at}: y\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "y".repeat(200_000));
    for headers in [many, long] {
        let reply = program.get("/health", &headers);
        assert_eq!(reply.status, 431, "{reply:?}");
    }
    let path = format!("/{}", "x".repeat(200_000));
    let status = program.get(&path, "").status;
    assert!([414, 431].contains(&status), "{status}");
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"HELO\r\n\r\n",
        b"GET / HTTP/9\r\n\r\n",
    ] {
        let status = program.raw(garbage).status;
        assert!(status == 400 || status == 0, "{status}");
    }
    answers(&program);
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let program = Program::start();
    let connections: Vec<TcpStream> = (0..500).map(|_| program.connect()).collect();
    let mut refused = 0;
    for mut stream in &connections {
        stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .expect("a time limit");
        let mut text = [0; 12];
        if stream.read_exact(&mut text).is_ok() {
            assert_eq!(&text, b"HTTP/1.1 503");
            refused += 1;
        }
    }
    assert!(refused >= 240, "{refused}");
    drop(connections);
    let began = Instant::now();
    while program.get("/health", "").status != 200 {
        assert!(began.elapsed() < Duration::from_secs(10));
    }
    if let Some((memory, files)) = program.usage() {
        assert!(memory < 60 && files < 100, "{memory} MB, {files} files");
    }
}

#[test]
fn a_client_that_sends_slowly_disturbs_nobody() {
    let program = Program::start();
    let body = json!({ "messages": [{ "role": "user", "content": "Hi" }] });
    let request = post(CHAT, "", &body.to_string());
    let mut stream = program.connect();
    let slow = std::thread::spawn(move || {
        for byte in request.as_bytes() {
            stream.write_all(&[*byte]).expect("sent");
            std::thread::sleep(Duration::from_millis(2));
        }
        HttpReply::read(&mut stream)
    });
    answers(&program);
    let id = program.asked();
    program.answer(id, "slow");
    let slow = slow.join().expect("a reply");
    assert_eq!(slow.status, 200);
}

#[test]
fn a_client_that_reads_nothing_is_dropped() {
    let program = Program::start();
    let body = json!({ "messages": [{ "role": "user", "content": "Hi" }], "stream": true });
    let mut client = program.connect();
    let request = post(CHAT, "", &body.to_string());
    client.write_all(request.as_bytes()).expect("sent");
    let id = program.asked();
    program.begin(id);
    let text = "x".repeat(1 << 16);
    // More than the buffers of the system hold.
    for _ in 0..400 {
        program.say(id, &text);
    }
    let began = Instant::now();
    assert_eq!(program.line(), api::FromServer::Cancel { id });
    assert!(began.elapsed() < Duration::from_secs(45));
    answers(&program);
}
