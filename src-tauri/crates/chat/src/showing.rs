//! Conversion of rows for display.

use std::collections::HashMap;

use inference::Part;
use store::{ChatId, ChatRow, DraftPlace, MessageId, MessageRow, Store};

use crate::answers::AnswerQueue;
use crate::bin::BIN;
use crate::failure::{Failure, FailureCode};
use crate::stores::Stores;
use crate::view::{AnswerStats, CallStatus, ChatSummary, ChatView, Message, Omitted, ReadFrom};

/// Number of messages below which siblings are queried one by one; from it on, those of the whole chat at once.
const FEW: usize = 50;

/// Siblings by parent.
type Siblings = HashMap<Option<MessageId>, Vec<MessageId>>;

/// Returns a chat as the list shows it.
pub(crate) fn summary(answers: &AnswerQueue, row: ChatRow) -> ChatSummary {
    ChatSummary {
        writing: answers.of_chat(row.id).is_some(),
        id: row.id,
        title: row.title,
        created_at: row.created_at,
        updated_at: row.updated_at,
        continues: row.continues,
        folder: row.folder,
        pinned: row.pinned_at.is_some(),
        archived: row.archived_at.is_some(),
        temporary: row.id.is_temporary(),
        purge_at: row.deleted_at.map(|at| at + BIN),
    }
}

/// Returns the shown branch of a chat, after the message `after`.
pub(crate) fn view(
    stores: &Stores,
    answers: &AnswerQueue,
    chat: ChatId,
    after: Option<MessageId>,
) -> Result<ChatView, Failure> {
    let store = stores.of(chat);
    // A chat in the bin can be read.
    let row = store.chats().get_with_deleted(chat)?;
    let leaf = answers.unsaved.leaf(chat).or(row.leaf);
    let path = match leaf.filter(|_| leaf != after) {
        Some(leaf) => store.messages().path_after(after, leaf)?,
        None => Vec::new(),
    };
    let after = path.first().map_or(after, |row| row.parent);
    let messages = if path.len() < FEW {
        let shown = path
            .into_iter()
            .map(|row| one_message(stores, answers, row));
        shown.collect::<Result<_, Failure>>()?
    } else {
        let siblings = siblings(store, chat)?;
        let of = |row: &MessageRow| siblings.get(&row.parent).cloned().unwrap_or_default();
        let shown = path.into_iter().map(|row| {
            let siblings = of(&row);
            message(answers, row, siblings)
        });
        shown.collect()
    };
    Ok(ChatView {
        chat: summary(answers, row),
        after,
        messages,
        draft: store.drafts().get(DraftPlace::Chat(chat))?,
        preset: stores.chosen_preset(Some(chat))?,
    })
}

/// Returns one message for display.
pub(crate) fn one_message(
    stores: &Stores,
    answers: &AnswerQueue,
    row: MessageRow,
) -> Result<Message, Failure> {
    let messages = stores.messages_with(row.id);
    let siblings = messages.children(row.chat, row.parent)?;
    Ok(message(answers, row, siblings))
}

fn siblings(store: &Store, chat: ChatId) -> Result<Siblings, Failure> {
    let mut siblings = Siblings::new();
    for (message, parent) in store.messages().tree(chat)? {
        siblings.entry(parent).or_default().push(message);
    }
    Ok(siblings)
}

fn message(answers: &AnswerQueue, mut row: MessageRow, siblings: Vec<MessageId>) -> Message {
    let seq = answers.lay_over(&mut row);
    let call = answers.calling.view(row.id);
    if let Some(call) = call.as_ref().filter(|it| it.status == CallStatus::Runs) {
        // It is for the case of a crash.
        let is_result = |part: &Part| matches!(part, Part::ToolResult { id, .. } if *id == call.id);
        row.progress.parts.0.retain(|part| !is_result(part));
    }
    let error = row
        .error
        .map(|error| Failure::new(FailureCode::from_name(&error.code), error.message));
    let omitted = Omitted {
        messages: row.omitted.messages,
        thinking: row.omitted.thinking,
    };
    let omits = omitted != Omitted::default();
    let read_from = ReadFrom {
        message: row.omitted.kept_from,
        thinking: row.omitted.thinking_from,
        again: row.read_again,
    };
    Message {
        id: row.id,
        parent: row.parent,
        role: row.role,
        parts: row.progress.parts,
        thinking_ms: row.progress.thinking_ms,
        thinks: row.thinks,
        length: row.length,
        guide: row.progress.guide,
        state: row.state,
        stats: row.stats.and_then(AnswerStats::from_stored),
        error,
        omitted: omits.then_some(omitted),
        read_from: omits.then_some(read_from),
        created_at: row.created_at,
        siblings,
        seq,
        calls: call.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::branches;
    use crate::stores::tests::add_answer;

    #[test]
    fn the_shown_branch_is_the_unsaved_one_and_begins_where_it_is_asked_to() -> Result<(), Failure>
    {
        let stores = Stores::new(Store::in_memory()?)?;
        let mut answers = AnswerQueue::new(Duration::ZERO);
        let (chat, first) = add_answer(&stores.disk)?;
        let asked = stores.message(first)?.parent;
        let question = asked.expect("a question");
        let second = branches::add_answer(&stores.disk, chat, question, false, 9)?;
        let shown = |answers: &AnswerQueue, after| {
            let view = view(&stores, answers, chat, after)?;
            let ids = view.messages.iter().map(|message| message.id);
            Ok::<_, Failure>(ids.collect::<Vec<_>>())
        };
        assert_eq!(shown(&answers, None)?, [question, second]);
        answers.unsaved.hold_leaf(chat, first);
        assert_eq!(shown(&answers, None)?, [question, first]);
        assert_eq!(shown(&answers, asked)?, [first]);
        let row = stores.message(first)?;
        let siblings = one_message(&stores, &answers, row)?.siblings;
        assert_eq!(siblings, [first, second]);
        Ok(())
    }
}
