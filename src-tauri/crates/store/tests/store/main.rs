//! The store, table by table, and the file as a whole.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chats;
mod copies;
mod crashing;
mod drafts;
mod messages;
mod opening;
mod private;
mod recovering;
mod search;
mod settings;
mod upgrading;
mod windows;

use store::{ChatId, MessageId, MessageState, NewMessage, Role, Store};

/// A chat with its first message.
fn chat(store: &Store, title: &str, text: &str) -> (ChatId, MessageId) {
    let chat = store.chats().create(title, "2026-03-05", 100).unwrap();
    (chat, say(store, chat, None, text))
}

/// A whole message of the user's.
fn say(store: &Store, chat: ChatId, parent: Option<MessageId>, text: &str) -> MessageId {
    let state = MessageState::Done;
    let role = Role::User;
    let created_at = 100;
    let message = NewMessage {
        chat,
        parent,
        role,
        state,
        text,
        thinks: false,
        created_at,
    };
    store.messages().add(&message).unwrap()
}

/// An answer that is being written.
fn answer(store: &Store, chat: ChatId, parent: MessageId) -> MessageId {
    let message = NewMessage {
        chat,
        parent: Some(parent),
        role: Role::Assistant,
        state: MessageState::Writing,
        text: "",
        thinks: true,
        created_at: 101,
    };
    store.messages().add(&message).unwrap()
}
