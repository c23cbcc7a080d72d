//! Files that are found, opened, forecast and removed.

use super::*;

#[test]
fn files_in_the_folders_are_listed_opened_and_remembered() {
    let page = Page::open();
    let file = page.downloads().join("mine.gguf");
    fs::copy(fixture(), &file).expect("copied");
    let entry = page.found(&file);
    assert_eq!(entry.place, Some(ModelPlace::Downloads));
    assert_eq!(entry.authenticity, Authenticity::Unlisted);
    let forecast = page
        .until(|list| {
            let first = list.entries.first();
            first
                .and_then(|it| it.forecast.as_ref()?.tokens_per_second)
                .is_some()
        })
        .entries;
    assert!(
        forecast[0].recommended,
        "what newcomers are offered is first"
    );

    let choice = page.models.choice(entry.id).expect("here");
    page.chat.open_model(choice).expect("asked");
    page.opened(Some(&file));
    let stored = page.home.path().join("data/models.json");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !fs::read_to_string(&stored).is_ok_and(|it| it.contains("opened_as")) {
        assert!(Instant::now() < deadline, "it is not remembered");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_file_that_is_gone_is_an_error_and_leaves_the_list() {
    let page = Page::open();
    let file = page.downloads().join("mine.gguf");
    fs::copy(fixture(), &file).expect("copied");
    let id = page.found(&file).id;
    fs::remove_file(&file).expect("removed");
    let list = page.until(|list| !list.entries.iter().any(|it| it.id == id));
    assert!(list.entries.iter().all(|entry| entry.file.is_none()));
    for answer in [
        page.models.choice(id.clone()).map(|_| ()),
        page.models.file(id.clone()).map(|_| ()),
        page.models.removable(id).map(|_| ()),
    ] {
        let error = answer.expect_err("gone");
        assert!(
            error.to_string().contains("not on this computer"),
            "{error}"
        );
    }
}

#[test]
fn the_open_model_is_not_removed() {
    let page = Page::open();
    let [open, other] = ["open.gguf", "other.gguf"].map(|name| page.downloads().join(name));
    for file in [&open, &other] {
        fs::copy(fixture(), file).expect("copied");
    }
    page.found(&open);
    page.found(&other);
    page.chat
        .open_model(ModelChoice::File(open.clone()))
        .expect("asked");
    page.opened(Some(&open));
    let refused = page.models.removable(::models::id_of(&open));
    let error = refused.expect_err("it is open").to_string();
    assert!(error.contains("in use"), "{error}");
    let removable = page.models.removable(::models::id_of(&other));
    assert_eq!(removable.expect("it is not"), [other]);
    // The next message reopens it.
    page.chat.eject_model().expect("ejected");
    let is_ejected = |page: &Page| {
        let model = page.chat.snapshot().expect("a snapshot").model;
        matches!(model.status, ModelStatus::Ejected { .. })
    };
    while !is_ejected(&page) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let refused = page.models.removable(::models::id_of(&open));
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn a_search_does_not_undo_what_came_while_it_was_under_way() {
    let page = Page::open();
    let file = page.downloads().join("mine.gguf");
    fs::copy(fixture(), &file).expect("copied");
    let id = ::models::id_of(&file);
    let (answer, answered) = std::sync::mpsc::channel();
    let answered = Mutex::new(answered);
    let folder = SearchFolder {
        place: ModelPlace::Downloads,
        path: page.downloads(),
        depth: 0,
    };
    // The first search finds nothing, like one that had passed the folder before the file was in it.
    let find = Arc::new(move |_: &[PathBuf]| {
        let is_last = answered.lock().expect("not poisoned").recv().is_err();
        if is_last {
            vec![folder.clone()]
        } else {
            Vec::new()
        }
    });
    let added = file.clone();
    let mailbox = &page.models.0;
    mailbox.tell(move |library| library.places.folders = find);
    // The list answers while the folders are searched.
    assert!(page.models.list().expect("a list").scanning);
    let add = move |library: &mut Library| {
        let found = ::models::ModelSearch::default().file(&added, ModelPlace::Downloads);
        library.add(found.expect("a model"));
    };
    mailbox.ask(add).expect("an owner");
    page.events.lock().expect("not poisoned").clear();
    answer.send(()).expect("it is searched");
    drop(answer);
    // True if the file was in each list that was sent, the last of which ends the search.
    let lists = || -> Vec<(bool, bool)> {
        let events = page.events.lock().expect("not poisoned");
        let lists = events.iter().filter_map(|event| match event {
            ShellEvent::Models { list } => {
                let is_listed = list.entries.iter().any(|it| it.id == id);
                Some((is_listed, list.scanning))
            }
            _ => None,
        });
        lists.collect()
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while lists().last().is_none_or(|(_, scanning)| *scanning) {
        assert!(Instant::now() < deadline, "{:?}", lists());
        std::thread::sleep(Duration::from_millis(5));
    }
    let lists = lists();
    assert!(lists.iter().all(|(is_listed, _)| *is_listed), "{lists:?}");
}

#[test]
fn a_folder_that_is_set_while_a_search_is_under_way_is_searched() {
    let page = Page::open();
    let folder = page.home.path().join("new");
    let file = folder.join("mine.gguf");
    fs::create_dir_all(&folder).expect("made");
    fs::copy(fixture(), &file).expect("copied");
    let (answer, answered) = std::sync::mpsc::channel::<()>();
    let answered = Mutex::new(answered);
    let find = Arc::new(move |own: &[PathBuf]| {
        let _ = answered.lock().expect("not poisoned").recv();
        own.iter()
            .map(|path| SearchFolder {
                place: ModelPlace::Goldcrest,
                path: path.clone(),
                depth: 0,
            })
            .collect()
    });
    page.models
        .0
        .tell(move |library| library.places.folders = find);
    page.models.list().expect("a list");
    page.download_to(&folder);
    drop(answer);
    // Without another request.
    let id = ::models::id_of(&file);
    until_sent(&page, |list| list.entries.iter().any(|it| it.id == id));
    // `goldcrest models` searches it, too.
    let known = ::models::Facts::read(&page.home.path().join("data/models.json"));
    assert_eq!(known.folder(), Some(folder.as_path()));
}

#[test]
fn a_file_that_cannot_be_hashed_is_said_and_its_model_can_be_downloaded() {
    let page = Page::open();
    let gone = page.home.path().join("gone.gguf");
    let id = ::models::id_of(&gone);
    page.models.0.tell(move |library| {
        let found = ::models::ModelSearch::default().file(&fixture(), ModelPlace::Downloads);
        let mut found = found.expect("a model");
        found.stamp.bytes = library.manifest.by_file(Q4_K_M).expect("known").bytes;
        found.stamp.path.clone_from(&gone);
        found.path = gone;
        library.add(found);
    });
    until_sent(&page, |list| {
        let is_offered = list.entries[0].id == Q4_K_M;
        let file = list.entries.iter().find(|it| it.id == id);
        is_offered && file.is_some_and(|it| it.problem.is_some())
    });
}

/// Waits for such a list, without requesting one.
#[track_caller]
fn until_sent(page: &Page, wanted: impl Fn(&ModelList) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let is_wanted = |event: &ShellEvent| match event {
        ShellEvent::Models { list } => wanted(list),
        _ => false,
    };
    loop {
        let events = page.events.lock().expect("not poisoned").clone();
        if events.iter().any(is_wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "{events:#?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_estimate_is_made_for_the_threads_that_are_set() {
    let page = Page::open();
    let has_estimate = |list: &ModelList| {
        let forecast = list.entries[0].forecast.as_ref();
        forecast.is_some_and(|it| it.tokens_per_second.is_some())
    };
    page.until(has_estimate);
    let threads = engine::machine::threads(None);
    page.models.settings_changed(Settings {
        threads: Some(if threads == 1 { 2 } else { 1 }),
        ..Settings::default()
    });
    page.until(has_estimate);
}

/// Returns the forecast of the model that newcomers are offered.
fn offered(list: &ModelList) -> ::models::Forecast {
    let forecast = list.entries[0].forecast.clone();
    forecast.expect("its shape is known")
}

#[test]
fn the_context_that_a_forecast_has_does_not_grow_with_a_cache_that_is_empty() {
    let page = Page::open();
    page.opened(None);
    let before = offered(&page.models.list().expect("a list"));
    let file = page.downloads().join("mine.gguf");
    fs::copy(fixture(), &file).expect("copied");
    page.found(&file);
    page.chat
        .open_model(ModelChoice::File(file.clone()))
        .expect("asked");
    page.opened(Some(&file));
    // Its own entry has its present context, like its card.
    let list = page.until(|list| {
        let open = list.entries.iter().find(|it| it.file.is_some());
        let forecast = open.and_then(|it| it.forecast.as_ref());
        forecast.is_some_and(|it| it.context_length == 38_912)
    });
    assert_eq!(offered(&list).context_length, before.context_length);
    assert_eq!(offered(&list).memory_bytes, before.memory_bytes);
}

#[test]
fn what_fits_is_said_again_when_the_model_was_loaded_or_unloaded() {
    let page = Page::open();
    page.opened(None);
    let set = |bytes: u64| page.memory.store(bytes, Ordering::Relaxed);
    set(1 << 30);
    let list = page.models.list().expect("a list");
    assert_eq!(offered(&list).fit, ::models::Fit::DoesNotFit);
    until_sent(&page, |list| !list.scanning);
    page.events.lock().expect("not poisoned").clear();
    set(8 << 30);
    page.chat.eject_model().expect("ejected");
    // Without another request.
    until_sent(&page, |list| offered(list).fit == ::models::Fit::Fits);
    page.events.lock().expect("not poisoned").clear();
    set(1 << 30);
    page.chat.reload_model().expect("asked");
    until_sent(&page, |list| offered(list).fit == ::models::Fit::DoesNotFit);
}

#[test]
fn a_drive_that_does_not_answer_delays_no_file_on_another_and_no_download() {
    let page = Page::open();
    // Opening it waits for a writer, like a file on a network that is gone.
    let hung = page.home.path().join("hung.gguf");
    let made = std::process::Command::new("mkfifo").arg(&hung).status();
    assert!(made.expect("run").success());
    let gone = page.home.path().join("gone.gguf");
    let [hung_id, gone_id] = [&hung, &gone].map(|path| ::models::id_of(path));
    for (drive, path) in [(1, hung.clone()), (2, gone)] {
        page.models.0.tell(move |library| {
            let found = ::models::ModelSearch::default().file(&fixture(), ModelPlace::Downloads);
            let mut found = found.expect("a model");
            found.stamp.bytes = library.manifest.by_file(Q4_K_M).expect("known").bytes;
            found.stamp.path.clone_from(&path);
            (found.path, found.drive) = (path, drive);
            library.add(found);
        });
    }
    until_sent(&page, |list| {
        let of = |id: &str| list.entries.iter().find(|it| it.id == id);
        let is_hung = of(&hung_id).is_some_and(|it| {
            it.authenticity == Authenticity::Unchecked && it.verified_bytes == Some(0)
        });
        let is_said = of(&gone_id).is_some_and(|it| it.problem.is_some());
        is_hung && is_said && list.entries[0].id == Q4_K_M
    });
    // Its thread ends.
    drop(fs::OpenOptions::new().write(true).open(hung));
}

#[test]
fn a_search_that_panics_is_followed_by_another() {
    let page = Page::open();
    let file = page.downloads().join("mine.gguf");
    fs::copy(fixture(), &file).expect("copied");
    let panics = AtomicBool::new(true);
    let folder = SearchFolder {
        place: ModelPlace::Downloads,
        path: page.downloads(),
        depth: 0,
    };
    let find = Arc::new(move |_: &[PathBuf]| {
        assert!(!panics.swap(false, Ordering::Relaxed), "as if by a bug");
        vec![folder.clone()]
    });
    page.models
        .0
        .tell(move |library| library.places.folders = find);
    page.found(&file);
}

#[test]
fn a_rate_is_measured_under_the_settings_of_its_answer_only() {
    let page = Page::open();
    let file = page.downloads().join("mine.gguf");
    fs::copy(fixture(), &file).expect("copied");
    page.found(&file);
    page.chat
        .open_model(ModelChoice::File(file.clone()))
        .expect("asked");
    page.opened(Some(&file));
    let stats = chat::AnswerStats {
        figures: engine::Stats {
            tokens: 100,
            tokens_per_second: 12.5,
            ..engine::Stats::default()
        },
        model: "tiny".into(),
        device: "CPU".into(),
    };
    let mut beside_another = stats.clone();
    beside_another.figures.shared = true;
    beside_another.figures.tokens_per_second = 5.0;
    for stats in [stats, beside_another] {
        page.models.0.tell(move |library| library.answered(&stats));
    }
    let id = ::models::id_of(&file);
    let is_measured = |list: &ModelList| {
        let entry = list.entries.iter().find(|it| it.id == id);
        let forecast = entry.and_then(|it| it.forecast.as_ref());
        forecast.is_some_and(|it| it.measured && it.tokens_per_second == Some(12.5))
    };
    page.until(is_measured);
    page.models.settings_changed(Settings {
        device: "cpu".into(),
        ..Settings::default()
    });
    assert!(!is_measured(&page.models.list().expect("a list")));
    page.models.settings_changed(Settings::default());
    assert!(is_measured(&page.models.list().expect("a list")));
}
