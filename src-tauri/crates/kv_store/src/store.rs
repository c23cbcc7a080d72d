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

/// Age from which a temporary file is stale: no block takes so long to write, so the process has ended.
const ABANDONED: Duration = Duration::from_secs(60);

/// Error of a block, a list or a folder that cannot be written or read.
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

    /// Returns whether the disk is full.
    pub fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self.source.kind(), StorageFull | QuotaExceeded)
    }
}

/// Blocks of KV caches in a folder. Several processes may use one folder.
pub struct KvStore {
    blocks: PathBuf,
    lists: PathBuf,
    /// Maximum bytes of all blocks.
    budget: u64,
    /// Free bytes to leave on the disk.
    reserve: u64,
    /// Bytes that the blocks take.
    bytes: u64,
    /// Lists of the chats that were used since the store was opened.
    of_chats: HashMap<u64, HashSet<BlockKey>>,
}

/// Folder of the blocks, for lookups while another thread has the [`KvStore`].
#[derive(Clone)]
pub struct KvBlockFolder(PathBuf);

impl KvBlockFolder {
    /// Returns whether there is a file for the block.
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
    /// Opens or creates a folder, and evicts blocks above the budget in bytes. Blocks are written only while the disk
    /// has `reserve` bytes beside them.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
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

    /// Returns whether there is a file for the block.
    pub fn holds(&self, key: &BlockKey) -> bool {
        self.path(key).is_file()
    }

    /// Returns the folder of the blocks, for other threads.
    pub fn blocks(&self) -> KvBlockFolder {
        KvBlockFolder(self.blocks.clone())
    }

    /// Passes the content of a sequence's blocks from the one at `first` on to `each`, up to the first that is missing
    /// or damaged, or that `each` refuses. A block is read and checked while `each` works on the one before. All of
    /// them, and those before `first`, count as used.
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
                // An error means that `each` has refused a block.
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
                // If it cannot be removed, it is found damaged again.
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

    /// Stores the block of the last of a sequence's keys, and counts it and those before as used by `chat`. A block is
    /// not written if its sequence alone exceeds the budget: it would be the first to be evicted.
    ///
    /// # Errors
    /// Fails if it cannot be written. If the disk is full, half of the blocks are removed.
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
        // The list comes first, so that every block has a chat that it is erased with.
        self.list_block(chat, key)?;
        block_file::write(&path, key, content).map_err(KvStoreError::at(&path))
    }

    /// Returns whether the disk has less free space. If that is unknown, the write shows it.
    fn has_less_than(&self, bytes: u64) -> bool {
        fs4::available_space(&self.blocks).is_ok_and(|free| free < bytes)
    }

    /// Removes half of the blocks if the disk has less free space than the reserve.
    ///
    /// # Errors
    /// Fails if too many of them cannot be removed.
    pub fn make_room(&mut self) -> Result<(), KvStoreError> {
        if self.has_less_than(self.reserve) {
            self.evict_to(self.bytes / 2)?;
        }
        Ok(())
    }

    /// Counts the block of the last of a sequence's keys as used by `chat`, with those before.
    ///
    /// # Errors
    /// Fails if the chat's list cannot be written. If the disk is full, half of the blocks are removed.
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

    /// Marks the blocks of the start of a sequence as used.
    fn touch_all(&self, keys: &[BlockKey], now: SystemTime) {
        for (rank, key) in keys.iter().enumerate() {
            touch(&self.path(key), used(now, rank));
        }
    }

    /// Erases the blocks that none of these chats uses, including those that only an unreadable list names.
    ///
    /// # Errors
    /// Fails if a list cannot be read, or a block cannot be removed; all others are erased first.
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
        // The lists go last: if the process ends in between, the next call finishes.
        let removed: Vec<_> = unused.chain(&gone).map(|path| remove(path)).collect();
        self.of_chats.retain(|chat, _| chats.contains(chat));
        self.bytes = self.stored()?.iter().map(|block| block.bytes).sum();
        removed.into_iter().collect::<Result<(), _>>().and(unread)
    }

    /// Evicts blocks until they take no more than `most`; an error if too many of them cannot be removed.
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

    /// Lists all blocks, and removes temporary files of processes that have ended.
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

/// Removes a file that may not exist any more.
fn remove(path: &Path) -> Result<(), KvStoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(KvStoreError::at(path)(error)),
        _ => Ok(()),
    }
}

/// Returns the bytes to keep once a budget is exceeded: less than the budget, so that not every stored block evicts
/// one.
fn after_eviction(budget: u64) -> u64 {
    budget / 10 * 9
}

/// Returns the time of use of the block with `rank` blocks before it, in a sequence that is used `now`: earlier blocks
/// get later times, so that the end of a sequence is evicted first.
fn used(now: SystemTime, rank: usize) -> SystemTime {
    now - Duration::from_millis(u64::try_from(rank).unwrap_or(u64::MAX).min(1 << 20))
}

/// Sets the time of use. If that fails the block is evicted too early.
fn touch(path: &Path, used: SystemTime) {
    let file = regular::open(path, File::options().append(true));
    if let Err(error) = file.and_then(|file| file.set_modified(used)) {
        tracing::debug!(file = %path.display(), %error, "when a block was used is not known");
    }
}
