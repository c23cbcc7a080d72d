//! The folder of blocks and lists.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, SystemTime};

use system::regular;

use crate::key::BlockKey;
use crate::{block_file, chat_list};

/// From this age on, a temporary file was left by a process that ended: no block takes so long to write.
const ABANDONED: Duration = Duration::from_secs(60);

/// A block, a list or a folder cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct KvStoreError {
    path: PathBuf,
    source: io::Error,
}

impl KvStoreError {
    fn at(path: &Path) -> impl Fn(io::Error) -> KvStoreError + use<> {
        let path = path.to_owned();
        move |source| KvStoreError {
            path: path.clone(),
            source,
        }
    }

    /// Whether the disk is full.
    pub fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self.source.kind(), StorageFull | QuotaExceeded)
    }
}

/// Blocks of KV caches in a folder. Several processes may use one folder.
pub struct KvStore {
    blocks: PathBuf,
    lists: PathBuf,
    /// Bytes that all blocks may take.
    budget: u64,
    /// Bytes of the disk that stay free.
    reserve: u64,
    /// Bytes that they take.
    bytes: u64,
    /// The lists of chats that were used since the opening.
    of_chats: HashMap<u64, HashSet<BlockKey>>,
}

/// The folder of the blocks, to ask what is held while another thread has the [`KvStore`].
#[derive(Clone)]
pub struct KvBlockFolder(PathBuf);

impl KvBlockFolder {
    /// Whether there is a file for the block.
    pub fn holds(&self, key: &BlockKey) -> bool {
        self.0.join(key.to_string()).is_file()
    }
}

/// A block's file.
struct StoredBlock {
    path: PathBuf,
    key: Option<BlockKey>,
    bytes: u64,
    used: SystemTime,
}

