//! Requests that share a model: a pass decodes a token of each answer and reads a part of a prompt.
//!
//! An answer alone has drafts ([`speculative`](crate::run::speculative)) or is sampled by the device. As soon as another
//! request is there, its prompt is read beside the answers that are being written. Such a pass has at most
//! [`Evaluate::batch_limit`](crate::model::evaluate::Evaluate::batch_limit) rows, so that every answer has the tokens of
//! a run by itself, and so few that the answers keep most of their speed. While nothing is being written, a prompt is
//! read in whole chunks. A prompt that is read beside answers has the rounding of decoded tokens, not that of chunks, so
//! its own answer may differ from a run alone, as that of a warm chat does (`session/tests.rs` has the bound). Tokens
//! that the form of an answer determines take the rows that are left in a pass.
//!
//! An answer of the user takes the place of another program's, which goes on later. A prompt that begins with tokens that
//! are being read for another request waits until these are in the cache.
//!
//! Titles and messages that are read ahead run alone, while there is no answer, and give way to one.

mod active;
mod admission;
mod inputs;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use inference::{Event, Finished, ModelRequest, Priority, RequestId, Stats, StopReason};

use self::active::{ActiveRequest, RequestState};
use self::waiting::{WaitingRequest, only_own};
use crate::grammar::Grammars;
use crate::model::error::DeviceError;
use crate::model::evaluate::Pass;
use crate::run::answer::AnswerWriter;
use crate::run::error::GenerateError;
use crate::run::kv_blocks::KvBlocks;
use crate::run::sequence::SequenceSlot;
use crate::run::session::Session;
use crate::text::tokenizer::Tokenizer;

/// Stored blocks that are restored between two passes of other requests.
const BLOCKS_BESIDE: usize = 4;

/// Returns true if memory has room for the keys and values of this number of tokens more.
pub(crate) type MemoryCheck = Box<dyn Fn(usize) -> bool + Send>;

/// The owner of a model, and of its sequences.
pub(crate) struct Scheduler {
    pub(crate) session: Session,
    tokenizer: Arc<Tokenizer>,
    /// Length of the context, in tokens.
    context: usize,
    active: Vec<ActiveRequest>,
    has_room: MemoryCheck,
    /// Requests without a sequence: the most urgent first, and among equals the oldest.
    waiting: VecDeque<WaitingRequest>,
    /// Requests without room in memory beside the others, or without a place: the oldest first. What is not in memory of
    /// their tokens is read again.
    paused: VecDeque<ActiveRequest>,
    /// True once a request has ended since the last one was paused.
    may_resume: bool,
    /// Requests whose next passes have no other: a pass over all of these failed.
    apart: VecDeque<RequestId>,
    /// True if the last pass of an answer was preempted. The next one is not, so that events that come faster than passes
    /// do not stop all answers.
    was_preempted: bool,
    /// Passes that have read a part of a prompt.
    reads: u32,
    pub(crate) grammars: Grammars,
}

/// Conditions of a step.
pub struct StepOptions<'a> {
    /// Ends a pass that serves several requests, or one that nobody waits for. It is repeated in the next step, which
    /// cannot be ended if it serves an answer.
    pub preempt: &'a AtomicBool,
    /// Blocks of KV caches that outlive the model.
    pub blocks: &'a mut dyn KvBlocks,
}

/// A request that ended, and its result.
pub type RequestEnd = (RequestId, Result<Finished, GenerateError>);

/// Receiver of the events of requests.
pub type OnEvent<'a> = dyn FnMut(RequestId, Event<'_>) + 'a;

impl Scheduler {
    pub fn new(session: Session, tokenizer: Arc<Tokenizer>, context: usize) -> Scheduler {
        Scheduler {
            session,
            grammars: Grammars::new(Arc::clone(&tokenizer)),
            tokenizer,
            context,
            has_room: Box::new(|_| true),
            active: Vec::new(),
            waiting: VecDeque::new(),
            paused: VecDeque::new(),
            may_resume: false,
            apart: VecDeque::new(),
            was_preempted: false,
            reads: 0,
        }
    }

    /// Has answers wait for host memory before they begin or go on beside others.
    pub fn set_memory_check(&mut self, has_room: MemoryCheck) {
        self.has_room = has_room;
    }

