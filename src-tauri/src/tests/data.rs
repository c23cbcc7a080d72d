//! Exports, imports, backups and the data folder through Tauri's own dispatch.

use app::wire::TransferKind;

use super::*;

/// Makes a window over a store on a file.
fn on_file() -> Window {
    let home = tempfile::tempdir().expect("a folder");
    let database = home.path().join("goldcrest.db");
    let store = Store::open(&database).expect("made");
    let model = NoModel::default();
    Window::over(store, home, Box::new(model.clone()), model)
}

/// Subscribes to the events of transfers.
fn listen(window: &Window) -> mpsc::Receiver<Value> {
    let (to_test, events) = mpsc::channel();
    let channel = Channel::new(move |body| {
        let event: Value = body.deserialize().expect("JSON");
        if event["type"] == "transfer" {
            let _ = to_test.send(event["transfer"].clone());
        }
        Ok(())
    });
    window.app.state::<Events>().send_to(channel);
    events
}

/// Returns the final state of a transfer.
fn ended(events: &mpsc::Receiver<Value>) -> Value {
    loop {
        let transfer = events
            .recv_timeout(Duration::from_secs(20))
            .expect("it ends");
        if transfer["state"]["name"] != "running" {
            return transfer["state"].clone();
        }
    }
}

fn say(window: &Window, text: &str) -> Value {
    let arguments = json!({ "id": null, "text": text, "thinking": false });
    window.invoke("send", arguments).expect("sent")["chat"]["id"].clone()
}

fn picks(window: &Window, path: &Path) {
    *window.desktop.picks.lock().expect("not poisoned") = Some(path.to_owned());
}

/// Takes what was opened in other programs.
fn opened(window: &Window) -> Vec<String> {
    std::mem::take(&mut *window.desktop.opened.lock().expect("not poisoned"))
}

#[test]
fn chats_go_to_a_file_and_come_from_it() {
    let window = on_file();
    let events = listen(&window);
    let id = say(&window, "How heavy?");
    let out = tempfile::tempdir().expect("made");
    let export = |chats: Value, format: &str| {
        let export = json!({ "chats": chats, "format": format, "thinking": true });
        window
            .invoke("export_chats", json!({ "what": export }))
            .expect("begun")
    };
    assert_eq!(export(json!(null), "jsonl"), false, "no file was chosen");
    for (chats, format, name) in [
        (json!([id]), "markdown", "How heavy.md"),
        (json!([id]), "html", "How heavy.html"),
    ] {
        picks(&window, out.path());
        assert_eq!(export(chats, format), true);
        let state = ended(&events);
        assert_eq!(
            (&state["name"], &state["chats"]),
            (&json!("exported"), &json!(1))
        );
        assert!(out.path().join(name).exists(), "{name}");
        window
            .invoke("show_exported", json!({ "file": state["file"] }))
            .expect("it is shown");
        let shown = out.path().join(name).display().to_string();
        assert_eq!(opened(&window), [shown]);
    }
    picks(&window, out.path());
    export(json!(null), "jsonl");
    let file = PathBuf::from(ended(&events)["file"].as_str().expect("a path"));

    assert_eq!(window.invoke("import_chats", json!({})), Ok(json!(false)));
    picks(&window, &file);
    assert_eq!(window.invoke("import_chats", json!({})), Ok(json!(true)));
    let state = ended(&events);
    assert_eq!(
        (&state["added"], &state["message"]),
        (
            &json!(false),
            &json!("There was nothing new to import. 1 chat was here already.")
        )
    );
    window
        .invoke("delete_chats", json!({ "ids": [id] }))
        .expect("deleted");
    picks(&window, &file);
    window.invoke("import_chats", json!({})).expect("begun");
    assert_eq!(ended(&events)["added"], true);
    let chats = window.invoke("snapshot", json!({})).expect("a snapshot")["chats"].clone();
    assert_eq!(chats[0]["title"], "How heavy?");

    picks(&window, &out.path().join("none.json"));
    window.invoke("import_chats", json!({})).expect("begun");
    let state = ended(&events);
    assert_eq!(state["name"], "failed");
    assert!(
        state["message"]
            .as_str()
            .expect("words")
            .contains("Nothing was imported.")
    );
    let printed = window.invoke(
        "chat_as_html",
        json!({ "id": chats[0]["id"], "thinking": true }),
    );
    assert!(
        printed
            .expect("HTML")
            .as_str()
            .expect("text")
            .contains("How heavy?")
    );
    window.invoke("print_page", json!({})).expect("printed");
    assert_eq!(
        *window.desktop.opened.lock().expect("not poisoned"),
        ["print"]
    );
}

