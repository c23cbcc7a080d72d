//! Frames and messages that were encoded before.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use inference::{EncodedMessage, PromptFrame};

use super::frame::{FrameKey, Unit};

/// The frames of the last conversations.
#[derive(Default)]
pub(super) struct FrameCache(VecDeque<(FrameKey, Arc<PromptFrame>)>);

impl FrameCache {
    /// Some chats, with and without thinking.
    const CAPACITY: usize = 8;

    pub fn get(&self, key: &FrameKey) -> Option<Arc<PromptFrame>> {
        let found = self.0.iter().find(|(of, _)| of == key);
        found.map(|(_, frame)| Arc::clone(frame))
    }

    pub fn insert(&mut self, key: FrameKey, frame: Arc<PromptFrame>) {
        self.0.truncate(Self::CAPACITY - 1);
        self.0.push_front((key, frame));
    }
}

/// Encoded messages in two generations: once the younger one is full, it takes the place of the older one. A message
/// that is used moves to the younger one.
#[derive(Default)]
pub(super) struct MessageCache {
    hashers: [RandomState; 2],
    young: HashMap<MessageKey, Arc<EncodedMessage>>,
    young_bytes: usize,
    old: HashMap<MessageKey, Arc<EncodedMessage>>,
}

/// Hash of everything that determines the ids. 128 bits with a random seed do not collide.
pub(super) type MessageKey = [u64; 2];

impl MessageCache {
    /// Bytes of one generation.
    const GENERATION: usize = 16 << 20;
    /// Bytes of an entry beside its ids, about.
    const ENTRY: usize = 128;

    pub fn key(&self, unit: Unit<'_>) -> MessageKey {
        let of = |at: usize| {
            self.hashers[at].hash_one((unit.around, unit.thinking, unit.code, unit.turns))
        };
        [of(0), of(1)]
    }

    pub fn get(&mut self, key: MessageKey) -> Option<Arc<EncodedMessage>> {
        if let Some(message) = self.young.get(&key) {
            return Some(Arc::clone(message));
        }
        let message = self.old.remove(&key)?;
        self.insert(key, Arc::clone(&message));
        Some(message)
    }

    pub fn insert(&mut self, key: MessageKey, message: Arc<EncodedMessage>) {
        let bytes = size_of_val(message.ids.as_slice()) + Self::ENTRY;
        if self.young_bytes + bytes > Self::GENERATION {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        self.young.insert(key, message);
    }
}

#[cfg(test)]
mod tests {
    use inference::{MessageFrame, Role, Turn};

    use super::*;

    #[test]
    fn messages_in_use_stay_and_others_go() {
        let mut cache = MessageCache::default();
        let message = |ids| {
            let ids = vec![0; ids];
            Arc::new(EncodedMessage { ids, thinking: 0 })
        };
        let quarter = MessageCache::GENERATION / size_of::<u32>() / 4;
        cache.insert([0, 0], message(1));
        cache.insert([0, 1], message(2));
        for n in 1..20 {
            cache.insert([n, 0], message(quarter));
            assert_eq!(cache.get([0, 0]).map(|it| it.ids.len()), Some(1), "{n}");
            let held = cache.young.len() + cache.old.len();
            assert!(held <= 10, "{held} messages");
        }
        assert_eq!(cache.get([0, 1]), None);
    }

    #[test]
    fn a_message_is_known_by_all_that_determines_its_ids() {
        let cache = MessageCache::default();
        let around = MessageFrame::default();
        let other = MessageFrame {
            after: " ".to_owned(),
            ..MessageFrame::default()
        };
        let turns = [
            Turn::new(Role::User, "Hi"),
            Turn::new(Role::User, "Hi "),
            Turn::new(Role::Tool, "Hi"),
        ];
        let key = |around, thinking, turns| {
            let unit = Unit {
                around,
                thinking,
                code: None,
                turns,
            };
            cache.key(unit)
        };
        let keys = [
            key(&around, false, &turns[..1]),
            key(&around, true, &turns[..1]),
            key(&other, false, &turns[..1]),
            key(&around, false, &turns[1..2]),
            key(&around, false, &turns[2..]),
            key(&around, false, &turns[..2]),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(one), "{at}");
        }
        assert_eq!(keys[0], key(&around, false, &turns[..1]));
    }
}
