//! Files of the hub, and its cache.

use std::fs;
use std::path::Path;

use download::{Destination, DownloadEvent, DownloadRequest};

use crate::child::{Fetch, content, sha256};
use crate::server::{Asked, Reply, Server, Then};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const FILE: &str = "https://huggingface.co/owner/name/resolve/main/model.gguf";

/// Answers like the hub: with size, hash and commit, and a redirect to the server that has the file.
fn hub(asked: &Asked) -> Reply {
    if !asked.path.starts_with("/owner/name/resolve/") {
        return Reply::file(content(), "other", asked);
    }
    let tag = format!("\"{}\"", sha256(content()));
    let size = content().len().to_string();
    let headers = [
        ("X-Linked-ETag", tag.as_str()),
        ("X-Linked-Size", &size),
        ("X-Repo-Commit", COMMIT),
        ("Location", "/store/of/files"),
        ("Content-Length", "0"),
    ];
    Reply::new(302, &headers, b"")
}

fn typed_in(server: &Server, revision: &str) -> Fetch {
    Fetch::new(FILE)
        .into_hub(revision)
        .with("HF_ENDPOINT", &server.address(""))
}

fn resolved(ended: &crate::Ended) -> DownloadRequest {
    let request = |event: &DownloadEvent| match event {
        DownloadEvent::Resolved { request } => Some(request.clone()),
        _ => None,
    };
    let found = ended.events.iter().find_map(request);
    found.unwrap_or_else(|| panic!("{ended:?}"))
}

#[test]
fn a_file_of_the_hub_goes_to_its_cache_as_its_own_tools_lay_it_down() {
    let server = Server::new(hub);
    let mut fetch = typed_in(&server, "main");
    let ended = fetch.run();
    assert!(ended.is_done(), "{ended:?}");
    let repository = fetch.folder().join("hub/models--owner--name");
    let pointer = repository.join("snapshots").join(COMMIT).join("model.gguf");
    let blob = repository.join("blobs").join(sha256(content()));
    assert_eq!(fs::read(&blob).expect("a blob"), content());
    assert_eq!(fs::read(&pointer).expect("a pointer"), content());
    #[cfg(unix)]
    assert_eq!(
        fs::read_link(&pointer).expect("a link"),
        Path::new("../../blobs").join(sha256(content()))
    );
    let main = fs::read_to_string(repository.join("refs/main"));
    assert_eq!(main.expect("a ref"), COMMIT);
    let lock = fetch.folder().join("hub/.locks/models--owner--name");
    assert!(lock.join(format!("{}.lock", sha256(content()))).exists());
    let blobs = fs::read_dir(repository.join("blobs"))
        .expect("a folder")
        .count();
    assert_eq!(blobs, 1);
    // The resolved request suffices for a second run, without any query.
    fetch.request = resolved(&ended);
    assert!(matches!(&fetch.request.destination,
        Destination::HubCache { revision, .. } if revision == COMMIT));
    let asked = server.asked().len();
    assert!(fetch.run().is_done());
    assert_eq!(server.asked().len(), asked);
    // A pointer that somebody removed is created again.
    fs::remove_file(&pointer).expect("removed");
    assert!(fetch.run().is_done() && pointer.exists());
    // A damaged blob is replaced.
    fs::write(&blob, vec![0; content().len()]).expect("written");
    assert!(fetch.run().is_done());
    assert_eq!(fs::read(&pointer).expect("a pointer"), content());
}

#[test]
fn a_download_of_a_branch_goes_on_when_the_branch_moves() {
    // The branch has other content after the first connection.
    let moved = |asked: &Asked| match (asked.before, asked.path.as_str()) {
        (0, "/owner/name/resolve/main/model.gguf") => hub(asked),
        (_, "/owner/name/resolve/main/model.gguf") => Reply::file(b"newer", "new", asked),
        (1, _) => Reply::file(content(), "a", asked).cut(100_000, Then::Close),
        _ => Reply::file(content(), "a", asked),
    };
    for folder in [false, true] {
        let server = Server::new(moved);
        let mut fetch = typed_in(&server, "main");
        if folder {
            let at = fetch.folder().join("models");
            fetch = fetch.into_folder(&at);
        }
        let ended = fetch.run();
        assert!(ended.is_done(), "{ended:?}");
        let at_commit = format!("/owner/name/resolve/{COMMIT}/model.gguf");
        assert!(server.asked()[1..].iter().all(|it| it.path == at_commit));
        // A resume by another process requests the commit, too.
        let url = resolved(&ended).url;
        assert_eq!(url, format!("https://huggingface.co{at_commit}"));
    }
}

#[test]
fn a_file_asked_for_by_its_commit_is_noted_as_main_where_nothing_is() {
    let server = Server::new(hub);
    let fetch = typed_in(&server, COMMIT);
    let refs = fetch.folder().join("hub/models--owner--name/refs");
    assert!(fetch.run().is_done());
    assert_eq!(
        fs::read_to_string(refs.join("main")).expect("a ref"),
        COMMIT
    );
    let fetch = typed_in(&server, COMMIT);
    let refs = fetch.folder().join("hub/models--owner--name/refs");
    fs::create_dir_all(&refs).expect("made");
    let another = "f".repeat(40);
    for (there, expected) in [(another.as_str(), another.as_str()), ("", COMMIT)] {
        fs::write(refs.join("main"), there).expect("written");
        assert!(fetch.run().is_done());
        let found = fs::read_to_string(refs.join("main"));
        assert_eq!(found.expect("a ref"), expected);
    }
    assert_eq!(fs::read_dir(&refs).expect("a folder").count(), 1);
}

