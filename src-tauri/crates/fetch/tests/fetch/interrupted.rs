//! Downloads that are paused, killed, or started twice.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use download::{Download, DownloadEvent};

use crate::child::{Fetch, content};
use crate::server::{Asked, Reply, Server, Then};
use crate::{End, check};

/// Makes a server that sends about 1.6 MB a second, so that the file takes a sixth of one.
fn slow() -> Server {
    Server::new(|asked| Reply::file(content(), "a", asked).slowly(8_000))
}

/// Makes a server for which the file takes two and a half seconds.
fn very_slow() -> Server {
    Server::new(|asked| Reply::file(content(), "a", asked).slowly(500))
}

#[test]
fn a_pause_keeps_what_was_written_and_a_resume_goes_on_there() {
    let server = very_slow();
    let fetch = Fetch::new(&server.address("model.gguf"));
    for stop in ["pause", "end of stdin"] {
        let mut running = fetch.start();
        assert!(running.until_bytes(10_000 * (1 + server.asked().len() as u64)));
        match stop {
            "pause" => running.pause(),
            _ => running.close_stdin(),
        }
        let ended = running.end();
        let Some(DownloadEvent::Paused { done }) = ended.events.last() else {
            panic!("{ended:?}");
        };
        let left = std::fs::read(fetch.incomplete()).expect("kept");
        assert_eq!(left.len() as u64, *done, "{stop}");
        assert!(content().starts_with(&left) && !left.is_empty(), "{stop}");
        assert!(!fetch.file().exists());
    }
    let left = std::fs::metadata(fetch.incomplete()).expect("kept").len();
    assert_eq!(
        download::incomplete_bytes(&fetch.request).expect("known"),
        Some(left)
    );
    check("resumed after two pauses", &fetch, End::File);
    let from = server.asked().last().and_then(Asked::from);
    assert_eq!(from, usize::try_from(left).ok());
}

#[test]
fn a_pause_ends_a_connection_that_sends_nothing() {
    let server = Server::new(|_| Reply::status(200).only(0, Then::Hang));
    let fetch = Fetch::new(&server.address("model.gguf")).with("GOLDCREST_FETCH_UNIT", "1000");
    let mut running = fetch.start();
    assert!(running.until(|event| matches!(event, DownloadEvent::Resolved { .. })));
    running.pause();
    let ended = running.end();
    assert_eq!(
        ended.events.last(),
        Some(&DownloadEvent::Paused { done: 0 })
    );
}

#[test]
fn a_pause_ends_a_wait_for_the_network() {
    let fetch = Fetch::new("http://127.0.0.1:9/model.gguf")
        .left(b"part")
        .with("GOLDCREST_FETCH_UNIT", "10000");
    let mut running = fetch.start();
    assert!(running.until(|event| matches!(event, DownloadEvent::Waiting { .. })));
    running.pause();
    let paused = DownloadEvent::Paused { done: 4 };
    assert_eq!(running.end().events.last(), Some(&paused));
}

#[test]
fn a_pause_when_the_file_has_its_name_comes_too_late() {
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let fetch = Fetch::new(&server.address("model.gguf")).with("GOLDCREST_FETCH_NAMED", "500");
    let mut running = fetch.start();
    while !fetch.file().exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.pause();
    let ended = running.end();
    assert!(ended.is_done(), "{ended:?}");
}

#[test]
fn a_download_killed_at_any_moment_is_resumed() {
    let server = slow();
    let fetch = Fetch::new(&server.address("model.gguf"));
    for moment in 0..12 {
        let running = fetch.start();
        std::thread::sleep(Duration::from_millis(8 * moment));
        running.kill();
        assert!(!fetch.file().exists() || fetch.written() == content());
    }
    check("killed twelve times", &fetch, End::File);
    let resumed = server.asked().iter().filter_map(Asked::from).max();
    assert!(resumed.is_some_and(|from| from > 0), "nothing was resumed");
}

#[test]
fn of_two_downloads_of_a_file_one_is_refused() {
    let server = very_slow();
    let fetch = Fetch::new(&server.address("model.gguf"));
    let mut first = fetch.start();
    assert!(first.until_bytes(1));
    let second = fetch.run();
    assert!(second.sentence().contains("Another program"), "{second:?}");
    assert!(second.can_resume());
    let busy = download::drop_incomplete(&fetch.request).expect_err("it is being written");
    assert_eq!(busy.kind(), std::io::ErrorKind::ResourceBusy);
    assert!(first.end().is_done());
    assert_eq!(fetch.written(), content());
    check("the second afterwards", &fetch, End::File);
}

