//! Chats to files and back, by the command line.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::*;

fn with_data<S: AsRef<OsStr>>(data: &Path, args: impl IntoIterator<Item = S>) -> Output {
    let mut command = goldcrest();
    command.env("GOLDCREST_DATA_DIR", data).args(args);
    command.output().expect("the binary starts")
}

/// Makes two chats of another program, one of which has a branch.
fn foreign(folder: &Path) -> PathBuf {
    let message = |uuid: &str, parent: &str, sender: &str, text: &str| {
        json!({
            "uuid": uuid, "parent_message_uuid": parent, "sender": sender, "text": text,
            "created_at": "2025-05-01T10:00:00Z",
            "content": [{ "type": "thinking", "thinking": "Regulus" }, { "type": "text", "text": text }],
        })
    };
    let chat = |uuid: &str, title: &str| {
        json!({
            "uuid": uuid, "name": title, "created_at": "2025-05-01T10:00:00Z", "updated_at": "2025-05-02T10:00:00Z",
            "chat_messages": [
                message("a", "", "human", "How heavy?"),
                message("b", "a", "assistant", "Six grams."),
                message("c", "a", "assistant", "Seven, “perhaps” \u{1f426}\n\n```\ncode"),
            ],
        })
    };
    let path = folder.join("conversations.json");
    let chats = json!([chat("1", "Birds"), chat("2", "Birds"), { "uuid": "3", "name": "Empty", "chat_messages": [] }]);
    fs::write(&path, chats.to_string()).expect("written");
    path
}

#[test]
fn what_is_exported_imported_and_exported_again_is_the_same_byte_for_byte() {
    let home = tempfile::tempdir().expect("made");
    let (first, second) = (home.path().join("first"), home.path().join("second"));
    let imported = with_data(
        &first,
        [OsStr::new("import"), foreign(home.path()).as_os_str()],
    );
    let says = String::from_utf8_lossy(&imported.stderr).into_owned();
    assert!(imported.status.success(), "{says}");
    assert_eq!(
        says.trim(),
        "Imported 2 chats from Claude. 1 chat without messages was left out."
    );

    let export = |data: &Path, name: &str| {
        let file = home.path().join(name);
        let args = ["export", "--all", "--format", "jsonl"].map(OsStr::new);
        let output = with_data(data, args.into_iter().chain([file.as_os_str()]));
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        file
    };
    let before = export(&first, "before.jsonl");
    let imported = with_data(&second, [OsStr::new("import"), before.as_os_str()]);
    assert!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    let after = export(&second, "after.jsonl");
    let read = |file: &Path| fs::read_to_string(file).expect("written");
    assert_eq!(read(&before), read(&after));
    assert_eq!(read(&before).lines().count(), 1 + 2 * 4 + 1);

    let again = with_data(&second, [OsStr::new("import"), before.as_os_str()]);
    assert!(again.status.success());
    let says = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(
        says.trim(),
        "There was nothing new to import. 2 chats were here already."
    );
    assert_eq!(read(&before), read(&export(&second, "again.jsonl")));
}

