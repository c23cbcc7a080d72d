//! Usage of the context, and the parts left out of it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use inference::Turn;
use store::{ChatId, MessageId, MessageRow};

use crate::actor::counted::{CountedBranch, LastCut};
use crate::actor::state::ChatActor;
use crate::actor::summary::SummarySource;
use crate::actor::turn::{asking_for, history_turn};
use crate::actor::undo::Revert;
use crate::context::ContextUsage;
use crate::counting::{CountRequest, CountedPlace};
use crate::failure::Failure;
use crate::fit::Limits;
use crate::limits::refuse_too_large;
use crate::model_host::{ModelInfo, PromptCounter};
use crate::view::ChatView;

/// Receives `None` if messages are missing: all must then be counted again.
pub(crate) type CountReply = Receiver<Result<Option<ContextUsage>, Failure>>;

impl ChatActor {
    /// Requests a count of the next prompt of a chat, or of a new one; `None` if no model is open.
    pub(crate) fn count_context(
        &mut self,
        chat: Option<ChatId>,
        draft: &str,
        pasted: u32,
        thinking: bool,
        afresh: bool,
    ) -> Result<Option<CountReply>, Failure> {
        refuse_too_large(draft)?;
        let Some((info, counter)) = self.model.info().zip(self.model.counter().cloned()) else {
            return Ok(None);
        };
        let row = chat.map(|chat| self.stores.chat(chat));
        let row = row.transpose()?;
        let leaf = row
            .as_ref()
            .and_then(|row| self.answers.unsaved.leaf(row.id).or(row.leaf));
        let summary = leaf.and_then(|leaf| self.summary_under_way(leaf));
        let thinking = summary.as_ref().map_or(thinking, |of| of.thinks) && info.can_think;
        let place = CountedPlace {
            chat,
            model: info.fingerprint.clone(),
            thinking,
        };
        let before = self.counted.take();
        let before = before.filter(|it| it.place == place && !afresh && summary.is_none());
        let mut path = match leaf {
            Some(leaf) => {
                let known = before.as_ref().and_then(|it| it.up_to);
                self.stores.messages_with(leaf).path_after(known, leaf)?
            }
            None => Vec::new(),
        };
        let after = path.first().and_then(|row| row.parent);
        let mut cut = match before {
            Some(before) if after.is_some() => before.cut,
            _ => LastCut::default(),
        };
        let (last, others) = path.split_last().unzip();
        others
            .unwrap_or_default()
            .iter()
            .for_each(|row| cut.pass(row));
        let up_to = last.and_then(|row| row.parent);
        let counted = CountedBranch {
            place: place.clone(),
            up_to,
            cut,
        };
        let written = last.and_then(|row| self.answers.buffer(row.id));
        let written = written.map(|buffer| buffer.tokens);
        if let Some(last) = last.filter(|_| written != Some(0)) {
            cut.pass(last);
        }
        let is_summary = summary.is_some();
        let today = match summary {
            Some(of) => {
                path.splice(0..0, of.path);
                of.today
            }
            None => row.map(|row| row.today).unwrap_or_default(),
        };
        let lengths = path.iter().skip(1).map(|row| row.length).chain([None]);
        let guidance = self.guidance(chat)?;
        let (reply, replied) = channel();
        let request = CountRequest {
            counter,
            place,
            max_tokens: self.params(&guidance, info, thinking).max_tokens,
            conversation: self.conversation(&today, Vec::new(), thinking, guidance),
            limits: Limits::of(info),
            after,
            messages: path
                .iter()
                .zip(lengths)
                .map(|(row, length)| {
                    let turn = self.counted_turn(row, thinking, info);
                    (row.id, turn.map(|turn| asking_for(length, turn)))
                })
                .collect(),
            before: cut.omitted,
            whole: cut.whole,
            written: written.filter(|tokens| *tokens > 0),
            draft: draft.trim_start_matches(['\n', '\r']).trim_end().to_owned(),
            pasted: pasted as usize,
            reply,
        };
        // After a summary only the summary itself counts.
        self.counted = (!is_summary).then_some(counted);
        if self.counting.send(request).is_err() {
            tracing::error!("the counting thread has ended");
        }
        Ok(Some(replied))
    }

    /// Returns the source of the summary that is being written at the end of a branch, if there is one.
    fn summary_under_way(&self, leaf: MessageId) -> Option<SummarySource> {
        self.answers.buffer(leaf)?;
        let messages = self.stores.messages_with(leaf);
        let question = messages.get(leaf).ok()?.parent?;
        let of = messages.get(question).ok()?.prompt_leaf?;
        self.summary_source(of).ok()
    }

    /// Lets the next answer read the parts that this one left out.
    pub(crate) fn read_again(&mut self, answer: MessageId) -> Result<ChatView, Failure> {
        let row = self.stores.message(answer)?;
        self.refuse_change(row.chat)?;
        let revert = self.set_read_again(answer, true)?;
        let title = self.stores.of(row.chat).chats().get(row.chat)?.title;
        self.record(format!("read all of “{title}” again"), row.chat, revert);
        self.view(row.chat, row.parent)
    }

    fn set_read_again(&mut self, answer: MessageId, again: bool) -> Result<Revert, Failure> {
        self.stores
            .messages_with(answer)
            .set_read_again(answer, again)?;
        self.counted = None;
        Ok(Revert::new(move |actor| {
            actor.set_read_again(answer, !again)
        }))
    }

    /// Returns a message as the next prompt contains it; `None` if it does not.
    fn counted_turn(&self, row: &MessageRow, thinking: bool, info: &ModelInfo) -> Option<Turn> {
        let Some(buffer) = self.answers.buffer(row.id) else {
            let says = !row.progress.text.is_empty();
            return says.then(|| history_turn(row, thinking, &info.fingerprint));
        };
        let progress = buffer.flushed(Instant::now());
        let row = MessageRow {
            progress,
            ..row.clone()
        };
        let begun = buffer.tokens > 0 || !row.progress.text.is_empty();
        begun.then(|| history_turn(&row, thinking, &info.fingerprint))
    }

    /// Returns the counter for texts on the caller's thread; `None` if no model is open.
    pub(crate) fn prompt_counter(&self) -> Option<Arc<dyn PromptCounter>> {
        self.model.counter().cloned()
    }
}