#[test]
fn a_server_that_is_gone_for_long_is_waited_for_once_bytes_have_come() {
    let port = Server::free_port();
    let url = format!("http://127.0.0.1:{port}/model.gguf");
    let fetch = Fetch::new(&url)
        .left(&content()[..1000])
        .with("GOLDCREST_FETCH_UNIT", "1");
    let mut running = fetch.start();
    for _ in 0..20 {
        assert!(running.until(|event| matches!(event, DownloadEvent::Waiting { .. })));
    }
    let _server = Server::at(port, |asked| Reply::file(content(), "a", asked));
    assert!(running.end().is_done());
    assert_eq!(fetch.written(), content());
}

#[cfg(unix)]
#[test]
fn a_file_that_another_program_has_put_in_place_is_not_written() {
    let server = very_slow();
    let fetch = Fetch::new(&server.address("model.gguf"));
    let mut running = fetch.start();
    assert!(running.until_bytes(1));
    // The other process has ignored the lock and has the whole file.
    std::fs::rename(fetch.incomplete(), fetch.file()).expect("renamed");
    std::fs::write(fetch.file(), content()).expect("written");
    let ended = running.end();
    assert!(ended.sentence().contains("another program"), "{ended:?}");
    assert_eq!(fetch.written(), content());
}

#[cfg(unix)]
#[test]
fn an_incomplete_file_that_is_a_link_is_not_followed() {
    let server = very_slow();
    let fetch = Fetch::new(&server.address("model.gguf"));
    let mine = fetch.folder().join("mine");
    std::fs::write(&mine, b"mine").expect("written");
    std::os::unix::fs::symlink(&mine, fetch.incomplete()).expect("linked");
    let ended = fetch.run();
    assert!(ended.sentence().contains("another program"), "{ended:?}");
    assert_eq!(std::fs::read(&mine).expect("kept"), b"mine");
}

#[test]
fn what_was_written_can_be_dropped() {
    let fetch = Fetch::new("https://goldcrest.invalid/model.gguf").left(b"part");
    assert_eq!(
        download::incomplete_bytes(&fetch.request).expect("known"),
        Some(4)
    );
    download::drop_incomplete(&fetch.request).expect("dropped");
    assert_eq!(
        download::incomplete_bytes(&fetch.request).expect("known"),
        None
    );
    assert!(!fetch.incomplete().exists());
    download::drop_incomplete(&fetch.request).expect("nothing to drop");
}

#[test]
fn the_app_gets_one_last_event_however_the_child_ends() {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_goldcrest-fetch"));
    let last_of = |program: &std::path::Path, fetch: &Fetch, pause: bool| {
        let (sender, events) = mpsc::channel();
        let download = Download::start(program, &fetch.request, move |event| {
            // An error means that the test is over.
            let _ = sender.send(event);
        });
        let download = download.expect("it starts");
        let mut seen = Vec::new();
        while let Ok(event) = events.recv_timeout(Duration::from_secs(20)) {
            if pause && matches!(event, DownloadEvent::Progress { done: 1.., .. }) {
                download.pause();
            }
            seen.push(event);
        }
        let last = seen.iter().filter(|event| event.is_last()).count();
        assert_eq!(last, 1, "{seen:?}");
        seen.pop().expect("an event")
    };
    let server = slow();
    let fetch = Fetch::new(&server.address("model.gguf"));
    let done = last_of(program, &fetch, false);
    assert!(matches!(done, DownloadEvent::Done { .. }), "{done:?}");
    let server = very_slow();
    let fetch = Fetch::new(&server.address("model.gguf"));
    let paused = last_of(program, &fetch, true);
    assert!(matches!(paused, DownloadEvent::Paused { .. }), "{paused:?}");
    let crashed = last_of(std::path::Path::new("/bin/false"), &fetch, false);
    let DownloadEvent::Failed {
        message,
        can_resume,
    } = crashed
    else {
        panic!("{crashed:?}");
    };
    assert!(message.contains("stopped unexpectedly") && can_resume);
}

#[test]
fn a_dropped_download_ends_its_child() {
    let server = very_slow();
    let fetch = Fetch::new(&server.address("model.gguf"));
    let (sender, events) = mpsc::channel();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_goldcrest-fetch"));
    let download = Download::start(program, &fetch.request, move |event| {
        let _ = sender.send(event);
    });
    let download = download.expect("it starts");
    while !matches!(events.recv(), Ok(DownloadEvent::Progress { .. })) {}
    drop(download);
    let last = std::iter::from_fn(|| events.recv_timeout(Duration::from_secs(20)).ok()).last();
    assert!(
        matches!(last, Some(DownloadEvent::Paused { .. })),
        "{last:?}"
    );
}

#[test]
fn a_line_that_is_no_request_is_a_sentence() {
    for line in ["", "\n", "{}\n", "\u{0}\n", "[[[[[[[[[\n", "{\"url\": 1}\n"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_goldcrest-fetch"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(line.as_bytes()).expect("taken");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("is started by Goldcrest"), "{line:?}: {said}");
    }
}
