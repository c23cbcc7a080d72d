//! Blocks as files: what is damaged is never used, what is shared stays, and what is erased is gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use kv_store::{BlockKey, KvStore};
use tempfile::TempDir;

const BUDGET: u64 = 1 << 30;

fn keys(seed: u32, blocks: u32) -> Vec<BlockKey> {
    let tokens: Vec<u32> = (0..blocks * 4).map(|at| at + seed).collect();
    BlockKey::chain("a model", &tokens, 4)
}

fn content(key: &BlockKey) -> Vec<u8> {
    key.to_string().into_bytes().repeat(5)
}

fn open(folder: &Path) -> KvStore {
    KvStore::open(folder, BUDGET).expect("a folder")
}

fn fill(store: &mut KvStore, chat: u64, keys: &[BlockKey]) {
    for (rank, key) in keys.iter().enumerate() {
        store.store(chat, key, rank, &content(key)).expect("room");
    }
}

/// How many of these are held, in order.
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
    let bytes = store.bytes();
    thread::sleep(Duration::from_millis(20));
    fill(&mut store, 2, &new);
    assert_eq!(store.bytes(), 2 * bytes);
    thread::sleep(Duration::from_millis(20));
    // Used once more.
    assert_eq!(loaded(&store, &old), 4);
    let mut store = KvStore::open(folder.path(), bytes / 4 * 6).expect("a folder");
    assert_eq!((loaded(&store, &old), loaded(&store, &new)), (4, 2));
    let other = keys(200, 1);
    thread::sleep(Duration::from_millis(20));
    fill(&mut store, 3, &other);
    assert!(store.bytes() <= bytes / 4 * 6);
    assert_eq!(loaded(&store, &other), 1, "the latest stays");
}

#[test]
fn a_chat_is_erased_with_what_only_it_uses() {
    let folder = TempDir::new().expect("a folder");
    let keys = keys(1, 4);
    let mut store = open(folder.path());
    fill(&mut store, 1, &keys[..3]);
    for key in &keys[..2] {
        store.claim(2, key).expect("claimed");
    }
    fill(&mut store, 3, &keys[3..]);
    // A file that no list names, and one of no key.
    let stray = folder.path().join("blocks/stray");
    fs::write(&stray, "x").expect("written");
    let mut store = open(folder.path());
    store.retain_chats(&[2, 4]).expect("removed");
    assert_eq!(loaded(&store, &keys), 2);
    assert_eq!(files(folder.path()).len(), 2);
    let lists = fs::read_dir(folder.path().join("chats")).expect("a folder");
    assert_eq!(lists.count(), 1);
    store.retain_chats(&[]).expect("removed");
    assert_eq!((store.bytes(), files(folder.path()).len()), (0, 0));
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
    assert!(KvStore::open(&file, BUDGET).is_err(), "a file is no folder");
    let place = folder.path().join("kv");
    let mut store = open(&place);
    let keys = keys(1, 2);
    fill(&mut store, 1, &keys[..1]);
    fs::remove_dir_all(&place).expect("removed");
    let error = store.store(1, &keys[1], 1, b"x").expect_err("it is gone");
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
        store.store(1, &key, 0, &content).expect("room");
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
    assert!(store.bytes() > 0, "both processes listed their blocks");
}
