//! What a server answers in place of the file.

use crate::child::{Fetch, content, sha256};
use crate::server::{Reply, Server};
use crate::{End, check};

fn status(case: &str, status: u16, expected: End) {
    let server = Server::new(move |_| Reply::status(status));
    let fetch = Fetch::new(&server.address("model.gguf")).with("GOLDCREST_FETCH_UNIT", "2");
    check(case, &fetch, expected);
}

#[test]
fn a_status_that_refuses_is_a_sentence() {
    status("401", 401, End::Kept("set HF_TOKEN"));
    status("403", 403, End::Kept("set HF_TOKEN"));
    status(
        "404",
        404,
        End::Nothing("There is no such file at http://127.0.0.1"),
    );
    status("410", 410, End::Nothing("There is no such file"));
    status("416", 416, End::Kept("HTTP 416"));
    status("418", 418, End::Kept("HTTP 418"));
    status("302 without an address", 302, End::Kept("HTTP 302"));
    status(
        "429 for ever",
        429,
        End::Kept("cannot send the file at the moment"),
    );
    status("500 for ever", 500, End::Kept("HTTP 500"));
    status("503 for ever", 503, End::Kept("HTTP 503"));
    let server = Server::new(|_| Reply::status(401));
    let fetch = Fetch::new(&server.address("model.gguf"));
    let hub = server.address("");
    let fetch = fetch
        .with("HF_ENDPOINT", &hub)
        .with("HF_TOKEN", "hf_secret");
    let ended = check(
        "401 with a token",
        &fetch,
        End::Kept("Accept the model's terms"),
    );
    assert!(!ended.sentence().contains("hf_secret"));
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    for (number, after) in [
        (429, "1"),
        (503, "2"),
        (500, "Mon, 23 Nov 2026 22:00:00 GMT"),
    ] {
        let server = Server::new(move |asked| match asked.before {
            0 => Reply::new(
                number,
                &[("Retry-After", after), ("Content-Length", "0")],
                b"",
            ),
            _ => Reply::file(content(), "a", asked),
        });
        let fetch = Fetch::new(&server.address("model.gguf"));
        let ended = check(&format!("{number}, Retry-After {after}"), &fetch, End::File);
        assert_eq!(ended.waits().len(), 1);
    }
    let headers = [("Retry-After", "3600"), ("Content-Length", "0")];
    let server = Server::new(move |_| Reply::new(429, &headers, b""));
    let fetch = Fetch::new(&server.address("model.gguf"));
    check(
        "429, Retry-After an hour",
        &fetch,
        End::Kept("cannot send the file at the moment"),
    );
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn content_that_is_not_the_file_is_not_kept() {
    let headers = [("Content-Length", "240000")];
    let mut other = content().to_vec();
    other[123_456] ^= 1;
    let server = Server::new(move |_| Reply::new(200, &headers, &other));
    let fetch = Fetch::new(&server.address("model.gguf"));
    check(
        "one wrong bit",
        &fetch,
        End::Nothing("is not the one that was asked for"),
    );
    assert_eq!(server.asked().len(), 1);
    let page = b"<html>Sign in</html>";
    let server =
        Server::new(|_| Reply::new(200, &[("Content-Type", "text/html; charset=utf-8")], page));
    let fetch = Fetch::new(&server.address("model.gguf"));
    check(
        "a web page",
        &fetch,
        End::Kept("a web page in place of the file"),
    );
    let server = Server::new(|_| Reply::new(200, &[("Content-Encoding", "gzip")], content()));
    let fetch = Fetch::new(&server.address("model.gguf"));
    check(
        "compressed",
        &fetch,
        End::Nothing("an encoding that was not asked for (gzip)"),
    );
    assert_eq!(
        server.asked()[0].header("accept-encoding"),
        Some("identity")
    );
}

#[test]
fn what_is_there_and_damaged_is_replaced_without_a_word() {
    let half = content().len() / 2;
    let mut damaged = content()[..half].to_vec();
    damaged[100] ^= 1;
    let good = || Server::new(|asked| Reply::file(content(), "a", asked));
    let server = good();
    let fetch = Fetch::new(&server.address("model.gguf")).left(&damaged);
    check("a damaged incomplete file", &fetch, End::File);
    let asked: Vec<_> = server.asked().iter().map(|it| it.from()).collect();
    assert_eq!(asked, [Some(half), None]);
    let server = good();
    let fetch = Fetch::new(&server.address("model.gguf")).left(&vec![0; content().len()]);
    check("a damaged incomplete file of full size", &fetch, End::File);
    let server = good();
    let fetch = Fetch::new(&server.address("model.gguf")).left(content());
    check("all is there, but has no name yet", &fetch, End::File);
    assert!(server.asked().is_empty());
}

#[test]
fn another_file_of_the_name_stays() {
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let fetch = Fetch::new(&server.address("model.gguf"));
    std::fs::write(fetch.file(), b"mine").expect("written");
    let ended = fetch.run();
    assert!(ended.sentence().contains("is there already"), "{ended:?}");
    crate::note("another file of this name", &ended);
    assert_eq!(fetch.written(), b"mine");
    assert_ne!(sha256(b"mine"), sha256(content()));
}

#[test]
fn a_token_goes_to_the_hub_alone() {
    let server = Server::new(|asked| match asked.path.as_str() {
        "/hub/model.gguf" => Reply::redirect("/there/model.gguf"),
        "/there/model.gguf" => {
            let host = asked.header("host").unwrap_or_default();
            let port = host.rsplit(':').next().unwrap_or_default();
            Reply::redirect(&format!("http://localhost:{port}/other?signature=x"))
        }
        "/other?signature=x" => {
            let host = asked.header("host").unwrap_or_default();
            let port = host.rsplit(':').next().unwrap_or_default();
            Reply::redirect(&format!("http://127.0.0.1:{port}/back"))
        }
        _ => Reply::file(content(), "a", asked),
    });
    let fetch = Fetch::new("https://huggingface.co/model.gguf")
        .with("HF_ENDPOINT", &server.address("hub"))
        .with("HF_TOKEN", " hf_secret\n");
    check("redirected to another host and back", &fetch, End::File);
    let tokens: Vec<_> = server
        .asked()
        .iter()
        .map(|it| {
            (
                it.path.clone(),
                it.header("authorization").map(str::to_owned),
            )
        })
        .collect();
    let bearer = Some("Bearer hf_secret".to_owned());
    assert_eq!(
        tokens,
        [
            ("/hub/model.gguf".to_owned(), bearer.clone()),
            ("/there/model.gguf".to_owned(), bearer),
            ("/other?signature=x".to_owned(), None),
            ("/back".to_owned(), None)
        ]
    );
    // A server that is not the hub gets none.
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let fetch = Fetch::new(&server.other_address("model.gguf"))
        .with("HF_ENDPOINT", &server.address(""))
        .with("HF_TOKEN", "hf_secret");
    check("a server that is not the hub", &fetch, End::File);
    assert_eq!(server.asked()[0].header("authorization"), None);
    // The file that `hf auth login` writes.
    let fetch = Fetch::new(&server.address("model.gguf")).with("HF_ENDPOINT", &server.address(""));
    let cache = fetch.folder().join(".cache/huggingface");
    std::fs::create_dir_all(&cache).expect("made");
    std::fs::write(cache.join("token"), "hf_file\n").expect("written");
    check("a token in its file", &fetch, End::File);
    assert_eq!(
        server.asked()[1].header("authorization"),
        Some("Bearer hf_file")
    );
    let fetch = Fetch::new(&server.address("model.gguf")).with("HF_TOKEN", "a\u{7}b");
    check("a token that is none", &fetch, End::Kept("HF_TOKEN"));
}

#[test]
fn redirects_end_and_lead_nowhere_unsafe() {
    let redirect = |case: &str, to: &str, expected| {
        let to = to.to_owned();
        let server = Server::new(move |_| Reply::redirect(&to));
        let fetch = Fetch::new(&server.address("model.gguf"));
        let ended = check(case, &fetch, expected);
        assert!(!ended.sentence().contains("secret"));
        server.asked().len()
    };
    let asked = redirect(
        "redirects in a circle",
        "/model.gguf",
        End::Nothing("without end"),
    );
    assert_eq!(asked, 11);
    for (case, to) in [
        (
            "redirected to http elsewhere",
            "http://192.0.2.1/model.gguf",
        ),
        ("redirected to a file", "file:///etc/passwd"),
        ("redirected with a password", "https://me:secret@192.0.2.1/"),
    ] {
        assert_eq!(redirect(case, to, End::Nothing("It was not followed")), 1);
    }
}

#[test]
fn an_address_that_is_not_encrypted_is_for_this_computer_only() {
    for url in [
        "http://192.0.2.1/m.gguf",
        "http://example.com/m.gguf",
        "ftp://127.0.0.1/m",
        "m.gguf",
    ] {
        let fetch = Fetch::new(url);
        check(url, &fetch, End::Nothing("begin with https://"));
    }
    let fetch = Fetch::new("https://huggingface.co/m.gguf").with("HF_ENDPOINT", "http://192.0.2.1");
    check(
        "HF_ENDPOINT that is not encrypted",
        &fetch,
        End::Nothing("begin with https://"),
    );
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let fetch = Fetch::new("http://127.0.0.1:9/model.gguf");
    check(
        "nothing listens",
        &fetch,
        End::Kept("127.0.0.1 cannot be reached"),
    );
    let fetch = Fetch::new("https://goldcrest.invalid/model.gguf");
    check(
        "no such host",
        &fetch,
        End::Kept("goldcrest.invalid cannot be reached"),
    );
}

#[test]
fn a_proxy_is_asked_for_what_is_not_on_this_computer() {
    let server = Server::new(|asked| match asked.method.as_str() {
        "CONNECT" => Reply::status(407),
        _ => Reply::file(content(), "a", asked),
    });
    let proxy = server.address("");
    for variable in ["HTTPS_PROXY", "ALL_PROXY"] {
        let fetch = Fetch::new("https://goldcrest.invalid/model.gguf").with(variable, &proxy);
        let case = format!("{variable}: a proxy that refuses");
        check(
            &case,
            &fetch,
            End::Kept("goldcrest.invalid cannot be reached"),
        );
        let last = server.asked().pop().expect("asked");
        assert_eq!(
            (&*last.method, &*last.path),
            ("CONNECT", "goldcrest.invalid:443")
        );
    }
    let before = server.asked().len();
    let fetch = Fetch::new("https://goldcrest.invalid/model.gguf")
        .with("HTTPS_PROXY", &proxy)
        .with("NO_PROXY", "example.com, goldcrest.invalid");
    check("NO_PROXY", &fetch, End::Kept("cannot be reached"));
    assert_eq!(server.asked().len(), before);
    let fetch = Fetch::new(&server.address("model.gguf")).with("ALL_PROXY", "http://127.0.0.1:9");
    check("a proxy, and a server on this computer", &fetch, End::File);
    let fetch =
        Fetch::new("https://goldcrest.invalid/m").with("HTTPS_PROXY", "gopher://me:secret@x");
    let ended = check("a proxy that is none", &fetch, End::Kept("HTTPS_PROXY"));
    assert!(!ended.sentence().contains("secret"));
}
