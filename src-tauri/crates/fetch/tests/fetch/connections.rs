//! Connections that stall, break off and lie about the length.

use std::sync::{Arc, Mutex};

use crate::child::{Fetch, content};
use crate::server::{Asked, Reply, Server, Then};
use crate::{End, check};

/// Answers the first connection by `first`, and every later one correctly.
fn once(first: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Server {
    Server::new(move |asked| match asked.before {
        0 => first(asked),
        _ => Reply::file(content(), "a", asked),
    })
}

fn always(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (Server, Fetch) {
    let server = Server::new(reply);
    let fetch = Fetch::new(&server.address("model.gguf"));
    (server, fetch)
}

#[test]
fn a_connection_cut_off_at_any_byte_is_resumed_there() {
    let small = &content()[..200];
    let head = Reply::file(small, "a", &Asked::default()).head_bytes();
    let next = Arc::new(Mutex::new(None));
    let ends = Arc::clone(&next);
    let server = Server::new(move |asked| {
        let whole = Reply::file(small, "a", asked);
        match ends.lock().expect("not poisoned").take() {
            Some(sent) => whole.only(sent, Then::Close),
            None => whole,
        }
    });
    let fetch = Fetch::of(&server.address("model.gguf"), small).with("GOLDCREST_FETCH_UNIT", "10");
    for sent in 0..head + small.len() {
        *next.lock().expect("not poisoned") = Some(sent);
        let before = server.asked().len();
        let ended = fetch.run();
        assert!(
            ended.is_done() && fetch.written() == small,
            "{sent}: {ended:?}"
        );
        let there = sent.saturating_sub(head);
        let from = server.asked()[before + 1].from();
        assert_eq!(from, Some(there).filter(|there| *there > 0), "{sent}");
        std::fs::remove_file(fetch.file()).expect("removed");
    }
    for body in [1, 4_095, 65_536, content().len() / 2, content().len() - 1] {
        let server = once(move |asked| Reply::file(content(), "a", asked).cut(body, Then::Close));
        let fetch = Fetch::new(&server.address("model.gguf"));
        check(&format!("cut off after {body} bytes"), &fetch, End::File);
        assert_eq!(server.asked()[1].from(), Some(body));
    }
    for sent in [0, 5, 17] {
        let server = once(move |asked| Reply::file(content(), "a", asked).only(sent, Then::Close));
        let fetch = Fetch::new(&server.address("model.gguf"));
        let case = format!("cut off after {sent} bytes of the header");
        check(&case, &fetch, End::File);
    }
}

#[test]
fn a_server_that_always_cuts_off_is_followed_as_long_as_it_brings_something() {
    let part = content().len() / 20;
    let (server, fetch) =
        always(move |asked| Reply::file(content(), "a", asked).cut(part, Then::Close));
    check(
        "cut off twenty times",
        &fetch.with("GOLDCREST_FETCH_UNIT", "10"),
        End::File,
    );
    assert!(server.asked().len() > 19);
    let (_, fetch) = always(|_| Reply::status(200).only(0, Then::Close));
    let fetch = fetch.with("GOLDCREST_FETCH_UNIT", "10");
    check("closes without an answer", &fetch, End::Kept("breaks off"));
}

#[test]
fn a_connection_that_stalls_is_left_and_resumed() {
    let half = content().len() / 2;
    let server = once(move |asked| Reply::file(content(), "a", asked).cut(half, Then::Hang));
    let fetch = Fetch::new(&server.address("model.gguf"));
    check("stalls in the middle", &fetch, End::File);
    assert_eq!(server.asked()[1].from(), Some(half));
    let server = once(|_| Reply::status(200).only(0, Then::Hang));
    let fetch = Fetch::new(&server.address("model.gguf"));
    check("stalls before it answers", &fetch, End::File);
    let (_, fetch) = always(|_| Reply::status(200).only(30, Then::Hang));
    let fetch = fetch.with("GOLDCREST_FETCH_UNIT", "4");
    check("always stalls", &fetch, End::Kept("stopped sending"));
}

#[test]
fn a_server_that_sends_a_byte_at_a_time_is_left() {
    for unknown in [false, true] {
        let (server, fetch) = always(move |asked| match unknown {
            true => Reply::new(200, &[], content()).slowly(1),
            false => Reply::file(content(), "a", asked).slowly(1),
        });
        let fetch = if unknown { fetch.of_any_size() } else { fetch };
        let case = match unknown {
            true => "a byte at a time, of unknown size",
            false => "a byte at a time",
        };
        check(case, &fetch, End::Kept("sends next to nothing"));
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn what_is_not_http_is_not_asked_again() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: b\r\n".repeat(1000));
    let long = format!("HTTP/1.1 200 OK\r\nX-A: {}\r\n\r\n", "b".repeat(200_000));
    for (case, head) in [
        ("another protocol", "SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        ("a status that is none", "HTTP/1.1 9999 Over\r\n\r\n"),
        (
            "a header that is none",
            "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        ),
        (
            "a length that is none",
            "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        ),
        ("too many headers", &many),
        ("a header that is too long", &long),
    ] {
        let head = head.to_owned();
        let (server, fetch) = always(move |_| Reply::raw(&head));
        check(case, &fetch, End::Kept("does not speak HTTP as it should"));
        assert_eq!(server.asked().len(), 1, "{case}");
    }
}

#[test]
fn a_length_that_is_not_the_files_is_refused_or_found_out() {
    let size = content().len();
    let lies = |length: usize| {
        move |_: &Asked| Reply::new(200, &[("Content-Length", &length.to_string())], content())
    };
    let (_, fetch) = always(lies(size + 10));
    check(
        "says ten bytes more",
        &fetch,
        End::Kept("The file at 127.0.0.1 has 240010 bytes"),
    );
    let (_, fetch) = always(lies(size - 10));
    check("says ten bytes less", &fetch, End::Kept("has 239990 bytes"));
    let (_, fetch) = always(|_| Reply::new(200, &[], content()));
    check("says no length", &fetch, End::File);
    let server = once(|_| Reply::new(200, &[], content()).cut(1000, Then::Close));
    let fetch = Fetch::new(&server.address("model.gguf"));
    check("says no length and cuts off", &fetch, End::File);
    let longer = [content(), b"more"].concat();
    let (_, fetch) = always(move |_| Reply::new(200, &[], &longer));
    check("says no length and sends more", &fetch, End::File);
    let other = [&content()[1..], b"other and more"].concat();
    let (_, fetch) = always(move |_| Reply::new(200, &[], &other));
    check(
        "says no length and sends more of another file",
        &fetch,
        End::Nothing("its SHA-256 begins with"),
    );
    // If the size is not known before, the SHA-256 decides.
    let (_, fetch) = always(lies(size - 10));
    let fetch = fetch.of_any_size();
    check(
        "unknown size: says ten bytes less",
        &fetch,
        End::Nothing("its SHA-256 begins with"),
    );
    let (_, fetch) = always(lies(size + 10));
    let fetch = fetch.of_any_size().with("GOLDCREST_FETCH_UNIT", "10");
    check(
        "unknown size: says ten bytes more",
        &fetch,
        End::Kept("breaks off again and again"),
    );
    let (_, fetch) = always(|_| Reply::new(200, &[], &content()[..1000]));
    check(
        "unknown size: no length and a part",
        &fetch.of_any_size(),
        End::Nothing("its SHA-256 begins with"),
    );
}

#[test]
fn a_chunked_answer_is_received_and_its_early_end_found() {
    let chunked = || {
        let chunks = content().chunks(50_000);
        let mut body: Vec<u8> = chunks
            .flat_map(|it| [format!("{:x}\r\n", it.len()).as_bytes(), it, b"\r\n"].concat())
            .collect();
        body.extend(b"0\r\n\r\n");
        Reply::new(200, &[("Transfer-Encoding", "chunked")], &body)
    };
    let (_, fetch) = always(move |_| chunked());
    check("chunked", &fetch, End::File);
    let server = once(move |_| chunked().cut(100_000, Then::Close));
    let fetch = Fetch::new(&server.address("model.gguf"));
    check("chunked and cut off", &fetch, End::File);
}

#[test]
fn a_range_that_is_ignored_or_wrong_begins_the_file_again() {
    let half = content().len() / 2;
    let whole = |_: &Asked| Reply::new(200, &[("Content-Length", "240000")], content());
    let (_, fetch) = always(whole);
    check(
        "ignores the range",
        &fetch.left(&content()[..half]),
        End::File,
    );
    let server = once(|asked| {
        let headers = [
            ("Content-Length", "1000"),
            ("Content-Range", "bytes 7-1006/240000"),
        ];
        assert!(asked.from().is_some());
        Reply::new(206, &headers, &content()[7..1007])
    });
    let fetch = Fetch::new(&server.address("model.gguf")).left(&content()[..half]);
    check("sends another range", &fetch, End::File);
    let server = once(|_| Reply::new(206, &[], &content()[..1000]));
    let fetch = Fetch::new(&server.address("model.gguf")).left(&content()[..half]);
    check("a part without a range", &fetch, End::File);
    let (_, fetch) = always(|asked| Reply::file(content(), "a", asked));
    let longer = [content(), b"more"].concat();
    let fetch = fetch.left(&longer);
    check("more is there than the file has", &fetch, End::File);
    let (server, fetch) = always(whole);
    let fetch = fetch.left(&longer);
    check(
        "more is there, and the rest is not asked for",
        &fetch,
        End::File,
    );
    assert!(server.asked().is_empty());
    let (_, fetch) = always(|asked| Reply::file(content(), "a", asked));
    let fetch = fetch.of_any_size().left(&longer);
    check("416: the file is shorter", &fetch, End::File);
}

#[test]
fn what_is_there_stays_where_a_server_ignores_the_range() {
    let (half, quarter) = (content().len() / 2, content().len() / 4);
    let whole = || Reply::new(200, &[("Content-Length", "240000")], content());
    for (cut, expected) in [(quarter, half), (3 * quarter, 3 * quarter)] {
        let server = Server::new(move |_| whole().cut(cut, Then::Close));
        let fetch = Fetch::new(&server.address("model.gguf")).left(&content()[..half]);
        let fetch = fetch.with("GOLDCREST_FETCH_UNIT", "10");
        check(
            &format!("ignores the range, and always cuts off after {cut} bytes"),
            &fetch,
            End::Kept("breaks off again and again"),
        );
        let left = std::fs::read(fetch.incomplete()).expect("kept");
        assert!(left == content()[..expected], "{}", left.len());
    }
}

#[test]
fn servers_with_other_entity_tags_for_the_same_file_cost_nothing() {
    // Behaves like a redirect to another store each time.
    let part = content().len() / 8;
    let server = Server::new(move |asked| {
        let reply = Reply::file(content(), &format!("store {}", asked.before), asked);
        reply.cut(part, Then::Close)
    });
    let fetch = Fetch::new(&server.address("model.gguf"));
    let ended = check("another entity tag each time", &fetch, End::File);
    let asked: Vec<_> = server.asked().iter().map(Asked::from).collect();
    let expected: Vec<_> = (0..8)
        .map(|at| Some(at * part).filter(|at| *at > 0))
        .collect();
    assert_eq!(asked, expected);
    let progress = ended.progress();
    assert!(progress.is_sorted(), "{progress:?}");
}

#[test]
fn a_file_that_changes_on_the_server_begins_again() {
    let half = content().len() / 2;
    let old = vec![b'x'; content().len()];
    let server = Server::new(move |asked| match asked.before {
        0 => Reply::file(&old, "old", asked).cut(half, Then::Close),
        _ => Reply::file(content(), "new", asked),
    });
    let fetch = Fetch::new(&server.address("model.gguf"));
    check("changes between two connections", &fetch, End::File);
    // The parts do not make the file: it is requested again in one piece.
    let asked: Vec<_> = server.asked().iter().map(Asked::from).collect();
    assert_eq!(asked, [None, Some(half), None]);
}
