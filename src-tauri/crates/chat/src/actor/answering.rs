//! The way of an answer: queued, begun, written and saved.

use std::time::{Duration, Instant};

use guide::{Guide, Topic};
use inference::{Parts, TokenKind};
use store::{ChatId, MessageId, MessageRow, MessageState, OmittedRow, Progress, StoreError};

use crate::actor::state::{ChatActor, check_if_failed};
use crate::answer_buffer::AnswerBuffer;
use crate::answers::unsaved::AnswerEnd;
use crate::answers::{AnswerStart, WaitingAnswer};
use crate::failure::{Failure, FailureCode};
use crate::fit::Truncation;
use crate::job::{AnswerRun, GeneratedAnswer, Job};
use crate::reading::Reading;
use crate::rounds;
use crate::view::{ChatEvent, ChatView, Message, Stage};
use crate::{showing, titling};

/// Least words of a later question of a chat that the guide answers: a shorter one, such as "shorter", may refer to what
/// was said before.
const WORDS_WITHIN_CHAT: usize = 4;

impl ChatActor {
    /// Queues the answer to a message in this view, which was read before the message was committed: committed work
    /// does not fail any more. Returns the updated view.
    pub(super) fn queue_answer(
        &mut self,
        mut view: ChatView,
        message: MessageId,
        start: AnswerStart,
    ) -> ChatView {
        let chat = view.chat.id;
        self.answers.queue(WaitingAnswer {
            chat,
            message,
            start,
        });
        view.chat.writing = true;
        let mut messages = view.messages.iter_mut();
        if let Some(answer) = messages.rfind(|it| it.id == message) {
            answer.state = MessageState::Writing;
        }
        self.emit(ChatEvent::ChatChanged {
            chat: view.chat.clone(),
        });
        self.emit(ChatEvent::Stage {
            chat,
            message,
            stage: Stage::Waiting,
        });
        view
    }

    /// Passes the queued answers to the model.
    pub(super) fn begin_answers(&mut self) {
        let mut has_called = false;
        for waiting in self.answers.take_waiting() {
            if self.waits_for_another(&waiting) {
                self.answers.queue(waiting);
            } else if self.has_open_calls(&waiting) {
                self.begin_calls(waiting.chat, waiting.message);
                has_called = true;
            } else if let Some(topic) = self.guide_topic(&waiting) {
                self.settle(guide_answer(&waiting, topic));
            } else if let Err(failure) = self.begin(&waiting) {
                self.settle(AnswerEnd::failed(waiting.chat, waiting.message, failure));
            }
        }
        if has_called && self.answers.any_waiting() {
            // Calls that could not be run have their results already.
            self.begin_answers();
        }
    }

    /// Returns whether a question is about another chat whose answer is in progress.
    fn waits_for_another(&self, waiting: &WaitingAnswer) -> bool {
        let other = self.question(waiting).and_then(|it| it.prompt_leaf);
        other.is_some_and(|message| self.answers.has(message))
    }

    /// Returns the message that an answer is to.
    fn question(&self, waiting: &WaitingAnswer) -> Option<MessageRow> {
        let messages = self.stores.messages_with(waiting.message);
        let answer = messages.get(waiting.message).ok()?;
        messages.get(answer.parent?).ok()
    }

    fn begin(&mut self, waiting: &WaitingAnswer) -> Result<(), Failure> {
        let WaitingAnswer {
            chat,
            message,
            start,
        } = *waiting;
        let turns = self.turns().ok_or_else(|| self.no_model())?;
        let (request, progress) = turns.answer(chat, message, start)?;
        let model = &turns.info.fingerprint;
        let buffer = AnswerBuffer::new(progress, model, self.timing.journal_after);
        let (run, signals) = self.answers.begin(*waiting, buffer);
        // The draft is older: it is sent or discarded by now.
        self.ahead.set_next(None);
        self.jobs.submit(Job::Answer {
            chat,
            run,
            request,
            signals,
        });
        Ok(())
    }

