use std::sync::atomic::AtomicU64;

use store::Store;
use tempfile::TempDir;

use super::*;

const DATABASE: &str = "goldcrest.db";

/// Creates a data folder with files of every kind.
fn filled() -> (TempDir, PathBuf, PathBuf) {
    let home = tempfile::tempdir().expect("made");
    let (data, pointer) = (
        home.path().join("data"),
        home.path().join("config/data-folder.json"),
    );
    private::folder(&data).expect("made");
    let store = Store::open(&data.join(DATABASE)).expect("made");
    store.chats().create("Kept", "2026-03-05", 1).expect("made");
    drop(store);
    store::daily_copy(&data.join(DATABASE), "2026-03-05").expect("copied");
    for (name, content) in [
        ("logs/goldcrest.2026-03-05.log", "a line"),
        ("kv/blocks/ab/cd", "a block"),
        ("models.json", "{}"),
        ("goldcrest.lock", ""),
        ("gpu-in-use-17-4", "1"),
        ("opening-17-4", "\"a\""),
        ("webview/cache", "x"),
    ] {
        let path = data.join(name);
        private::folder(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }
    (home, data, pointer)
}

fn titles(data: &Path) -> Vec<String> {
    let store = Store::open(&data.join(DATABASE)).expect("opened");
    let chats = store.chats().list().expect("read");
    chats.into_iter().map(|chat| chat.title).collect()
}

fn relocate(plan: &Move, pointer: &Path) {
    assert!(
        plan.copy_others(OsStr::new(DATABASE), &mut |_, _| true)
            .expect("copied")
    );
    plan.copy_database(OsStr::new(DATABASE), pointer)
        .expect("copied");
}

#[test]
fn everything_moves_and_the_old_folder_is_emptied_after_the_next_start() {
    let (home, data, pointer) = filled();
    let new = home.path().join("elsewhere/chats");
    let plan = Move::plan(&data, &new).expect("possible");
    relocate(&plan, &pointer);
    // Nothing is removed until the new one was opened.
    assert_eq!(titles(&data), ["Kept"]);
    let found = DataPointer::read(&pointer).expect("read").expect("there");
    assert_eq!(found.folder, new.canonicalize().expect("there"));
    assert_eq!(titles(&found.folder), ["Kept"]);
    for name in [
        "copies/day-2026-03-05.db",
        "logs/goldcrest.2026-03-05.log",
        "kv/blocks/ab/cd",
        "models.json",
    ] {
        assert!(new.join(name).exists(), "{name}");
    }
    for name in ["webview", "gpu-in-use-17-4", "opening-17-4"] {
        assert!(!new.join(name).exists(), "{name}");
    }
    fs::write(data.join("notes.txt"), "not ours").expect("written");
    finish_move(&pointer, &found.folder);
    let left: Vec<_> = fs::read_dir(&data)
        .expect("there")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["notes.txt"], "what the app did not write stays");
    assert_eq!(
        DataPointer::read(&pointer)
            .expect("read")
            .expect("there")
            .empty,
        None
    );
    assert!(!new.join(UNFINISHED).exists());
    // Back again, to a folder with only that file.
    fs::remove_file(data.join("notes.txt")).expect("removed");
    let back = Move::plan(&found.folder, &data).expect("possible");
    relocate(&back, &pointer);
    finish_move(&pointer, &data.canonicalize().expect("there"));
    assert_eq!(titles(&data), ["Kept"]);
    assert!(!found.folder.exists());
}

#[test]
fn the_old_folder_stays_where_that_is_wanted() {
    let (home, data, pointer) = filled();
    let new = home.path().join("new");
    let plan = Move::plan(&data, &new).expect("possible").keeping_old(true);
    relocate(&plan, &pointer);
    finish_move(&pointer, &new.canonicalize().expect("there"));
    assert_eq!(titles(&data), ["Kept"]);
}

