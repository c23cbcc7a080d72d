//! Drafts: their rows, and their prefill before they are sent.

use store::{ChatId, QueuedMessage};

use crate::actor::state::ChatActor;
use crate::context_counter::{CountReply, NextMessage};
use crate::failure::Failure;
use crate::job::Job;
use crate::limits::{refuse_too_large, refuse_too_large_together};
use crate::model_host::NEW_CHAT;
use crate::read_ahead::DraftAhead;
use crate::turn::TurnBuilder;

impl ChatActor {
    pub(crate) fn save_draft(&mut self, chat: Option<ChatId>, text: &str) -> Result<(), Failure> {
        refuse_too_large(text)?;
        if !text.trim().is_empty() {
            // A message is being typed: the model must be ready when it is sent.
            self.use_model();
        }
        let place = self.stores.draft_place(chat)?;
        Ok(self.stores.at(place).drafts().set(place, text)?)
    }

    pub(crate) fn save_pastes(
        &self,
        chat: Option<ChatId>,
        pastes: &[String],
    ) -> Result<(), Failure> {
        refuse_too_large_together(pastes.iter().map(String::len))?;
        let place = self.stores.draft_place(chat)?;
        Ok(self.stores.at(place).drafts().set_pastes(place, pastes)?)
    }

    pub(crate) fn save_queue(&self, chat: ChatId, queue: &[QueuedMessage]) -> Result<(), Failure> {
        refuse_large_queue(queue)?;
        let place = self.stores.draft_place(Some(chat))?;
        Ok(self.stores.at(place).drafts().set_queue(place, queue)?)
    }

    /// Requests a count of the next prompt of a chat; `None` if no model is open. `afresh`: all messages are counted
    /// again.
    pub(crate) fn count_context(
        &mut self,
        next: &NextMessage<'_>,
        afresh: bool,
    ) -> Result<Option<CountReply>, Failure> {
        refuse_too_large(next.draft)?;
        if afresh {
            self.context.forget();
        }
        let today = self.clock.now().date();
        let turns = TurnBuilder::new(
            &self.stores,
            &self.settings,
            &self.model,
            &self.tools,
            today,
        );
        let counted = turns.map(|turns| self.context.count(&turns, &self.answers, next));
        Ok(counted.transpose()?.flatten())
    }

    /// Prefills the draft of a message, or without one the chat, as soon as the model is idle.
    pub(crate) fn read_ahead(
        &mut self,
        chat: Option<ChatId>,
        text: &str,
        thinking: bool,
    ) -> Result<(), Failure> {
        refuse_too_large(text)?;
        let text = text.trim_start_matches(['\n', '\r']).trim_end().to_owned();
        let draft = DraftAhead {
            chat,
            text,
            thinking,
        };
        let draft = self.settings.read_ahead.then_some(draft);
        self.ahead.set_next(draft);
        self.read_next_ahead()
    }

    /// Starts the pending prefill. It stays pending while a model loads or an answer is written.
    pub(super) fn read_next_ahead(&mut self) -> Result<(), Failure> {
        if self.answers.busy() || self.model.changes() || self.model.info().is_none() {
            return Ok(());
        }
        let Some((draft, turns)) = self.ahead.take_next().zip(self.turns()) else {
            return Ok(());
        };
        let request = turns.draft(draft.chat, &draft.text, draft.thinking)?;
        if request.conversation.messages.is_empty() {
            return Ok(());
        }
        let chat = draft.chat.unwrap_or(NEW_CHAT);
        let job = Job::ReadAhead { chat, request };
        // A pass of another program's answer is not ended for it.
        if self.ahead.begin(draft) || self.answers_programs() {
            self.jobs.queue(job);
        } else {
            self.jobs.submit(job);
        }
        Ok(())
    }
}

pub(super) fn refuse_large_queue(queue: &[QueuedMessage]) -> Result<(), Failure> {
    let bytes = |message: &QueuedMessage| {
        message.text.len() + message.pastes.iter().map(String::len).sum::<usize>()
    };
    refuse_too_large_together(queue.iter().map(bytes))
}