/// Makes an export with all properties that a chat can have.
fn everything() -> String {
    let text = [
        json!({ "format": "goldcrest-chats", "version": 3 }),
        json!({ "folder": { "name": "Empty", "createdAt": 5 } }),
        json!({ "folder": { "name": "Work", "collapsed": true, "createdAt": 6 } }),
        json!({ "preset": { "name": "Coder", "instructions": "Code first.", "thinking": true,
            "sampling": { "temperature": 0.3, "topP": null, "seed": 7 } } }),
        json!({ "preset": { "name": "Coder 2", "instructions": "Code first.", "thinking": true,
            "sampling": { "temperature": 0.3, "topP": null, "seed": 7 } } }),
        json!({ "chat": { "uid": "first", "title": "A tree", "today": "2026-03-05", "createdAt": 100, "updatedAt": 200,
            "leaf": 5, "folder": "Work", "pinnedAt": 150,
            "chosenPreset": { "preset": "Coder 2", "instructions": "Briefly." } } }),
        json!({ "message": { "id": 1, "shown": 3, "role": "user", "state": "done", "text": "How heavy?", "createdAt": 100 } }),
        json!({ "message": { "id": 2, "parent": 1, "role": "assistant", "state": "failed", "text": "Five",
            "thinking": "Regulus", "thinks": true, "lengthWish": "shorter", "thinkingMs": 1200, "model": "abc",
            "error": { "code": "other", "message": "no" }, "createdAt": 101 } }),
        json!({ "message": { "id": 3, "parent": 1, "shown": 4, "role": "assistant", "state": "done", "text": "Six grams.",
            "createdAt": 102 } }),
        json!({ "message": { "id": 4, "parent": 3, "shown": 5, "role": "user", "state": "done", "text": "Why?", "readAgain": true,
            "createdAt": 103 } }),
        json!({ "message": { "id": 5, "parent": 4, "role": "assistant", "state": "limit", "text": "It is small.", "keptFrom": 3,
            "thinkingFrom": 4, "omittedMessages": 2, "omittedThinking": 1, "createdAt": 104 } }),
        json!({ "message": { "id": 6, "parent": 3, "shown": 7, "role": "user", "state": "done", "text": "Secret", "createdAt": 105 } }),
        json!({ "message": { "id": 7, "parent": 6, "role": "assistant", "state": "done", "text": "Secret, too", "createdAt": 106 } }),
        json!({ "chat": { "uid": "second", "title": "Goes on", "today": "2026-03-06", "createdAt": 300, "updatedAt": 300,
            "leaf": 1, "archivedAt": 400, "continues": "first" } }),
        json!({ "message": { "id": 1, "role": "user", "state": "done", "text": "Summarize",
            "promptLeaf": { "chat": "first", "message": 5 }, "createdAt": 300 } }),
        json!({ "chat": { "uid": "third", "title": "All of it is deleted", "today": "2026-03-06", "createdAt": 301,
            "updatedAt": 301, "leaf": 1, "chosenPreset": {} } }),
        json!({ "message": { "id": 1, "role": "user", "state": "done", "text": "Secret", "createdAt": 301 } }),
        json!({ "end": { "chats": 3, "messages": 9 } }),
    ];
    let text: String = text.iter().map(|line| format!("{line}\n")).collect();
    // A number that serde_json would format differently from the stored one.
    let stats = "\"stats\":{\"tokensPerSecond\":0.30000000000000004},\"error\":";
    text.replace("\"error\":", stats)
}

#[test]
fn a_whole_database_is_the_same_after_a_round_trip_but_for_what_was_deleted() {
    let home = tempfile::tempdir().expect("made");
    let (first, second) = (home.path().join("first"), home.path().join("second"));
    let import = |data: &Path, file: &Path| {
        let output = with_data(data, [OsStr::new("import"), file.as_os_str()]);
        let says = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{says}");
        says.trim().to_owned()
    };
    let export = |data: &Path| {
        stdout(with_data(
            data,
            ["export", "--all", "--format", "jsonl", "-"],
        ))
    };
    let file = home.path().join("everything.jsonl");
    // Files of earlier versions have the ids of answers, too.
    let ids = "\"tokens\":[128002,7],\"model\":";
    let earlier = everything().replace("\"model\":", ids);
    let earlier = earlier.replace("\"version\":2", "\"version\":1");
    assert_ne!(earlier, everything());
    fs::write(&file, earlier).expect("written");
    assert_eq!(
        import(&first, &file),
        "Imported 3 chats, 2 folders and 2 presets from Goldcrest."
    );
    assert_eq!(export(&first), everything());

    let store = store::Store::open(&first.join("goldcrest.db")).expect("opens");
    let mut deleted = 0;
    for row in store.chats().list().expect("listed") {
        for node in store.messages().tree(row.id).expect("read") {
            // The descendants of a deleted message are hidden with it.
            let message = store.messages().get(node.0);
            if message.is_ok_and(|message| message.progress.parts.text() == "Secret") {
                store.messages().delete(node.0, 500).expect("deleted");
                deleted += 1;
            }
        }
    }
    assert_eq!(deleted, 2);
    drop(store);
    let before = export(&first);
    assert!(!before.contains("Secret"));
    assert_eq!(before.lines().count(), everything().lines().count() - 3);
    fs::write(&file, &before).expect("written");
    import(&second, &file);
    assert_eq!(before, export(&second));
    assert_eq!(
        import(&second, &file),
        "There was nothing new to import. 3 chats were here already."
    );
    assert_eq!(before, export(&second));
}

