//! Answers of a server in place of the file.

use crate::child::{Fetch, content, sha256};
use crate::server::{Reply, Server, Then};
use crate::{End, check};

fn status(case: &str, status: u16, expected: End) {
    let server = Server::new(move |_| Reply::status(status));
    let fetch = Fetch::new(&server.address("model.gguf")).with("GOLDCREST_FETCH_UNIT", "5");
    check(case, &fetch, expected);
}

#[test]
fn a_status_that_refuses_is_a_sentence() {
    status("401", 401, End::Kept("does not give this file out"));
    status("403", 403, End::Kept("does not give this file out"));
    status(
        "404",
        404,
        End::Kept("There is no such file at http://127.0.0.1"),
    );
    status("410", 410, End::Kept("There is no such file"));
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
    status("525 for ever", 525, End::Kept("at the moment (HTTP 525)"));
    let server = Server::new(|_| Reply::status(401));
    let hub = server.address("");
    let of_hub = || Fetch::new(&server.address("model.gguf")).with("HF_ENDPOINT", &hub);
    check("401 of the hub", &of_hub(), End::Kept("set HF_TOKEN"));
    let ended = check(
        "401 of the hub with a token",
        &of_hub().with("HF_TOKEN", "hf_secret"),
        End::Kept("Accept the model's terms"),
    );
    assert!(!ended.sentence().contains("hf_secret"));
}

#[test]
fn a_refusal_is_that_of_the_server_that_refused() {
    let refused = |status: u16| {
        let server = Server::new(move |asked| match asked.path.as_str() {
            "/model.gguf" => {
                let host = asked.header("host").unwrap_or_default();
                let port = host.rsplit(':').next().unwrap_or_default();
                Reply::redirect(&format!("http://localhost:{port}/part?signature=secret"))
            }
            _ => Reply::status(status),
        });
        let fetch = Fetch::new(&server.address("model.gguf"))
            .with("HF_ENDPOINT", &server.address(""))
            .with("HF_TOKEN", "hf_secret");
        let case = format!("{status} of a server that the hub leads to");
        let sentence = check(&case, &fetch, End::Kept("localhost")).sentence();
        assert!(!sentence.contains("secret"), "{sentence}");
        sentence
    };
    for status in [401, 403] {
        let sentence = refused(status);
        assert!(
            !sentence.contains("token") && !sentence.contains("TOKEN"),
            "{sentence}"
        );
    }
    assert!(refused(404).contains("/part"));
}

#[test]
fn a_failure_that_says_nothing_of_what_is_there_keeps_it() {
    let half = content().len() / 2;
    let keeps = |case: &str, words: &'static str, reply: fn() -> Reply| {
        let server = Server::new(move |_| reply());
        let fetch = Fetch::new(&server.address("model.gguf")).left(&content()[..half]);
        check(
            &format!("{case}, and half is there"),
            &fetch,
            End::Kept(words),
        );
        let left = std::fs::read(fetch.incomplete()).expect("kept");
        assert!(left == content()[..half], "{case}");
    };
    keeps("404", "There is no such file", || Reply::status(404));
    keeps("a circle", "without end", || Reply::redirect("/model.gguf"));
    keeps("an unsafe redirect", "not followed", || {
        Reply::redirect("http://192.0.2.1/")
    });
    keeps("compressed", "an encoding", || {
        Reply::new(200, &[("Content-Encoding", "gzip")], content())
    });
    keeps("another size", "has 5 bytes", || {
        Reply::new(200, &[("Content-Length", "5")], b"other")
    });
    keeps("416", "HTTP 416", || Reply::status(416));
    keeps("416 of another size", "HTTP 416", || {
        Reply::new(416, &[("Content-Range", "bytes */7")], b"")
    });
    keeps("a part of another size", "has 7 bytes", || {
        let range = [
            ("Content-Range", "bytes 120000-120006/7"),
            ("Content-Length", "7"),
        ];
        Reply::new(206, &range, &content()[120_000..120_007])
    });
}

