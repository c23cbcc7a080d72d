//! Blocks as files: damaged ones are never used, shared ones stay, erased ones are gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use kv_store::{BlockKey, KvStore};
use tempfile::TempDir;

const BUDGET: u64 = 1 << 30;
/// Pause longer than the time between blocks of one sequence in the eviction order.
const PAUSE: Duration = Duration::from_millis(5);

fn keys(seed: u32, blocks: u32) -> Vec<BlockKey> {
    let tokens: Vec<u32> = (0..blocks * 4).map(|at| at + seed).collect();
    BlockKey::chain("a model", &tokens, 4)
}

fn content(key: &BlockKey) -> Vec<u8> {
    key.to_string().into_bytes().repeat(5)
}

fn open(folder: &Path) -> KvStore {
    open_with(folder, BUDGET)
}

fn open_with(folder: &Path, budget: u64) -> KvStore {
    KvStore::open(folder, budget, 0).expect("a folder")
}

fn fill(store: &mut KvStore, chat: u64, keys: &[BlockKey]) {
    fill_from(store, chat, keys, 0);
}

/// Like [`fill`], for the blocks after the first `held`. Storing a block takes a while.
fn fill_from(store: &mut KvStore, chat: u64, keys: &[BlockKey], held: usize) {
    for at in held..keys.len() {
        let stored = store.store(chat, &keys[..=at], &content(&keys[at]));
        stored.expect("room");
        thread::sleep(PAUSE);
    }
}

/// Returns how many of these are held, in order.
fn loaded(store: &KvStore, keys: &[BlockKey]) -> usize {
    let mut count = 0;
    store.load(keys, 0, &mut |block| {
        assert_eq!(block, content(&keys[count]), "what was stored");
        count += 1;
        true
    });
    count
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("blocks")).expect("a folder");
    let mut all: Vec<_> = entries.map(|entry| entry.expect("read").path()).collect();
    all.sort();
    all
}

/// Returns the bytes of all blocks.
fn bytes(folder: &Path) -> u64 {
    let length = |path: &PathBuf| fs::metadata(path).expect("there").len();
    files(folder).iter().map(length).sum()
}

/// A folder that Goldcrest of fa5126d has written: blocks are compatible across versions as long as this test stays.
#[test]
fn the_folder_of_an_earlier_version_is_read() {
    let folder = tempfile::tempdir().expect("made");
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/earlier");
    for part in ["blocks", "chats"] {
        fs::create_dir(folder.path().join(part)).expect("made");
        for file in fs::read_dir(earlier.join(part)).expect("a folder") {
            let file = file.expect("read").path();
            let name = file.file_name().expect("a name");
            fs::copy(&file, folder.path().join(part).join(name)).expect("copied");
        }
    }
    let mut store = open(folder.path());
    assert_eq!(loaded(&store, &keys(1, 3)), 3);
    store.retain_chats(&[]).expect("erased");
    assert_eq!(
        files(folder.path()),
        Vec::<PathBuf>::new(),
        "its list is read, too"
    );
}

#[test]
fn blocks_are_found_by_another_opening() {
    let folder = TempDir::new().expect("a folder");
    let keys = keys(1, 5);
    let mut store = open(folder.path());
    fill(&mut store, 1, &keys[..4]);
    let store = open(folder.path());
    assert_eq!(loaded(&store, &keys), 4);
    let mut last = Vec::new();
    store.load(&keys, 3, &mut |block| {
        last.push(block.to_vec());
        true
    });
    assert_eq!(last, [content(&keys[3])]);
    assert!(store.holds(&keys[3]) && !store.holds(&keys[4]));
    let mut one = 0;
    store.load(&keys, 0, &mut |_| {
        one += 1;
        false
    });
    assert_eq!(one, 1, "it is refused after the first");
}

