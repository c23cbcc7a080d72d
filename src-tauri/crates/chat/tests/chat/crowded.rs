//! An import on a disk that is nearly full.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use chat::{Role, RunningImport};
use store::{ChatRecord, MessageRecord, Store, WholeChat, faults};

use crate::scripted::{Bench, Script, TODAY};

/// A disk of 300 MB that lasts as long as this value.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path) -> Option<Self> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=300m", "tmpfs"]);
        let mounted = command.arg(at).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(at));
        }
        testing::skip("only root mounts a disk");
        None
    }

    fn free(&self) -> u64 {
        let output = Command::new("df")
            .args(["--output=avail", "-B1"])
            .arg(self.0)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().last().unwrap().trim().parse().unwrap()
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

fn large(number: usize) -> WholeChat {
    let text = "word ".repeat(780_000);
    let mut chat = ChatRecord::new(
        format!("a:{number}"),
        String::new(),
        "2026-03-05".into(),
        100,
        Some(1),
    );
    chat.title = "Large".into();
    WholeChat {
        chat,
        messages: vec![MessageRecord::new(1, Role::User, text, 100)],
    }
}

fn until(holds: impl Fn() -> bool, what: &str) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_import_leaves_room_on_the_disk_and_gives_back_what_it_took() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else {
        return;
    };
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    store.chats().create("Goldcrests", "2026-03-05", 1).unwrap();
    let bench = Bench::start(store, &Script::default(), TODAY);
    let mut import = RunningImport::begin(&bench.chat).unwrap();
    let failure = (0..400).find_map(|number| import.add(large(number)).err());
    let said = failure.expect("it does not fit").message;
    assert!(
        said.starts_with("Nothing was imported. The disk has "),
        "{said}"
    );
    assert!(
        said.ends_with("leaves 128 MB to other programs. Free some space and try again."),
        "{said}"
    );
    assert!(disk.free() > 64 << 20, "{} bytes are free", disk.free());
    assert!(
        fs::metadata(&path).unwrap().len() > 32 << 20,
        "some of it was written"
    );
    drop(import);
    until(|| disk.free() > 280 << 20, "what it took is not given back");
    assert_eq!(bench.chat.snapshot().unwrap().chats.len(), 1);
}

#[test]
fn a_purge_that_failed_is_tried_again_soon() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let chat = store.chats().create("Old", "2026-03-05", 1).unwrap();
    store.chats().delete(chat, 1).unwrap();
    store.chats().expire(&[chat]).unwrap();
    faults::refuse_writes(&path, &["chat"]).unwrap();
    let _bench = Bench::start(store, &Script::default(), TODAY);
    let is_here = || {
        let now = store::StoreSnapshot::take(&path).unwrap();
        now.records().read(chat).is_ok()
    };
    std::thread::sleep(Duration::from_millis(100));
    assert!(is_here());
    faults::allow_writes(&path).unwrap();
    until(|| !is_here(), "it is not tried again");
}