#[test]
fn chats_are_listed_and_exported_one_by_one_and_to_stdout() {
    let home = tempfile::tempdir().expect("made");
    let data = home.path().join("data");
    stdout(with_data(
        &data,
        [OsStr::new("import"), foreign(home.path()).as_os_str()],
    ));
    let listed = parsed(with_data(&data, ["chats", "--json"]));
    let chats = listed.as_array().expect("a list");
    assert_eq!(chats.len(), 2);
    assert_eq!(
        (&chats[0]["title"], &chats[0]["messages"]),
        (&json!("Birds"), &json!(3))
    );
    let id = chats[1]["id"].to_string();
    assert!(stdout(with_data(&data, ["chats"])).contains("Birds"));
    let twice = [
        "export", "--chat", &id, "--chat", &id, "--format", "jsonl", "-",
    ];
    let twice = stdout(with_data(&data, twice));

    let jsonl = stdout(with_data(
        &data,
        ["export", "--chat", &id, "--format", "jsonl", "-"],
    ));
    assert_eq!(jsonl.lines().count(), 1 + 4 + 1);
    assert_eq!(twice, jsonl, "a chat that is named again is written once");
    let markdown = stdout(with_data(
        &data,
        ["export", "--chat", &id, "--format", "markdown", "-"],
    ));
    assert!(
        markdown.contains("# Birds") && markdown.contains("> Regulus"),
        "{markdown}"
    );
    let plain = stdout(with_data(
        &data,
        [
            "export",
            "--all",
            "--without-thinking",
            "--format",
            "markdown",
            "-",
        ],
    ));
    assert!(!plain.contains("Regulus"));
    let file = home.path().join("a.html");
    let args = [OsStr::new("export"), OsStr::new("--all"), file.as_os_str()];
    let output = with_data(&data, args);
    assert!(output.status.success(), "the name says which format");
    assert!(
        fs::read_to_string(&file)
            .expect("written")
            .contains("<!doctype html>")
    );
    #[cfg(unix)]
    {
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&file.metadata().expect("there").permissions());
        assert_eq!(mode & 0o077, 0, "the chats are private to the user");
    }

    let unknown = refusal(
        with_data(&data, ["export", "--chat", "999", "--format", "jsonl", "-"]),
        1,
    );
    assert!(unknown.contains("there is no chat 999"), "{unknown}");
    refusal(with_data(&data, ["export", "--all", "-"]), 1);
    refusal(with_data(&data, ["export", "--format", "jsonl", "-"]), 2);
    let none = refusal(with_data(&home.path().join("other"), ["chats"]), 1);
    assert!(none.contains("there are no chats in"), "{none}");
    assert!(!home.path().join("other").exists());
}

#[test]
fn an_import_that_fails_changes_nothing() {
    let home = tempfile::tempdir().expect("made");
    let data = home.path().join("data");
    let good = foreign(home.path());
    stdout(with_data(&data, [OsStr::new("import"), good.as_os_str()]));
    let before = stdout(with_data(
        &data,
        ["export", "--all", "--format", "jsonl", "-"],
    ));
    let text = fs::read_to_string(&good)
        .expect("written")
        .replace("\"uuid\":\"1\"", "\"uuid\":\"9\"");
    for (name, content, says) in [
        ("half.json", &text[..text.len() - 40], "ends in the middle"),
        (
            "other.json",
            "{\"presets\": []}",
            "not an export that Goldcrest knows",
        ),
        (
            "newer.jsonl",
            "{\"format\":\"goldcrest-chats\",\"version\":9}\n",
            "newer version of Goldcrest",
        ),
    ] {
        let file = home.path().join(name);
        fs::write(&file, content).expect("written");
        let output = with_data(&data, [OsStr::new("import"), file.as_os_str()]);
        let message = refusal(output, 1);
        assert!(
            message.contains(says) && message.contains("Nothing was imported."),
            "{message}"
        );
    }
    // A good file beside a bad one.
    let bad = home.path().join("other.json");
    let output = with_data(
        &data,
        [OsStr::new("import"), good.as_os_str(), bad.as_os_str()],
    );
    refusal(output, 1);
    assert_eq!(
        before,
        stdout(with_data(
            &data,
            ["export", "--all", "--format", "jsonl", "-"]
        ))
    );
}