#[test]
fn a_block_damaged_in_any_byte_or_length_is_not_held() {
    let folder = TempDir::new().expect("a folder");
    let keys = keys(1, 2);
    let mut store = open(folder.path());
    fill(&mut store, 1, &keys[..1]);
    let path = files(folder.path()).remove(0);
    let good = fs::read(&path).expect("read");
    let mut damaged: Vec<Vec<u8>> = (0..good.len())
        .flat_map(|at| [1, 0x80].map(|bit| (at, bit)))
        .map(|(at, bit)| {
            let mut bytes = good.clone();
            bytes[at] ^= bit;
            bytes
        })
        .collect();
    damaged.extend((0..good.len()).map(|length| good[..length].to_vec()));
    damaged.push([&good[..], &[0]].concat());
    damaged.push([&good[..], &good[..]].concat());
    damaged.push(vec![0; good.len()]);
    for bytes in damaged {
        fs::write(&path, &bytes).expect("written");
        assert_eq!(loaded(&store, &keys), 0);
        assert!(!path.exists(), "a damaged block is removed");
    }
    fs::write(&path, &good).expect("written");
    assert_eq!(loaded(&store, &keys), 1);
}

#[test]
fn a_block_under_the_name_of_another_is_not_held() {
    let folder = TempDir::new().expect("a folder");
    let (ours, theirs) = (keys(1, 2), keys(9, 1));
    let mut store = open(folder.path());
    fill(&mut store, 1, &ours);
    let path = |key: &BlockKey| folder.path().join("blocks").join(key.to_string());
    // Swapped with the one behind it, and of another model.
    let first = fs::read(path(&ours[0])).expect("read");
    fs::copy(path(&ours[1]), path(&ours[0])).expect("copied");
    fs::write(path(&ours[1]), &first).expect("written");
    fs::write(path(&theirs[0]), &first).expect("written");
    assert_eq!(loaded(&store, &ours), 0);
    assert_eq!(loaded(&store, &ours[1..]), 0);
    assert_eq!(loaded(&store, &theirs), 0);
}

#[test]
fn above_the_budget_the_end_of_what_was_unused_for_longest_goes_first() {
    let folder = TempDir::new().expect("a folder");
    let (old, new) = (keys(1, 4), keys(100, 4));
    let mut store = open(folder.path());
    fill(&mut store, 1, &old);
    let one = bytes(folder.path()) / 4;
    thread::sleep(PAUSE);
    fill(&mut store, 2, &new);
    assert_eq!(bytes(folder.path()), 8 * one);
    thread::sleep(PAUSE);
    // Used once more.
    assert_eq!(loaded(&store, &old), 4);
    let mut store = open_with(folder.path(), 7 * one);
    assert_eq!((loaded(&store, &old), loaded(&store, &new)), (4, 3));
    let other = keys(200, 1);
    fill(&mut store, 3, &other);
    // Then there is room for some more.
    assert!(bytes(folder.path()) <= 7 * one / 10 * 9);
    assert_eq!(loaded(&store, &other), 1, "the latest stays");
}

#[test]
fn a_chat_above_the_budget_keeps_its_start() {
    let folder = TempDir::new().expect("a folder");
    let keys = keys(1, 8);
    fill(&mut open(folder.path()), 1, &keys[..1]);
    let one = bytes(folder.path());
    let mut store = open_with(folder.path(), 5 * one);
    fill_from(&mut store, 1, &keys, 1);
    assert_eq!((loaded(&store, &keys), files(folder.path()).len()), (4, 4));
}

#[test]
fn all_blocks_before_one_that_is_stored_or_loaded_or_claimed_are_used() {
    let uses: [fn(&mut KvStore, &[BlockKey]); 3] = [
        |store, keys| fill_from(store, 1, keys, 4),
        |store, keys| {
            store.load(keys, 1, &mut |_| {
                thread::sleep(PAUSE);
                true
            });
        },
        |store, keys| store.claim(1, &keys[..4]).expect("claimed"),
    ];
    for used in uses {
        let folder = TempDir::new().expect("a folder");
        let (first, second) = (keys(1, 5), keys(100, 4));
        let mut store = open(folder.path());
        fill(&mut store, 1, &first[..4]);
        fill(&mut store, 2, &second);
        let one = bytes(folder.path()) / 8;
        thread::sleep(PAUSE);
        used(&mut store, &first);
        let store = open_with(folder.path(), 4 * one);
        assert_eq!((loaded(&store, &first), loaded(&store, &second)), (4, 0));
    }
}

