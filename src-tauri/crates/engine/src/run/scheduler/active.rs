//! A request with a sequence: from the logits of a pass to its next tokens.

use inference::{Event, ModelRequest, StopReason};

use crate::model::error::DeviceError;
use crate::run::answer::AnswerWriter;
use crate::run::sequence::Sequence;
use crate::run::session::Session;
use crate::run::speculative::Speculator;

/// A request with a sequence.
pub(super) struct ActiveRequest {
    pub request: ModelRequest,
    pub answer: AnswerWriter,
    pub sequence: Sequence,
    /// Tokens that were in the cache at the start.
    pub cached: usize,
    /// False once the conversation was deleted: its sequence is dropped.
    pub is_kept: bool,
    pub speculator: Speculator,
    /// True if the device samples; `None` if it has not been asked with this sampler.
    pub on_device: Option<bool>,
    pub state: RequestState,
}

pub(super) enum RequestState {
    /// The prompt is being read.
    Reading,
    /// The logits from this row on determine the next token.
    Sampling { row: usize },
    /// The device has sampled the next token.
    Sampled { id: u32 },
    /// The last token is not evaluated.
    Evaluating { id: u32 },
}

impl ActiveRequest {
    /// Begins a request with a sequence that holds a part of its prompt.
    pub fn new(
        request: ModelRequest,
        mut answer: AnswerWriter,
        sequence: Sequence,
        speculates: bool,
    ) -> ActiveRequest {
        let cached = sequence.tokens.len();
        answer.stats.cached_tokens = cached;
        ActiveRequest {
            request,
            answer,
            sequence,
            cached,
            is_kept: true,
            speculator: Speculator::new(speculates),
            on_device: speculates.then_some(false),
            state: RequestState::Reading,
        }
    }

    pub fn progress(&self) -> Event<'static> {
        Event::Prefill {
            done: self.sequence.tokens.len(),
            total: self.request.prompt.ids.len(),
            cached: self.cached,
        }
    }

    /// Samples tokens up to one that no pass has read. Returns the reason if the answer ends.
    pub fn next_token(
        &mut self,
        session: &mut Session,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Option<StopReason> {
        loop {
            let (sampled, row) = match self.state {
                RequestState::Reading | RequestState::Evaluating { .. } => {
                    let is_cancelled = self.request.signals.is_cancelled();
                    return is_cancelled.then_some(StopReason::Cancelled);
                }
                RequestState::Sampled { id } => (Some(id), 0),
                RequestState::Sampling { row } => (None, row),
            };
            if let Some(reason) = self.answer.stops() {
                return Some(reason);
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
            let id = forced.or(sampled).unwrap_or_else(|| {
                let row = row + self.speculator.row();
                self.answer.sample(session.logits(row))
            });
            if let Some(reason) = self.answer.push(id, forced.is_some(), on_event) {
                return Some(reason);
            }
            if !self.speculator.accepts(id) {
                self.state = RequestState::Evaluating { id };
                return None;
            }
        }
    }

    /// Evaluates a token and samples the next one on the device; `None` if the host samples.
    pub fn sample_on_device(
        &mut self,
        session: &mut Session,
        id: u32,
    ) -> Result<Option<u32>, DeviceError> {
        let on_device = match self.on_device {
            Some(on_device) => on_device,
            None => session.configure_sampler(&mut self.sequence, &self.answer.sampler)?,
        };
        self.on_device = Some(on_device);
        if !on_device {
            return Ok(None);
        }
        let more = self.answer.may_look_ahead();
        let sampler = &mut self.answer.sampler;
        let next = session.sample_on_device(&mut self.sequence, id, sampler, more)?;
        Ok(Some(next))
    }
}
