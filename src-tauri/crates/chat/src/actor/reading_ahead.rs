//! Prefill of messages that are not sent yet.

use store::ChatId;

use super::state::{ChatActor, DraftAhead};
use crate::failure::Failure;
use crate::job::Job;
use crate::limits::refuse_too_large;
use crate::model_host::NEW_CHAT;

impl ChatActor {
    /// Prefills the draft of a message, or without one the chat, as soon as the model is idle.
    pub(crate) fn read_ahead(
        &mut self,
        chat: Option<ChatId>,
        text: &str,
        thinking: bool,
    ) -> Result<(), Failure> {
        refuse_too_large(text)?;
        let text = text.trim_start_matches(['\n', '\r']).trim_end();
        let draft = DraftAhead {
            chat,
            text: text.to_owned(),
            thinking,
        };
        self.ahead_next = self.settings.read_ahead.then_some(draft);
        self.read_next_ahead()
    }

    /// Starts the pending prefill. It stays pending while a model loads or an answer is written.
    pub(super) fn read_next_ahead(&mut self) -> Result<(), Failure> {
        let is_free = !self.answers.busy() && !self.model.opening() && self.model.wanted.is_none();
        let Some(info) = self.model.info().filter(|_| is_free) else {
            return Ok(());
        };
        let Some(draft) = self.ahead_next.take() else {
            return Ok(());
        };
        let request = self.turn_of_draft(draft.chat, &draft.text, draft.thinking, info)?;
        if request.conversation.messages.is_empty() {
            return Ok(());
        }
        let chat = draft.chat.unwrap_or(NEW_CHAT);
        let job = Job::ReadAhead { chat, request };
        // A prefill of its beginning is not in vain.
        if self.ahead.as_ref().is_some_and(|it| draft.continues(it)) {
            self.queue_job(job);
        } else {
            self.submit_job(job);
        }
        self.ahead = Some(draft);
        Ok(())
    }
}