#[test]
fn an_export_replaces_nothing_that_goldcrest_needs() {
    let home = tempfile::tempdir().expect("made");
    let data = home.path().join("data");
    let import = [OsStr::new("import"), foreign(home.path()).as_os_str()].map(OsStr::to_owned);
    stdout(with_data(&data, import));
    let database = fs::read(data.join("goldcrest.db")).expect("there");
    let export = |file: &Path| {
        let args = ["export", "--all", "--format", "jsonl"].map(OsStr::new);
        with_data(&data, [&args[..], &[file.as_os_str()]].concat())
    };
    for name in [
        "goldcrest.db",
        "goldcrest.lock",
        "kv",
        "logs/a.jsonl",
        "new.jsonl",
    ] {
        fs::create_dir_all(data.join("logs")).expect("made");
        let message = refusal(export(&data.join(name)), 1);
        assert!(
            message.contains("where Goldcrest keeps your chats"),
            "{message}"
        );
    }
    assert_eq!(
        fs::read(data.join("goldcrest.db")).expect("there"),
        database
    );
    let folder = home.path().join("folder");
    fs::create_dir(&folder).expect("made");
    let message = refusal(export(&folder), 1);
    assert!(message.contains("folder is there already"), "{message}");
    assert!(folder.is_dir());
}

#[test]
fn an_export_that_fails_leaves_nothing() {
    let home = tempfile::tempdir().expect("made");
    let data = home.path().join("data");
    stdout(with_data(
        &data,
        [OsStr::new("import"), foreign(home.path()).as_os_str()],
    ));
    let file = home.path().join("none/a.jsonl");
    let args = [OsStr::new("export"), OsStr::new("--all"), file.as_os_str()];
    let message = refusal(with_data(&data, args), 1);
    assert!(message.contains("There is no folder"), "{message}");

    // A limit on the size of files simulates a full disk: its signal is ignored, so that writing fails.
    #[cfg(target_os = "linux")]
    {
        let long = home.path().join("long.conversation.json");
        let chat = json!({ "name": "Long", "messages": [{ "role": "user", "content": "long ".repeat(400_000) }] });
        fs::write(&long, chat.to_string()).expect("written");
        stdout(with_data(&data, [OsStr::new("import"), long.as_os_str()]));
        let target = home.path().join("full.html");
        fs::write(&target, "before").expect("written");
        let script = "trap '' XFSZ; ulimit -f 512; exec \"$0\" export --all \"$1\"";
        let mut shell = Command::new("bash");
        shell
            .arg("-c")
            .arg(script)
            .arg(env!("CARGO_BIN_EXE_goldcrest"))
            .arg(&target);
        let output = shell.env("GOLDCREST_DATA_DIR", &data).output();
        let message = refusal(output.expect("it runs"), 1);
        assert!(message.contains("full.html was not written"), "{message}");
        assert_eq!(fs::read_to_string(&target).expect("there"), "before");
        let names = fs::read_dir(home.path()).expect("read").flatten();
        let left = names.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        assert_eq!(left.count(), 0);
    }
}

/// Two processes: the app has the lock of the data folder.
#[test]
fn while_the_app_is_open_chats_are_exported_and_not_imported() {
    let home = tempfile::tempdir().expect("made");
    let data = home.path().join("data");
    let good = foreign(home.path());
    stdout(with_data(&data, [OsStr::new("import"), good.as_os_str()]));
    let lock = fs::File::options()
        .append(true)
        .open(data.join("goldcrest.lock"))
        .expect("there");
    lock.lock().expect("free");
    // Like the app, which clears the import's note.
    lock.set_len(0).expect("emptied");
    stdout(with_data(
        &data,
        ["export", "--all", "--format", "jsonl", "-"],
    ));
    let message = refusal(
        with_data(&data, [OsStr::new("import"), good.as_os_str()]),
        1,
    );
    assert!(message.contains("Goldcrest is open"), "{message}");
}

