//! Places for answers, the queue, and clients that go away.

use std::io::Read;
use std::net::TcpStream;

use api::FromServer;
use serde_json::json;

use super::program::{HttpReply, Program, post};

/// Sends a request of a client, and does not wait for the reply.
fn ask(program: &Program, client: &str, streams: bool) -> TcpStream {
    let body = json!({
        "messages": [{ "role": "user", "content": "Hi" }], "user": client, "stream": streams,
    });
    let request = post("/v1/chat/completions", "", &body.to_string());
    program.sent(request.as_bytes())
}

#[test]
fn a_full_queue_says_when_to_try_again() {
    let program = Program::start();
    let asked: Vec<TcpStream> = (0..72).map(|_| ask(&program, "a", false)).collect();
    program.loads((8, 64));
    let reply = HttpReply::read(&mut ask(&program, "b", false));
    assert_eq!(reply.status, 429);
    assert!(reply.head.contains("retry-after: 2"), "{}", reply.head);
    drop(asked);
    program.loads((0, 0));
    let mut next = ask(&program, "b", false);
    let id = loop {
        if let FromServer::Generate { id, .. } = program.line() {
            break id;
        }
    };
    program.answer(id, "at last");
    assert_eq!(HttpReply::read(&mut next).status, 200);
}

#[test]
fn a_free_place_goes_to_the_client_with_the_fewest_answers() {
    let program = Program::start();
    let _busy: Vec<TcpStream> = (0..8).map(|_| ask(&program, "busy", false)).collect();
    let ids: Vec<u64> = (0..8).map(|_| program.asked()).collect();
    let _waiting: Vec<TcpStream> = (0..4).map(|_| ask(&program, "busy", false)).collect();
    program.loads((8, 4));
    let mut other = ask(&program, "other", false);
    program.loads((8, 5));
    program.answer(ids[0], "done");
    let next = program.asked();
    program.answer(next, "for the other");
    let reply = HttpReply::read(&mut other);
    assert!(reply.body.contains("for the other"), "{reply:?}");
}

#[test]
fn a_client_that_goes_away_frees_its_place() {
    let program = Program::start();
    // While it waits for the first token, and while it is written to.
    for has_begun in [false, true] {
        for streams in [false, true] {
            let mut client = ask(&program, "a", streams);
            let id = program.asked();
            if has_begun {
                program.begin(id);
                program.say(id, "One");
                if streams {
                    let mut some = [0; 200];
                    assert!(client.read(&mut some).expect("a chunk") > 0);
                }
            }
            drop(client);
            assert_eq!(program.line(), FromServer::Cancel { id });
            program.loads((0, 0));
            // What the app had sent by then disturbs nothing.
            program.say(id, "late");
            program.end(id);
        }
    }
    let mut client = ask(&program, "a", false);
    let id = program.asked();
    program.answer(id, "whole");
    assert_eq!(HttpReply::read(&mut client).status, 200);
}

#[test]
fn a_client_that_goes_away_while_it_waits_leaves_the_queue() {
    let program = Program::start();
    let _running: Vec<TcpStream> = (0..8).map(|_| ask(&program, "a", false)).collect();
    program.loads((8, 0));
    let waiting = ask(&program, "b", false);
    program.loads((8, 1));
    drop(waiting);
    program.loads((8, 0));
}

#[test]
fn it_ends_with_the_app_and_its_clients_notice() {
    let program = Program::start();
    let mut client = ask(&program, "a", true);
    let id = program.asked();
    program.begin(id);
    program.say(id, "Half");
    assert_eq!(program.close(), Some(0));
    let reply = HttpReply::read(&mut client);
    assert!(!reply.body.contains("[DONE]"), "{reply:?}");
}
