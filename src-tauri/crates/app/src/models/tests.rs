//! The models page over a real chat, a scripted model and a shell script in place of `goldcrest-fetch`.

#![cfg(unix)]

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::models::{Authenticity, ModelEntry, ModelPlace, SearchFolder};
use chat::{Device, ModelHost, ModelInfo, ModelOptions, ModelStatus, Opening};
use download::DownloadState;
use engine::{Conversation, Event, Finished, ModelRequest, Prompt, RequestId, Sampling};
use store::Store;
use tempfile::TempDir;

use super::*;

mod downloads;
mod library;

const Q4_K_M: &str = "SmolLM3-Q4_K_M.gguf";

/// A host that opens every requested model.
#[derive(Default)]
pub(crate) struct AnyModel(Option<ModelInfo>);

impl ModelHost for AnyModel {
    fn open(
        &mut self,
        choice: &ModelChoice,
        _: &ModelOptions,
        _: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure> {
        let file = match choice {
            ModelChoice::BundledModel => None,
            ModelChoice::File(file) => Some(file.to_string_lossy().into_owned()),
        };
        let info = ModelInfo {
            name: "tiny".into(),
            bundled_model: file.is_none(),
            file,
            quantisation: "Q4_K_M".into(),
            file_bytes: 1_915_305_312,
            context_length: 38_912,
            context_note: None,
            context_can_grow: false,
            longest_token: 9,
            // Size of the cache of a full context; memory is taken only as it fills.
            kv_bytes: 38_912 * 73_728,
            fingerprint: "f".into(),
            chat_format: "SmolLM3".into(),
            can_think: true,
            sampling: Sampling::default().into(),
            device: Device {
                on_gpu: false,
                name: "CPU".into(),
                reason: "It is a test.".into(),
                report: None,
            },
            can_call_tools: true,
        };
        Ok(self.0.insert(info).clone())
    }

    fn info(&self) -> Option<&ModelInfo> {
        self.0.as_ref()
    }

    fn close(&mut self) {
        self.0 = None;
    }

    fn prompt(&mut self, _: &Conversation, _: &AtomicBool) -> Result<Prompt, Failure> {
        Err(Failure::other("it writes nothing"))
    }

    fn submit(&mut self, _: ModelRequest) -> Result<(), Failure> {
        Err(Failure::other("it writes nothing"))
    }

    fn step(
        &mut self,
        _: &AtomicBool,
        _: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Vec<(RequestId, Result<Finished, Failure>)> {
        Vec::new()
    }
}

/// The page's side.
struct Page {
    models: Models,
    chat: Chat,
    events: Arc<Mutex<Vec<ShellEvent>>>,
    home: TempDir,
    /// Bytes of free memory.
    memory: Arc<AtomicU64>,
}

impl Drop for Page {
    fn drop(&mut self) {
        self.chat.shutdown();
    }
}

fn fixture() -> PathBuf {
    testing::tiny_model()
}

impl Page {
    fn open() -> Page {
        Page::at(tempfile::tempdir().expect("made"))
    }

    /// Starts the app over a home folder.
    fn at(home: TempDir) -> Page {
        let events: Arc<Mutex<Vec<ShellEvent>>> = Arc::default();
        let memory = Arc::new(AtomicU64::new(8 << 30));
        let (models, inbox) = Models::new();
        let observer = models.clone();
        let on_event = move |event| observer.observe(&event);
        let store = Store::in_memory().expect("a store");
        let chat = Chat::start(store, Box::new(AnyModel::default()), Box::new(on_event));
        let chat = chat.expect("a chat");
        let downloads = home.path().join("Downloads");
        fs::create_dir_all(&downloads).expect("made");
        let places = ModelPlaces {
            data: home.path().join("data"),
            hub: home.path().join("hub"),
            endpoint: "https://huggingface.co".into(),
            folders: Arc::new(move |own| {
                let own = own.iter().map(|path| (ModelPlace::Goldcrest, path));
                let all = own.chain([(ModelPlace::Downloads, &downloads)]);
                all.map(|(place, path)| SearchFolder {
                    place,
                    path: path.clone(),
                    depth: 2,
                })
                .collect()
            }),
            bundled_model: None,
            fetch: Box::new(|| Ok("/bin/false".into())),
            memory: {
                let memory = Arc::clone(&memory);
                Box::new(move |_| Some(memory.load(Ordering::Relaxed)))
            },
            bandwidth: |_| 40e9,
        };
        let settings = chat.snapshot().expect("a snapshot").settings;
        let to_page = Arc::clone(&events);
        let on_event = move |event| to_page.lock().expect("not poisoned").push(event);
        let started = inbox.start(&models, &chat, settings, places, on_event);
        started.expect("a thread");
        Page {
            models,
            chat,
            events,
            home,
            memory,
        }
    }

    /// Replaces `goldcrest-fetch` with this line of shell, which has read its request.
    fn fetch_by(&self, line: &str) {
        use std::os::unix::fs::PermissionsExt;
        let program = self.home.path().join("fetch");
        fs::write(&program, format!("#!/bin/sh\nread request\n{line}\n")).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("set");
        let fetch = Box::new(move || Ok(program.clone()));
        self.models
            .0
            .tell(move |library| library.places.fetch = fetch);
    }

    /// Likewise, with each start appending its request to `asked`.
    fn fetch_noting(&self, line: &str) {
        let asked = self.home.path().join("asked");
        let note = format!("echo \"$request\" >> '{}'", asked.display());
        self.fetch_by(&format!("{note}; {line}"));
    }

    /// Returns the requests of the children that were started.
    fn asked(&self) -> Vec<download::DownloadRequest> {
        let text = fs::read_to_string(self.home.path().join("asked")).unwrap_or_default();
        let request = |line: &str| serde_json::from_str(line).expect("a request");
        text.lines().map(request).collect()
    }

    fn download_to(&self, folder: &Path) {
        self.models.settings_changed(Settings {
            download_folder: Some(folder.display().to_string()),
            ..Settings::default()
        });
    }

    fn downloads(&self) -> PathBuf {
        self.home.path().join("Downloads")
    }

    /// Waits until the list is as wanted, and returns it.
    #[track_caller]
    fn until(&self, wanted: impl Fn(&ModelList) -> bool) -> ModelList {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let list = self.models.list().expect("a list");
            if wanted(&list) {
                return list;
            }
            assert!(Instant::now() < deadline, "{list:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn found(&self, path: &Path) -> ModelEntry {
        let id = ::models::id_of(path);
        let list = self.until(|list| list.entries.iter().any(|it| it.id == id));
        let entry = list.entries.into_iter().find(|entry| entry.id == id);
        entry.expect("it was there")
    }

    /// Waits until this file is open.
    #[track_caller]
    fn opened(&self, file: Option<&Path>) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let file = file.map(::models::id_of);
        loop {
            let model = self.chat.snapshot().expect("a snapshot").model;
            let ready = model.status.ready().map(|info| info.file.clone());
            if ready == Some(file.clone()) {
                return;
            }
            assert!(Instant::now() < deadline, "{model:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn an_unknown_model_and_a_bad_address_are_refused_with_a_sentence() {
    let page = Page::open();
    for (answer, words) in [
        (page.models.get("nothing.gguf".into()), "list"),
        (
            page.models.get_address("ftp://example.org/a.gguf".into()),
            "https://",
        ),
        (page.models.get_address("hello".into()), "address"),
        (
            page.models.get_address("https://example.org/a.zip".into()),
            "GGUF",
        ),
        (
            page.models.get_address("https://example.org/a.gguf".into()),
            "only files of Hugging Face",
        ),
    ] {
        let error = answer.expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    }
    // Neither leaves anything in the list.
    let list = page.models.list().expect("a list");
    assert!(list.entries.iter().all(|entry| entry.download.is_none()));
    page.models.pause("nothing".into()).expect("no harm");
    page.models
        .drop_download("nothing".into())
        .expect("no harm");
}

#[test]
fn a_program_that_is_missing_is_said_and_nothing_is_listed() {
    let home = tempfile::tempdir().expect("made");
    let page = Page::at(home);
    let missing = Box::new(|| Err(io::Error::new(io::ErrorKind::NotFound, "it is missing")));
    page.models
        .0
        .tell(move |library| library.places.fetch = missing);
    let error = page.models.get(Q4_K_M.into()).expect_err("it is missing");
    assert!(
        error.to_string().contains("did not start: it is missing"),
        "{error}"
    );
    let list = page.models.list().expect("a list");
    assert!(list.entries.iter().all(|entry| entry.download.is_none()));
}

#[test]
fn a_child_that_fails_leaves_a_download_that_can_be_resumed_or_dropped() {
    let page = Page::open();
    page.models.get(Q4_K_M.into()).expect("started");
    let failed = |list: &ModelList| {
        let state = list.entries[0].download.as_ref();
        matches!(state, Some(DownloadState::Failed { message, .. }) if message.contains("resume"))
    };
    page.until(failed);
    let stored = page.home.path().join("data/downloads.json");
    assert!(fs::read_to_string(&stored).expect("kept").contains(Q4_K_M));
    page.models.get(Q4_K_M.into()).expect("resumed");
    page.until(failed);
    page.models.drop_download(Q4_K_M.into()).expect("dropped");
    page.until(|list| list.entries[0].download.is_none());
    assert_eq!(fs::read_to_string(stored).expect("kept"), "[]");
}

/// Returns the partial file of the known model in a folder of the user.
fn incomplete(folder: &Path) -> PathBuf {
    let manifest = ::models::Manifest::embedded();
    let hash = &manifest.by_file(Q4_K_M).expect("known").sha256;
    folder.join(format!(".{Q4_K_M}.{}.incomplete", &hash[..8]))
}

#[test]
fn a_download_that_was_interrupted_is_paused_after_a_start() {
    let home = tempfile::tempdir().expect("made");
    let manifest = ::models::Manifest::embedded();
    let known = manifest.by_file(Q4_K_M).expect("known");
    let folder = home.path().join("Downloads");
    let request = |file: &str, folder: &Path| download::DownloadRequest {
        url: known.address(download::HUB).expect("an address"),
        destination: download::Destination::Folder {
            folder: folder.to_owned(),
            file: file.to_owned(),
        },
        bytes: Some(known.bytes),
        sha256: Some(known.sha256.clone()),
    };
    let stored = serde_json::json!([
        { "id": Q4_K_M, "request": request(Q4_K_M, &folder) },
        { "id": "https://example.org/b.gguf", "request": request("b.gguf", &folder) },
    ]);
    for made in ["data", "Downloads"] {
        fs::create_dir_all(home.path().join(made)).expect("made");
    }
    fs::write(home.path().join("data/downloads.json"), stored.to_string()).expect("written");
    let incomplete = incomplete(&folder);
    fs::write(&incomplete, [7; 1000]).expect("written");
    let page = Page::at(home);
    let paused = DownloadState::Paused {
        done: 1000,
        total: Some(known.bytes),
    };
    // The other one never received a byte.
    page.until(|list| {
        let downloads = list.entries.iter().filter_map(|it| it.download.as_ref());
        downloads.collect::<Vec<_>>() == [&paused]
    });
    page.models.drop_download(Q4_K_M.into()).expect("dropped");
    page.until(|_| !incomplete.exists());
}

#[test]
fn damaged_files_of_the_list_are_no_harm() {
    let home = tempfile::tempdir().expect("made");
    fs::create_dir_all(home.path().join("data")).expect("made");
    for file in ["downloads.json", "models.json"] {
        fs::write(home.path().join("data").join(file), "{\"\u{0}").expect("written");
    }
    let page = Page::at(home);
    let list = page.models.list().expect("a list");
    assert!(list.entries[0].recommended && list.entries[0].download.is_none());
    // They are replaced.
    let file = arrive(&page, &fixture(), "new.gguf");
    page.found(&file);
    let known = ::models::Facts::read(&page.home.path().join("data/models.json"));
    let stamp = ::models::FileStamp::of(&file).expect("there");
    assert!(known.of(&stamp).is_some());
}

/// Simulates the download of this content.
fn arrive(page: &Page, content: &Path, name: &str) -> PathBuf {
    let file = page.downloads().join(name);
    let done = serde_json::json!({
        "event": "done", "file": file, "sha256": "a".repeat(64), "bytes": 1,
    });
    page.fetch_by(&format!(
        "cp '{}' '{}'; echo '{done}'",
        content.display(),
        file.display()
    ));
    page.models.get(Q4_K_M.into()).expect("started");
    file
}

#[track_caller]
fn downloaded(page: &Page) -> (String, bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let events = page.events.lock().expect("not poisoned").clone();
        let found = events.iter().find_map(|event| match event {
            ShellEvent::Downloaded { file, opens, .. } => Some((file.clone(), *opens)),
            _ => None,
        });
        if let Some(found) = found {
            return found;
        }
        assert!(Instant::now() < deadline, "{events:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_downloaded_model_takes_the_place_of_the_bundled_model() {
    let page = Page::open();
    page.opened(None);
    let file = arrive(&page, &fixture(), "new.gguf");
    assert_eq!(downloaded(&page), (::models::id_of(&file), true));
    page.opened(Some(&file));
    let entry = page.found(&file);
    assert_eq!(entry.download, None);
}

#[test]
fn a_downloaded_model_does_not_take_the_place_of_one_that_the_user_opened() {
    let page = Page::open();
    let mine = page.downloads().join("mine.gguf");
    fs::copy(fixture(), &mine).expect("copied");
    page.chat
        .open_model(ModelChoice::File(mine.clone()))
        .expect("asked");
    page.opened(Some(&mine));
    let file = arrive(&page, &fixture(), "new.gguf");
    assert_eq!(downloaded(&page), (::models::id_of(&file), false));
    page.found(&file);
    page.opened(Some(&mine));
}

#[test]
fn a_download_that_is_no_model_is_said_and_not_opened() {
    let page = Page::open();
    page.opened(None);
    let text = page.home.path().join("text");
    fs::write(&text, "no model").expect("written");
    arrive(&page, &text, "new.gguf");
    page.until(|list| {
        let states = list.entries.iter().filter_map(|it| it.download.as_ref());
        states.into_iter().any(|state| {
            matches!(state, DownloadState::Failed { message, .. } if message.contains("cannot run it"))
        })
    });
    page.opened(None);
}

#[test]
fn a_download_shows_its_progress_is_paused_and_is_resumed() {
    let page = Page::open();
    let progress = r#"{"event":"progress","done":500,"total":1000,"bytesPerSecond":100.0}"#;
    let waiting = r#"{"event":"waiting","message":"The proxy refused it.","seconds":30}"#;
    let paused = r#"{"event":"paused","done":600}"#;
    page.fetch_by(&format!(
        "echo '{progress}'; sleep 0.1; echo '{waiting}'; read pause; echo '{paused}'"
    ));
    page.models.get(Q4_K_M.into()).expect("started");
    let running = DownloadState::Running {
        done: 500,
        total: Some(1000),
        bytes_per_second: Some(100.0),
        seconds_left: Some(5),
    };
    // The reason for the wait is shown, too.
    let waiting = DownloadState::Waiting {
        done: 500,
        total: Some(1000),
        message: "The proxy refused it.".into(),
        seconds: 30,
    };
    page.until(|list| list.entries[0].download.as_ref() == Some(&waiting));
    // A second call does not start a second child.
    page.models.get(Q4_K_M.into()).expect("it goes on");
    page.models.pause(Q4_K_M.into()).expect("paused");
    let paused = DownloadState::Paused {
        done: 600,
        total: Some(1000),
    };
    page.until(|list| list.entries[0].download.as_ref() == Some(&paused));
    let events = page.events.lock().expect("not poisoned").clone();
    let sent = |wanted: &DownloadState| {
        events.iter().any(|event| match event {
            ShellEvent::Download { download, .. } => download.as_ref() == Some(wanted),
            _ => false,
        })
    };
    assert!([running, waiting, paused].iter().all(sent), "{events:#?}");
}

#[test]
fn a_running_download_that_is_dropped_is_removed_once_its_child_has_ended() {
    let page = Page::open();
    let folder = page.downloads();
    let settings = Settings {
        download_folder: Some(folder.display().to_string()),
        ..Settings::default()
    };
    page.models.settings_changed(settings);
    let incomplete = incomplete(&folder);
    let write = format!("echo more > '{}'", incomplete.display());
    // It writes once more when it is paused.
    page.fetch_by(&format!(
        r#"{write}; read pause; {write}; echo '{{"event":"paused","done":5}}'"#
    ));
    page.models.get(Q4_K_M.into()).expect("started");
    page.until(|_| incomplete.exists());
    page.models.drop_download(Q4_K_M.into()).expect("dropped");
    page.until(|list| list.entries[0].download.is_none() && !incomplete.exists());
}

#[test]
fn what_is_downloaded_counts_as_verified_without_another_hash() {
    let page = Page::open();
    let file = arrive(&page, &fixture(), "new.gguf");
    downloaded(&page);
    page.found(&file);
    let known = fs::read_to_string(page.home.path().join("data/models.json")).expect("kept");
    assert!(known.contains(&"a".repeat(64)), "{known}");
}
