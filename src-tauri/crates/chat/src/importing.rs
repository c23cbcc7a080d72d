//! Chats that come into a store from elsewhere: written a part at a time, hidden, and shown when all are there.

mod named;

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use store::{
    ChatId, FolderId, FolderRecord, IncomingChat, PresetId, PresetRecord, Store, StoreError,
    WholeChat, WrittenChat, later_uid,
};

use self::named::NamedRecords;
use crate::title;

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
    /// Folders that were made.
    pub folders: usize,
    /// Presets that were added.
    pub presets: usize,
    /// Names and instructions that were too long, and were cut.
    pub cut: usize,
    /// Folders and presets that were left out, because they cannot be here.
    pub left_out: usize,
}

impl ImportCounts {
    /// What was added, such as "3 chats, 1 folder and 2 presets"; `None`: nothing.
    #[must_use]
    pub fn of_added(&self) -> Option<String> {
        let kinds = [
            (self.added, "chat"),
            (self.folders, "folder"),
            (self.presets, "preset"),
        ];
        let words = kinds.into_iter().filter_map(|(number, kind)| match number {
            0 => None,
            1 => Some(format!("1 {kind}")),
            _ => Some(format!("{} {kind}s", figures::count(number))),
        });
        let mut words: Vec<String> = words.collect();
        let last = words.pop()?;
        Some(if words.is_empty() {
            last
        } else {
            format!("{} and {last}", words.join(", "))
        })
    }
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
    named: NamedRecords,
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
            named: NamedRecords::default(),
            counts: ImportCounts::default(),
        }
    }

    /// Adds a folder, unless there is one of its name.
    pub fn add_folder(&mut self, folder: FolderRecord) {
        self.named.add_folder(folder);
    }

    /// Adds a preset, unless there is one that is the same.
    pub fn add_preset(&mut self, preset: PresetRecord) {
        self.named.add_preset(preset);
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
        self.named.rename_in(&mut whole);
        if whole.chat.title.is_empty() {
            let texts = whole.messages.iter();
            let mut titles = texts.map(|message| title::from_message(&message.text));
            let title = titles.find(|title| !title.is_empty());
            whole.chat.title = title.unwrap_or_else(|| "Imported chat".to_owned());
        }
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
        let mut counts = ImportCounts {
            cut: self.named.cut,
            left_out: self.named.left_out,
            ..self.counts
        };
        let made = store.transaction(|store| {
            let made = self.named.make(store)?;
            let (folders, presets) = (&made.folder_of, &made.preset_of);
            store
                .records()
                .publish(self.mark, folders, presets, &self.chats)?;
            Ok::<_, StoreError>(made)
        })?;
        counts.folders = made.folders.len();
        counts.presets = made.presets.len();
        counts.left_out += made.left_out;
        Ok(Published {
            chats: self.chats.iter().map(|chat| chat.id).collect(),
            folders: made.folders,
            presets: made.presets,
            counts,
        })
    }
}
