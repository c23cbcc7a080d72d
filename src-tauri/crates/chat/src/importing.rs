//! Chats that come into a store from elsewhere: written a part at a time, hidden, and shown when all are there.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use store::{
    ChatId, FolderId, FolderRecord, IncomingChat, PresetId, PresetRecord, Store, StoreError,
    WholeChat, WrittenChat, later_uid,
};

/// Bytes of text that wait to be written together.
const TOGETHER: usize = 1 << 18;

/// What became of the chats of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Chats that were added.
    pub added: usize,
    /// Of these, later states of chats that were here.
    pub changed: usize,
    /// Chats that were left out: all that they say was here.
    pub known: usize,
}

/// An import, as far as it has come.
pub struct Importing {
    /// What hides its chats: a number below 0 that no other import has.
    mark: i64,
    waiting: VecDeque<IncomingChat>,
    waiting_bytes: usize,
    /// What was added.
    uids: HashSet<String>,
    chats: Vec<WrittenChat>,
    folders: Vec<FolderRecord>,
    presets: Vec<PresetRecord>,
    counts: ImportCounts,
}

/// What an import has brought.
pub(crate) struct Published {
    pub chats: Vec<ChatId>,
    /// That were not there.
    pub folders: Vec<FolderId>,
    pub presets: Vec<PresetId>,
    pub counts: ImportCounts,
}

impl Importing {
    /// Begins an import at this moment, in milliseconds.
    pub fn begin(at: i64) -> Importing {
        Importing {
            mark: -at,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            uids: HashSet::new(),
            chats: Vec::new(),
            folders: Vec::new(),
            presets: Vec::new(),
            counts: ImportCounts::default(),
        }
    }

    /// Adds a folder, unless there is one of its name.
    pub fn add_folder(&mut self, folder: FolderRecord) {
        self.folders.push(folder);
    }

    /// Adds a preset, unless there is one that is the same.
    pub fn add_preset(&mut self, preset: PresetRecord) {
        self.presets.push(preset);
    }

    /// Adds a chat, unless all that it says is here. Returns whether enough waits to be written.
    pub fn add(&mut self, store: &Store, mut whole: WholeChat) -> Result<bool, StoreError> {
        let records = store.records();
        if self.uids.contains(&whole.chat.uid) {
            // It may be among those that wait.
            while !self.write(store, Duration::MAX)? {}
        }
        let known = records.of_uid(&whole.chat.uid, self.mark)?;
        for chat in &known {
            if records.read(*chat)?.contains(&whole) {
                self.counts.known += 1;
                return Ok(false);
            }
        }
        if !known.is_empty() {
            self.counts.changed += 1;
            let uid = |number| later_uid(&whole.chat.uid, number);
            let mut number = known.len() + 1;
            while records.has_uid(&uid(number))? {
                number += 1;
            }
            whole.chat.uid = uid(number);
        }
        self.counts.added += 1;
        self.uids.insert(whole.chat.uid.clone());
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let texts = whole.messages.iter();
        self.waiting_bytes += texts
            .map(|message| message.text.len() + bytes(&message.thinking))
            .sum::<usize>();
        self.waiting.push_back(IncomingChat::new(whole));
        Ok(self.waiting_bytes >= TOGETHER)
    }

    /// Writes what waits, for at most the given time. Returns whether all is written.
    pub fn write(&mut self, store: &Store, within: Duration) -> Result<bool, StoreError> {
        let whole = store
            .records()
            .write(&mut self.waiting, self.mark, within)?;
        self.chats.extend(whole);
        let is_done = self.waiting.is_empty();
        if is_done {
            self.waiting_bytes = 0;
        }
        Ok(is_done)
    }

    /// Shows all chats at once. Returns what became of them.
    pub fn finish(self, store: &Store) -> Result<ImportCounts, StoreError> {
        Ok(self.publish(store)?.counts)
    }

    pub(crate) fn publish(self, store: &Store) -> Result<Published, StoreError> {
        let (folders, presets) =
            store
                .records()
                .publish(self.mark, &self.folders, &self.presets, &self.chats)?;
        Ok(Published {
            chats: self.chats.iter().map(|chat| chat.id).collect(),
            folders,
            presets,
            counts: self.counts,
        })
    }
}
