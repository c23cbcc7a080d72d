//! The answers that are queued, those in progress, and the ends that could not be saved.

pub(crate) mod unsaved;

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use inference::{Signals, StopReason, TokenKind};
use store::{ChatId, MessageId, MessageRow, MessageState};

use self::unsaved::{AnswerEnd, Unsaved};
use crate::answer_buffer::AnswerBuffer;
use crate::calling::Calling;
use crate::failure::Failure;
use crate::job::{AnswerRun, GeneratedAnswer};
use crate::rounds;
use crate::stores::Stores;
use crate::view::ChatEvent;

pub(crate) struct AnswerQueue {
    waiting: VecDeque<WaitingAnswer>,
    active: Vec<ActiveAnswer>,
    /// Number of the answer that was begun last.
    last_run: u64,
    /// Answers whose calls are run.
    pub calling: Calling,
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
    run: AnswerRun,
    start: AnswerStart,
    /// True once the model has reported something about it.
    has_begun: bool,
    signals: Signals,
    buffer: AnswerBuffer,
    /// Final state of a cancelled answer.
    cancelled: MessageState,
    /// Reason why it cannot be saved.
    unsaved: Option<Failure>,
}

impl AnswerQueue {
    /// `retry_after`: interval before a failed save is retried.
    pub fn new(retry_after: Duration) -> AnswerQueue {
        AnswerQueue {
            waiting: VecDeque::new(),
            active: Vec::new(),
            last_run: 0,
            calling: Calling::default(),
            unsaved: Unsaved::new(retry_after),
        }
    }

    pub fn queue(&mut self, answer: WaitingAnswer) {
        self.waiting.push_back(answer);
    }

    /// Returns the queued answers, the oldest first. They leave the queue.
    pub fn take_waiting(&mut self) -> VecDeque<WaitingAnswer> {
        std::mem::take(&mut self.waiting)
    }

    /// Begins an answer. Returns its run, and the flags that the model polls.
    pub fn begin(&mut self, answer: WaitingAnswer, buffer: AnswerBuffer) -> (AnswerRun, Signals) {
        let WaitingAnswer {
            chat,
            message,
            start,
        } = answer;
        self.last_run += 1;
        let run = AnswerRun {
            message,
            number: self.last_run,
        };
        let signals = Signals::default();
        self.active.push(ActiveAnswer {
            chat,
            run,
            start,
            has_begun: false,
            signals: signals.clone(),
            buffer,
            cancelled: MessageState::Stopped,
            unsaved: None,
        });
        (run, signals)
    }

    /// Notes that the model reads the prompt of an answer. Returns its chat; `None` if it has ended.
    pub fn reading(&mut self, run: AnswerRun) -> Option<ChatId> {
        let active = self.active_mut(run)?;
        active.has_begun = true;
        Some(active.chat)
    }

    /// Requeues the answers that the model has not begun. Its reports about them are ignored.
    pub fn withdraw(&mut self) {
        let (begun, withdrawn): (Vec<_>, Vec<_>) =
            self.active.drain(..).partition(|active| active.has_begun);
        self.active = begun;
        for active in withdrawn.into_iter().rev() {
            active.signals.cancel.store(true, Ordering::Relaxed);
            self.waiting.push_front(WaitingAnswer {
                chat: active.chat,
                message: active.run.message,
                start: active.start,
            });
        }
    }

    /// Adds a token to an answer in progress. Returns the event of a new stage.
    pub fn token(
        &mut self,
        run: AnswerRun,
        at: Instant,
        id: u32,
        text: &str,
        kind: TokenKind,
    ) -> Option<ChatEvent> {
        let active = self.active_mut(run)?;
        active.has_begun = true;
        let stage = active.buffer.token(at, id, text, kind)?;
        Some(ChatEvent::Stage {
            chat: active.chat,
            message: run.message,
            stage,
        })
    }

    /// Adds a call to an answer in progress.
    pub fn call(&mut self, run: AnswerRun, at: Instant, name: &str, arguments: &str) {
        let Some(active) = self.active_mut(run) else {
            return;
        };
        let id = format!("call-{}-{}", run.message.0, active.buffer.calls() + 1);
        active.buffer.call(at, id, name, arguments);
    }

