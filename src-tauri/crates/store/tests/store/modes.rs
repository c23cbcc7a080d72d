//! Permissions of files and folders. Modes do not apply to root, so that as root these tests run in a child of another
//! user.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use store::{Store, StoreError, StoreSnapshot};

use crate::chat;
use crate::recovering::error;

const FOLDER: &str = "GOLDCREST_MODES_TEST_FOLDER";
const NOBODY: u32 = 65_534;

/// Runs the ignored test `name` with a folder of its own, as a user to whom modes apply.
fn as_a_user(name: &str, folder: &Path, own: &[&Path]) {
    let program = std::env::current_exe().unwrap();
    let probe = folder.join("probe");
    fs::write(&probe, "").unwrap();
    fs::set_permissions(&probe, fs::Permissions::from_mode(0o400)).unwrap();
    let is_root = fs::OpenOptions::new().write(true).open(&probe).is_ok();
    fs::remove_file(probe).unwrap();
    let mut command = if is_root {
        // The other user may read it there.
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
#[ignore = "the child process of the test below"]
fn reads_a_folder_that_it_may_not_write() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let data = Path::new(&folder).join("data");
    let path = data.join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    chat(&store, "Goldcrests", "How heavy?");
    drop(store);
    set_mode(&data, 0o500);
    let chats = || {
        let snapshot = StoreSnapshot::take(&path)?;
        snapshot.records().list().map(|chats| chats.len())
    };
    assert_eq!(chats().unwrap(), 1);
    set_mode(&data, 0o700);
    let store = Store::open(&path).unwrap();
    chat(&store, "Wrens", "How loud?");
    let left = ["goldcrest.db", "goldcrest.db-wal"].map(|name| data.join(name));
    let left = left.map(|file| (fs::read(&file).unwrap(), file));
    drop(store);
    for (bytes, file) in left {
        fs::write(file, bytes).unwrap();
    }
    set_mode(&data, 0o500);
    let said = chats().unwrap_err().to_string();
    assert!(said.contains("-wal. Copy the folder"), "{said}");
    set_mode(&data, 0o700);
    assert_eq!(chats().unwrap(), 2);
}

#[test]
fn chats_are_read_where_nothing_may_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.join("goldcrest.db");
    drop(Store::open(&path).unwrap());
    as_a_user(
        "modes::reads_a_folder_that_it_may_not_write",
        folder.path(),
        &[&data, &path],
    );
}

#[test]
fn what_may_not_be_written_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.join("goldcrest.db");
    drop(Store::open(&path).unwrap());
    as_a_user(
        "modes::opens_what_it_may_not_write",
        folder.path(),
        &[&data, &path],
    );
}
