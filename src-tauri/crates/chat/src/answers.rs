//! The answers that are queued, the one in progress, and the ends that could not be saved.

pub(crate) mod unsaved;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use inference::{Part, StopReason};
use store::{ChatId, MessageId, MessageRow, MessageState};

use self::unsaved::{AnswerEnd, Unsaved};
use crate::answer_buffer::AnswerBuffer;
use crate::failure::Failure;
use crate::job::GeneratedAnswer;
use crate::stores::Stores;
use crate::view::ChatEvent;

pub(crate) struct AnswerQueue {
    waiting: VecDeque<WaitingAnswer>,
    active: Option<ActiveAnswer>,
    pub unsaved: Unsaved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitingAnswer {
    pub chat: ChatId,
    pub message: MessageId,
    pub start: AnswerStart,
}

/// Starting points of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerStart {
    /// An empty row, which the guide may fill if the user asked something about the app.
    Asked,
    /// An empty row, for the model alone.
    New,
    /// The partial text of its row.
    Resumed,
    /// The text of its row, which was complete.
    GoesOn,
}

struct ActiveAnswer {
    chat: ChatId,
    message: MessageId,
    flags: AnswerFlags,
    buffer: AnswerBuffer,
    /// Final state of a cancelled answer.
    cancelled: MessageState,
    /// Reason why it cannot be saved.
    unsaved: Option<Failure>,
}

/// Flags that the model thread obeys.
#[derive(Clone, Default)]
pub(crate) struct AnswerFlags {
    pub cancel: Arc<AtomicBool>,
    /// Flag that ends the thinking.
    pub answer_now: Arc<AtomicBool>,
}

impl AnswerQueue {
    /// `retry_after`: interval before a failed save is retried.
    pub fn new(retry_after: Duration) -> AnswerQueue {
        AnswerQueue {
            waiting: VecDeque::new(),
            active: None,
            unsaved: Unsaved::new(retry_after),
        }
    }

    pub fn queue(&mut self, answer: WaitingAnswer) {
        self.waiting.push_back(answer);
    }

    /// Returns the oldest queued answer, which leaves the queue.
    pub fn next(&mut self) -> Option<WaitingAnswer> {
        self.waiting.pop_front()
    }

    /// Begins an answer in place of the one in progress.
    pub fn begin(&mut self, chat: ChatId, message: MessageId, buffer: AnswerBuffer) -> AnswerFlags {
        let flags = AnswerFlags::default();
        self.active = Some(ActiveAnswer {
            chat,
            message,
            flags: flags.clone(),
            buffer,
            cancelled: MessageState::Stopped,
            unsaved: None,
        });
        flags
    }

    /// Adds a token to the answer in progress. Returns the event of a new stage.
    pub fn token(&mut self, at: Instant, id: u32, text: &str, part: Part) -> Option<ChatEvent> {
        let active = self.active.as_mut()?;
        let stage = active.buffer.token(at, id, text, part)?;
        Some(ChatEvent::Stage {
            chat: active.chat,
            message: active.message,
            stage,
        })
    }

    /// Journals the answer in progress if that is due. An answer that cannot be saved is cancelled, and the reason
    /// returned.
    pub fn journal(&mut self, stores: &Stores) -> Option<Failure> {
        let active = self.active.as_mut()?;
        let progress = active.buffer.journal(Instant::now())?;
        let messages = stores.messages_with(active.message);
        let error = messages.journal(active.message, &progress).err()?;
        tracing::error!(%error, "answer stopped: it cannot be saved");
        active.flags.cancel.store(true, Ordering::Relaxed);
        Some(active.unsaved.get_or_insert(error.into()).clone())
    }

    /// Returns the text that the window lacks, if that is due or at the `end`.
    pub fn delta(&mut self, end: bool) -> Option<ChatEvent> {
        let now = Instant::now();
        let ActiveAnswer {
            chat,
            message,
            buffer,
            ..
        } = self.active.as_mut()?;
        let delta = buffer.delta(now, end)?;
        Some(ChatEvent::Delta {
            chat: *chat,
            message: *message,
            seq: buffer.seq,
            thinking: delta.thinking,
            text: delta.text,
            tokens: buffer.tokens,
            tokens_per_second: buffer.tokens_per_second(now),
        })
    }