    /// Returns the topic of the guide that answers a question, if that is sure and no better model than the one that
    /// comes with the app is open.
    fn guide_topic(&self, waiting: &WaitingAnswer) -> Option<&'static Topic> {
        let has_better = self.model.info().is_some_and(|info| !info.bundled_model);
        if waiting.start != AnswerStart::Asked || has_better || !self.settings.guide_answers {
            return None;
        }
        let question = self.question(waiting)?;
        let text = &question.progress.parts.text();
        // One that is answered from another chat asks about that.
        let is_first = question.parent.is_none() && question.prompt_leaf.is_none();
        if !is_first && text.split_whitespace().count() < WORDS_WITHIN_CHAT {
            return None;
        }
        Guide::shared().answer(text).sure()
    }

    fn no_model(&self) -> Failure {
        let cause = self
            .model
            .error()
            .map_or(String::new(), |error| format!(" {}", error.message));
        Failure::new(
            FailureCode::Other,
            format!("No model is open, so there is no answer.{cause}"),
        )
    }

    pub(super) fn truncated(&self, run: AnswerRun, truncation: Truncation) {
        if !self.answers.active().any(|it| it == run) {
            return;
        }
        if truncation != Truncation(OmittedRow::default()) {
            tracing::info!(?truncation, "conversation truncated to fit the context");
        }
        let messages = self.stores.messages_with(run.message);
        if let Err(error) = messages.omit(run.message, &truncation.0) {
            tracing::warn!(%error, "truncation not saved");
        }
    }

    pub(super) fn reading(&mut self, run: AnswerRun, reading: Reading) {
        let Some(chat) = self.answers.reading(run) else {
            return;
        };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let seconds = |left: Duration| u32::try_from(left.as_secs()).unwrap_or(u32::MAX);
        self.emit(ChatEvent::Stage {
            chat,
            message: run.message,
            stage: Stage::Reading {
                done: count(reading.done),
                total: count(reading.total),
                cached: count(reading.cached),
                seconds_left: reading.left.map(seconds),
            },
        });
    }

    pub(super) fn token(
        &mut self,
        run: AnswerRun,
        at: Instant,
        id: u32,
        text: &str,
        kind: TokenKind,
    ) {
        if let Some(event) = self.answers.token(run, at, id, text, kind) {
            self.emit(event);
        }
    }

    /// Sends and journals whatever is due.
    pub(super) fn tick_answers(&mut self) {
        for failure in self.answers.journal(&self.stores) {
            self.jobs.preempt();
            check_if_failed(&self.stores.disk, &failure);
        }
        for event in self.answers.deltas() {
            self.emit(event);
        }
    }

    pub(super) fn ended(
        &mut self,
        run: AnswerRun,
        result: Result<GeneratedAnswer, Failure>,
        panicked: bool,
    ) {
        // The window gets the rest, and saving the end writes the row.
        if let Some(event) = self.answers.last_delta(run) {
            self.emit(event);
        }
        self.model.touch();
        let Some(end) = self.answers.end(run, result, panicked) else {
            return;
        };
        let (chat, state) = (end.chat, end.state);
        let mut progress = end.progress.iter();
        let calls = progress.any(|it| rounds::open_calls(&it.parts).next().is_some());
        if calls && state == MessageState::Done {
            self.end_round(end);
            return;
        }
        self.settle(end);
        if state == MessageState::Done {
            self.ask_for_title(chat, run.message);
        }
    }

    /// Saves what the model wrote before its calls, and runs them.
    fn end_round(&mut self, end: AnswerEnd) {
        let (chat, message) = (end.chat, end.message);
        let messages = self.stores.messages_with(message);
        let saved = end
            .progress
            .iter()
            .try_for_each(|it| messages.journal(message, it));
        match saved {
            Ok(()) => self.begin_calls(chat, message),
            Err(error) => self.settle(AnswerEnd {
                state: MessageState::Failed,
                failure: Some(error.into()),
                ..end
            }),
        }
    }

    /// Requests a title, in idle time, for a chat that has its first answer.
    fn ask_for_title(&self, chat: ChatId, answer: MessageId) {
        let turns = self.turns();
        match turns.map(|turns| titling::request(&turns, chat, answer)) {
            Some(Ok(Some(request))) => self.jobs.queue(Job::Title { chat, request }),
            Some(Ok(None)) | None => {}
            Some(Err(failure)) => {
                tracing::warn!(code = failure.code.name(), "no title was asked for")
            }
        }
    }

    pub(super) fn titled(&self, chat: ChatId, answer: &str) {
        let applied = titling::apply(self.stores.of(chat), chat, answer);
        let shown = applied.and_then(|is_new| is_new.then(|| self.emit_changed(chat)).transpose());
        if let Err(failure) = shown {
            tracing::warn!(code = failure.code.name(), "a title was not kept");
        }
    }

    pub(crate) fn stop(&mut self, chat: ChatId) -> Result<(), Failure> {
        self.stop_running_calls(|of| of == chat);
        let ends = self.answers.stop(chat);
        self.jobs.preempt();
        ends.into_iter().for_each(|end| self.settle(end));
        Ok(())
    }

    /// Interrupts all answers because the app closes.
    pub(super) fn quit_answers(&mut self) {
        self.stop_running_calls(|_| true);
        let ends = self.answers.interrupt();
        self.jobs.preempt();
        ends.into_iter().for_each(|end| self.settle(end));
    }

    /// Saves the answers of a model that does not stop.
    pub(super) fn abandon_answers(&mut self) {
        let stuck: Vec<_> = self.answers.active().collect();
        for run in stuck {
            let failure = Failure::new(FailureCode::Other, "The model did not stop.");
            self.ended(run, Err(failure), false);
        }
    }

    /// Handles answers that the last process was writing and that could not be marked when the store was opened because
    /// the disk is full.
    pub(super) fn end_left_in_writing(&mut self) {
        let left = self.stores.disk.messages().writing();
        let left =
            left.inspect_err(|error| tracing::error!(%error, "interrupted answers cannot be read"));
        for (chat, message) in left.unwrap_or_default() {
            let state = MessageState::Interrupted;
            self.settle(AnswerEnd::unwritten(chat, message, state));
        }
    }

    /// Saves the end of an answer, and tells the window, unless its chat was deleted meanwhile.
    pub(super) fn settle(&mut self, end: AnswerEnd) {
        // Its moment may have moved past others.
        self.context.forget();
        if let Some(failure) = &end.failure {
            // The message may quote the chat: a template raises errors in its own words.
            tracing::warn!(code = failure.code.name(), "an answer failed");
            self.after_failure(failure);
        }
        let (chat, message, seq) = (end.chat, end.message, end.seq);
        if let Some(reason) = self.answers.unsaved.save(&self.stores, end) {
            self.after_failure(&reason);
        }
        self.emit_ended(chat, message, seq);
    }

    fn emit_ended(&self, chat: ChatId, message: MessageId, seq: u32) {
        // The chat's state goes first: the window may send the next message as soon as it receives the end.
        match self.stores.chat(chat) {
            Ok(row) => self.emit(ChatEvent::ChatChanged {
                chat: self.summary(row),
            }),
            Err(StoreError::NotFound(_)) => return,
            Err(error) => tracing::error!(%error, "a chat cannot be shown"),
        }
        let row = match self.stores.message(message) {
            Ok(row) => row,
            Err(StoreError::NotFound(_)) => return,
            Err(error) => {
                tracing::error!(%error, "an answer cannot be read");
                return;
            }
        };
        match showing::one_message(&self.stores, &self.answers, row) {
            Ok(message) => self.emit(ChatEvent::Ended {
                chat,
                message: Box::new(Message { seq, ..message }),
            }),
            Err(failure) => {
                tracing::error!(code = failure.code.name(), "an answer cannot be shown")
            }
        }
    }

    /// Retries if the interval is over.
    pub(super) fn retry_unsaved(&mut self) {
        let due = self.answers.unsaved.due();
        if due.is_some_and(|due| due <= Instant::now()) {
            self.save_unsaved();
        }
    }

    /// Retries all unsaved writes.
    pub(super) fn save_unsaved(&mut self) {
        for end in self.answers.unsaved.retry(&self.stores) {
            self.emit_ended(end.chat, end.message, end.seq);
        }
    }

    /// Returns an error if the chat has unsaved rows: the next write would build on them.
    pub(super) fn refuse_if_unsaved(&mut self, chat: ChatId) -> Result<(), Failure> {
        if self.answers.unsaved.due().is_none() {
            return Ok(());
        }
        self.save_unsaved();
        self.answers.unsaved.refuse(&self.stores, chat)
    }
}

/// Makes the end of an answer that is a topic's.
fn guide_answer(waiting: &WaitingAnswer, topic: &Topic) -> AnswerEnd {
    AnswerEnd {
        progress: Some(Progress {
            parts: Parts::of_text(topic.shown_answer()),
            guide: Some(topic.id.clone()),
            ..Progress::default()
        }),
        ..AnswerEnd::unwritten(waiting.chat, waiting.message, MessageState::Done)
    }
}