impl KvStore {
    /// Opens a folder, or makes it, and removes what is above the budget in bytes. Blocks are written only while the disk
    /// has `reserve` bytes beside them.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: &Path, budget: u64, reserve: u64) -> Result<KvStore, KvStoreError> {
        let (blocks, lists) = (folder.join("blocks"), folder.join("chats"));
        for folder in [folder, &blocks, &lists] {
            system::private::folder(folder).map_err(KvStoreError::at(folder))?;
        }
        let mut store = KvStore {
            blocks,
            lists,
            budget,
            reserve,
            bytes: 0,
            of_chats: HashMap::new(),
        };
        if let Err(error) = store.evict_to(budget) {
            tracing::warn!(%error, "the KV caches on the disk take more than their budget");
        }
        Ok(store)
    }

    fn path(&self, key: &BlockKey) -> PathBuf {
        self.blocks.join(key.to_string())
    }

    fn list(&self, chat: u64) -> PathBuf {
        self.lists.join(chat.to_string())
    }

    /// Whether there is a file for the block.
    pub fn holds(&self, key: &BlockKey) -> bool {
        self.path(key).is_file()
    }

    /// The folder of the blocks, for other threads.
    pub fn blocks(&self) -> KvBlockFolder {
        KvBlockFolder(self.blocks.clone())
    }

    /// Passes the content of a sequence's blocks from the one at `first` on to `each`, up to the first that is not held in
    /// every byte, or that `each` refuses. A block is read and checked while `each` works on the one before. All of them
    /// count as used, with those before.
    pub fn load(&self, keys: &[BlockKey], first: usize, each: &mut dyn FnMut(&[u8]) -> bool) {
        let now = SystemTime::now();
        self.touch_all(&keys[..first.min(keys.len())], now);
        let blocks = || {
            let keys = keys.iter().enumerate().skip(first);
            keys.map_while(|(rank, key)| self.read(key, used(now, rank)))
        };
        thread::scope(|scope| {
            let (found, received) = sync_channel(1);
            let ahead = thread::Builder::new().name("kv-store".into());
            let spawned = ahead.spawn_scoped(scope, move || {
                // An error means that `each` has refused one.
                blocks().try_for_each(|block| found.send(block)).ok();
            });
            if let Err(error) = spawned {
                tracing::debug!(%error, "blocks of the KV cache are not read ahead");
                let _refused = blocks().all(|block| each(&block));
                return;
            }
            let _refused = received.into_iter().all(|block| each(&block));
        });
    }

    fn read(&self, key: &BlockKey, used: SystemTime) -> Option<Vec<u8>> {
        let path = self.path(key);
        match block_file::read(&path, key) {
            Ok(Some(content)) => {
                touch(&path, used);
                Some(content)
            }
            Ok(None) => {
                tracing::warn!(file = %path.display(), "a damaged block of the KV cache was removed");
                // One that stays is found damaged again.
                let _ = fs::remove_file(&path);
                None
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(file = %path.display(), %error, "a block of the KV cache was not read");
                }
                None
            }
        }
    }

    /// Keeps the block of the last of a sequence's keys, and counts it as used by `chat`, with those before. A block is
    /// not written where its sequence alone takes more than the budget: it would be the first to be evicted.
    ///
    /// # Errors
    /// When it cannot be written. Where the disk is full, half of the blocks are removed.
    pub fn store(
        &mut self,
        chat: u64,
        keys: &[BlockKey],
        content: &[u8],
    ) -> Result<(), KvStoreError> {
        let Some((key, before)) = keys.split_last() else {
            return Ok(());
        };
        let length = block_file::length(content.len());
        if length.saturating_mul(keys.len() as u64) > after_eviction(self.budget) {
            return Ok(());
        }
        let written = self.write(chat, key, content);
        self.freeing_a_full_disk(written)?;
        let now = SystemTime::now();
        touch(&self.path(key), used(now, before.len()));
        self.touch_all(before, now);
        self.bytes += length;
        if self.bytes > self.budget {
            self.evict_to(after_eviction(self.budget))?;
        }
        Ok(())
    }

    fn write(&mut self, chat: u64, key: &BlockKey, content: &[u8]) -> Result<(), KvStoreError> {
        let path = self.path(key);
        let needed = self
            .reserve
            .saturating_add(block_file::length(content.len()));
        if self.has_less_than(needed) {
            return Err(KvStoreError::at(&path)(io::ErrorKind::StorageFull.into()));
        }
        // First, so that no block is without a chat that it is erased with.
        self.list_block(chat, key)?;
        block_file::write(&path, key, content).map_err(KvStoreError::at(&path))
    }

    /// Whether the disk has less free space. Where that is not known, writing shows it.
    fn has_less_than(&self, bytes: u64) -> bool {
        fs4::available_space(&self.blocks).is_ok_and(|free| free < bytes)
    }

    /// Removes half of the blocks where the disk has less free space than the reserve.
    ///
    /// # Errors
    /// When too many of them cannot be removed.
    pub fn make_room(&mut self) -> Result<(), KvStoreError> {
        if self.has_less_than(self.reserve) {
            self.evict_to(self.bytes / 2)?;
        }
        Ok(())
    }

    /// Counts the block of the last of a sequence's keys as used by `chat`, with those before.
    ///
    /// # Errors
    /// When the chat's list cannot be written. Where the disk is full, half of the blocks are removed.
    pub fn claim(&mut self, chat: u64, keys: &[BlockKey]) -> Result<(), KvStoreError> {
        let Some(key) = keys.last() else {
            return Ok(());
        };
        let listed = self.list_block(chat, key);
        self.freeing_a_full_disk(listed)?;
        self.touch_all(keys, SystemTime::now());
        Ok(())
    }

    fn list_block(&mut self, chat: u64, key: &BlockKey) -> Result<(), KvStoreError> {
        let path = self.list(chat);
        let at = KvStoreError::at(&path);
        let listed = match self.of_chats.entry(chat) {
            Entry::Occupied(listed) => listed.into_mut(),
            Entry::Vacant(unread) => unread.insert(chat_list::read(&path).map_err(&at)?),
        };
        if !listed.contains(key) {
            chat_list::append(&path, key).map_err(at)?;
            listed.insert(*key);
        }
        Ok(())
    }

    fn freeing_a_full_disk(
        &mut self,
        written: Result<(), KvStoreError>,
    ) -> Result<(), KvStoreError> {
        if written.as_ref().is_err_and(KvStoreError::is_disk_full) {
            self.evict_to(self.bytes / 2)?;
        }
        written
    }

    /// The blocks of the start of a sequence are used.
    fn touch_all(&self, keys: &[BlockKey], now: SystemTime) {
        for (rank, key) in keys.iter().enumerate() {
            touch(&self.path(key), used(now, rank));
        }
    }

    /// Erases the blocks that none of these chats uses, or that only a list names that cannot be read.
    ///
    /// # Errors
    /// When a list cannot be read, or a block cannot be removed, after all others.
    pub fn retain_chats(&mut self, chats: &[u64]) -> Result<(), KvStoreError> {
        let mut used = HashSet::new();
        let mut gone = Vec::new();
        let mut unread = Ok(());
        for entry in entries(&self.lists)? {
            let chat = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            match chat.filter(|chat| chats.contains(chat)) {
                Some(_) => {
                    let path = entry.path();
                    match chat_list::read(&path) {
                        Ok(keys) => used.extend(keys),
                        Err(error) => unread = Err(KvStoreError::at(&path)(error)),
                    }
                }
                None => gone.push(entry.path()),
            }
        }
        let blocks = self.stored()?;
        let unused = |block: &&StoredBlock| block.key.is_none_or(|key| !used.contains(&key));
        let unused = blocks.iter().filter(unused).map(|block| &block.path);
        // The lists go last: where this ends in between, it goes on the next time.
        let removed: Vec<_> = unused.chain(&gone).map(|path| remove(path)).collect();
        self.of_chats.retain(|chat, _| chats.contains(chat));
        self.bytes = self.stored()?.iter().map(|block| block.bytes).sum();
        removed.into_iter().collect::<Result<(), _>>().and(unread)
    }

    /// Removes blocks until they take no more than `most`, which is an error where too many of them cannot be removed.
    fn evict_to(&mut self, most: u64) -> Result<(), KvStoreError> {
        let mut blocks = self.stored()?;
        self.bytes = blocks.iter().map(|block| block.bytes).sum();
        blocks.sort_by_key(|block| block.used);
        let mut stuck = Ok(());
        for block in blocks {
            if self.bytes <= most {
                return Ok(());
            }
            match remove(&block.path) {
                Ok(()) => self.bytes -= block.bytes,
                Err(error) => stuck = Err(error),
            }
        }
        stuck
    }

    /// All blocks. What processes that ended have left is removed.
    fn stored(&self) -> Result<Vec<StoredBlock>, KvStoreError> {
        let mut blocks = Vec::new();
        for entry in entries(&self.blocks)? {
            let (path, name) = (entry.path(), entry.file_name());
            // Another process may just have removed it.
            let Ok(file) = entry.metadata() else { continue };
            let used = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if is_temporary(&name) {
                if used.elapsed().is_ok_and(|age| age > ABANDONED)
                    && let Err(error) = remove(&path)
                {
                    tracing::debug!(%error, "a temporary file was not removed");
                }
                continue;
            }
            blocks.push(StoredBlock {
                key: name.to_str().and_then(|name| name.parse().ok()),
                bytes: file.len(),
                path,
                used,
            });
        }
        Ok(blocks)
    }
}

fn is_temporary(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(block_file::TEMPORARY)
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, KvStoreError> {
    let listed = fs::read_dir(folder).and_then(Iterator::collect);
    listed.map_err(KvStoreError::at(folder))
}

/// Removes a file that may be gone.
fn remove(path: &Path) -> Result<(), KvStoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(KvStoreError::at(path)(error)),
        _ => Ok(()),
    }
}

/// Bytes that are left of a budget when it was exceeded: less, so that not every block that is stored evicts one.
fn after_eviction(budget: u64) -> u64 {
    budget / 10 * 9
}

/// When the block with `rank` blocks before it counts as used in a sequence that is used `now`: the later, the earlier, so
/// that of a sequence the end is evicted first.
fn used(now: SystemTime, rank: usize) -> SystemTime {
    now - Duration::from_millis(u64::try_from(rank).unwrap_or(u64::MAX).min(1 << 20))
}

/// Sets when a block was used. Without it the block is evicted too early.
fn touch(path: &Path, used: SystemTime) {
    let file = regular::open(path, File::options().append(true));
    if let Err(error) = file.and_then(|file| file.set_modified(used)) {
        tracing::debug!(file = %path.display(), %error, "when a block was used is not known");
    }
}
