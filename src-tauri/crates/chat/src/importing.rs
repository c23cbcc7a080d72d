//! Import of chats from elsewhere: written in parts, hidden, and published when all are there.

mod named;
mod states;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use store::{
    ChatHere, ChatId, ChatRecords, FolderId, FolderRecord, ImportedNames, IncomingChat, PresetId,
    PresetRecord, Store, StoreError, WholeChat, WrittenChat, later_uid,
};

use self::named::NamedRecords;
use self::states::{StateOf, States, said};
use crate::title;

/// Bytes of text that are batched for a write.
const TOGETHER: usize = 1 << 18;

/// Counts of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Chats that were added.
    pub added: usize,
    /// Added chats that are later states of chats that were here.
    pub changed: usize,
    /// Chats left out because everything in them was here.
    pub known: usize,
    /// Folders created.
    pub folders: usize,
    /// Presets that were added.
    pub presets: usize,
    /// Names and instructions that were too long, and were truncated.
    pub cut: usize,
    /// Folders and presets left out because they are not valid here.
    pub left_out: usize,
}

impl ImportCounts {
    /// Describes what was added, such as "3 chats, 1 folder and 2 presets"; `None` if nothing was.
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

/// An import in progress.
pub struct Importing {
    /// Mark that hides its chats: a number below 0 that no other import has.
    mark: i64,
    /// Start, in seconds: later times in the import are clamped to it.
    now: i64,
    waiting: VecDeque<IncomingChat>,
    waiting_bytes: usize,
    /// Outcome of the chats that came, by their original uids.
    came: HashMap<String, Came>,
    /// Uids of the chats that were added.
    taken: HashSet<String>,
    chats: Vec<WrittenChat>,
    named: NamedRecords,
    counts: ImportCounts,
}

/// Outcome of the chats that came with one uid.
#[derive(Default)]
struct Came {
    became: Vec<Became>,
    /// Contents of these chats and of those that were here; computed when a second one comes.
    states: Option<States>,
}

/// Outcome of one chat: it was added, or everything in it was here.
struct Became {
    /// Number of chats that were added before it.
    before: usize,
    of: StateOf,
    /// Indices of its messages in the other state; `None` if they are the same.
    places: Option<Vec<u32>>,
}

/// Result of a published import.
pub(crate) struct Published {
    pub chats: Vec<ChatId>,
    /// Folders that were created.
    pub folders: Vec<FolderId>,
    pub presets: Vec<PresetId>,
    pub counts: ImportCounts,
}

impl Importing {
    /// Begins an import at this time, in seconds.
    pub fn begin(store: &Store, now: i64) -> Result<Importing, StoreError> {
        Ok(Importing {
            mark: store.records().free_mark()?,
            now,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            came: HashMap::new(),
            taken: HashSet::new(),
            chats: Vec::new(),
            named: NamedRecords::default(),
            counts: ImportCounts::default(),
        })
    }

    /// Adds a folder, unless there is one of its name.
    pub fn add_folder(&mut self, folder: FolderRecord) {
        self.named.add_folder(folder);
    }

    /// Adds a preset, unless there is an equal one.
    pub fn add_preset(&mut self, preset: PresetRecord) {
        self.named.add_preset(preset);
    }

    /// Adds a chat, unless everything in it is here. Returns whether enough is batched for a write.
    pub fn add(&mut self, store: &Store, whole: WholeChat) -> Result<bool, StoreError> {
        let uid = whole.chat.uid.clone();
        let came = self.came.get_mut(&uid);
        let is_second = came.is_some();
        let mut states = match came.and_then(|came| came.states.take()) {
            Some(states) => states,
            None => {
                if is_second {
                    // The first may be among those that are still batched.
                    while !self.write(store, Duration::MAX)? {}
                }
                States::read(&store.records(), &uid, self.mark)?
            }
        };
        let said = said(&whole);
        let before = self.counts.added;
        let (of, places) = match states.containing(&said) {
            Some(found) => {
                self.counts.known += 1;
                found
            }
            None => {
                self.add_new(&store.records(), whole, &mut states)?;
                let of = StateOf::Added(before);
                states.add(of, said);
                (of, None)
            }
        };
        let came = self.came.entry(uid).or_default();
        came.became.push(Became { before, of, places });
        came.states = is_second.then_some(states);
        Ok(self.waiting_bytes >= TOGETHER)
    }

