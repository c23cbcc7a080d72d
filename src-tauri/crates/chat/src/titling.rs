//! Titles made by the model. The request follows the conversation in memory and is then removed from its cache
//! ([`Priority::Title`](inference::Priority::Title)), so that a title costs the chat no prefill.

use inference::{GenerateParams, Sampling};
use store::{ChatId, MessageId, Store, StoreError};

use crate::failure::Failure;
use crate::fit::TurnRequest;
use crate::title;
use crate::turn::TurnBuilder;

const QUESTION: &str = "Give this chat a title of at most six words, in the language of my messages. \
     Answer with the title alone.";
/// Maximum messages of a chat that still gets a title: an answer may have kept the model from the first try.
const FIRST_MESSAGES: usize = 4;
const MAX_TOKENS: usize = 32;

/// Returns the request for a title of a chat that has its first answer; `None` if it gets none.
pub(crate) fn request(
    turns: &TurnBuilder<'_>,
    chat: ChatId,
    answer: MessageId,
) -> Result<Option<TurnRequest>, Failure> {
    // The bundled model is too small: its titles are sentences about the task.
    if !turns.settings.model_titles || turns.info.bundled_model {
        return Ok(None);
    }
    let path = turns.stores.path(answer)?;
    let row = turns.stores.chat(chat)?;
    let Some(answer) = path.last().filter(|_| path.len() <= FIRST_MESSAGES) else {
        return Ok(None);
    };
    if row.leaf != Some(answer.id) || !has_first_title(turns.stores.of(chat), chat)? {
        return Ok(None);
    }
    let mut request = turns.draft(Some(chat), QUESTION, answer.thinks)?;
    request.params = GenerateParams {
        sampling: Sampling {
            temperature: 0.0,
            ..request.params.sampling
        },
        max_tokens: Some(MAX_TOKENS),
        thinking_budget: Some(0),
        ..GenerateParams::default()
    };
    Ok(Some(request))
}

/// Applies a title from the model. One that the user gave meanwhile stays. Returns whether it was applied.
pub(crate) fn apply(store: &Store, chat: ChatId, answer: &str) -> Result<bool, Failure> {
    let Some(title) = title::from_model(answer) else {
        return Ok(false);
    };
    let is_first = has_first_title(store, chat)?;
    if is_first {
        store.chats().rename(chat, &title)?;
    }
    Ok(is_first)
}

/// Returns whether a chat still has the title that was made of its first message.
fn has_first_title(store: &Store, chat: ChatId) -> Result<bool, StoreError> {
    let messages = store.messages();
    let Some(first) = messages.children(chat, None)?.first().copied() else {
        return Ok(false);
    };
    let first = messages.get(first)?.progress.parts.text().into_owned();
    Ok(store.chats().get(chat)?.title == title::from_message(&first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::tests::add_answer;

    #[test]
    fn a_title_that_the_user_gave_stays() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let (chat, answer) = add_answer(&store)?;
        let title = || store.chats().get(chat).map(|row| row.title);
        assert!(!apply(&store, chat, "Goldcrest nests")?);
        assert_eq!(title()?, "A chat");
        let asked = store
            .messages()
            .path(answer)?
            .remove(0)
            .progress
            .parts
            .text()
            .into_owned();
        store.chats().rename(chat, &title::from_message(&asked))?;
        assert!(!apply(&store, chat, "")?, "no title");
        assert!(apply(&store, chat, "Goldcrest nests")?);
        assert_eq!(title()?, "Goldcrest nests");
        assert!(!apply(&store, chat, "Nests of goldcrests")?);
        Ok(())
    }
}