    /// Submits a request.
    ///
    /// # Errors
    /// Fails if the prompt is empty or fills the context, or the answer cannot be held to the form.
    pub fn submit(&mut self, request: ModelRequest) -> Result<(), GenerateError> {
        let (prompt, context) = (request.prompt.ids.len(), self.context);
        if prompt == 0 {
            return Err(GenerateError::Empty);
        }
        if prompt >= context {
            return Err(GenerateError::TooLong { prompt, context });
        }
        let constraint = request.params.constraint.as_ref();
        let rules = constraint.map(|constraint| self.grammars.rules(constraint));
        let rules = rules.transpose()?;
        let waiting = &mut self.waiting;
        let at = waiting.partition_point(|it| it.request.priority <= request.priority);
        waiting.insert(at, WaitingRequest { request, rules });
        Ok(())
    }

    /// Returns true if a request is active or waits.
    pub fn is_busy(&self) -> bool {
        !(self.active.is_empty() && self.paused.is_empty() && self.waiting.is_empty())
    }

    /// Samples the next token of each answer and runs one pass. Returns as soon as a request ends, since the rest of the
    /// step may panic.
    pub fn step(
        &mut self,
        step: &mut StepOptions<'_>,
        on_event: &mut OnEvent<'_>,
    ) -> Vec<RequestEnd> {
        let cancelled = self.end_cancelled();
        if !cancelled.is_empty() {
            return cancelled;
        }
        self.was_preempted &= !self.active.is_empty();
        self.give_way();
        self.admit();
        if self.active.is_empty()
            && let Some(ended) = self.run_unhurried(step)
        {
            return vec![ended];
        }
        self.restore(step, on_event);
        for at in 0..self.active.len() {
            let active = &mut self.active[at];
            let id = active.request.id;
            let mut on_event = |event: Event<'_>| on_event(id, event);
            let result = active.next_token(&mut self.session, &mut on_event);
            if let Some(result) = result.transpose() {
                return vec![self.end(at, result)];
            }
        }
        self.pause_for_memory();
        let failed = self.pass(step.preempt, on_event).err();
        let ended = failed.map(|(at, result)| {
            let id = self.active[at].request.id;
            let answer = &mut self.active[at].answer;
            answer.report_held(&mut |event| on_event(id, event));
            self.end(at, result.map_err(GenerateError::from))
        });
        Vec::from_iter(ended)
    }

    /// Ends the cancelled requests that wait.
    fn end_cancelled(&mut self) -> Vec<RequestEnd> {
        let mut ended = Vec::new();
        self.waiting.retain(|WaitingRequest { request, .. }| {
            let is_cancelled = request.signals.is_cancelled();
            if is_cancelled {
                ended.push(unanswered(request, StopReason::Cancelled));
            }
            !is_cancelled
        });
        let paused = std::mem::take(&mut self.paused).into_iter();
        let (cancelled, paused): (VecDeque<_>, _) =
            paused.partition(|it| it.request.signals.is_cancelled());
        self.paused = paused;
        let cancelled = cancelled.into_iter();
        ended.extend(cancelled.map(
            |ActiveRequest {
                 request, answer, ..
             }| { (request.id, Ok(answer.finish(StopReason::Cancelled))) },
        ));
        ended
    }

    /// Returns an active request that nobody waits for to the queue, if a more urgent one waits.
    fn give_way(&mut self) {
        if let [ActiveRequest { request, .. }] = &self.active[..]
            && let Some(first) = self.waiting.front()
            && !request.priority.is_answer()
            && first.request.priority < request.priority
        {
            let (request, answer) = self.release(0);
            let rules = answer.rules().cloned();
            let waiting = &mut self.waiting;
            let at = waiting.partition_point(|it| it.request.priority < request.priority);
            waiting.insert(at, WaitingRequest { request, rules });
        }
    }

    /// Begins a request with the tokens of its prompt that are in memory.
    fn activate(&mut self, WaitingRequest { request, rules }: WaitingRequest) {
        let sequence = self.take(&request.prompt.ids, &request);
        let speculates = request.params.lookup && self.session.batch_limit() > 1;
        let answer = AnswerWriter::new(&self.tokenizer, self.context, &request, rules);
        let active = ActiveRequest::new(request, answer, sequence, speculates);
        self.active.push(active);
    }

