//! Downloads that failed, are refused, dropped, requested again, or without their folder.

use super::*;

#[test]
fn the_hubs_cache_as_the_folder_of_downloads_is_used_as_that_cache() {
    let page = Page::open();
    let hub = page.home.path().join("hub");
    page.download_to(&hub);
    page.fetch_noting("read pause");
    page.models.get(Q4_K_M.into()).expect("started");
    page.until(|_| !page.asked().is_empty());
    let destination = &page.asked()[0].destination;
    assert!(
        matches!(destination, download::Destination::HubCache { hub: it, .. } if *it == hub),
        "{destination:?}"
    );
}

#[test]
fn a_download_that_cannot_be_resumed_begins_again_with_the_settings_of_now() {
    let page = Page::open();
    let progress = r#"{"event":"progress","done":500,"total":1000,"bytesPerSecond":null}"#;
    let failed = r#"{"event":"failed","message":"It is gone.","canResume":false}"#;
    page.fetch_noting(&format!("echo '{progress}'; echo '{failed}'"));
    page.models.get(Q4_K_M.into()).expect("started");
    let failed = |list: &ModelList| match &list.entries[0].download {
        Some(DownloadState::Failed { done, .. }) => *done == 0,
        _ => false,
    };
    page.until(failed);
    page.download_to(&page.downloads());
    page.models.get(Q4_K_M.into()).expect("started");
    page.until(|list| page.asked().len() == 2 && failed(list));
    let asked = page.asked();
    assert!(matches!(
        asked[0].destination,
        download::Destination::HubCache { .. }
    ));
    let folder = download::Destination::Folder {
        folder: page.downloads(),
        file: Q4_K_M.to_owned(),
    };
    assert_eq!(asked[1].destination, folder);
}

#[test]
fn the_address_of_a_known_model_is_that_model_and_of_one_name_there_is_one_download() {
    let page = Page::open();
    page.download_to(&page.downloads());
    page.fetch_noting("read pause");
    let manifest = ::models::Manifest::embedded();
    let known = manifest.by_file(Q4_K_M).expect("known");
    let address = known.address(download::HUB).expect("an address");
    page.models.get_address(address).expect("started");
    let address = |owner: &str| format!("https://huggingface.co/{owner}/it/resolve/main/a.gguf");
    page.models.get_address(address("me")).expect("started");
    let refused = page.models.get_address(address("you"));
    let error = refused.expect_err("the same file").to_string();
    assert!(error.contains("a.gguf"), "{error}");
    let list = page.until(|_| page.asked().len() == 2);
    let downloads = list.entries.iter().filter(|it| it.download.is_some());
    let ids: Vec<_> = downloads.map(|it| it.id.clone()).collect();
    assert_eq!(ids, [Q4_K_M.to_owned(), address("me")]);
    assert!(page.asked()[0].sha256.is_some(), "as the manifest has it");
}

#[test]
fn a_download_that_is_wanted_after_all_starts_when_its_child_has_ended() {
    let page = Page::open();
    let paused = r#"{"event":"paused","done":0}"#;
    page.fetch_noting(&format!("read pause; sleep 0.3; echo '{paused}'"));
    page.models.get(Q4_K_M.into()).expect("started");
    page.until(|_| page.asked().len() == 1);
    page.models.drop_download(Q4_K_M.into()).expect("dropped");
    let list = page.models.list().expect("a list");
    assert_eq!(list.entries[0].download, None);
    page.models.get(Q4_K_M.into()).expect("started");
    page.until(|list| {
        let state = list.entries[0].download.as_ref();
        page.asked().len() == 2 && matches!(state, Some(DownloadState::Running { .. }))
    });
}

#[test]
fn what_cannot_be_removed_is_said_and_stays_listed() {
    let page = Page::open();
    page.download_to(&page.downloads());
    let paused = r#"{"event":"paused","done":5}"#;
    page.fetch_noting(&format!("echo '{paused}'"));
    page.models.get(Q4_K_M.into()).expect("started");
    page.until(|list| matches!(list.entries[0].download, Some(DownloadState::Paused { .. })));
    let paths = download::DownloadPaths::of(&page.asked()[0]).expect("all is known");
    // No file can be removed there.
    fs::create_dir(paths.incomplete()).expect("made");
    page.models.drop_download(Q4_K_M.into()).expect("asked");
    page.until(|list| match &list.entries[0].download {
        Some(DownloadState::Failed { message, .. }) => message.contains("could not be removed"),
        _ => false,
    });
}