/// Ends the process after each number of files: at every one the chats are in the folder that is used.
#[test]
fn a_move_that_ends_anywhere_loses_nothing() {
    let (home, data, pointer) = filled();
    let new = home.path().join("new");
    for end in 0..8 {
        let plan = Move::plan(&data, &new).expect("a folder that an earlier move left");
        let copied = AtomicU64::new(0);
        let done = plan.copy_others(OsStr::new(DATABASE), &mut |_, _| {
            assert!(copied.fetch_add(1, Ordering::Relaxed) < 100);
            copied.load(Ordering::Relaxed) < end
        });
        if done.expect("no error") {
            break;
        }
        assert_eq!(DataPointer::read(&pointer).expect("no error"), None);
        assert_eq!(titles(&data), ["Kept"]);
        drop(plan);
        assert!(
            files(&new).unwrap_or_default().is_empty(),
            "nothing is left of a move that was cancelled"
        );
        // State after a crash: the mark and some files.
        private::folder(&new).expect("made");
        write_mark(&new, &["half.db".into(), "kv/blocks/ab/half".into()]).expect("written");
        fs::write(new.join("half.db"), "half").expect("written");
    }
    let plan = Move::plan(&data, &new).expect("possible");
    relocate(&plan, &pointer);
    assert!(!new.join("half.db").exists());
    // The process ends while the old folder is being emptied.
    fs::remove_file(data.join("models.json")).expect("removed");
    finish_move(&pointer, &new.canonicalize().expect("there"));
    assert!(!data.exists());
    assert_eq!(titles(&new), ["Kept"]);
    // A start with another folder changes nothing.
    finish_move(&pointer, &home.path().join("other"));
}

#[test]
fn a_folder_that_does_not_fit_is_refused() {
    let (home, data, _) = filled();
    let refusal = |to: &Path| Move::plan(&data, to).expect_err("refused").message;
    assert!(refusal(&data).contains("in this folder already"));
    assert!(refusal(&data.join("kv")).contains("within the present one"));
    let full = home.path().join("full");
    private::folder(&full).expect("made");
    fs::write(full.join("thesis.txt"), "x").expect("written");
    #[cfg(unix)]
    let mode = {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&full, fs::Permissions::from_mode(0o755)).expect("set");
        || fs::metadata(&full).expect("there").permissions().mode() & 0o777
    };
    assert!(refusal(&full).contains("is not empty"));
    #[cfg(unix)]
    assert_eq!(mode(), 0o755, "a folder that is refused stays as it is");
    // The mark of an earlier move does not turn the user's files into copies.
    write_mark(&full, &["models.json".into()]).expect("written");
    assert!(refusal(&full).contains("is not empty"));
    assert!(full.join("thesis.txt").exists());
    let within = data.join("not/there");
    assert!(refusal(&within).contains("within the present one"));
    assert!(!data.join("not").exists(), "nothing is made");
    let file = home.path().join("file");
    fs::write(&file, "x").expect("written");
    assert!(refusal(&file).contains("Your data stays where it is."));
}

#[test]
fn a_database_that_is_damaged_on_its_way_is_not_used() {
    let (home, data, pointer) = filled();
    let database = data.join(DATABASE);
    let mut bytes = fs::read(&database).expect("read");
    bytes[4096..8192].fill(7);
    fs::write(&database, &bytes).expect("written");
    let new = home.path().join("new");
    let plan = Move::plan(&data, &new).expect("possible");
    plan.copy_others(OsStr::new(DATABASE), &mut |_, _| true)
        .expect("copied");
    plan.copy_database(OsStr::new(DATABASE), &pointer)
        .expect_err("damaged");
    drop(plan);
    assert_eq!(DataPointer::read(&pointer).expect("no error"), None);
    assert!(!new.exists());
    assert_eq!(fs::read(&database).expect("there"), bytes);
}

