//! States of one chat, stored or imported, with the messages of each.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use store::{ChatId, ChatRecords, MessageRecord, StoreError, WholeChat};

/// A chat with messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateOf {
    /// Stored in the database.
    Here(ChatId),
    /// Added by this import, by its number.
    Added(usize),
}

/// The states of the chats of one uid.
#[derive(Default)]
pub(super) struct States {
    all: Vec<(StateOf, Vec<u64>)>,
    /// The states that have a message.
    having: HashMap<u64, Vec<usize>>,
    /// The number of the last [`store::later_uid`] that was tried.
    pub number: usize,
}

/// Returns a hash of the content of each message, in order. Its date does not count: if a program gives none, the
/// message has the date of the import.
pub(super) fn said(whole: &WholeChat) -> Vec<u64> {
    let hash = |message: &MessageRecord| {
        let MessageRecord { role, parts, .. } = message;
        let mut hasher = DefaultHasher::new();
        (role, parts).hash(&mut hasher);
        hasher.finish()
    };
    whole.messages.iter().map(hash).collect()
}

impl States {
    /// Reads the states in the database, some of which an import with this mark may have written.
    pub fn read(records: &ChatRecords<'_>, uid: &str, mark: i64) -> Result<States, StoreError> {
        let mut states = States::default();
        for chat in records.of_uid(uid, mark)? {
            states.add(StateOf::Here(chat), said(&records.read(chat)?));
        }
        states.number = states.all.len().max(1);
        Ok(states)
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn add(&mut self, of: StateOf, said: Vec<u64>) {
        for message in &said {
            let having = self.having.entry(*message).or_default();
            if having.last() != Some(&self.all.len()) {
                having.push(self.all.len());
            }
        }
        self.all.push((of, said));
    }

    /// Finds a state that contains all of these messages, and the index of each there; `None` for the indices if they
    /// are the same. Compares only the states that have the rarest message.
    pub fn containing(&self, said: &[u64]) -> Option<(StateOf, Option<Vec<u32>>)> {
        if said.is_empty() {
            return self.all.first().map(|(of, _)| (*of, None));
        }
        let having = |message| self.having.get(message).map_or(&[][..], Vec::as_slice);
        let fewest = said.iter().map(having).min_by_key(|states| states.len())?;
        fewest.iter().find_map(|at| {
            let (of, there) = &self.all[*at];
            if there.starts_with(said) {
                return Some((*of, None));
            }
            Some((*of, Some(places(there, said)?)))
        })
    }
}

/// Returns the index of each message in another state; `None` if one is missing there, or occurs less often.
fn places(there: &[u64], said: &[u64]) -> Option<Vec<u32>> {
    let mut at: HashMap<u64, VecDeque<u32>> = HashMap::new();
    for (place, message) in (1..).zip(there) {
        at.entry(*message).or_default().push_back(place);
    }
    let place = |message| at.get_mut(message)?.pop_front();
    said.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_contains_what_it_has_as_often() {
        let mut states = States::default();
        assert_eq!(states.containing(&[]), None);
        let here = StateOf::Here(ChatId(7));
        states.add(here, vec![1, 2, 2, 3]);
        states.add(StateOf::Added(0), vec![1, 4, 4]);
        let same = Some((here, None));
        for (said, found) in [
            (&[][..], same.clone()),
            (&[1], same.clone()),
            (&[1, 2, 2, 3], same.clone()),
            (&[3, 2, 1], Some((here, Some(vec![4, 2, 1])))),
            (&[2, 2], Some((here, Some(vec![2, 3])))),
            (&[2, 2, 2], None),
            (&[1, 3, 4], None),
            (&[1, 2, 2, 3, 3], None),
            (&[4, 1], Some((StateOf::Added(0), Some(vec![2, 1])))),
            (&[5], None),
        ] {
            assert_eq!(states.containing(said), found, "{said:?}");
        }
    }
}