    /// Journals the answers in progress that are due. An answer that cannot be saved is cancelled, and the reason
    /// returned.
    pub fn journal(&mut self, stores: &Stores) -> Vec<Failure> {
        let now = Instant::now();
        let active = self.active.iter_mut();
        active
            .filter_map(|active| active.journal(stores, now))
            .collect()
    }

    /// Returns the texts that the window lacks, of the answers whose are due.
    pub fn deltas(&mut self) -> Vec<ChatEvent> {
        let now = Instant::now();
        let active = self.active.iter_mut();
        active
            .filter_map(|active| active.delta(now, false))
            .collect()
    }

    /// Returns the text of an answer that the window lacks at its end.
    pub fn last_delta(&mut self, run: AnswerRun) -> Option<ChatEvent> {
        self.active_mut(run)?.delta(Instant::now(), true)
    }

    /// Ends the thinking of a chat's answer.
    pub fn answer_now(&self, chat: ChatId) {
        for active in self.active.iter().filter(|active| active.chat == chat) {
            active.signals.answer_now.store(true, Ordering::Relaxed);
        }
    }

    /// Cancels the answers of a chat. Returns those that have not begun.
    pub fn stop(&mut self, chat: ChatId) -> Vec<AnswerEnd> {
        self.cancel(|of| of == chat, MessageState::Stopped)
    }

    /// Interrupts all answers. Returns those that have not begun.
    pub fn interrupt(&mut self) -> Vec<AnswerEnd> {
        self.cancel(|_| true, MessageState::Interrupted)
    }

    /// Cancels the answers of these chats, which then have `state`. Returns those that have not begun: they end now, since
    /// the model may be busy with the prompt of another one.
    fn cancel(
        &mut self,
        is_cancelled: impl Fn(ChatId) -> bool,
        state: MessageState,
    ) -> Vec<AnswerEnd> {
        let mut ended = Vec::new();
        self.active.retain_mut(|active| {
            if !is_cancelled(active.chat) {
                return true;
            }
            active.cancelled = state;
            active.signals.cancel.store(true, Ordering::Relaxed);
            if !active.has_begun {
                ended.push((active.chat, active.run.message));
            }
            active.has_begun
        });
        self.waiting.retain(|waiting| {
            let is_cancelled = is_cancelled(waiting.chat);
            if is_cancelled {
                ended.push((waiting.chat, waiting.message));
            }
            !is_cancelled
        });
        ended.extend(self.calling.remove(&is_cancelled));
        let end = |(chat, message)| AnswerEnd::unwritten(chat, message, state);
        ended.into_iter().map(end).collect()
    }