    /// Restores the stored blocks of the first prompt that has any: all of them if there is no other request.
    fn restore(&mut self, step: &mut StepOptions<'_>, on_event: &mut OnEvent<'_>) {
        let is_alone = self.active.len() == 1;
        let Some(at) = self.first(|state| matches!(state, RequestState::Restoring)) else {
            return;
        };
        let active = &mut self.active[at];
        if only_own(&active.request).is_some() {
            // Blocks are of the user's chats.
            return active.begin_reading();
        }
        let ModelRequest {
            id,
            prompt,
            signals,
            ..
        } = &active.request;
        let mut restored = 0;
        let mut goes_on = || {
            restored += 1;
            let is_preempted = is_alone && step.preempt.load(Ordering::Relaxed);
            !(is_preempted || signals.is_cancelled()) && (is_alone || restored <= BLOCKS_BESIDE)
        };
        let mut progress = |cached| {
            let (done, total) = (cached, prompt.ids.len());
            let progress = Event::Prefill {
                done,
                total,
                cached,
            };
            on_event(*id, progress);
        };
        let (sequence, ids) = (&mut active.sequence, &prompt.ids);
        let more = self
            .session
            .restore(sequence, ids, step.blocks, &mut goes_on, &mut progress);
        if !more {
            active.begin_reading();
        }
    }

    /// Runs a request that nobody waits for. Returns it if it ended.
    fn run_unhurried(&mut self, step: &mut StepOptions<'_>) -> Option<RequestEnd> {
        let waiting = self.waiting.pop_front()?;
        let request = &waiting.request;
        if request.priority == Priority::ReadAhead {
            if self.read_ahead(request, step) {
                self.waiting.push_front(waiting);
                return None;
            }
            return Some(unanswered(request, StopReason::EndOfTurn));
        }
        let ids = &request.prompt.ids;
        let mut sequences = self.session.sequences();
        if !sequences.any(|tokens| !tokens.is_empty() && ids.starts_with(tokens)) {
            // The conversation is not in memory any more: a title is not worth reading it again.
            return Some(unanswered(request, StopReason::Cancelled));
        }
        drop(sequences);
        self.activate(waiting);
        None
    }

    /// Prefills a part of a prompt before it is sent. Returns true if there is more, or the step was preempted.
    fn read_ahead(&mut self, request: &ModelRequest, step: &mut StepOptions<'_>) -> bool {
        let ends = self.tokenizer.turn_ends();
        let last_end = |ids: &[u32]| ids.iter().rposition(|id| ends.contains(id));
        let ids = &request.prompt.ids;
        // Without the tokens that the template adds for the answer.
        let ahead = &ids[..last_end(ids).unwrap_or(ids.len())];
        // The last turn may be a draft.
        let sent = last_end(ahead).unwrap_or(0);
        let (session, preempt) = (&mut self.session, step.preempt);
        if session.block().is_none() {
            return false;
        }
        let mut sequence = session.take(ids, request.conversation, None, std::iter::empty());
        let mut goes_on = || !preempt.load(Ordering::Relaxed);
        session.restore(&mut sequence, ids, step.blocks, &mut goes_on, &mut |_| {});
        let more = session.read_ahead(&mut sequence, ahead, sent, preempt);
        session.park(sequence);
        let more = more
            .inspect_err(|error| tracing::debug!(%error, "a message was not read ahead"))
            .unwrap_or(false);
        more || preempt.load(Ordering::Relaxed)
    }

