//! Answers that are queued, and the one in progress.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use guide::{Guide, Topic};
use inference::{Part, StopReason};
use store::{ChatId, MessageId, MessageState, OmittedRow, Progress};

use crate::actor::answers::{ActiveAnswer, AnswerStart, WaitingAnswer};
use crate::actor::state::{ChatActor, check_if_failed};
use crate::actor::unsaved::AnswerEnd;
use crate::answer_buffer::AnswerBuffer;
use crate::failure::{Failure, FailureCode};
use crate::fit::Truncation;
use crate::job::{GeneratedAnswer, Job};
use crate::model_host::ModelInfo;
use crate::reading::Reading;
use crate::view::{ChatEvent, ChatView, Stage};

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
        self.answers.waiting.push_back(WaitingAnswer {
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

    /// Passes the oldest queued answer to the model, if both are ready.
    pub(super) fn begin_next_answer(&mut self) {
        while let Some(waiting) = self.answers.waiting.pop_front() {
            if let Some(topic) = self.guide_topic(&waiting) {
                self.settle(guide_answer(&waiting, topic));
                continue;
            }
            let begun = match self.model.info().cloned() {
                Some(info) => self.begin(&waiting, &info),
                None => Err(self.no_model()),
            };
            match begun {
                Ok(()) => return,
                Err(failure) => {
                    self.settle(AnswerEnd {
                        failure: Some(failure),
                        ..AnswerEnd::unwritten(waiting.chat, waiting.message, MessageState::Failed)
                    });
                }
            }
        }
    }

    fn begin(&mut self, waiting: &WaitingAnswer, info: &ModelInfo) -> Result<(), Failure> {
        let WaitingAnswer {
            chat,
            message,
            start,
        } = *waiting;
        let (request, progress) = self.turn(chat, message, start, info)?;
        let buffer = AnswerBuffer::new(progress, &info.fingerprint, self.timing.journal_after);
        let [cancel, answer_now] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        // The draft is older: it is sent or discarded by now.
        self.ahead_next = None;
        self.submit_job(Job::Answer {
            chat,
            request,
            cancel: Arc::clone(&cancel),
            answer_now: Arc::clone(&answer_now),
        });
        let cancelled = MessageState::Stopped;
        self.answers.active = Some(ActiveAnswer {
            chat,
            message,
            cancel,
            answer_now,
            buffer,
            cancelled,
            unsaved: None,
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
        let messages = self.stores.messages_with(waiting.message);
        let question = messages
            .get(messages.get(waiting.message).ok()?.parent?)
            .ok()?;
        let text = &question.progress.text;
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

    pub(super) fn truncated(&mut self, truncation: Truncation) {
        let Some(active) = &self.answers.active else {
            return;
        };
        if truncation != Truncation(OmittedRow::default()) {
            tracing::info!(?truncation, "conversation truncated to fit the context");
        }
        if let Err(error) = self
            .stores
            .messages_with(active.message)
            .omit(active.message, &truncation.0)
        {
            tracing::warn!(%error, "truncation not saved");
        }
    }

    pub(super) fn reading(&mut self, reading: Reading) {
        let Some(ActiveAnswer { chat, message, .. }) = self.answers.active else {
            return;
        };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let seconds = |left: Duration| u32::try_from(left.as_secs()).unwrap_or(u32::MAX);
        self.emit(ChatEvent::Stage {
            chat,
            message,
            stage: Stage::Reading {
                done: count(reading.done),
                total: count(reading.total),
                cached: count(reading.cached),
                seconds_left: reading.left.map(seconds),
            },
        });
    }

    pub(super) fn token(&mut self, at: Instant, id: u32, text: &str, part: Part) {
        let Some(active) = &mut self.answers.active else {
            return;
        };
        let (chat, message) = (active.chat, active.message);
        if let Some(stage) = active.buffer.token(at, id, text, part) {
            self.emit(ChatEvent::Stage {
                chat,
                message,
                stage,
            });
        }
    }

    /// Sends and journals whatever is due. At the `end`, the window gets the rest, and saving the end writes the row.
    pub(super) fn tick_answer(&mut self, end: bool) {
        let now = Instant::now();
        let Some(active) = &mut self.answers.active else {
            return;
        };
        let (chat, message) = (active.chat, active.message);
        let delta = active.buffer.delta(now, end);
        let journal = active.buffer.journal(now).filter(|_| !end);
        let store = if chat.is_temporary() {
            &self.stores.temporary
        } else {
            &self.stores.disk
        };
        if let Some(progress) = journal
            && let Err(error) = store.messages().journal(message, &progress)
        {
            // An answer that goes on could not be saved.
            tracing::error!(%error, "answer stopped: it cannot be saved");
            active.cancel.store(true, Ordering::Relaxed);
            let failure = active.unsaved.get_or_insert(error.into());
            check_if_failed(&self.stores.disk, failure);
        }
        if let Some(delta) = delta {
            let (seq, tokens) = (active.buffer.seq, active.buffer.tokens);
            let tokens_per_second = active.buffer.tokens_per_second(now);
            let (thinking, text) = (delta.thinking, delta.text);
            self.emit(ChatEvent::Delta {
                chat,
                message,
                seq,
                thinking,
                text,
                tokens,
                tokens_per_second,
            });
        }
    }

    pub(super) fn ended(&mut self, result: Result<GeneratedAnswer, Failure>, panicked: bool) {
        self.tick_answer(true);
        self.model.used = Instant::now();
        let Some(mut active) = self.answers.active.take() else {
            return;
        };
        let whole = matches!(&result, Ok(finish) if finish.reason == StopReason::EndOfTurn);
        let progress = active.buffer.finish(Instant::now(), whole);
        let cancelled = active.cancel.load(Ordering::Relaxed);
        let (state, finish, failure) = match (active.unsaved, result) {
            (Some(failure), result) => (MessageState::Failed, result.ok(), Some(failure)),
            (None, Ok(finish)) => (state_of(&finish, active.cancelled), Some(finish), None),
            (None, Err(_)) if cancelled && !panicked => (active.cancelled, None, None),
            (None, Err(failure)) => (MessageState::Failed, None, Some(failure)),
        };
        self.settle(AnswerEnd {
            chat: active.chat,
            message: active.message,
            progress: Some(progress),
            state,
            stats: finish.and_then(|finish| serde_json::to_value(finish.stats).ok()),
            failure,
            seq: active.buffer.seq,
        });
        if panicked {
            self.reopen_model();
        } else if state == MessageState::Done {
            self.ask_for_title(active.chat, active.message);
        }
    }

    pub(crate) fn stop(&mut self, chat: ChatId) -> Result<(), Failure> {
        if let Some(active) = self
            .answers
            .active
            .as_ref()
            .filter(|active| active.chat == chat)
        {
            active.cancel.store(true, Ordering::Relaxed);
        }
        self.take_waiting(|waiting| waiting.chat == chat, MessageState::Stopped);
        Ok(())
    }

    /// Ends the thinking of a chat's answer.
    pub(crate) fn answer_now(&mut self, chat: ChatId) -> Result<(), Failure> {
        if let Some(active) = self.answers.active.as_ref()
            && active.chat == chat
        {
            active.answer_now.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn take_waiting(&mut self, taken: impl Fn(&WaitingAnswer) -> bool, state: MessageState) {
        let (gone, stay): (VecDeque<_>, _) = std::mem::take(&mut self.answers.waiting)
            .into_iter()
            .partition(taken);
        self.answers.waiting = stay;
        for waiting in gone {
            self.settle(AnswerEnd::unwritten(waiting.chat, waiting.message, state));
        }
    }

    /// Interrupts all answers because the app closes.
    pub(super) fn quit_answers(&mut self) {
        self.take_waiting(|_| true, MessageState::Interrupted);
        if let Some(active) = &mut self.answers.active {
            active.cancelled = MessageState::Interrupted;
            active.cancel.store(true, Ordering::Relaxed);
        }
    }

    /// Saves an answer whose model does not stop.
    pub(super) fn abandon_answer(&mut self) {
        self.ended(
            Err(Failure::new(FailureCode::Other, "The model did not stop.")),
            false,
        );
    }
}

/// Makes the end of an answer that is a topic's.
fn guide_answer(waiting: &WaitingAnswer, topic: &Topic) -> AnswerEnd {
    AnswerEnd {
        progress: Some(Progress {
            text: topic.shown_answer(),
            guide: Some(topic.id.clone()),
            ..Progress::default()
        }),
        ..AnswerEnd::unwritten(waiting.chat, waiting.message, MessageState::Done)
    }
}

fn state_of(finish: &GeneratedAnswer, cancelled: MessageState) -> MessageState {
    match finish.reason {
        StopReason::EndOfTurn => MessageState::Done,
        StopReason::MaxTokens | StopReason::ContextFull | StopReason::Repetition => {
            MessageState::Limit
        }
        StopReason::Cancelled => cancelled,
    }
}