#[test]
fn a_disk_without_a_reserve_is_not_filled() {
    let folder = TempDir::new().expect("a folder");
    let keys = keys(1, 4);
    fill(&mut open(folder.path()), 1, &keys[..3]);
    let mut store = KvStore::open(folder.path(), BUDGET, u64::MAX).expect("a folder");
    let error = store.store(1, &keys, &content(&keys[3]));
    assert!(error.expect_err("no room").is_disk_full());
    assert_eq!(loaded(&store, &keys), 1, "half of it is removed");
    open(folder.path()).make_room().expect("there is room");
    assert_eq!(loaded(&store, &keys), 1);
    store.make_room().expect("removed");
    assert_eq!(loaded(&store, &keys), 0);
}

#[test]
fn what_cannot_be_read_or_removed_does_not_stop_the_rest() {
    let folder = TempDir::new().expect("a folder");
    let (ours, theirs) = (keys(1, 3), keys(100, 3));
    let mut store = open(folder.path());
    fill(&mut store, 1, &ours);
    fill(&mut store, 2, &theirs);
    // A folder in place of a file can be neither read nor removed.
    fs::create_dir(folder.path().join("chats/3")).expect("made");
    store.retain_chats(&[1, 3]).expect_err("a list is not read");
    assert_eq!((loaded(&store, &ours), loaded(&store, &theirs)), (3, 0));
    let stuck = folder.path().join("blocks/stuck");
    fs::create_dir(&stuck).expect("made");
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    let file = fs::File::open(&stuck).expect("opened");
    file.set_modified(long_ago).expect("set");
    let store = open_with(folder.path(), 0);
    assert_eq!(loaded(&store, &ours), 0, "they are evicted");
}

#[test]
fn what_a_process_has_left_that_ended_is_removed() {
    let folder = TempDir::new().expect("a folder");
    open(folder.path());
    let [new, old] = ["writing-1", "writing-2"].map(|name| {
        let path = folder.path().join("blocks").join(name);
        fs::write(&path, "x").expect("written");
        path
    });
    let file = fs::File::options().append(true).open(&old);
    let minutes_ago = SystemTime::now() - Duration::from_secs(120);
    let set = file.expect("opened").set_modified(minutes_ago);
    set.expect("set");
    open(folder.path());
    assert_eq!(files(folder.path()), [new]);
}

#[test]
fn a_chat_is_erased_with_what_only_it_uses() {
    let folder = TempDir::new().expect("a folder");
    let keys = keys(1, 4);
    let mut store = open(folder.path());
    fill(&mut store, 1, &keys[..3]);
    for held in 1..=2 {
        store.claim(2, &keys[..held]).expect("claimed");
    }
    fill(&mut store, 3, &keys[3..]);
    // A file that no list names, and one that has no key for a name.
    let stray = folder.path().join("blocks/stray");
    fs::write(&stray, "x").expect("written");
    let mut store = open(folder.path());
    store.retain_chats(&[2, 4]).expect("removed");
    assert_eq!(loaded(&store, &keys), 2);
    assert_eq!(files(folder.path()).len(), 2);
    let lists = fs::read_dir(folder.path().join("chats")).expect("a folder");
    assert_eq!(lists.count(), 1);
    store.retain_chats(&[]).expect("removed");
    assert_eq!(bytes(folder.path()), 0);
    // The chat is used again under the same number.
    fill(&mut store, 1, &keys);
    store.retain_chats(&[1]).expect("removed");
    assert_eq!(loaded(&store, &keys), 4);
}

#[test]
fn a_torn_line_of_a_list_spoils_no_other() {
    let folder = TempDir::new().expect("a folder");
    let keys = keys(1, 2);
    let mut store = open(folder.path());
    fill(&mut store, 1, &keys[..1]);
    let list = folder.path().join("chats/1");
    let lines = fs::read(&list).expect("read");
    fs::write(&list, [&lines[..], b"\n0123456789", &[0xff]].concat()).expect("written");
    let mut store = open(folder.path());
    fill(&mut store, 1, &keys[1..]);
    let mut store = open(folder.path());
    store.retain_chats(&[1]).expect("removed");
    assert_eq!(loaded(&store, &keys), 2);
}