    /// Runs a pass over what the active requests need next. On an error or a cancellation, returns the request that ends
    /// by it.
    fn pass(
        &mut self,
        preempt: &AtomicBool,
        on_event: &mut OnEvent<'_>,
    ) -> Result<(), (usize, Result<StopReason, DeviceError>)> {
        if let [alone] = &mut self.active[..]
            && let RequestState::Evaluating { id, .. } = alone.state
        {
            let cancel = Arc::clone(&alone.request.signals.cancel);
            let sampled = alone.sample_on_device(&mut self.session, id, &cancel);
            if let Some(id) = sampled.map_err(|error| (0, Err(error)))? {
                alone.state = RequestState::Sampled { id };
                return Ok(());
            }
        }
        let mut inputs = self.inputs();
        if let Some(id) = self.apart.pop_front() {
            inputs.retain(|(at, ..)| self.active[*at].request.id == id);
        }
        let alone = match inputs[..] {
            [] => return Ok(()),
            // Beside others it may be repeated, so that Stop reaches these too.
            [(at, ..)] if self.active.len() == 1 => {
                Some(&self.active[at].request).filter(|it| it.priority == Priority::Answer)
            }
            _ => None,
        };
        let own = alone.map(|request| Arc::clone(&request.signals.cancel));
        let never = AtomicBool::new(false);
        let preempt = match std::mem::take(&mut self.was_preempted) {
            true => &never,
            false => preempt,
        };
        let cancel = own.as_deref().unwrap_or(preempt);
        let is_shared = self.active.len() > 1;
        for (at, ..) in &inputs {
            let active = &mut self.active[*at];
            active.answer.stats.shared |= is_shared;
            if active.answer.begins_reading() {
                on_event(active.request.id, active.progress());
            }
        }
        let mut rest = inputs.iter().peekable();
        let mut slots = Vec::with_capacity(inputs.len());
        for (at, active) in self.active.iter_mut().enumerate() {
            if let Some((_, ids, want)) = rest.next_if(|(of, ..)| *of == at) {
                slots.push(SequenceSlot {
                    sequence: &mut active.sequence,
                    ids,
                    want: *want,
                });
            }
        }
        match (
            self.session.decode(&mut slots, is_shared, cancel),
            &inputs[..],
        ) {
            (Ok(Pass::Complete), _) => self.advance(&inputs, on_event),
            (Ok(Pass::Cancelled), [(at, ..), ..]) if own.is_some() => {
                return Err((*at, Ok(StopReason::Cancelled)));
            }
            (Ok(Pass::Cancelled), _) => {
                let mut requests = self.active.iter().map(|it| &it.request);
                self.was_preempted = requests.any(|it| it.priority.is_answer());
            }
            (Err(DeviceError::OutOfMemory(reason)), [_]) if is_shared => self.pause(&reason),
            (Err(error), [(at, ..)]) if is_shared => {
                let sequences = self.active.iter_mut().map(|it| &mut it.sequence);
                let failed = self.session.fail_over(error, sequences);
                failed.map_err(|error| (*at, Err(error)))?;
                self.active.iter_mut().for_each(ActiveRequest::read_again);
            }
            (Err(error), [(at, ..)]) => return Err((*at, Err(error))),
            (Err(error), _) => {
                tracing::debug!(%error, "a pass over several sequences failed");
                let ids = inputs.iter().map(|(at, ..)| self.active[*at].request.id);
                self.apart = ids.collect();
            }
        }
        Ok(())
    }

    /// Index of the most urgent request in such a state, and among equals of the oldest one.
    fn first(&self, is_such: impl Fn(&RequestState) -> bool) -> Option<usize> {
        let such = self.active.iter().enumerate();
        let such = such.filter(|(_, it)| is_such(&it.state));
        such.min_by_key(|(_, it)| it.request.priority)
            .map(|(at, _)| at)
    }

    /// Ends a request.
    fn end(&mut self, at: usize, result: Result<StopReason, GenerateError>) -> RequestEnd {
        let (request, answer) = self.release(at);
        (request.id, result.map(|reason| answer.finish(reason)))
    }

    /// Takes an active request. Its sequence stays in memory.
    fn release(&mut self, at: usize) -> (ModelRequest, AnswerWriter) {
        let ActiveRequest {
            request,
            mut answer,
            mut sequence,
            cached,
            is_kept,
            speculator,
            ..
        } = self.active.remove(at);
        self.may_resume = true;
        sequence.truncate(match request.priority {
            Priority::Title => cached,
            // Drafted tokens that the answer does not have are dropped.
            _ => sequence.common(answer.tokens()),
        });
        if is_kept {
            self.session.park(sequence);
        }
        answer.stats.drafted_tokens = speculator.drafted;
        answer.stats.accepted_tokens = speculator.accepted;
        (request, answer)
    }

    /// Drops the sequences in memory of conversations that `keeps` refuses.
    pub fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        for active in self.active.iter_mut().chain(&mut self.paused) {
            active.is_kept &= keeps(active.request.conversation);
        }
        self.session.retain(keeps);
    }

    /// Moves the sequences in memory of the conversation `from` to the conversation `to`.
    pub fn relabel(&mut self, from: u64, to: u64) {
        let running = self.active.iter_mut().chain(&mut self.paused);
        let requests = running.map(|active| {
            active.sequence.relabel(from, to);
            &mut active.request
        });
        let waiting = self.waiting.iter_mut().map(|it| &mut it.request);
        for request in requests.chain(waiting) {
            if request.conversation == from {
                request.conversation = to;
            }
        }
        self.session.relabel(from, to);
    }

    /// The tokens of the sequences in memory.
    pub fn sequences(&self) -> impl Iterator<Item = &[u32]> {
        let active = self.active.iter().map(|active| &*active.sequence.tokens);
        active.chain(self.session.sequences())
    }
}

/// Makes the end of a request without an answer.
fn unanswered(request: &ModelRequest, reason: StopReason) -> RequestEnd {
    let stats = Stats {
        prompt_tokens: request.prompt.ids.len(),
        ..Stats::default()
    };
    (request.id, Ok(Finished { reason, stats }))
}

#[cfg(test)]
mod tests;