#[test]
fn a_temporary_chat_is_exported_from_memory_with_its_preset() {
    let window = on_file();
    let events = listen(&window);
    let view = window
        .invoke("begin_temporary_chat", json!({}))
        .expect("begun");
    let id = &view["chat"]["id"];
    let arguments = json!({ "id": id, "text": "Secret", "thinking": false });
    window.invoke("send", arguments).expect("sent");
    let kept = say(&window, "Kept");
    let chat = window.app.state::<Chat>();
    let preset = |name: &str| chat::PresetContent {
        name: name.to_owned(),
        instructions: "Briefly.".to_owned(),
        thinking: None,
        sampling: chat::SamplingSettings::default(),
        tools: None,
    };
    let added = chat.add_presets(vec![preset("Coder"), preset("Poet")]);
    let chosen = chat::ChatPreset {
        preset: added.expect("added").first().copied(),
        instructions: String::new(),
        tools: None,
    };
    let temporary = serde_json::from_value(id.clone()).expect("an id");
    chat.choose_preset(Some(temporary), chosen).expect("chosen");
    let kept_id = serde_json::from_value(kept.clone()).expect("an id");
    chat.create_folder("Work", vec![kept_id]).expect("created");

    let out = tempfile::tempdir().expect("made");
    picks(&window, out.path());
    let export = json!({ "chats": [id, kept], "format": "jsonl", "thinking": true });
    window
        .invoke("export_chats", json!({ "what": export }))
        .expect("begun");
    let file = ended(&events)["file"].as_str().expect("a path").to_owned();
    let written = std::fs::read_to_string(file).expect("written");
    for part in [
        "Secret",
        "Kept",
        "\"preset\":\"Coder\"",
        "\"folder\":\"Work\"",
    ] {
        assert!(written.contains(part), "{part}: {written}");
    }
    let begins = |begin: &str| {
        written
            .lines()
            .filter(|line| line.starts_with(begin))
            .count()
    };
    assert_eq!((begins("{\"preset\":"), begins("{\"folder\":")), (1, 1));
}

#[test]
fn files_that_are_dropped_are_imported() {
    let window = on_file();
    let events = listen(&window);
    let folder = tempfile::tempdir().expect("made");
    let file = folder.path().join("a.conversation.json");
    let chat = json!({ "name": "Dropped", "messages": [{ "role": "user", "content": "Hi" }] });
    std::fs::write(&file, chat.to_string()).expect("written");
    crate::given_files::take_drop(window.app.handle(), vec![file]);
    assert_eq!(ended(&events)["added"], true);
    let asked = window.model.asked.lock().expect("not poisoned");
    let is_file = |choice: &ModelChoice| matches!(choice, ModelChoice::File(_));
    assert!(!asked.iter().any(is_file), "it is no model");
}

#[test]
fn a_drop_while_something_runs_is_refused_with_words_and_models_and_chats_are_dropped_together() {
    let window = on_file();
    let events = listen(&window);
    let folder = tempfile::tempdir().expect("made");
    let file = folder.path().join("a.conversation.json");
    let chat = json!({ "name": "Dropped", "messages": [{ "role": "user", "content": "Hi" }] });
    std::fs::write(&file, chat.to_string()).expect("written");
    let (finish, waits) = mpsc::channel::<()>();
    let transfers = window.app.state::<Transfers>();
    let begun = transfers.start(
        TransferKind::Export,
        &window.app.state::<Events>(),
        move |_| {
            let _ = waits.recv();
            Ok(None)
        },
    );
    begun.expect("begun");
    crate::given_files::take_drop(window.app.handle(), vec![file.clone()]);
    let state = ended(&events);
    assert_eq!(state["name"], "refused");
    let message = state["message"].as_str().expect("words");
    assert!(message.contains("still running"), "{message}");
    drop(finish);
    assert_eq!(ended(&events)["name"], "cancelled");

    let model = folder.path().join("a.gguf");
    crate::given_files::take_drop(window.app.handle(), vec![model.clone(), file]);
    assert_eq!(ended(&events)["added"], true);
    let asked = window.model.asked.lock().expect("not poisoned");
    assert!(asked.contains(&ModelChoice::File(model)), "{asked:?}");
}