#[test]
fn chats_are_named_one_after_the_other_and_the_file_after_them() {
    let home = tempfile::tempdir().expect("made");
    let data = home.path().join("data");
    stdout(with_data(
        &data,
        [OsStr::new("import"), foreign(home.path()).as_os_str()],
    ));
    let chats = parsed(with_data(&data, ["chats", "--json"]));
    let [one, two] = [&chats[0]["id"], &chats[1]["id"]].map(Value::to_string);
    let both = format!("{one},{two}");
    let (markdown, html) = (home.path().join("out.md"), home.path().join("out.html"));
    let [markdown_name, html_name] =
        [&markdown, &html].map(|file| file.to_str().expect("UTF-8").to_owned());
    for (args, file, count) in [
        (vec!["--chat", &one, &markdown_name], &markdown, 1),
        (vec!["--chat", &both, &markdown_name], &markdown, 2),
        (
            vec![
                "--chat", &one, "--chat", &two, "--format", "html", &html_name,
            ],
            &html,
            2,
        ),
    ] {
        let output = with_data(&data, [&["export"], &args[..]].concat());
        let says = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {says}");
        let chats = if count == 1 { "1 chat" } else { "2 chats" };
        assert!(says.starts_with(chats), "{args:?}: {says}");
        let text = fs::read_to_string(file).expect("written");
        assert!(text.contains("How heavy?"), "{text}");
        fs::remove_file(file).expect("removed");
    }
    for (args, status, says) in [
        (vec!["--chat", &one], 2, "<OUT>"),
        // An id is no file name, so `--chat 3 5` does not write chat 3 to a file named 5.
        (vec!["--chat", &one, &two], 1, "--format"),
        (vec!["--chat", &one, "a.md", "b.md"], 2, "b.md"),
        (vec!["--all", "--chat", &one, "a.md"], 2, "--all"),
    ] {
        let message = refusal(with_data(&data, [&["export"], &args[..]].concat()), status);
        assert!(message.contains(says), "{args:?}: {message}");
    }
    let message = refusal(with_data(&data, ["export", "--chat", "birds", "a.md"]), 2);
    assert!(message.contains("birds"), "{message}");
}

#[cfg(unix)]
#[test]
fn an_export_that_is_interrupted_leaves_nothing() {
    let home = tempfile::tempdir().expect("made");
    let (data, out) = (home.path().join("data"), home.path().join("out"));
    fs::create_dir(&out).expect("made");
    let chat = |at: usize| {
        let text = "# How heavy?\n\n* `six` grams\n".repeat(100);
        json!({
            "uuid": at.to_string(), "name": "Birds", "created_at": "2025-05-01T10:00:00Z",
            "chat_messages": [{
                "uuid": "a", "sender": "human", "text": text, "created_at": "2025-05-01T10:00:00Z",
                "content": [{ "type": "text", "text": text }],
            }],
        })
    };
    let many = home.path().join("conversations.json");
    let chats: Vec<Value> = (0..400).map(chat).collect();
    fs::write(&many, json!(chats).to_string()).expect("written");
    stdout(with_data(&data, [OsStr::new("import"), many.as_os_str()]));
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let mut child = goldcrest()
            .env("GOLDCREST_DATA_DIR", &data)
            .args(["export", "--all"])
            .arg(out.join("a.html"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // On Linux the file has no name yet, but then there is a child that renders.
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let has_children = || fs::read_to_string(&children).is_ok_and(|ids| !ids.is_empty());
        let has_file = || fs::read_dir(&out).expect("there").next().is_some();
        while !has_children() && !has_file() {
            assert!(child.try_wait().expect("there").is_none(), "it ended");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let killed = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(killed.is_ok_and(|status| status.success()));
        assert_eq!(child.wait().expect("it ends").code(), code);
        // On other systems a killed process leaves a part.
        let leaves_nothing = cfg!(target_os = "linux") || code.is_some();
        assert!(!(leaves_nothing && has_file()), "{signal}");
    }
}
