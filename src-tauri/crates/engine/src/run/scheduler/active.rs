//! A request with a sequence: from the logits of a pass to its next tokens.

use std::sync::atomic::AtomicBool;

use inference::{Event, ModelRequest, StopReason};

use crate::model::error::DeviceError;
use crate::run::answer::AnswerWriter;
use crate::run::error::GenerateError;
use crate::run::sequence::Sequence;
use crate::run::session::Session;
use crate::run::speculative::Speculator;

/// A request with a sequence.
pub(super) struct ActiveRequest {
    pub request: ModelRequest,
    pub answer: AnswerWriter,
    pub sequence: Sequence,
    /// Tokens that were in the cache before the prompt was read.
    pub cached: usize,
    /// False once the conversation was deleted: its sequence is dropped.
    pub is_kept: bool,
    pub speculator: Speculator,
    /// True if the device samples; `None` if it has not been asked with this sampler.
    pub on_device: Option<bool>,
    pub state: RequestState,
}

pub(super) enum RequestState {
    /// Stored blocks of the prompt may be restored.
    Restoring,
    /// The prompt is being read, or after a loss of the cache also the answer.
    Reading,
    /// The logits from this row on determine the next token.
    Sampling { row: usize },
    /// The device has sampled the next token.
    Sampled { id: u32 },
    /// The tokens of the prompt and the answer from `read` on are not evaluated. The last one is `id`.
    Evaluating { id: u32, read: usize },
}

impl ActiveRequest {
    /// Begins a request with a sequence that holds a part of its prompt.
    pub fn new(
        request: ModelRequest,
        answer: AnswerWriter,
        sequence: Sequence,
        speculates: bool,
    ) -> ActiveRequest {
        let on_host = speculates || answer.needs_logits();
        ActiveRequest {
            request,
            answer,
            cached: sequence.tokens.len(),
            sequence,
            is_kept: true,
            speculator: Speculator::new(speculates),
            on_device: on_host.then_some(false),
            state: RequestState::Restoring,
        }
    }

    /// Begins to read what is not in the cache.
    pub fn begin_reading(&mut self) {
        if self.answer.stats.tokens == 0 {
            self.cached = self.sequence.tokens.len();
            self.answer.stats.cached_tokens = self.cached;
        }
        self.state = RequestState::Reading;
    }

    /// Frees the cache, and has the tokens read again.
    pub fn read_again(&mut self) {
        self.sequence.truncate(0);
        self.sequence.cache = None;
        self.speculator.drop_draft();
        // The device may have another sampler by then.
        self.on_device.take_if(|it| *it);
        self.state = RequestState::Restoring;
    }

    pub fn progress(&self) -> Event<'static> {
        Event::Prefill {
            done: self.sequence.tokens.len(),
            total: self.request.prompt.ids.len(),
            cached: self.cached,
        }
    }

    /// Samples tokens up to one that no pass has read, with those that the form of the answer determines behind it.
    /// Returns the reason if the answer ends.
    ///
    /// # Errors
    /// Fails if the answer cannot be held to its form any longer.
    pub fn next_token(
        &mut self,
        session: &mut Session,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<StopReason>, GenerateError> {
        let ends = self.next_token_held(session, on_event);
        if !matches!(ends, Ok(None)) {
            self.answer.report_held(on_event);
        }
        ends
    }

    fn next_token_held(
        &mut self,
        session: &mut Session,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<StopReason>, GenerateError> {
        loop {
            let (sampled, row) = match self.state {
                RequestState::Restoring
                | RequestState::Reading
                | RequestState::Evaluating { .. } => {
                    let is_cancelled = self.request.signals.is_cancelled();
                    return Ok(is_cancelled.then_some(StopReason::Cancelled));
                }
                RequestState::Sampled { id } => (Some(id), 0),
                RequestState::Sampling { row } => (None, row),
            };
            if let Some(reason) = self.answer.stops() {
                return Ok(Some(reason));
            }
            if self.answer.ends_thinking() && self.on_device == Some(true) {
                self.sequence.truncate(self.answer.tokens().len());
                self.on_device = None;
            }
            let forced = self.answer.forced();
            if forced.is_some() && sampled.is_some() {
                // Drops the pass over the token that was sampled in its place.
                self.sequence.truncate(self.answer.tokens().len());
            }
            let id = match forced.or(sampled) {
                Some(id) => id,
                None => {
                    let row = row + self.speculator.row();
                    self.answer.sample(session.logits(row))?
                }
            };
            if let Some(reason) = self.answer.push(id, forced.is_some(), on_event)? {
                return Ok(Some(reason));
            }
            if !self.speculator.accepts(id) {
                let read = self.answer.tokens().len() - 1;
                return self.determined_tokens(id, read, on_event);
            }
        }
    }

    /// Appends the tokens that the form of the answer determines behind the last one, which no pass has read. Returns the
    /// reason if the answer ends.
    fn determined_tokens(
        &mut self,
        mut id: u32,
        read: usize,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<StopReason>, GenerateError> {
        while let Some(next) = self.answer.determined() {
            if let Some(reason) = self.answer.stops() {
                return Ok(Some(reason));
            }
            id = next;
            self.speculator.observes(id);
            if let Some(reason) = self.answer.push(id, true, on_event)? {
                return Ok(Some(reason));
            }
        }
        self.state = RequestState::Evaluating { id, read };
        Ok(None)
    }

    /// Evaluates a token and samples the next one on the device; `None` if the host samples, or it is cancelled.
    pub fn sample_on_device(
        &mut self,
        session: &mut Session,
        id: u32,
        cancel: &AtomicBool,
    ) -> Result<Option<u32>, DeviceError> {
        let on_device = match self.on_device {
            Some(on_device) => on_device,
            None => session.samples_on_device(&mut self.sequence, &self.answer.sampler)?,
        };
        self.on_device = Some(on_device);
        if !on_device {
            return Ok(None);
        }
        let more = self.answer.may_look_ahead();
        let sampler = &mut self.answer.sampler;
        session.step_on_device(&mut self.sequence, id, sampler, more, cancel)
    }
}