#[test]
fn an_import_that_is_busy_is_cancelled_at_once_and_the_next_one_is_taken() {
    let window = on_file();
    let events = listen(&window);
    let folder = tempfile::tempdir().expect("made");
    // One chat with much skipped content, which takes a while.
    let skipped = "0,".repeat(60 << 20);
    let slow = folder.path().join("slow.json");
    let chats = format!("[{{\"name\":\"x\",\"other\":[{skipped}0],\"chat_messages\":[]}}]");
    std::fs::write(&slow, chats).expect("written");
    picks(&window, &slow);
    window.invoke("import_chats", json!({})).expect("begun");
    std::thread::sleep(Duration::from_millis(500));
    let cancelled = std::time::Instant::now();
    window.invoke("cancel_transfer", json!({})).expect("asked");
    assert_eq!(ended(&events)["name"], "cancelled");
    let took = cancelled.elapsed();
    assert!(took < Duration::from_millis(200), "{took:?}");
    let honest = folder.path().join("a.conversation.json");
    let chat = json!({ "name": "Next", "messages": [{ "role": "user", "content": "Hi" }] });
    std::fs::write(&honest, chat.to_string()).expect("written");
    picks(&window, &honest);
    window.invoke("import_chats", json!({})).expect("begun");
    assert_eq!(ended(&events)["added"], true);
}

#[test]
fn nothing_is_exported_over_the_chats() {
    let window = on_file();
    say(&window, "How heavy?");
    let folders = window.app.state::<app::folders::Folders>();
    picks(&window, &folders.data);
    let export = json!({ "chats": null, "format": "jsonl", "thinking": true, "name": "goldcrest" });
    let refused = window.invoke("export_chats", json!({ "what": export }));
    let message = refused.expect_err("the chats are there")["message"].to_string();
    assert!(
        message.contains("where Goldcrest keeps your chats"),
        "{message}"
    );
}

#[test]
fn a_transfer_that_panics_ends_and_another_begins() {
    let window = on_file();
    let events = listen(&window);
    let transfers = window.app.state::<Transfers>();
    let app_events = window.app.state::<Events>();
    let begun = transfers.start(TransferKind::Import, &app_events, |_| panic!("a defect"));
    begun.expect("begun");
    let state = ended(&events);
    assert_eq!(state["name"], "failed");
    let message = state["message"].as_str().expect("words");
    assert!(message.contains("import failed unexpectedly"), "{message}");
    let begun = transfers.start(TransferKind::Export, &app_events, |_| Ok(None));
    begun.expect("nothing runs");
    assert_eq!(ended(&events)["name"], "cancelled");
}

#[test]
fn only_what_was_exported_is_shown_in_the_file_manager() {
    let window = on_file();
    for file in ["/etc/passwd", "", "goldcrest.db"] {
        let refused = window.invoke("show_exported", json!({ "file": file }));
        let message = refused.expect_err("it was not exported")["message"].to_string();
        assert!(message.contains("not exported by Goldcrest"), "{message}");
    }
    assert!(opened(&window).is_empty());
}

#[test]
fn a_file_dialog_begins_in_the_folder_that_was_used_last_for_it() {
    let window = on_file();
    let events = listen(&window);
    say(&window, "How heavy?");
    let [exports, imports] = [0, 1].map(|_| tempfile::tempdir().expect("made"));
    let export = || {
        let export = json!({ "chats": null, "format": "jsonl", "thinking": true });
        window.invoke("export_chats", json!({ "what": export }))
    };
    let import = || window.invoke("import_chats", json!({}));
    let from = || window.desktop.from.lock().expect("not poisoned").take();

    assert_eq!(export(), Ok(json!(false)));
    assert!(from().is_none_or(|usual| usual.is_dir()));
    picks(&window, exports.path());
    assert_eq!(export(), Ok(json!(true)));
    let file = PathBuf::from(ended(&events)["file"].as_str().expect("a path"));
    let moved = imports.path().join("chats.jsonl");
    std::fs::copy(&file, &moved).expect("copied");
    picks(&window, &moved);
    assert_eq!(import(), Ok(json!(true)));
    ended(&events);

    from();
    export().expect("closed");
    assert_eq!(from().as_deref(), Some(exports.path()));
    import().expect("closed");
    assert_eq!(from().as_deref(), Some(imports.path()));
    window.invoke("import_presets", json!({})).expect("closed");
    assert_eq!(from().as_deref(), Some(imports.path()));
    let gone = imports.path().to_owned();
    drop(imports);
    import().expect("closed");
    assert_ne!(from(), Some(gone));
}

const LOGGED: &str = "GOLDCREST_TEST_IMPORT";

/// Runs in a process of its own, as the log is process-wide.
#[test]
#[ignore = "the child process of the test below"]
fn imports_what_is_broken_and_logs() {
    let folder = PathBuf::from(std::env::var_os(LOGGED).expect("the parent names it"));
    app::logging::to_files(&folder.join("logs")).expect("a log");
    let window = on_file();
    let events = listen(&window);
    for name in ["broken.jsonl", "broken.json", "wrong.json"] {
        crate::given_files::take_drop(window.app.handle(), vec![folder.join(name)]);
        ended(&events);
    }
}

