//! Summaries: a new chat that continues another one.
//!
//! The summary is requested by a message of the new chat, and written from the branch of the other one, so that its
//! cache is reused. From then on the new chat contains only the summary.

use inference::Role;
use store::{ChatId, DraftPlace, MessageId, MessageRow, MessageState, NewMessage, StoreError};

use crate::actor::state::{CURRENT, ChatActor};
use crate::actor::undo::Revert;
use crate::answers::AnswerStart;
use crate::failure::Failure;
use crate::view::ChatView;
use crate::{text, title};

/// Suffix of the titles of such chats.
const CONTINUED: &str = " (continued)";

/// Maximum characters of the title before it, which may be as long as a title gets.
const MOST: usize = 150;

/// Source of a summary.
pub(super) struct SummarySource {
    pub path: Vec<MessageRow>,
    /// The date in its prompts.
    pub today: String,
    /// True if its last answer was thought about: the header of its prompts says so.
    pub thinks: bool,
}

impl ChatActor {
    pub(crate) fn start_summary(&mut self, of: ChatId) -> Result<ChatView, Failure> {
        self.refuse_if_unsaved(of)?;
        let row = self.stores.chat(of)?;
        let path = self.stores.shown_path(&row)?;
        let is_answer = |row: &MessageRow| {
            row.role == Role::Assistant
                && (!row.progress.text.is_empty() || self.answers.has(row.id))
        };
        let leaf = path.last().filter(|_| path.iter().any(is_answer));
        let leaf = leaf
            .map(|row| row.id)
            .ok_or_else(|| Failure::other("There is nothing to sum up in this chat yet."))?;
        let now = self.clock.now();
        let at = now.timestamp().as_second();
        let title = title_after(&row.title)?;
        let chosen = self.stores.chosen_preset(Some(of))?;
        let (view, answer) = self.stores.of(of).transaction(|store| {
            let chat = store.chats().create(&title, &now.date().to_string(), at)?;
            let place = DraftPlace::Chat(chat);
            store.presets().choose(place, chosen.as_ref())?;
            store.chats().set_continues(chat, of)?;
            let question = NewMessage {
                chat,
                parent: None,
                role: Role::User,
                state: MessageState::Done,
                text: &summary_question(&row.title),
                thinks: false,
                created_at: at,
            };
            let asked = store.messages().add(&question)?;
            store.messages().set_prompt_leaf(asked, leaf)?;
            let answer = store.messages().add(&NewMessage {
                parent: Some(asked),
                role: Role::Assistant,
                state: MessageState::Writing,
                text: "",
                ..question
            })?;
            if !chat.is_temporary() {
                store.settings().set(CURRENT, &chat.0.into())?;
            }
            Ok::<_, Failure>((self.view(chat, None)?, answer))
        })?;
        let chat = view.chat.id;
        let revert = Revert::new(move |actor| actor.take_derived(chat, of));
        self.record(format!("started “{title}”"), chat, revert);
        Ok(self.queue_answer(view, answer, AnswerStart::New))
    }

    /// Returns the source for answers to a question with this `prompt_leaf`.
    pub(super) fn summary_source(&self, leaf: MessageId) -> Result<SummarySource, Failure> {
        let messages = self.stores.messages_with(leaf);
        let chat = messages.get(leaf).map_err(|error| match error {
            StoreError::NotFound(_) => Failure::other(
                "The chat that this sums up was deleted, so the summary cannot be written from it any more. \
                 Restore that chat first.",
            ),
            error => error.into(),
        })?;
        let path = messages.path(leaf)?;
        let answer = path.iter().rfind(|row| row.role == Role::Assistant);
        Ok(SummarySource {
            today: self.stores.of(chat.chat).chats().get(chat.chat)?.today,
            thinks: answer.is_some_and(|row| row.thinks),
            path,
        })
    }
}

/// Returns the question for a summary, which both the user and the model read.
fn summary_question(title: &str) -> String {
    format!(
        "Sum up our chat “{title}”, so that we can go on here: what it is about, what we found or decided, and what is \
         still open. Keep the names, figures and code that matter."
    )
}

fn title_after(title: &str) -> Result<String, Failure> {
    let before = title.strip_suffix(CONTINUED).unwrap_or(title);
    title::from_user(&format!("{}{CONTINUED}", text::cut(before, MOST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_says_once_that_it_goes_on() {
        let title = |before| title_after(before).expect("a title");
        assert_eq!(title("Goldcrests"), "Goldcrests (continued)");
        assert_eq!(title("Goldcrests (continued)"), "Goldcrests (continued)");
        assert!(title(&"é".repeat(200)).ends_with("… (continued)"));
    }
}