    /// Ends the thinking of a chat's answer.
    pub fn answer_now(&self, chat: ChatId) {
        if let Some(active) = self.active.as_ref().filter(|active| active.chat == chat) {
            active.flags.answer_now.store(true, Ordering::Relaxed);
        }
    }

    /// Cancels the answer of a chat. Returns those that were queued.
    pub fn stop(&mut self, chat: ChatId) -> Vec<AnswerEnd> {
        if let Some(active) = self.active.as_ref().filter(|active| active.chat == chat) {
            active.flags.cancel.store(true, Ordering::Relaxed);
        }
        self.drop_waiting(|waiting| waiting.chat == chat, MessageState::Stopped)
    }

    /// Interrupts all answers. Returns those that were queued.
    pub fn interrupt(&mut self) -> Vec<AnswerEnd> {
        if let Some(active) = &mut self.active {
            active.cancelled = MessageState::Interrupted;
            active.flags.cancel.store(true, Ordering::Relaxed);
        }
        self.drop_waiting(|_| true, MessageState::Interrupted)
    }

    fn drop_waiting(
        &mut self,
        dropped: impl Fn(&WaitingAnswer) -> bool,
        state: MessageState,
    ) -> Vec<AnswerEnd> {
        let (gone, stay): (VecDeque<_>, _) = self.waiting.drain(..).partition(dropped);
        self.waiting = stay;
        let end = |it: WaitingAnswer| AnswerEnd::unwritten(it.chat, it.message, state);
        gone.into_iter().map(end).collect()
    }

    /// Ends the answer in progress, as the model reports it.
    pub fn end(
        &mut self,
        result: Result<GeneratedAnswer, Failure>,
        panicked: bool,
    ) -> Option<AnswerEnd> {
        let mut active = self.active.take()?;
        let whole = matches!(&result, Ok(finish) if finish.reason == StopReason::EndOfTurn);
        let progress = active.buffer.finish(Instant::now(), whole);
        let cancelled = active.flags.cancel.load(Ordering::Relaxed);
        let (state, finish, failure) = match (active.unsaved, result) {
            (Some(failure), result) => (MessageState::Failed, result.ok(), Some(failure)),
            (None, Ok(finish)) => (state_of(&finish, active.cancelled), Some(finish), None),
            (None, Err(_)) if cancelled && !panicked => (active.cancelled, None, None),
            (None, Err(failure)) => (MessageState::Failed, None, Some(failure)),
        };
        Some(AnswerEnd {
            chat: active.chat,
            message: active.message,
            progress: Some(progress),
            state,
            stats: finish.and_then(|finish| serde_json::to_value(finish.stats).ok()),
            failure,
            seq: active.buffer.seq,
        })
    }

    /// Lays over a row what is not in it yet. Returns the number of the last delta.
    pub fn lay_over(&self, row: &mut MessageRow) -> u32 {
        if let Some(buffer) = self.buffer(row.id) {
            row.progress = buffer.flushed(Instant::now());
            return buffer.seq;
        }
        if !self.unsaved.lay_over(row) && row.state == MessageState::Writing && !self.has(row.id) {
            // Nobody writes it, whatever its row says.
            row.state = MessageState::Interrupted;
        }
        0
    }

    /// Returns the answer in progress and its chat.
    pub fn active(&self) -> Option<(ChatId, MessageId)> {
        let active = self.active.as_ref()?;
        Some((active.chat, active.message))
    }

    /// Returns whether the model is busy.
    pub fn busy(&self) -> bool {
        self.active.is_some()
    }

    pub fn any_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether no answer is in progress or queued.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// Returns the answer of a chat that is in progress or queued.
    pub fn of_chat(&self, chat: ChatId) -> Option<MessageId> {
        let mut all = self.all();
        all.find(|(of, _)| *of == chat).map(|(_, message)| message)
    }

    /// Returns whether this message is in progress or queued.
    pub fn has(&self, message: MessageId) -> bool {
        self.all().any(|(_, of)| of == message)
    }

