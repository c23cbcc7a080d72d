//! The tree of messages: questions, other answers, other versions, and deletion. Each function runs within a transaction
//! of its store, unless it only reads.

use inference::{Parts, Role};
use store::{
    ChatId, MessageId, MessageRow, MessageState, MessageTable, NewMessage, Store, StoreError,
};

use crate::failure::Failure;
use crate::limits::refuse_too_large;
use crate::title;

/// Added messages: a version or an answer, and the last message below it.
#[derive(Clone, Copy)]
pub(crate) struct Added {
    pub chat: ChatId,
    pub first: MessageId,
    pub last: MessageId,
}

/// Adds a question with an empty answer. Returns both.
pub(crate) fn add_question(
    store: &Store,
    chat: ChatId,
    parent: Option<MessageId>,
    text: &str,
    thinks: bool,
    at: i64,
) -> Result<(MessageId, MessageId), StoreError> {
    let asked = store.messages().add(&NewMessage {
        parts: Parts::of_text(text),
        thinks,
        ..user(chat, parent, at)
    })?;
    let answer = add_answer(store, chat, asked, thinks, at)?;
    Ok((asked, answer))
}

/// Adds an empty answer to a question.
pub(crate) fn add_answer(
    store: &Store,
    chat: ChatId,
    asked: MessageId,
    thinks: bool,
    at: i64,
) -> Result<MessageId, StoreError> {
    store.chats().touch(chat, at)?;
    store.messages().add(&NewMessage {
        role: Role::Assistant,
        state: MessageState::Writing,
        thinks,
        ..user(chat, Some(asked), at)
    })
}

/// Adds another version of a message, with an empty answer if it is `answered`, with or without thinking. Returns the
/// version, and the answer.
pub(crate) fn add_version(
    store: &Store,
    of: &MessageRow,
    text: &str,
    answered: Option<bool>,
    at: i64,
) -> Result<(Added, Option<MessageId>), StoreError> {
    let first = store.messages().add(&NewMessage {
        parts: of.progress.parts.with_text(text),
        role: of.role,
        thinks: answered.unwrap_or(of.thinks),
        ..user(of.chat, of.parent, at)
    })?;
    if let Some(leaf) = of.prompt_leaf {
        store.messages().set_prompt_leaf(first, leaf)?;
    }
    store.chats().touch(of.chat, at)?;
    let answer = answered.map(|thinks| add_answer(store, of.chat, first, thinks, at));
    let answer = answer.transpose()?;
    let added = Added {
        chat: of.chat,
        first,
        last: answer.unwrap_or(first),
    };
    Ok((added, answer))
}

/// Hides a message with its descendants from `at`, or restores it; then shows the branch that ends with `leaf`.
pub(crate) fn hide(
    store: &Store,
    message: MessageId,
    at: Option<i64>,
    leaf: Option<MessageId>,
) -> Result<(), StoreError> {
    let messages = store.messages();
    match at {
        Some(at) => messages.delete(message, at)?,
        None => messages.undelete(message)?,
    }
    leaf.map_or(Ok(()), |leaf| messages.show(leaf))
}

/// Returns whether the chat was continued after these messages.
pub(crate) fn goes_on(messages: &MessageTable<'_>, added: Added) -> Result<bool, StoreError> {
    let Added { chat, first, last } = added;
    let children = |of| messages.children(chat, Some(of));
    Ok(!children(last)?.is_empty() || first != last && children(first)? != [last])
}

/// Describes a message for a label.
pub(crate) fn described(row: &MessageRow) -> String {
    match row.role {
        Role::Assistant => "an answer".to_owned(),
        _ => format!("“{}”", title::from_message(&row.progress.parts.text())),
    }
}

/// Returns the text of a message from the user, without blank lines around it.
pub(crate) fn message_text(text: &str) -> Result<&str, Failure> {
    refuse_too_large(text)?;
    match text.trim_start_matches(['\n', '\r']).trim_end() {
        text if text.trim().is_empty() => Err(Failure::other("The message is empty.")),
        text => Ok(text),
    }
}

fn user(chat: ChatId, parent: Option<MessageId>, created_at: i64) -> NewMessage {
    NewMessage {
        chat,
        parent,
        role: Role::User,
        state: MessageState::Done,
        parts: Parts::default(),
        thinks: false,
        created_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::tests::add_answer as chat_with_answer;

    #[test]
    fn a_version_is_a_sibling_that_the_source_of_its_prompt_comes_with() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let (_, leaf) = chat_with_answer(&store)?;
        let (chat, answer) = chat_with_answer(&store)?;
        let messages = store.messages();
        let asked = messages.path(answer)?.remove(0);
        messages.set_prompt_leaf(asked.id, leaf)?;
        let asked = messages.get(asked.id)?;
        let (added, written) = add_version(&store, &asked, "And where?", Some(true), 9)?;
        assert_eq!(Some(added.last), written);
        assert_eq!(messages.children(chat, None)?, [asked.id, added.first]);
        let version = messages.get(added.first)?;
        assert_eq!((version.prompt_leaf, version.thinks), (Some(leaf), true));
        assert_eq!(store.chats().get(chat)?.leaf, written, "it is shown");
        let (added, written) = add_version(&store, &version, "And when?", None, 9)?;
        assert_eq!((written, added.last), (None, added.first));
        Ok(())
    }

    #[test]
    fn a_hidden_version_gives_way_to_the_branch_before_it() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let (chat, before) = chat_with_answer(&store)?;
        let messages = store.messages();
        let asked = messages.path(before)?.remove(0);
        let (added, _) = add_version(&store, &asked, "And where?", Some(false), 9)?;
        hide(&store, added.first, Some(10), Some(before))?;
        let shown = || store.chats().get(chat).map(|row| row.leaf);
        assert_eq!(shown()?, Some(before));
        assert!(messages.get(added.last).is_err());
        hide(&store, added.first, None, Some(added.last))?;
        assert_eq!(shown()?, Some(added.last));
        Ok(())
    }

    #[test]
    fn messages_that_were_continued_or_answered_again_go_on() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let (chat, answer) = chat_with_answer(&store)?;
        let messages = store.messages();
        let first = messages.path(answer)?.remove(0).id;
        let last = answer;
        let added = Added { chat, first, last };
        assert!(!goes_on(&messages, added)?);
        let again = add_answer(&store, chat, first, false, 9)?;
        assert!(goes_on(&messages, added)?, "it has another answer");
        messages.delete(again, 10)?;
        assert!(!goes_on(&messages, added)?);
        add_question(&store, chat, Some(last), "And where?", false, 9)?;
        assert!(goes_on(&messages, added)?, "it was continued");
        Ok(())
    }
}