#[test]
fn a_move_that_ends_early_removes_what_it_copied_and_nothing_else() {
    let (home, data, _) = filled();
    let new = home.path().join("new");
    fs::create_dir(&new).expect("made");
    let plan = Move::plan(&data, &new).expect("possible");
    plan.copy_others(OsStr::new(DATABASE), &mut |_, _| true)
        .expect("copied");
    assert!(new.join("kv/blocks/ab/cd").exists());
    for name in ["thesis.txt", "kv/blocks/notes.txt"] {
        fs::write(new.join(name), "x").expect("written meanwhile");
    }
    drop(plan);
    assert_eq!(
        files(&new).expect("read").len(),
        2,
        "{:?}",
        files(&new).expect("read")
    );
    assert!(!new.join("copies").exists());
}

#[test]
fn what_changed_after_it_was_copied_stays_in_the_old_folder() {
    let (home, data, pointer) = filled();
    let notes = ["same.txt", "changed.txt", "longer.txt", "later.txt"].map(|name| data.join(name));
    for file in &notes {
        fs::write(file, "four").expect("written");
    }
    let new = home.path().join("new");
    let plan = Move::plan(&data, &new).expect("possible");
    relocate(&plan, &pointer);
    let [same, changed, longer, later] = &notes;
    let hour = std::time::Duration::from_secs(3600);
    let at = std::time::SystemTime::now() + hour;
    for (file, content) in [
        (changed, "FOUR"),
        (longer, "four, and more"),
        (later, "four"),
    ] {
        fs::write(file, content).expect("written");
        let file = File::options().append(true).open(file).expect("there");
        file.set_modified(at).expect("set");
    }
    for name in ["models/new.gguf", "kv/blocks/ab/late", "logs/late.log"] {
        let path = data.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, "written meanwhile").expect("written");
    }
    finish_move(&pointer, &new.canonicalize().expect("there"));
    let mut left = files(&data).expect("read");
    left.sort();
    let names = ["changed.txt", "longer.txt", "models/new.gguf"].map(PathBuf::from);
    assert_eq!(left, names);
    assert!(!same.exists() && !later.exists());
    assert_eq!(fs::read(changed).expect("there"), b"FOUR");
    assert_eq!(titles(&new), ["Kept"]);
}

#[test]
fn what_is_named_in_the_old_folder_is_named_in_the_new_one() {
    let (home, data, pointer) = filled();
    let models = data.join("models");
    let store = Store::open(&data.join(DATABASE)).expect("opened");
    let rows = [
        (
            "app.model",
            serde_json::json!({ "file": models.join("a.gguf") }),
        ),
        ("user.downloadFolder", serde_json::json!(models)),
    ];
    for (key, row) in &rows {
        store.settings().set(key, row).expect("set");
    }
    drop(store);
    let download = |folder: &Path| {
        serde_json::json!([{ "id": "a", "request": {
            "url": "https://huggingface.co/a/b/resolve/main/a.gguf",
            "destination": { "kind": "folder", "folder": folder, "file": "a.gguf" },
            "bytes": null, "sha256": null,
        } }])
    };
    let list = download(&models).to_string();
    fs::write(data.join(DOWNLOADS_FILE), list).expect("written");
    let new = home.path().join("new");
    let plan = Move::plan(&data, &new).expect("possible").keeping_old(true);
    relocate(&plan, &pointer);
    let new = new.canonicalize().expect("there");
    let store = Store::open(&new.join(DATABASE)).expect("opened");
    let row = |key: &str| store.settings().get(key).expect("read").expect("there");
    let now = new.join("models");
    assert_eq!(
        row("app.model"),
        serde_json::json!({ "file": now.join("a.gguf") })
    );
    assert_eq!(row("user.downloadFolder"), serde_json::json!(now));
    let list = fs::read(new.join(DOWNLOADS_FILE)).expect("there");
    let list: serde_json::Value = serde_json::from_slice(&list).expect("JSON");
    assert_eq!(list, download(&now));
}