    fn all(&self) -> impl Iterator<Item = (ChatId, MessageId)> {
        let waiting = self.waiting.iter().map(|it| (it.chat, it.message));
        self.active().into_iter().chain(waiting)
    }

    /// Returns the buffer of a message that is in progress.
    pub fn buffer(&self, message: MessageId) -> Option<&AnswerBuffer> {
        self.active
            .as_ref()
            .filter(|active| active.message == message)
            .map(|active| &active.buffer)
    }

    pub fn due(&self) -> Option<Instant> {
        let active = self.active.as_ref().and_then(|active| active.buffer.due());
        [active, self.unsaved.due()].into_iter().flatten().min()
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

#[cfg(test)]
mod tests {
    use store::{Progress, Store};

    use super::*;
    use crate::stores::tests::add_answer;

    const NOW: Duration = Duration::ZERO;

    fn queued(chat: i64, message: i64) -> WaitingAnswer {
        WaitingAnswer {
            chat: ChatId(chat),
            message: MessageId(message),
            start: AnswerStart::Asked,
        }
    }

    fn begin(answers: &mut AnswerQueue, chat: ChatId, message: MessageId) -> AnswerFlags {
        answers.begin(
            chat,
            message,
            AnswerBuffer::new(Progress::default(), "m", NOW),
        )
    }

    #[test]
    fn stopping_a_chat_ends_its_answers_alone() {
        let mut answers = AnswerQueue::new(NOW);
        let writing = begin(&mut answers, ChatId(1), MessageId(10));
        for (chat, message) in [(2, 20), (1, 11)] {
            answers.queue(queued(chat, message));
        }
        let ends = answers.stop(ChatId(1));
        let ends: Vec<_> = ends.iter().map(|end| (end.message, end.state)).collect();
        assert_eq!(ends, [(MessageId(11), MessageState::Stopped)]);
        assert!(writing.cancel.load(Ordering::Relaxed));
        assert!(!writing.answer_now.load(Ordering::Relaxed));
        assert_eq!(answers.of_chat(ChatId(2)), Some(MessageId(20)));
        // The one that is cancelled ends when the model says so.
        assert!(answers.busy());
        let end = answers.end(Err(Failure::other("cancelled")), false);
        let end = end.expect("the answer in progress");
        assert_eq!((end.state, end.failure), (MessageState::Stopped, None));
        assert_eq!(answers.next(), Some(queued(2, 20)));
        assert!(answers.is_empty());
    }

    #[test]
    fn a_panic_of_a_cancelled_answer_is_a_failure() {
        let mut answers = AnswerQueue::new(NOW);
        begin(&mut answers, ChatId(1), MessageId(10));
        assert!(answers.interrupt().is_empty());
        let end = answers.end(Err(Failure::other("a panic")), true);
        let end = end.expect("the answer in progress");
        assert_eq!(end.state, MessageState::Failed);
        assert_eq!(end.failure, Some(Failure::other("a panic")));
    }

    #[test]
    fn a_row_is_shown_with_what_the_window_has() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (chat, message) = add_answer(&stores.temporary)?;
        let mut answers = AnswerQueue::new(NOW);
        let shown = |answers: &AnswerQueue| {
            let mut row = stores.message(message)?;
            let seq = answers.lay_over(&mut row);
            Ok::<_, Failure>((row.progress.text, row.state, seq))
        };
        let nobody_writes = (String::new(), MessageState::Interrupted, 0);
        assert_eq!(shown(&answers)?, nobody_writes);
        begin(&mut answers, chat, message);
        let at = Instant::now();
        assert!(
            answers.token(at, 1, "To", Part::Answer).is_some(),
            "a stage"
        );
        assert!(
            answers.delta(false).is_some(),
            "the first token goes at once"
        );
        assert!(answers.token(at, 2, "wers", Part::Answer).is_none());
        assert!(answers.delta(false).is_none(), "the others are gathered");
        let is_written = ("To".to_owned(), MessageState::Writing, 1);
        assert_eq!(shown(&answers)?, is_written);
        assert_eq!(answers.journal(&stores), None);
        assert_eq!(stores.message(message)?.progress.text, "Towers");
        Ok(())
    }
}