#[cfg(unix)]
#[test]
fn blocks_and_lists_are_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().expect("a folder");
    let place = folder.path().join("kv");
    let mut store = open(&place);
    fill(&mut store, 1, &keys(1, 1));
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    for folder in [&place, &place.join("blocks"), &place.join("chats")] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    assert_eq!(mode(&files(&place)[0]), 0o600);
    assert_eq!(mode(&place.join("chats/1")), 0o600);
}

#[test]
fn what_cannot_be_written_is_an_error_that_names_its_path() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "x").expect("written");
    assert!(
        KvStore::open(&file, BUDGET, 0).is_err(),
        "a file is no folder"
    );
    let place = folder.path().join("kv");
    let mut store = open(&place);
    let keys = keys(1, 2);
    fill(&mut store, 1, &keys[..1]);
    fs::remove_dir_all(&place).expect("removed");
    let error = store.store(1, &keys, b"x").expect_err("it is gone");
    assert!(error.to_string().contains("chats"), "{error}");
    assert_eq!(loaded(&store, &keys), 0);
}

/// The child of the tests below: stores blocks until it is killed.
const CHILD: &str = "KV_STORE_TEST_CHILD";

#[test]
fn a_process_that_stores_blocks() {
    let Some(folder) = std::env::var_os(CHILD) else {
        return;
    };
    let mut store = open(Path::new(&folder));
    for seed in 0.. {
        let key = keys(seed, 1)[0];
        let content = content(&key).repeat(1000);
        store.store(1, &[key], &content).expect("room");
    }
}

fn child(folder: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "a_process_that_stores_blocks"])
        .env(CHILD, folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts")
}

#[test]
fn killed_and_concurrent_processes_leave_only_whole_blocks() {
    let folder = TempDir::new().expect("a folder");
    for milliseconds in [120, 170, 230] {
        let mut children = [child(folder.path()), child(folder.path())];
        thread::sleep(Duration::from_millis(milliseconds));
        for child in &mut children {
            child.kill().expect("killed");
            child.wait().expect("ended");
        }
        let store = open(folder.path());
        let found: Vec<BlockKey> = files(folder.path())
            .iter()
            .filter_map(|file| file.file_name()?.to_str()?.parse().ok())
            .collect();
        assert!(!found.is_empty(), "they have come so far");
        for key in found {
            let mut whole = 0;
            store.load(&[key], 0, &mut |block| {
                whole += usize::from(block == content(&key).repeat(1000));
                true
            });
            assert_eq!(whole, 1);
        }
    }
    let mut store = open(folder.path());
    store.retain_chats(&[1]).expect("removed");
    assert!(
        bytes(folder.path()) > 0,
        "both processes listed their blocks"
    );
}

/// Pipes are not waited for, and an endless device is not read.
#[cfg(unix)]
#[test]
fn what_is_not_a_file_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open(folder.path());
    let keys = keys(1, 2);
    fill(&mut store, 1, &keys);
    drop(store);
    for (chat, odd) in [(2, "pipe"), (3, "device")] {
        let list = folder.path().join(format!("chats/{chat}"));
        let block = files(folder.path()).remove(0);
        fs::remove_file(&block).expect("removed");
        for place in [&list, &block] {
            if odd == "pipe" {
                let made = Command::new("mkfifo").arg(place).status();
                assert!(made.expect("started").success());
            } else {
                std::os::unix::fs::symlink("/dev/zero", place).expect("made");
            }
        }
        let mut store = open(folder.path());
        let held = loaded(&store, &keys);
        assert!(held < 2, "{odd}");
        let stored = store.store(chat, &keys[..1], &content(&keys[0]));
        assert!(stored.is_err(), "{odd}");
        assert!(store.claim(chat, &keys).is_err(), "{odd}");
        let retained = store.retain_chats(&[1, chat]);
        assert!(retained.is_err(), "{odd}: its list is not known");
        store.retain_chats(&[1]).expect("the odd list goes");
        assert!(fs::symlink_metadata(&list).is_err(), "{odd}");
        fill(&mut store, 1, &keys);
        assert_eq!(loaded(&store, &keys), 2, "{odd}");
    }
}
