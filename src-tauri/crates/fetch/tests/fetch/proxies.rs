//! Downloads through a proxy, by HTTP's CONNECT and by SOCKS. Only the proxy knows the server.

use std::sync::{Arc, Mutex};

use crate::child::content;
use crate::server::{Asked, Connection, Reply, Server, Then, tunnel};
use crate::tls::{encrypted, trusting_at};
use crate::{End, check};

/// Requests to the proxies.
type Log = Arc<Mutex<Vec<String>>>;

/// Starts a proxy to the server at `port`, whose handshake is `greet`: it returns the requested target.
fn proxy(
    port: u16,
    greet: impl Fn(&mut dyn Connection) -> Option<String> + Send + Sync + 'static,
) -> (Server, Log) {
    let log = Log::default();
    let asked = Arc::clone(&log);
    let proxy = Server::over(
        move |mut stream| {
            let target = greet(&mut stream)?;
            asked.lock().expect("not poisoned").push(target);
            tunnel(stream, port);
            None
        },
        |_| Reply::status(500),
    );
    (proxy, log)
}

fn bytes(stream: &mut dyn Connection, number: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; number];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// Handles CONNECT, with the credentials `me:secret`.
fn connect(stream: &mut dyn Connection) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(bytes(stream, 1)?);
    }
    let head = String::from_utf8(head).ok()?;
    let is_known = head
        .to_ascii_lowercase()
        .contains("proxy-authorization: basic ");
    let is_known = is_known && head.contains("bWU6c2VjcmV0");
    let status = if is_known { "200 OK" } else { "407 No" };
    stream
        .write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes())
        .ok()?;
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?;
    is_known.then(|| target.to_owned())
}

/// Handles SOCKS5 to a host by its name, with the credentials `me:secret`.
fn socks(stream: &mut dyn Connection) -> Option<String> {
    const NO_AUTHENTICATION: u8 = 0;
    const PASSWORD: u8 = 2;
    let [5, methods] = bytes(stream, 2)?[..] else {
        return None;
    };
    let methods = bytes(stream, methods.into())?;
    if methods.contains(&PASSWORD) {
        stream.write_all(&[5, PASSWORD]).ok()?;
        let said = bytes(stream, 11)?;
        let is_known = said == b"\x01\x02me\x06secret";
        stream.write_all(&[1, u8::from(!is_known)]).ok()?;
    } else {
        stream.write_all(&[5, NO_AUTHENTICATION]).ok()?;
    }
    // Version, CONNECT, reserved, a name of this length.
    let [5, 1, 0, 3, length] = bytes(stream, 5)?[..] else {
        return None;
    };
    let name = String::from_utf8(bytes(stream, length.into())?).ok()?;
    let port = u16::from_be_bytes(bytes(stream, 2)?.try_into().ok()?);
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    Some(format!("{name}:{port}"))
}

#[test]
fn a_file_comes_through_a_proxy_and_is_resumed_through_it() {
    let half = content().len() / 2;
    let cut_once = move |asked: &Asked| match asked.before {
        0 => Reply::file(content(), "a", asked).cut(half, Then::Close),
        _ => Reply::file(content(), "a", asked),
    };
    type Greet = fn(&mut dyn Connection) -> Option<String>;
    let proxies: [(&str, &str, Greet); 4] = [
        ("HTTPS_PROXY", "http://me:secret@", connect),
        ("ALL_PROXY", "http://me:secret@", connect),
        ("ALL_PROXY", "socks5h://", socks),
        ("all_proxy", "socks5h://me:secret@", socks),
    ];
    for (variable, scheme, greet) in proxies {
        let (server, certificate) = encrypted("goldcrest.invalid", cut_once);
        let (proxy, log) = proxy(server.port(), greet);
        let address = format!("{scheme}127.0.0.1:{}", proxy.port());
        let url = "https://goldcrest.invalid/model.gguf";
        let fetch = trusting_at(url, &certificate).with(variable, &address);
        check(&format!("{variable}={scheme}"), &fetch, End::File);
        let asked = log.lock().expect("not poisoned").clone();
        assert_eq!(asked, ["goldcrest.invalid:443"; 2], "{scheme}");
        assert_eq!(server.asked()[1].from(), Some(half), "{scheme}");
    }
}

#[test]
fn a_proxy_that_does_not_know_the_user_is_named_without_the_password() {
    let (server, certificate) = encrypted("goldcrest.invalid", |asked| {
        Reply::file(content(), "a", asked)
    });
    let (proxy, _) = proxy(server.port(), connect);
    let address = format!("http://me:wrong@127.0.0.1:{}", proxy.port());
    let fetch = trusting_at("https://goldcrest.invalid/model.gguf", &certificate)
        .with("HTTPS_PROXY", &address);
    let ended = check(
        "a proxy that refuses the password",
        &fetch,
        End::Kept("the proxy refused the connection"),
    );
    assert!(!ended.sentence().contains("wrong"), "{ended:?}");
    // The reason is known already during the retry.
    let waits = ended.waits();
    let is_reason = |it: &&str| it.contains("the proxy refused") && !it.contains("resume");
    assert!(
        !waits.is_empty() && waits.iter().all(is_reason),
        "{waits:?}"
    );
    assert!(server.asked().is_empty());
}
