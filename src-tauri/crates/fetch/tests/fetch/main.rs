//! The downloader against a server that stalls, lies and breaks off: each case ends with the file, or with a sentence
//! and no file.

mod child;
mod connections;
mod disk;
mod hub;
mod interrupted;
mod proxies;
mod server;
mod statuses;
mod tls;

use child::{Ended, Fetch, content, sha256};
use server::{Reply, Server};

/// Expected end of a case.
enum End {
    /// The file, without a message.
    File,
    /// A sentence with these words; the partial file stays for a resume.
    Kept(&'static str),
    /// A sentence with these words; no file stays.
    Nothing(&'static str),
}

/// Runs a download that knows size and SHA-256, and checks how it ends.
#[track_caller]
fn check(case: &str, fetch: &Fetch, expected: End) -> Ended {
    let ended = fetch.run();
    match expected {
        End::File => assert!(ended.is_done(), "{case}: {ended:?}"),
        End::Kept(words) | End::Nothing(words) => {
            let sentence = ended.sentence();
            assert!(sentence.contains(words), "{case}: {sentence}");
            assert!(sentence.ends_with('.'), "{case}: {sentence}");
            let can_resume = matches!(expected, End::Kept(_));
            assert_eq!(ended.can_resume(), can_resume, "{case}: {sentence}");
            assert!(!fetch.file().exists(), "{case}: a file that is not good");
            let kept = std::fs::metadata(fetch.incomplete()).ok();
            assert!(
                kept.is_none_or(|it| can_resume && it.len() > 0),
                "{case}: something was kept"
            );
        }
    }
    if ended.is_done() {
        assert_eq!(fetch.written(), content(), "{case}: called good and is not");
        assert!(!fetch.incomplete().exists(), "{case}");
    }
    ended
}

#[test]
fn a_good_server_gives_the_file() {
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let fetch = Fetch::new(&server.address("model.gguf"));
    let ended = check("a good server", &fetch, End::File);
    assert_eq!(ended.progress().last(), Some(&content().len()));
    assert_eq!(server.asked().len(), 1);
    // The second time nothing is requested: the file exists.
    check("the file is there already", &fetch, End::File);
    assert_eq!(server.asked().len(), 1);
    assert_eq!(ended.hash(), sha256(content()));
}