    /// Adds a chat that is not here. `states`: the known states of this chat.
    fn add_new(
        &mut self,
        records: &ChatRecords<'_>,
        mut whole: WholeChat,
        states: &mut States,
    ) -> Result<(), StoreError> {
        self.counts.added += 1;
        self.counts.changed += usize::from(!states.is_empty());
        let chat = &mut whole.chat;
        if !states.is_empty() || self.taken.contains(&chat.uid) {
            chat.uid = self.free_uid(records, &chat.uid, states)?;
        }
        self.taken.insert(chat.uid.clone());
        // A chat from a clock that was ahead would stand above all others.
        chat.updated_at = chat.updated_at.min(self.now);
        self.named.rename_in(&mut whole);
        if !title::can_be_seen(&whole.chat.title) {
            let mut texts = whole.messages.iter();
            let title = texts.find_map(|message| title::from_words(&message.parts.text()));
            whole.chat.title = title.unwrap_or_else(|| "Imported chat".to_owned());
        }
        let texts = whole.messages.iter();
        self.waiting_bytes += texts.map(|message| message.parts.bytes()).sum::<usize>();
        self.waiting.push_back(IncomingChat::new(whole));
        Ok(())
    }

    fn free_uid(
        &self,
        records: &ChatRecords<'_>,
        uid: &str,
        states: &mut States,
    ) -> Result<String, StoreError> {
        loop {
            states.number += 1;
            let later = later_uid(uid, states.number);
            if !self.taken.contains(&later) && !records.has_uid(&later)? {
                return Ok(later);
            }
        }
    }

    /// Writes the batched chats for at most the given time. Returns whether all are written.
    pub fn write(&mut self, store: &Store, within: Duration) -> Result<bool, StoreError> {
        if !self.waiting.is_empty() {
            store.check_room()?;
        }
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

    /// Publishes all chats at once. Returns the counts.
    pub fn finish(self, store: &Store) -> Result<ImportCounts, StoreError> {
        Ok(self.publish(store)?.counts)
    }

    pub(crate) fn publish(self, store: &Store) -> Result<Published, StoreError> {
        let Importing {
            mark,
            came,
            chats,
            named,
            counts,
            ..
        } = self;
        let mut counts = ImportCounts {
            cut: named.cut,
            left_out: named.left_out,
            ..counts
        };
        let here: HashMap<String, Vec<(usize, ChatHere)>> = came
            .into_iter()
            .map(|(uid, came)| (uid, came.here(&chats)))
            .collect();
        let made = store.transaction(|store| {
            let made = named.make(store)?;
            let names = ImportedNames {
                folders: &made.folder_of,
                presets: &made.preset_of,
                chats: &|at, uid| state_for(at, here.get(uid)?),
            };
            store.records().publish(mark, &names, &chats)?;
            Ok::<_, StoreError>(made)
        })?;
        counts.folders = made.folders.len();
        counts.presets = made.presets.len();
        counts.left_out += made.left_out;
        Ok(Published {
            chats: chats.iter().map(|chat| chat.id).collect(),
            folders: made.folders,
            presets: made.presets,
            counts,
        })
    }
}

impl Came {
    /// Returns the states here, each with the number of chats that were added before it.
    fn here(self, added: &[WrittenChat]) -> Vec<(usize, ChatHere)> {
        let here = |it: Became| {
            let id = match it.of {
                StateOf::Here(id) => id,
                StateOf::Added(at) => added.get(at)?.id,
            };
            let places = it.places;
            Some((it.before, ChatHere { id, places }))
        };
        self.became.into_iter().filter_map(here).collect()
    }
}

/// Returns the state to which the chat added as the `at`th refers among those of one uid: the last before it, else the
/// first after it.
fn state_for(at: usize, states: &[(usize, ChatHere)]) -> Option<&ChatHere> {
    let behind = states.partition_point(|(before, _)| *before <= at);
    let (_, state) = states.get(behind.saturating_sub(1))?;
    Some(state)
}
