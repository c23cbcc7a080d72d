use std::fs;
use std::path::{Path, PathBuf};

use store::{
    Copy, Store, StoreError, daily_copy, good_copies, name_aside, restore_copy, set_aside,
};
use tempfile::TempDir;

use crate::{chat, say};

const TODAY: &str = "2026-03-07";

/// A database of some pages, with a copy for each of two days; the second day's has a chat more.
fn home() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let (id, first) = chat(&store, "Goldcrests", "How heavy?");
    store
        .transaction(|store| {
            (0..300).fold(first, |parent, n| {
                say(store, id, Some(parent), &format!("{n} is a number"))
            });
            Ok::<_, StoreError>(())
        })
        .unwrap();
    daily_copy(&path, "2026-03-05").unwrap();
    chat(&store, "Wrens", "How loud?");
    daily_copy(&path, "2026-03-06").unwrap();
    chat(&store, "Firecrests", "How rare?");
    (folder, path)
}

fn error(path: &Path) -> StoreError {
    match Store::open(path) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

fn titles(path: &Path) -> Vec<String> {
    let store = Store::open(path).unwrap();
    let mut titles: Vec<_> = store
        .chats()
        .list()
        .unwrap()
        .into_iter()
        .map(|chat| chat.title)
        .collect();
    titles.sort();
    titles
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn overwrite(path: &Path, from: usize, length: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[from..from + length].fill(0xff);
    fs::write(path, bytes).unwrap();
}

#[test]
fn every_kind_of_damage_is_said_and_changes_nothing() {
    type Harm = (&'static str, fn(&Path));
    let harms: [Harm; 6] = [
        ("without its journal", |path| {
            let empty = path.with_file_name("empty.db");
            let db = rusqlite::Connection::open(&empty).unwrap();
            db.pragma_update(None, "journal_mode", "WAL").unwrap();
            drop(db);
            fs::rename(empty, path).unwrap();
        }),
        ("truncated", |path| {
            let half = fs::metadata(path).unwrap().len() / 2;
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(half).unwrap();
        }),
        ("emptied", |path| fs::write(path, "").unwrap()),
        ("garbage", |path| fs::write(path, vec![7; 5000]).unwrap()),
        ("zeros", |path| {
            let length = fs::metadata(path).unwrap().len();
            fs::write(path, vec![0; usize::try_from(length).unwrap()]).unwrap();
        }),
        ("overwritten", |path| overwrite(path, 100, 4000)),
    ];
    for (name, harm) in harms {
        let (_folder, path) = home();
        harm(&path);
        let damaged = fs::read(&path).unwrap();
        let error = error(&path);
        assert!(
            matches!(error, StoreError::Damaged { opens: false, .. }),
            "{name}: {error:?}"
        );
        assert_eq!(fs::read(&path).unwrap(), damaged, "{name}");
        let copies = good_copies(&path);
        assert_eq!(
            copies.iter().map(|copy| copy.chats).collect::<Vec<_>>(),
            [2, 1],
            "{name}: the newest copy comes first"
        );
    }
}

#[test]
fn a_first_start_that_was_broken_off_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    fs::write(&path, "").unwrap();
    assert!(Store::open(&path).is_ok());
}

#[test]
fn a_copy_takes_the_place_of_the_damaged_file_which_is_kept() {
    let (folder, path) = home();
    overwrite(&path, 0, 5000);
    let damaged = fs::read(&path).unwrap();
    fs::write(
        folder.path().join("goldcrest.db-wal"),
        "of the damaged file",
    )
    .unwrap();
    let announced = name_aside(&path, TODAY);

    let kept = restore_copy(&path, "day-2026-03-06.db", TODAY).unwrap();
    assert_eq!(titles(&path), ["Goldcrests", "Wrens"]);
    assert_eq!(
        kept,
        folder.path().join("goldcrest-set-aside-2026-03-07.db")
    );
    assert_eq!(kept, announced);
    assert_eq!(fs::read(&kept).unwrap(), damaged);
    assert_eq!(
        names(folder.path()),
        [
            "copies",
            "goldcrest-set-aside-2026-03-07.db",
            "goldcrest-set-aside-2026-03-07.db-wal",
            "goldcrest.db"
        ]
    );
    assert_eq!(good_copies(&path).len(), 2, "the copy itself stays");

    // The same day again: nothing that is kept is overwritten.
    overwrite(&path, 0, 5000);
    let second = restore_copy(&path, "day-2026-03-05.db", TODAY).unwrap();
    assert_eq!(
        second,
        folder.path().join("goldcrest-set-aside-2026-03-07-2.db")
    );
    assert_eq!(fs::read(&kept).unwrap(), damaged);
    assert_eq!(titles(&path), ["Goldcrests"]);
}

#[test]
fn an_empty_one_takes_the_place_of_the_damaged_file_which_is_kept() {
    let (_folder, path) = home();
    overwrite(&path, 0, 5000);
    let damaged = fs::read(&path).unwrap();
    let kept = set_aside(&path, TODAY).unwrap();
    assert!(titles(&path).is_empty());
    assert_eq!(fs::read(&kept).unwrap(), damaged);
}

#[test]
fn only_good_copies_are_offered_and_restored() {
    let (folder, path) = home();
    let copies = folder.path().join("copies");
    overwrite(&copies.join("day-2026-03-06.db"), 8192, 8192);
    fs::write(copies.join("day-2026-03-04.db"), "half").unwrap();
    fs::write(copies.join("notes.txt"), "").unwrap();
    let newer = copies.join("version-900-1.db");
    fs::copy(copies.join("day-2026-03-05.db"), &newer).unwrap();
    let db = rusqlite::Connection::open(&newer).unwrap();
    db.pragma_update(None, "user_version", 900).unwrap();
    drop(db);
    fs::copy(
        copies.join("day-2026-03-05.db"),
        copies.join("version-1-1.db"),
    )
    .unwrap();

    let good = good_copies(&path);
    let named: Vec<_> = good
        .iter()
        .map(|copy| (copy.name.as_str(), copy.day.as_deref()))
        .collect();
    assert_eq!(
        named,
        [
            ("day-2026-03-05.db", Some("2026-03-05")),
            ("version-1-1.db", None)
        ]
    );
    let before = fs::read(&path).unwrap();
    for name in [
        "day-2026-03-06.db",
        "version-900-1.db",
        "../goldcrest.db",
        "",
    ] {
        let refused = restore_copy(&path, name, TODAY);
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{name}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(titles(&path), ["Firecrests", "Goldcrests", "Wrens"]);
}

#[test]
fn a_restoring_that_was_interrupted_is_ended_at_the_next_start() {
    let (folder, path) = home();
    let restored = folder.path().join("goldcrest.restored");
    fs::copy(folder.path().join("copies/day-2026-03-05.db"), &restored).unwrap();
    set_aside(&path, TODAY).unwrap();
    assert_eq!(titles(&path), ["Goldcrests"]);
    assert!(!restored.exists());

    // Before the old file was moved away: it is the one that is used.
    fs::copy(folder.path().join("copies/day-2026-03-06.db"), &restored).unwrap();
    assert_eq!(titles(&path), ["Goldcrests"]);
    assert!(!restored.exists());
}

#[test]
fn damage_that_the_daily_check_finds_is_said_at_the_next_start() {
    let (_folder, path) = home();
    let store = Store::open(&path).unwrap();
    chat(&store, "Storks", &"-".repeat(100_000));
    drop(store);
    let bytes = fs::read(&path).unwrap();
    let text = bytes.windows(64).position(|part| part == [b'-'; 64]);
    overwrite(&path, text.unwrap() + 8192, 8192);
    drop(Store::open(&path).unwrap());
    let copy = daily_copy(&path, TODAY).unwrap();
    assert!(matches!(copy, Copy::Refused(_)), "{copy:?}");

    for _ in 0..2 {
        let error = error(&path);
        assert!(
            matches!(error, StoreError::Damaged { opens: true, .. }),
            "{error:?}"
        );
    }
    store::forget_check(&path);
    drop(Store::open(&path).unwrap());

    daily_copy(&path, TODAY).unwrap();
    restore_copy(&path, "day-2026-03-06.db", TODAY).unwrap();
    assert_eq!(titles(&path), ["Goldcrests", "Wrens"]);
    store::ask_for_check(&path).unwrap();
    assert_eq!(titles(&path), ["Goldcrests", "Wrens"], "a good file passes");
    assert!(!path.with_extension("check").exists());
}

#[test]
fn a_folder_in_the_files_place_is_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    fs::create_dir(&path).unwrap();
    let error = error(&path);
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error:?}");
    assert!(error.to_string().contains("it is a folder"), "{error}");
    assert_eq!(names(folder.path()), ["goldcrest.db"], "no probe is left");
    set_aside(&path, TODAY).unwrap();
    assert!(titles(&path).is_empty());
}

#[test]
fn a_file_that_another_program_holds_is_held() {
    let (_folder, path) = home();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "journal_mode", "DELETE").unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = error(&path);
    assert!(matches!(error, StoreError::Held { .. }), "{error:?}");
}