#[cfg(unix)]
#[test]
fn nothing_in_the_cache_is_writable_by_others() {
    use std::os::unix::fs::PermissionsExt;
    fn check(folder: &Path, forbidden: u32, wanted: u32) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let at = fs::symlink_metadata(&path).expect("there");
            if at.is_symlink() {
                continue;
            }
            let mode = at.permissions().mode();
            let is_right = mode & forbidden == 0 && mode & wanted == wanted;
            assert!(is_right, "{mode:o} {}", path.display());
            if at.is_dir() {
                check(&path, forbidden, wanted);
            }
        }
    }
    let server = Server::new(hub);
    // A group may share a cache, where the user's umask lets it.
    for (umask, forbidden, wanted) in [
        ("022", 0o022, 0),
        ("002", 0o002, 0o020),
        ("0", 0o002, 0o020),
    ] {
        let fetch = typed_in(&server, "main");
        let mut shell = std::process::Command::new("/bin/sh");
        let with = fetch.command();
        shell
            .args(["-c", &format!("umask {umask}; exec \"$0\"")])
            .arg(with.get_program())
            .env_clear()
            .envs(
                with.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        assert!(fetch.start_command(shell).end().is_done());
        check(&fetch.folder().join("hub"), forbidden, wanted);
    }
}

#[test]
fn a_server_that_does_not_say_what_the_file_is_is_refused() {
    let without = |left_out: &'static str| {
        Server::new(move |asked| {
            let tag = format!("\"{}\"", sha256(content()));
            let all = [("X-Linked-ETag", tag.as_str()), ("X-Repo-Commit", COMMIT)];
            let headers: Vec<_> = all.into_iter().filter(|it| it.0 != left_out).collect();
            match asked.method.as_str() {
                "HEAD" => Reply::new(200, &headers, b""),
                _ => Reply::file(content(), "a", asked),
            }
        })
    };
    for (left_out, words) in [
        ("X-Linked-ETag", "does not say the file's SHA-256"),
        ("X-Repo-Commit", "of which commit"),
    ] {
        let ended = typed_in(&without(left_out), "main").run();
        assert!(ended.sentence().contains(words), "{ended:?}");
    }
    for (status, words) in [(404, "There is no such file"), (401, "set HF_TOKEN")] {
        let server = Server::new(move |_| Reply::status(status));
        let ended = typed_in(&server, "main").run();
        assert!(ended.sentence().contains(words), "{ended:?}");
    }
}

#[test]
fn a_hash_or_a_size_that_the_hub_contradicts_is_refused_before_the_download() {
    let server = Server::new(hub);
    let mut fetch = typed_in(&server, "main");
    fetch.request.sha256 = Some("0".repeat(64));
    let ended = fetch.run();
    assert!(ended.sentence().contains("is not the one"), "{ended:?}");
    let mut fetch = typed_in(&server, "main");
    fetch.request.bytes = Some(7);
    let ended = fetch.run();
    assert!(ended.sentence().contains("has 240000 bytes"), "{ended:?}");
    assert!(server.asked().iter().all(|it| it.method == "HEAD"));
}

#[test]
fn a_list_that_lies_costs_no_byte_of_the_file() {
    let server = Server::new(hub);
    let known = || {
        Fetch::new(&FILE.replace("main", COMMIT))
            .into_cache(COMMIT)
            .with("HF_ENDPOINT", &server.address(""))
    };
    let refused = |case: &str, fetch: Fetch, words: &str| {
        let half = &content()[..content().len() / 2];
        let fetch = fetch.left(half);
        let ended = fetch.run();
        assert!(ended.sentence().contains(words), "{case}: {ended:?}");
        assert!(ended.can_resume() && !fetch.file().exists(), "{case}");
        assert_eq!(fs::read(fetch.incomplete()).expect("kept"), half, "{case}");
    };
    let mut fetch = known();
    fetch.request.sha256 = Some("0".repeat(64));
    let words = format!("begins with {:.16} in place of 0000", sha256(content()));
    refused("the SHA-256 of the list is wrong", fetch, &words);
    let mut fetch = known();
    fetch.request.bytes = Some(7_000_000);
    let words = "has 240000 bytes, and the one that was asked for has 7000000";
    refused("the size of the list is wrong", fetch, words);
    // Only the hub was queried, and not the server to which it redirects.
    let paths: Vec<_> = server.asked().into_iter().map(|it| it.path).collect();
    let of_hub = |path: &String| path.starts_with("/owner/name/resolve/");
    assert!(paths.iter().all(of_hub) && paths.len() == 2, "{paths:?}");
    crate::check("a list that is right", &known(), crate::End::File);
}

#[test]
fn names_that_lead_out_of_their_folder_are_refused() {
    let folder = |file: &str| Destination::Folder {
        folder: "/tmp".into(),
        file: file.to_owned(),
    };
    let hub = |repository: &str, file: &str| Destination::HubCache {
        hub: "/tmp".into(),
        repository: repository.to_owned(),
        revision: COMMIT.to_owned(),
        file: file.to_owned(),
    };
    for destination in [
        folder("../x.gguf"),
        folder("a/x.gguf"),
        folder(".."),
        folder(""),
        folder("a\\x.gguf"),
        folder("C:x.gguf"),
        hub("../x", "x.gguf"),
        hub("owner", "x.gguf"),
        hub("a/b/c", "x.gguf"),
        hub("owner/name", "../../x.gguf"),
        hub("owner/name", "/x.gguf"),
    ] {
        let mut fetch = Fetch::new("http://127.0.0.1:9/model.gguf");
        fetch.request.destination = destination;
        let ended = fetch.run();
        assert!(
            ended.sentence().contains("cannot be") || ended.sentence().contains("not a repository"),
            "{ended:?}"
        );
    }
}