#[test]
fn a_download_on_a_drive_that_is_not_there_stays() {
    let home = tempfile::tempdir().expect("made");
    let url = "https://huggingface.co/me/it/resolve/main/b.gguf";
    let drive = home.path().join("drive");
    let request = download::DownloadRequest {
        url: url.to_owned(),
        destination: download::Destination::Folder {
            folder: drive.clone(),
            file: "b.gguf".to_owned(),
        },
        bytes: Some(7),
        sha256: Some("a".repeat(64)),
    };
    let stored = serde_json::json!([{ "id": url, "request": request }]);
    fs::create_dir_all(home.path().join("data")).expect("made");
    let file = home.path().join("data/downloads.json");
    fs::write(&file, stored.to_string()).expect("written");
    let page = Page::at(home);
    let is_listed = |list: &ModelList| list.entries.iter().any(|it| it.id == url);
    // Long enough for the check of the disk.
    for _ in 0..20 {
        assert!(is_listed(&page.models.list().expect("a list")));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(fs::read_to_string(file).expect("kept").contains(url));
}

#[test]
fn another_state_is_sent_at_once() {
    let page = Page::open();
    let progress = r#"{"event":"progress","done":500,"total":500,"bytesPerSecond":null}"#;
    let verifying = r#"{"event":"verifying","done":0,"total":500}"#;
    page.fetch_by(&format!(
        "echo '{progress}'; echo '{verifying}'; read pause"
    ));
    page.models.get(Q4_K_M.into()).expect("started");
    let verifying = DownloadState::Verifying {
        done: 0,
        total: 500,
    };
    page.until(|list| list.entries[0].download.as_ref() == Some(&verifying));
    let events = page.events.lock().expect("not poisoned").clone();
    let is_sent = events.iter().any(|event| match event {
        ShellEvent::Download { download, .. } => download.as_ref() == Some(&verifying),
        _ => false,
    });
    assert!(is_sent, "{events:#?}");
}

#[test]
fn downloads_into_a_folder_that_moves_are_paused_and_none_begins() {
    let page = Page::open();
    page.download_to(&page.downloads());
    page.fetch_noting("read pause; echo '{\"event\":\"paused\",\"done\":5}'");
    page.models.get(Q4_K_M.into()).expect("started");
    page.until(|_| !page.asked().is_empty());
    let home = page.home.path().canonicalize().expect("there");
    let held = page.models.hold_downloads(&home, &mut || true);
    let held = held.expect("an owner").expect("they have ended");
    page.until(|list| matches!(list.entries[0].download, Some(DownloadState::Paused { .. })));
    let refused = page.models.get(Q4_K_M.into()).expect_err("refused");
    assert!(refused.message.contains("is being moved"), "{refused}");
    drop(held);
    page.models.get(Q4_K_M.into()).expect("started");
    page.until(|_| page.asked().len() == 2);
    let elsewhere = page
        .models
        .hold_downloads(&home.join("other"), &mut || false);
    assert!(elsewhere.expect("an owner").is_some(), "it goes on");
}

#[test]
fn a_failed_download_is_there_with_its_reason_after_a_start() {
    let failed = |done: u64, message: &str| {
        let event = serde_json::json!({ "event": "failed", "message": message, "canResume": true });
        let mut page = Page::open();
        let folder = page.downloads();
        page.download_to(&folder);
        page.fetch_by(&format!("echo '{event}'"));
        page.models.get(Q4_K_M.into()).expect("started");
        let is_failed = |list: &ModelList| {
            let state = list.entries[0].download.as_ref();
            matches!(state, Some(DownloadState::Failed { .. }))
        };
        page.until(is_failed);
        if done > 0 {
            fs::write(
                incomplete(&folder),
                vec![7; usize::try_from(done).expect("few")],
            )
            .expect("written");
        }
        let home = tempfile::tempdir().expect("made");
        Page::at(std::mem::replace(&mut page.home, home))
    };
    let manifest = ::models::Manifest::embedded();
    let total = manifest.by_file(Q4_K_M).map(|known| known.bytes);
    // By the partial file, none of which may be there.
    for done in [1000, 0] {
        let page = failed(done, "The server has no such file.");
        let message = "The server has no such file.".to_owned();
        let state = DownloadState::Failed {
            done,
            total,
            message,
        };
        page.until(|list| list.entries[0].download.as_ref() == Some(&state));
        page.fetch_by("sleep 60");
        page.models.get(Q4_K_M.into()).expect("resumed");
        page.until(|list| {
            matches!(
                list.entries[0].download,
                Some(DownloadState::Running { .. })
            )
        });
        page.models.drop_download(Q4_K_M.into()).expect("dropped");
        page.until(|list| list.entries[0].download.is_none());
        let stored = page.home.path().join("data/downloads.json");
        assert_eq!(fs::read_to_string(stored).expect("kept"), "[]");
    }
}