#[test]
fn no_word_of_a_chat_reaches_the_log() {
    const SECRET: &str = "Zanzibar";
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    let header = r#"{"format":"goldcrest-chats","version":1}"#;
    write("broken.jsonl", format!("{header}\n{{\"chat\":{SECRET}\n"));
    write(
        "broken.json",
        format!(r#"[{{"uuid":"1","name":"{SECRET}","chat_messages":["{SECRET}"#),
    );
    write(
        "wrong.json",
        format!(r#"[{{"uuid":"{SECRET}","name":7,"chat_messages":"{SECRET}"}}]"#),
    );
    let child = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--ignored",
            "--exact",
            "tests::data::imports_what_is_broken_and_logs",
        ])
        .env(LOGGED, folder.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}"
    );
    let log = app::logging::file_of_today(&folder.path().join("logs"));
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(log.contains("failed"), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn a_backup_is_made_listed_and_restored() {
    let window = on_file();
    say(&window, "Before");
    let made = window.invoke("back_up", json!({})).expect("made");
    assert_eq!(
        (&made[0]["chats"], made[0]["time"].is_string()),
        (&json!(1), true)
    );
    say(&window, "After");
    assert_eq!(window.invoke("list_backups", json!({})), Ok(made.clone()));
    let kept = window
        .invoke("restore_backup", json!({ "copy": made[0]["name"] }))
        .expect("restored");
    assert!(
        kept.as_str()
            .expect("a name")
            .starts_with("goldcrest-set-aside-")
    );
    let chats = || window.invoke("snapshot", json!({})).expect("a snapshot")["chats"].clone();
    assert_eq!(chats().as_array().expect("a list").len(), 1);
    // And back.
    window
        .invoke("restore_backup", json!({ "copy": kept }))
        .expect("restored");
    assert_eq!(chats().as_array().expect("a list").len(), 2);
    window
        .invoke("restore_backup", json!({ "copy": "../x" }))
        .expect_err("no copy");
    let listed = window.invoke("list_backups", json!({})).expect("listed");
    assert_eq!(listed.as_array().expect("a list").len(), 3);
    for (left, copy) in (0..3).rev().zip(listed.as_array().expect("a list")) {
        let name = &copy["name"];
        let all = window.invoke("remove_backup", json!({ "copy": name }));
        let all = all.expect("removed");
        assert_eq!(all.as_array().expect("a list").len(), left);
        let again = window.invoke("remove_backup", json!({ "copy": name }));
        again.expect_err("it is gone");
    }
    assert_eq!(chats().as_array().expect("a list").len(), 2);
}

#[test]
fn no_backup_is_restored_while_an_export_runs() {
    let window = on_file();
    let events = listen(&window);
    say(&window, "Before");
    let made = window.invoke("back_up", json!({})).expect("made");
    let restore = || window.invoke("restore_backup", json!({ "copy": made[0]["name"] }));
    let (finish, waits) = mpsc::channel::<()>();
    let transfers = window.app.state::<Transfers>();
    let app_events = window.app.state::<Events>();
    let begun = transfers.start(TransferKind::Export, &app_events, move |_| {
        let _ = waits.recv();
        Ok(None)
    });
    begun.expect("begun");
    let refused = restore().expect_err("refused");
    let message = refused["message"].as_str().expect("words");
    assert!(message.contains("still running"), "{message}");
    drop(finish);
    assert_eq!(ended(&events)["name"], "cancelled");
    restore().expect("restored");
    let begun = transfers.start(TransferKind::Export, &app_events, |_| Ok(None));
    begun.expect("nothing runs");
}

#[test]
fn while_an_answer_is_written_a_move_is_refused_before_anything_is_copied() {
    let home = tempfile::tempdir().expect("a folder");
    let to = home.path().join("new");
    let data = tempfile::tempdir().expect("a folder");
    let store = Store::open(&data.path().join("goldcrest.db")).expect("made");
    let model = requests::Recorder::endless(false);
    let window = Window::over(store, data, Box::new(model.clone()), NoModel::default());
    let id = say(&window, "Hello");
    until(|| model.turns() == 1, "nothing is asked of the model");
    picks(&window, &to);
    let refused = window
        .invoke("move_data_folder", json!({ "keep": false }))
        .expect_err("refused");
    let message = refused["message"].as_str().expect("words");
    assert!(
        message.contains("answer is still being written"),
        "{message}"
    );
    assert!(!to.exists());
    window.invoke("stop", json!({ "id": id })).expect("stopped");
}
