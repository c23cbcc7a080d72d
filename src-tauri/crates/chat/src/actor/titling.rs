//! Titles made by the model. The request follows the conversation in memory and is then removed from its cache
//! ([`generate_aside`](crate::model_host::ModelHost::generate_aside)), so that a title costs the chat no prefill.

use inference::{GenerateParams, Sampling};
use store::{ChatId, MessageId};

use crate::actor::state::ChatActor;
use crate::failure::Failure;
use crate::job::Job;
use crate::model_host::ModelInfo;
use crate::title;

const QUESTION: &str = "Give this chat a title of at most six words, in the language of my messages. \
     Answer with the title alone.";
/// Maximum messages of a chat that still gets a title: an answer may have kept the model from the first try.
const FIRST_MESSAGES: usize = 4;
const MAX_TOKENS: usize = 32;

impl ChatActor {
    /// Requests a title, in idle time, for a chat that has its first answer.
    pub(super) fn ask_for_title(&mut self, chat: ChatId, answer: MessageId) {
        match self.title_job(chat, answer) {
            Ok(Some(job)) => self.jobs.queue(job),
            Ok(None) => {}
            Err(failure) => tracing::warn!(code = failure.code.name(), "no title was asked for"),
        }
    }

    fn title_job(&self, chat: ChatId, answer: MessageId) -> Result<Option<Job>, Failure> {
        // The bundled model is too small: its titles are sentences about the task.
        let wanted = |info: &&ModelInfo| self.settings.model_titles && !info.bundled_model;
        let Some(info) = self.model.info().filter(wanted) else {
            return Ok(None);
        };
        let path = self.stores.path(answer)?;
        let row = self.stores.chat(chat)?;
        let Some(answer) = path.last().filter(|_| path.len() <= FIRST_MESSAGES) else {
            return Ok(None);
        };
        if row.leaf != Some(answer.id) || !self.has_first_title(chat)? {
            return Ok(None);
        }
        let mut request = self.turn_of_draft(Some(chat), QUESTION, answer.thinks, info)?;
        request.params = GenerateParams {
            sampling: Sampling {
                temperature: 0.0,
                ..request.params.sampling
            },
            max_tokens: Some(MAX_TOKENS),
            thinking_budget: Some(0),
            ..GenerateParams::default()
        };
        Ok(Some(Job::Title { chat, request }))
    }

    /// Applies a title from the model. One that the user gave meanwhile stays.
    pub(super) fn titled(&mut self, chat: ChatId, answer: &str) {
        let titled = || {
            if let Some(title) = title::from_model(answer)
                && self.has_first_title(chat)?
            {
                self.stores.of(chat).chats().rename(chat, &title)?;
                self.emit_changed(chat)?;
            }
            Ok::<_, Failure>(())
        };
        if let Err(failure) = titled() {
            tracing::warn!(code = failure.code.name(), "a title was not kept");
        }
    }

    /// Returns whether a chat still has the title that was made of its first message.
    fn has_first_title(&self, chat: ChatId) -> Result<bool, Failure> {
        let messages = self.stores.of(chat).messages();
        let Some(first) = messages.children(chat, None)?.first().copied() else {
            return Ok(false);
        };
        let first = messages.get(first)?.progress.text;
        Ok(self.stores.chat(chat)?.title == title::from_message(&first))
    }
}
