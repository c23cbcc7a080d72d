//! State of a chat, in a form for comparison.

use std::path::Path;

use chat::{ChatView, Message, ModelInfo, ModelView};
use store::{MessageRow, Store};

/// Returns the open model.
pub fn open(model: &ModelView) -> &ModelInfo {
    model.status.ready().expect("an open model")
}

/// Returns the last message of the latest chat, as it is in the file.
pub fn last_row(path: &Path) -> MessageRow {
    let store = Store::open(path).unwrap();
    let leaf = store.chats().list().unwrap()[0].leaf.unwrap();
    store.messages().get(leaf).unwrap()
}

/// Returns the texts of a view.
pub fn texts(view: &ChatView) -> Vec<String> {
    view.messages.iter().map(Message::text).collect()
}
