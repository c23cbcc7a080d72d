//! Summaries: a new chat that continues another one.
//!
//! The summary is requested by a message of the new chat, and written from the branch of the other one, so that its
//! cache is reused. From then on the new chat contains only the summary.

use inference::Role;
use jiff::ZonedDateTime;
use store::{ChatId, ChatRow, DraftPlace, MessageId, MessageRow, Store, StoreError};

use crate::failure::Failure;
use crate::stores::Stores;
use crate::{branches, text, title};

/// Suffix of the titles of such chats.
const CONTINUED: &str = " (continued)";

/// Maximum characters of the title before it, which may be as long as a title gets.
const MOST: usize = 150;

/// Source of a summary.
pub(crate) struct SummarySource {
    pub path: Vec<MessageRow>,
    /// The date in its prompts.
    pub today: String,
    /// True if its last answer was thought about: the header of its prompts says so.
    pub thinks: bool,
}

impl SummarySource {
    /// Reads the source for answers to a question with this `prompt_leaf`.
    pub fn read(stores: &Stores, leaf: MessageId) -> Result<SummarySource, Failure> {
        let chat = stores.message(leaf).map_err(|error| match error {
            StoreError::NotFound(_) => Failure::other(
                "The chat that this sums up was deleted, so the summary cannot be written from it any more. \
                 Restore that chat first.",
            ),
            error => error.into(),
        })?;
        let path = stores.path(leaf)?;
        let answer = path.iter().rfind(|row| row.role == Role::Assistant);
        Ok(SummarySource {
            today: stores.chat(chat.chat)?.today,
            thinks: answer.is_some_and(|row| row.thinks),
            path,
        })
    }
}

/// Adds a chat that continues `of` after `leaf`, with the question for the summary. Returns it with the empty answer.
/// Within a transaction.
pub(crate) fn add(
    store: &Store,
    of: &ChatRow,
    leaf: MessageId,
    title: &str,
    now: &ZonedDateTime,
) -> Result<(ChatId, MessageId), StoreError> {
    let at = now.timestamp().as_second();
    let chat = store.chats().create(title, &now.date().to_string(), at)?;
    let presets = store.presets();
    let chosen = presets.of(DraftPlace::Chat(of.id))?;
    presets.choose(DraftPlace::Chat(chat), chosen.as_ref())?;
    store.chats().set_continues(chat, of.id)?;
    let question = summary_question(&of.title);
    let (asked, answer) = branches::add_question(store, chat, None, &question, false, at)?;
    store.messages().set_prompt_leaf(asked, leaf)?;
    Ok((chat, answer))
}

/// Returns the question for a summary, which both the user and the model read.
fn summary_question(title: &str) -> String {
    format!(
        "Sum up our chat “{title}”, so that we can go on here: what it is about, what we found or decided, and what is \
         still open. Keep the names, figures and code that matter."
    )
}

pub(crate) fn title_after(title: &str) -> Result<String, Failure> {
    let before = title.strip_suffix(CONTINUED).unwrap_or(title);
    title::from_user(&format!("{}{CONTINUED}", text::cut(before, MOST)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::tests::add_answer;

    #[test]
    fn the_title_says_once_that_it_goes_on() {
        let title = |before| title_after(before).expect("a title");
        assert_eq!(title("Goldcrests"), "Goldcrests (continued)");
        assert_eq!(title("Goldcrests (continued)"), "Goldcrests (continued)");
        assert!(title(&"é".repeat(200)).ends_with("… (continued)"));
    }

    #[test]
    fn a_summary_is_written_from_the_other_chat_until_that_is_gone() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (of, leaf) = add_answer(&stores.disk)?;
        let row = stores.chat(of)?;
        let now = "2026-03-09T10:00:00+00:00[UTC]".parse().expect("a time");
        let (chat, answer) = add(&stores.disk, &row, leaf, "A chat (continued)", &now)?;
        assert_eq!(stores.chat(chat)?.continues, Some(of));
        let question = stores.path(answer)?.remove(0);
        assert_eq!(question.prompt_leaf, Some(leaf));
        let source = SummarySource::read(&stores, leaf)?;
        assert_eq!((source.path.len(), source.today), (2, row.today));
        stores.disk.chats().delete(of, 10)?;
        let failure = SummarySource::read(&stores, leaf).err();
        assert!(failure.is_some_and(|failure| failure.message.contains("Restore that chat")));
        Ok(())
    }
}