#[test]
fn a_hash_that_is_none_is_refused_before_anything_is_asked() {
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let mut fetch = Fetch::new(&server.address("model.gguf"));
    fetch.request.sha256 = Some("12".to_owned());
    let ended = fetch.run();
    assert!(
        ended.sentence().contains("64 hexadecimal digits."),
        "{ended:?}"
    );
    assert!(server.asked().is_empty());
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
        End::Kept("an encoding that was not asked for (gzip)"),
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
    let server = good();
    let fetch = Fetch::new(&server.address("model.gguf")).left(content());
    check(
        "all is there, and its size is not known",
        &fetch.of_any_size(),
        End::File,
    );
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn wrong_content_that_is_always_cut_off_is_given_up() {
    let half = content().len() / 2;
    let mut other = content().to_vec();
    other[123_456] ^= 1;
    let server = Server::new(move |asked| match asked.from() {
        None => Reply::file(&other, "a", asked).cut(half, Then::Close),
        Some(_) => Reply::file(&other, "a", asked),
    });
    let fetch = Fetch::new(&server.address("model.gguf"));
    check(
        "one wrong bit, always cut off",
        &fetch,
        End::Nothing("is not the one that was asked for"),
    );
    assert_eq!(server.asked().len(), 4);
}

#[test]
fn another_file_of_the_name_stays() {
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let fetch = Fetch::new(&server.address("model.gguf"));
    std::fs::write(fetch.file(), b"mine").expect("written");
    let ended = fetch.run();
    assert!(ended.sentence().contains("is there already"), "{ended:?}");
    assert_eq!(fetch.written(), b"mine");
    assert_ne!(sha256(b"mine"), sha256(content()));
    assert_eq!(fetch.names(), ["model.gguf"]);
}

#[test]
fn another_file_that_appears_during_the_download_stays() {
    let server = Server::new(|asked| Reply::file(content(), "a", asked).slowly(4_000));
    let fetch = Fetch::new(&server.address("model.gguf"));
    let mut running = fetch.start();
    assert!(running.until_bytes(1));
    std::fs::write(fetch.file(), b"mine").expect("written");
    let ended = running.end();
    assert!(ended.sentence().contains("is there already"), "{ended:?}");
    assert_eq!(fetch.written(), b"mine");
    // A completed download is not lost.
    std::fs::remove_file(fetch.file()).expect("removed");
    check("resumed when the other file is gone", &fetch, End::File);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_folder_or_a_broken_link_of_the_name_stays() {
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let fetch = Fetch::new(&server.address("model.gguf"));
    std::fs::create_dir(fetch.file()).expect("made");
    let ended = fetch.run();
    assert!(ended.sentence().contains("is there already"), "{ended:?}");
    #[cfg(unix)]
    {
        let fetch = Fetch::new(&server.address("model.gguf"));
        std::os::unix::fs::symlink("/not/there", fetch.file()).expect("linked");
        let ended = fetch.run();
        assert!(ended.sentence().contains("is there already"), "{ended:?}");
        assert!(fetch.file().is_symlink());
    }
    assert!(server.asked().is_empty());
}

#[test]
fn an_incomplete_file_of_another_download_stays() {
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let fetch = Fetch::new(&server.address("model.gguf"));
    let mut other = Fetch::new(&server.address("other/model.gguf")).into_folder(fetch.folder());
    other.request.sha256 = Some(sha256(b"another file"));
    for mine in ["model.gguf.incomplete", "model.gguf.lock"] {
        std::fs::write(fetch.folder().join(mine), b"mine").expect("written");
    }
    let other = other.left(b"another");
    check("another file of the name is incomplete", &fetch, End::File);
    assert_eq!(server.asked()[0].from(), None);
    assert_eq!(std::fs::read(other.incomplete()).expect("kept"), b"another");
    for mine in ["model.gguf.incomplete", "model.gguf.lock"] {
        let kept = std::fs::read(fetch.folder().join(mine));
        assert_eq!(kept.expect("kept"), b"mine");
    }
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
    // A token that cannot be sent affects the hub's files only.
    let bad = || Fetch::new(&server.address("model.gguf")).with("HF_TOKEN", "a\u{7}b");
    let of_hub = bad().with("HF_ENDPOINT", &server.address(""));
    check("a token that is none", &of_hub, End::Kept("HF_TOKEN"));
    check(
        "a token that is none, and another server",
        &bad(),
        End::File,
    );
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
        End::Kept("without end"),
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
        assert_eq!(redirect(case, to, End::Kept("It was not followed")), 1);
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
        check(url, &fetch, End::Kept("begin with https://"));
    }
    let fetch = Fetch::new("https://huggingface.co/m.gguf").with("HF_ENDPOINT", "http://192.0.2.1");
    check(
        "HF_ENDPOINT that is not encrypted",
        &fetch,
        End::Kept("begin with https://"),
    );
    for endpoint in ["https://me:secret@example.com", "https://me:secret@[x"] {
        let fetch = Fetch::new("https://huggingface.co/m.gguf").with("HF_ENDPOINT", endpoint);
        let ended = check(
            "HF_ENDPOINT with a password",
            &fetch,
            End::Kept("HF_ENDPOINT"),
        );
        assert!(!ended.sentence().contains("secret"), "{ended:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let fetch = Fetch::new("http://127.0.0.1:9/model.gguf");
    check(
        "nothing listens",
        &fetch,
        End::Kept("Can't reach 127.0.0.1"),
    );
    let fetch = Fetch::new("https://goldcrest.invalid/model.gguf");
    check(
        "no such host",
        &fetch,
        End::Kept("Can't reach goldcrest.invalid"),
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
        check(&case, &fetch, End::Kept("Can't reach goldcrest.invalid"));
        let last = server.asked().pop().expect("asked");
        assert_eq!(
            (&*last.method, &*last.path),
            ("CONNECT", "goldcrest.invalid:443")
        );
    }
    let before = server.asked().len();
    for (variable, excepted) in [
        ("NO_PROXY", "example.com, goldcrest.invalid"),
        ("NO_PROXY", "invalid"),
        ("NO_PROXY", ".INVALID"),
        ("NO_PROXY", "*"),
        ("no_proxy", "*.invalid"),
    ] {
        let fetch = Fetch::new("https://goldcrest.invalid/model.gguf")
            .with("HTTPS_PROXY", &proxy)
            .with("NO_PROXY", "")
            .with(variable, excepted);
        let case = format!("{variable}={excepted}");
        check(&case, &fetch, End::Kept("Can't reach"));
        assert_eq!(server.asked().len(), before, "{case}");
    }
    let fetch = Fetch::new("https://goldcrest.invalid/model.gguf")
        .with("HTTPS_PROXY", &proxy)
        .with("NO_PROXY", "crest.invalid,");
    check("NO_PROXY of another host", &fetch, End::Kept("the proxy"));
    let fetch = Fetch::new(&server.address("model.gguf")).with("ALL_PROXY", "http://127.0.0.1:9");
    check("a proxy, and a server on this computer", &fetch, End::File);
    let fetch =
        Fetch::new("https://goldcrest.invalid/m").with("HTTPS_PROXY", "gopher://me:secret@x");
    let ended = check("a proxy that is none", &fetch, End::Kept("HTTPS_PROXY"));
    assert!(!ended.sentence().contains("secret"));
}