/// Modes mean nothing to root, so that as root these run in a child of another user.
#[cfg(unix)]
mod modes {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    const FOLDER: &str = "GOLDCREST_MODES_TEST_FOLDER";
    const NOBODY: u32 = 65_534;

    /// Runs the ignored test `name` with a folder that is its own, as a user to whom modes apply.
    fn as_a_user(name: &str, folder: &Path, own: &[&Path]) {
        let program = std::env::current_exe().unwrap();
        let probe = folder.join("probe");
        fs::write(&probe, "").unwrap();
        fs::set_permissions(&probe, fs::Permissions::from_mode(0o400)).unwrap();
        let is_root = fs::OpenOptions::new().write(true).open(&probe).is_ok();
        fs::remove_file(probe).unwrap();
        let mut command = if is_root {
            // Where the other user may read it.
            let copy = folder.join("program");
            fs::copy(program, &copy).unwrap();
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
            for path in own {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            let mut command = Command::new(copy);
            command.uid(NOBODY).gid(NOBODY);
            command
        } else {
            Command::new(program)
        };
        let ended = command
            .args(["--exact", name, "--ignored", "--nocapture"])
            .env(FOLDER, folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(
            ended.status.success() && said.contains("1 passed"),
            "{said}\n{}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    #[ignore = "the child process of the test below"]
    fn opens_what_it_may_not_write() {
        let Some(folder) = std::env::var_os(FOLDER) else {
            return;
        };
        let data = Path::new(&folder).join("data");
        let path = data.join("goldcrest.db");
        set_mode(&path, 0o400);
        let read_only = error(&path);
        assert!(
            matches!(read_only, StoreError::ReadOnly { .. }),
            "{read_only:?}"
        );
        set_mode(&path, 0o000);
        let unreadable = error(&path);
        assert!(
            matches!(unreadable, StoreError::Unreadable { .. }),
            "{unreadable:?}"
        );
        set_mode(&path, 0o600);
        set_mode(&data, 0o500);
        let closed = error(&path);
        assert!(
            matches!(&closed, StoreError::FolderNotWritable { path, .. } if *path == data),
            "{closed:?}"
        );
        let missing = error(&data.join("deeper/goldcrest.db"));
        assert!(
            matches!(missing, StoreError::FolderNotWritable { .. }),
            "{missing:?}"
        );
        set_mode(&data, 0o700);
        drop(Store::open(&path).unwrap());
    }

    #[test]
    fn what_may_not_be_written_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let path = data.join("goldcrest.db");
        drop(Store::open(&path).unwrap());
        as_a_user(
            "recovering::modes::opens_what_it_may_not_write",
            folder.path(),
            &[&data, &path],
        );
    }
}