    /// Ends an answer in progress, as the model reports it.
    pub fn end(
        &mut self,
        run: AnswerRun,
        result: Result<GeneratedAnswer, Failure>,
        panicked: bool,
    ) -> Option<AnswerEnd> {
        let at = self.active.iter().position(|it| it.run == run)?;
        let mut active = self.active.remove(at);
        let whole = matches!(&result, Ok(finish) if finish.reason == StopReason::EndOfTurn);
        let progress = active.buffer.finish(Instant::now(), whole);
        let cancelled = active.signals.is_cancelled();
        let calls = rounds::open_calls(&progress.parts).next().is_some();
        let (state, finish, failure) = match (active.unsaved, result) {
            (Some(failure), result) => (MessageState::Failed, result.ok(), Some(failure)),
            // Its calls would be run after Stop.
            (None, Ok(finish)) if cancelled && calls => (active.cancelled, Some(finish), None),
            (None, Ok(finish)) => (state_of(&finish, active.cancelled), Some(finish), None),
            (None, Err(_)) if cancelled && !panicked => (active.cancelled, None, None),
            (None, Err(failure)) => (MessageState::Failed, None, Some(failure)),
        };
        Some(AnswerEnd {
            chat: active.chat,
            message: run.message,
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

    /// Returns the answers that are in progress.
    pub fn active(&self) -> impl Iterator<Item = AnswerRun> {
        self.active.iter().map(|active| active.run)
    }

    fn active_mut(&mut self, run: AnswerRun) -> Option<&mut ActiveAnswer> {
        self.active.iter_mut().find(|it| it.run == run)
    }

    /// Returns whether an answer is in progress.
    pub fn busy(&self) -> bool {
        !self.active.is_empty()
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
        let active = self.active.iter().map(|it| (it.chat, it.run.message));
        let waiting = self.waiting.iter().map(|it| (it.chat, it.message));
        active.chain(waiting).chain(self.calling.all())
    }

    /// Returns the buffer of a message that is in progress.
    pub fn buffer(&self, message: MessageId) -> Option<&AnswerBuffer> {
        let active = self.active.iter().find(|it| it.run.message == message)?;
        Some(&active.buffer)
    }

    pub fn due(&self) -> Option<Instant> {
        let active = self.active.iter().filter_map(|active| active.buffer.due());
        active.chain(self.unsaved.due()).min()
    }
}

impl ActiveAnswer {
    fn journal(&mut self, stores: &Stores, now: Instant) -> Option<Failure> {
        let progress = self.buffer.journal(now)?;
        let message = self.run.message;
        let error = stores
            .messages_with(message)
            .journal(message, &progress)
            .err()?;
        tracing::error!(%error, "answer stopped: it cannot be saved");
        self.signals.cancel.store(true, Ordering::Relaxed);
        Some(self.unsaved.get_or_insert(error.into()).clone())
    }

    fn delta(&mut self, now: Instant, end: bool) -> Option<ChatEvent> {
        let buffer = &mut self.buffer;
        let delta = buffer.delta(now, end)?;
        Some(ChatEvent::Delta {
            chat: self.chat,
            message: self.run.message,
            seq: buffer.seq,
            parts: delta,
            tokens: buffer.tokens,
            tokens_per_second: buffer.tokens_per_second(now),
        })
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
    use inference::Stats;
    use store::{Progress, Store};

    use super::*;
    use crate::stores::tests::add_answer;
    use crate::view::AnswerStats;

    const NOW: Duration = Duration::ZERO;

    fn queued(chat: i64, message: i64) -> WaitingAnswer {
        WaitingAnswer {
            chat: ChatId(chat),
            message: MessageId(message),
            start: AnswerStart::Asked,
        }
    }

    fn begin(answers: &mut AnswerQueue, chat: ChatId, message: MessageId) -> (AnswerRun, Signals) {
        let answer = WaitingAnswer {
            chat,
            message,
            start: AnswerStart::Asked,
        };
        answers.begin(answer, AnswerBuffer::new(Progress::default(), "m", NOW))
    }

    #[test]
    fn stopping_a_chat_ends_its_answers_alone() {
        let mut answers = AnswerQueue::new(NOW);
        let (first, writing) = begin(&mut answers, ChatId(1), MessageId(10));
        let (second, beside) = begin(&mut answers, ChatId(3), MessageId(30));
        assert_eq!(answers.reading(first), Some(ChatId(1)));
        for (chat, message) in [(2, 20), (1, 11)] {
            answers.queue(queued(chat, message));
        }
        let ends = answers.stop(ChatId(1));
        let ends: Vec<_> = ends.iter().map(|end| (end.message, end.state)).collect();
        assert_eq!(ends, [(MessageId(11), MessageState::Stopped)]);
        assert!(writing.is_cancelled() && !beside.is_cancelled());
        assert!(!writing.answer_now.load(Ordering::Relaxed));
        assert_eq!(answers.of_chat(ChatId(2)), Some(MessageId(20)));
        // The one that is cancelled ends when the model says so.
        assert!(answers.busy());
        let mut end = |run| {
            let end = answers.end(run, Err(Failure::other("cancelled")), false);
            let end = end.expect("the answer in progress");
            (end.state, end.failure.is_some())
        };
        assert_eq!(end(first), (MessageState::Stopped, false));
        assert_eq!(end(second), (MessageState::Failed, true));
        assert_eq!(answers.take_waiting(), [queued(2, 20)]);
        assert!(answers.is_empty());
    }

    #[test]
    fn an_answer_that_the_model_has_not_begun_ends_at_once() {
        let mut answers = AnswerQueue::new(NOW);
        let (run, signals) = begin(&mut answers, ChatId(1), MessageId(10));
        let ends = answers.stop(ChatId(1));
        let ends: Vec<_> = ends.iter().map(|end| (end.message, end.state)).collect();
        assert_eq!(ends, [(MessageId(10), MessageState::Stopped)]);
        assert!(signals.is_cancelled() && answers.is_empty());
        // The model may report something nevertheless.
        let (again, _) = begin(&mut answers, ChatId(1), MessageId(10));
        assert_eq!(answers.reading(run), None);
        let late = answers.end(run, Err(Failure::other("late")), false);
        assert!(late.is_none());
        assert_eq!(answers.active().collect::<Vec<_>>(), [again]);
    }

    #[test]
    fn answers_that_have_not_begun_can_be_withdrawn() {
        let mut answers = AnswerQueue::new(NOW);
        let (run, begun) = begin(&mut answers, ChatId(1), MessageId(10));
        answers.reading(run);
        let others = [2, 3].map(|id| begin(&mut answers, ChatId(id), MessageId(10 * id)).1);
        answers.queue(queued(4, 40));
        answers.withdraw();
        assert!(!begun.is_cancelled() && others.iter().all(Signals::is_cancelled));
        assert_eq!(answers.active().collect::<Vec<_>>(), [run]);
        let waiting = [queued(2, 20), queued(3, 30), queued(4, 40)];
        assert_eq!(answers.take_waiting(), waiting);
    }

    #[test]
    fn a_panic_of_a_cancelled_answer_is_a_failure() {
        let mut answers = AnswerQueue::new(NOW);
        let (run, _) = begin(&mut answers, ChatId(1), MessageId(10));
        answers.reading(run);
        assert!(answers.interrupt().is_empty());
        let end = answers.end(run, Err(Failure::other("a panic")), true);
        let end = end.expect("the answer in progress");
        assert_eq!(end.state, MessageState::Failed);
        assert_eq!(end.failure, Some(Failure::other("a panic")));
    }

    #[test]
    fn calls_that_come_after_stop_are_not_run() {
        let mut answers = AnswerQueue::new(NOW);
        let (run, _) = begin(&mut answers, ChatId(1), MessageId(10));
        answers.reading(run);
        answers.call(run, Instant::now(), "write", "{}");
        answers.stop(ChatId(1));
        let finished = GeneratedAnswer {
            reason: StopReason::EndOfTurn,
            stats: AnswerStats::new(Stats::default(), None),
        };
        let end = answers.end(run, Ok(finished), false).expect("the answer");
        assert_eq!(end.state, MessageState::Stopped);
    }

    #[test]
    fn a_row_is_shown_with_what_the_window_has() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (chat, message) = add_answer(&stores.temporary)?;
        let mut answers = AnswerQueue::new(NOW);
        let shown = |answers: &AnswerQueue| {
            let mut row = stores.message(message)?;
            let seq = answers.lay_over(&mut row);
            Ok::<_, Failure>((row.progress.parts.text().into_owned(), row.state, seq))
        };
        let nobody_writes = (String::new(), MessageState::Interrupted, 0);
        assert_eq!(shown(&answers)?, nobody_writes);
        let (run, _) = begin(&mut answers, chat, message);
        let at = Instant::now();
        assert!(
            answers.token(run, at, 1, "To", TokenKind::Answer).is_some(),
            "a stage"
        );
        assert_eq!(answers.deltas().len(), 1, "the first token goes at once");
        let token = answers.token(run, at, 2, "wers", TokenKind::Answer);
        assert!(token.is_none());
        assert!(answers.deltas().is_empty(), "the others are gathered");
        let is_written = ("To".to_owned(), MessageState::Writing, 1);
        assert_eq!(shown(&answers)?, is_written);
        assert_eq!(answers.journal(&stores), []);
        assert_eq!(stores.message(message)?.progress.parts.text(), "Towers");
        Ok(())
    }
}
