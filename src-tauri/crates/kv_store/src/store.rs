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

use crate::key::BlockKey;
use crate::{block_file, chat_list};

/// From this age on, such a file was left by a process that ended.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

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
    /// Bytes that they take.
    bytes: u64,
    /// The lists of chats that were used since the opening.
    of_chats: HashMap<u64, HashSet<BlockKey>>,
}

/// A block's file.
struct StoredBlock {
    path: PathBuf,
    key: Option<BlockKey>,
    bytes: u64,
    used: SystemTime,
}

impl KvStore {
    /// Opens a folder, or makes it, and removes what is above the budget in bytes.
    ///
    /// # Errors
    /// When the folder cannot be made or listed.
    pub fn open(folder: &Path, budget: u64) -> Result<KvStore, KvStoreError> {
        let (blocks, lists) = (folder.join("blocks"), folder.join("chats"));
        for folder in [folder, &blocks, &lists] {
            system::private::folder(folder).map_err(KvStoreError::at(folder))?;
        }
        let mut store = KvStore {
            blocks,
            lists,
            budget,
            bytes: 0,
            of_chats: HashMap::new(),
        };
        store.evict()?;
        Ok(store)
    }

    /// Bytes that the blocks take.
    pub fn bytes(&self) -> u64 {
        self.bytes
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

    /// Passes the content of a sequence's blocks from the one at `first` on to `each`, up to the first that is not held in
    /// every byte, or that `each` refuses. A block is read and checked while `each` works on the one before.
    pub fn load(&self, keys: &[BlockKey], first: usize, each: &mut dyn FnMut(&[u8]) -> bool) {
        thread::scope(|scope| {
            let (found, blocks) = sync_channel(1);
            scope.spawn(move || {
                for (rank, key) in keys.iter().enumerate().skip(first) {
                    let Some(block) = self.read(key, rank) else {
                        return;
                    };
                    // An error means that `each` has refused one.
                    if found.send(block).is_err() {
                        return;
                    }
                }
            });
            for block in blocks {
                if !each(&block) {
                    return;
                }
            }
        });
    }

    fn read(&self, key: &BlockKey, rank: usize) -> Option<Vec<u8>> {
        let path = self.path(key);
        match block_file::read(&path, key) {
            Ok(Some(content)) => {
                touch(&path, rank);
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

    /// Keeps a block, which has `rank` blocks before it in its sequence, and counts it as used by `chat`.
    ///
    /// # Errors
    /// When it cannot be written. Where the disk is full, half of the blocks are removed.
    pub fn store(
        &mut self,
        chat: u64,
        key: &BlockKey,
        rank: usize,
        content: &[u8],
    ) -> Result<(), KvStoreError> {
        // First, so that no block is without a chat that it is erased with.
        self.claim(chat, key)?;
        let path = self.path(key);
        let written = block_file::write(&path, key, content).map_err(KvStoreError::at(&path));
        if let Err(error) = &written
            && error.is_disk_full()
        {
            self.evict_to(self.bytes / 2)?;
        }
        written?;
        touch(&path, rank);
        self.bytes += block_file::length(content.len());
        if self.bytes > self.budget {
            self.evict()?;
        }
        Ok(())
    }

    /// Counts a block as used by `chat`.
    ///
    /// # Errors
    /// When the chat's list cannot be written.
    pub fn claim(&mut self, chat: u64, key: &BlockKey) -> Result<(), KvStoreError> {
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

    /// Erases the blocks that none of these chats uses.
    ///
    /// # Errors
    /// When one cannot be removed, after all others.
    pub fn retain_chats(&mut self, chats: &[u64]) -> Result<(), KvStoreError> {
        let mut used = HashSet::new();
        let mut gone = Vec::new();
        for entry in entries(&self.lists)? {
            let chat = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            match chat.filter(|chat| chats.contains(chat)) {
                Some(_) => {
                    let path = entry.path();
                    used.extend(chat_list::read(&path).map_err(KvStoreError::at(&path))?);
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
        removed.into_iter().collect()
    }

    /// Removes blocks until they take no more than the budget.
    fn evict(&mut self) -> Result<(), KvStoreError> {
        self.evict_to(self.budget)
    }

    fn evict_to(&mut self, most: u64) -> Result<(), KvStoreError> {
        let mut blocks = self.stored()?;
        self.bytes = blocks.iter().map(|block| block.bytes).sum();
        blocks.sort_by_key(|block| block.used);
        for block in blocks {
            if self.bytes <= most {
                break;
            }
            remove(&block.path)?;
            self.bytes -= block.bytes;
        }
        Ok(())
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
                if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                    remove(&path)?;
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

/// Sets when a block was used: the later in its sequence, the earlier. Without it the block is evicted too early.
fn touch(path: &Path, rank: usize) {
    let earlier = Duration::from_millis(u64::try_from(rank).unwrap_or(u64::MAX).min(1 << 20));
    let used = SystemTime::now() - earlier;
    let file = File::options().append(true).open(path);
    if let Err(error) = file.and_then(|file| file.set_modified(used)) {
        tracing::debug!(file = %path.display(), %error, "when a block was used is not known");
    }
}
