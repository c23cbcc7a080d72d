#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use store::{Store, daily_copy};
use system::private;

use crate::chat;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn nobody_else_can_read_the_chats() {
    let home = tempfile::tempdir().unwrap();
    let probe = home.path().join("probe");
    fs::write(&probe, "").unwrap();
    if mode(&probe) & 0o044 == 0 {
        testing::skip("the umask closes every file");
        return;
    }
    let folder = home.path().join("share/goldcrest");
    let path = folder.join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    chat(&store, "Goldcrests", "How heavy?");
    daily_copy(&path, "2026-03-05").unwrap();

    for folder in [&home.path().join("share"), &folder, &folder.join("copies")] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    for file in [
        "goldcrest.db",
        "goldcrest.db-wal",
        "goldcrest.db-shm",
        "copies/day-2026-03-05.db",
    ] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
}

#[test]
fn what_was_open_to_others_is_closed_at_the_next_start() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("goldcrest.db");
    drop(Store::open(&path).unwrap());
    set_mode(home.path(), 0o755);
    set_mode(&path, 0o664);
    drop(Store::open(&path).unwrap());
    assert_eq!((mode(home.path()), mode(&path)), (0o700, 0o600));
}

#[test]
fn no_permission_is_added_and_no_shared_folder_is_closed() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "x").unwrap();
    set_mode(&file, 0o444);
    private::file(&file).unwrap();
    assert_eq!(
        (mode(&file), fs::read(&file).unwrap()),
        (0o400, b"x".to_vec())
    );

    let shared = home.path().join("shared");
    fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o1777);
    private::folder(&shared).unwrap();
    assert_eq!(mode(&shared), 0o1777);
}
