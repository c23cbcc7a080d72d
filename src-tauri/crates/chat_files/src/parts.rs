//! The wire form of chats between two processes of the app: a message at a time, so that neither holds a chat twice.

use std::mem;

use serde::{Deserialize, Serialize};
use store::{ChatRecord, FolderRecord, MessageRecord, PresetRecord, WholeChat};

use crate::file_reading::Item;

/// A piece of an [`Item`].
#[derive(Serialize, Deserialize)]
pub enum ItemPart {
    /// A file begins.
    File(String),
    /// A folder.
    Folder(FolderRecord),
    /// A preset.
    Preset(PresetRecord),
    /// A chat, and the number of messages that follow.
    Chat(ChatRecord, usize),
    /// The next message of a chat.
    Message(MessageRecord),
}

impl ItemPart {
    /// The pieces of a chat.
    pub fn of_chat(whole: &WholeChat) -> impl Iterator<Item = ItemPart> {
        let chat = ItemPart::Chat(whole.chat.clone(), whole.messages.len());
        let messages = whole.messages.iter().cloned().map(ItemPart::Message);
        std::iter::once(chat).chain(messages)
    }
}

/// Assembles pieces, in order, into items again.
#[derive(Default)]
pub struct ItemParts(Option<(WholeChat, usize)>);

impl ItemParts {
    /// Takes the next piece. Returns the item that it completes.
    ///
    /// # Errors
    /// Fails if the piece does not follow the previous ones.
    pub fn add(&mut self, part: ItemPart) -> Result<Option<Item>, Misplaced> {
        let (mut whole, missing) = match (mem::take(&mut self.0), part) {
            (None, ItemPart::File(name)) => return Ok(Some(Item::File(name))),
            (None, ItemPart::Folder(folder)) => return Ok(Some(Item::Folder(folder))),
            (None, ItemPart::Preset(preset)) => return Ok(Some(Item::Preset(preset))),
            (None, ItemPart::Chat(chat, messages)) => {
                let whole = WholeChat {
                    chat,
                    messages: Vec::new(),
                };
                (whole, messages)
            }
            (Some((mut whole, missing)), ItemPart::Message(message)) => {
                whole.messages.push(message);
                (whole, missing - 1)
            }
            _ => return Err(Misplaced),
        };
        if missing == 0 {
            whole.messages.shrink_to_fit();
            return Ok(Some(Item::Chat(whole)));
        }
        self.0 = Some((whole, missing));
        Ok(None)
    }
}

/// A piece out of order.
#[derive(Debug, thiserror::Error)]
#[error("a part is in the wrong place")]
pub struct Misplaced;

#[cfg(test)]
mod tests {
    use store::Role;

    use super::*;

    fn whole(messages: u32) -> WholeChat {
        let message = |id| MessageRecord::new(id, Role::User, format!("text {id}"), 5);
        WholeChat {
            chat: ChatRecord::new("uid".into(), "Title".into(), "2026-03-05".into(), 5, None),
            messages: (1..=messages).map(message).collect(),
        }
    }

    #[test]
    fn a_chat_comes_out_of_its_parts_as_it_was() {
        let mut parts = ItemParts::default();
        for messages in [0, 1, 3] {
            let sent = whole(messages);
            let count = ItemPart::of_chat(&sent).count();
            for (at, part) in ItemPart::of_chat(&sent).enumerate() {
                let line = serde_json::to_vec(&part).expect("plain data");
                let part = serde_json::from_slice(&line).expect("the same");
                let item = parts.add(part).expect("in its place");
                match item {
                    None => assert!(at + 1 < count),
                    Some(Item::Chat(whole)) => {
                        assert_eq!(at + 1, count);
                        assert_eq!(whole.chat, sent.chat);
                        let texts = |whole: &WholeChat| {
                            let texts = whole
                                .messages
                                .iter()
                                .map(|message| message.parts.text().into_owned());
                            texts.collect::<Vec<_>>()
                        };
                        assert_eq!(texts(&whole), texts(&sent));
                    }
                    Some(_) => panic!("it is a chat"),
                }
            }
        }
    }

    #[test]
    fn what_belongs_to_nothing_is_refused() {
        let message = || ItemPart::Message(MessageRecord::new(1, Role::User, String::new(), 5));
        assert!(ItemParts::default().add(message()).is_err());
        for part in [ItemPart::File("a".into()), ItemPart::Chat(whole(0).chat, 0)] {
            let mut parts = ItemParts::default();
            let begun = parts.add(ItemPart::Chat(whole(0).chat, 2));
            assert!(begun.is_ok_and(|item| item.is_none()));
            assert!(parts.add(part).is_err());
        }
    }
}
