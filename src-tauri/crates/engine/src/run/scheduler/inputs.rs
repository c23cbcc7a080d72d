//! The tokens of a pass, and the states of the requests after it.

use super::active::{ActiveRequest, RequestState};
use super::{OnEvent, Scheduler};
use crate::model::evaluate::Want;

/// Share of its speed that an answer keeps while a prompt is read beside it, by the measured times of passes.
const KEPT_SPEED: f64 = 0.62;
/// Tokens of a prompt that are read beside an answer by a model that runs its sequences one after the other.
const ROWS_BESIDE: usize = 64;

/// One of this number of passes reads the oldest of several prompts, the others read the shortest.
const OLDEST_AFTER: u32 = 4;

/// Tokens of the request with this index, and the positions whose logits are computed.
pub(super) type NextTokens = (usize, Vec<u32>, Want);

impl Scheduler {
    /// Returns the next tokens of the active requests, by their index: one of each answer that is being written, with a
    /// draft if it is alone, and a part of the next prompt that is not read.
    pub(super) fn inputs(&mut self) -> Vec<NextTokens> {
        let is_writing =
            |active: &&ActiveRequest| matches!(active.state, RequestState::Evaluating { .. });
        let writing = self.active.iter().filter(is_writing).count();
        let is_alone = self.active.len() == 1;
        let (limit, chunk) = (self.session.batch_limit(), self.session.chunk());
        let reader = self.next_reader();
        let reads = match writing {
            0 => chunk,
            _ if limit == 1 => ROWS_BESIDE.min(chunk.saturating_sub(writing)),
            _ => {
                let costs = &mut self.session.shared_costs;
                costs.tokens_beside(writing, limit.saturating_sub(writing), KEPT_SPEED)
            }
        };
        let costs = self.session.costs();
        let mut inputs = Vec::new();
        // Rows of tokens that a form has determined, beside one of each answer.
        let mut spare = if limit == 1 { chunk } else { limit }.saturating_sub(writing);
        for (at, active) in self.active.iter_mut().enumerate() {
            match active.state {
                RequestState::Evaluating { read, .. }
                    if read + 1 < active.answer.tokens().len() =>
                {
                    active.sequence.truncate(read);
                    let unread = &active.answer.tokens()[read..];
                    let ids = unread[..unread.len().min(spare + 1)].to_vec();
                    spare -= ids.len() - 1;
                    let is_last = ids.len() == unread.len();
                    let want = if is_last { Want::Last } else { Want::Nothing };
                    // The pass before may have had a draft.
                    active.speculator.draft(active.answer.tokens(), 0, costs);
                    inputs.push((at, ids, want));
                }
                RequestState::Evaluating { id, .. } => {
                    // Drops a rejected draft, or passes of the device in flight.
                    active.sequence.truncate(active.answer.tokens().len() - 1);
                    // The last token of a context or an answer is not evaluated.
                    let most = if is_alone {
                        (active.answer.room() - 1).min(limit - 1)
                    } else {
                        0
                    };
                    let tokens = active.answer.tokens();
                    let draft = active.speculator.draft(tokens, most, costs);
                    inputs.push((at, [&[id], draft].concat(), Want::All));
                }
                RequestState::Reading if reader == Some(at) => {
                    let reads = if writing > 0 { reads.min(spare) } else { reads };
                    let all = active.answer.tokens();
                    let read = active.sequence.tokens.len();
                    let ids = &all[read..all.len().min(read + reads)];
                    if ids.is_empty() {
                        continue;
                    }
                    spare = spare.saturating_sub(ids.len());
                    let is_last = read + ids.len() == all.len();
                    let want = if is_last { Want::Last } else { Want::Nothing };
                    inputs.push((at, ids.to_vec(), want));
                }
                _ => {}
            }
        }
        inputs
    }

    /// Returns the request whose prompt is read next: the most urgent one, and among equals the one with the fewest
    /// tokens left, so that a short prompt does not wait for the whole of a long one. One of every [`OLDEST_AFTER`] passes
    /// reads the oldest, so that short ones do not delay it forever.
    fn next_reader(&self) -> Option<usize> {
        let is_reading = |state: &RequestState| matches!(state, RequestState::Reading);
        let oldest = self.first(is_reading)?;
        let reading = self.active.iter().enumerate();
        let reading = reading.filter(|(_, it)| is_reading(&it.state));
        let next_apart = self.apart.front();
        if let Some((at, _)) = reading
            .clone()
            .find(|(_, it)| Some(&it.request.id) == next_apart)
        {
            return Some(at);
        }
        if self.reads % OLDEST_AFTER == OLDEST_AFTER - 1 {
            return Some(oldest);
        }
        let priority = self.active[oldest].request.priority;
        let equals = reading.filter(|(_, it)| it.request.priority == priority);
        let unread = |it: &ActiveRequest| it.answer.tokens().len() - it.sequence.tokens.len();
        equals.min_by_key(|(_, it)| unread(it)).map(|(at, _)| at)
    }

    /// Moves the requests on after a pass over their tokens.
    pub(super) fn advance(&mut self, inputs: &[NextTokens], on_event: &mut OnEvent<'_>) {
        let mut row = 0;
        for (at, ids, want) in inputs {
            let active = &mut self.active[*at];
            let begins = active.answer.stats.tokens == 0;
            if let RequestState::Reading = active.state {
                self.reads = self.reads.wrapping_add(1);
                if begins {
                    on_event(active.request.id, active.progress());
                }
            }
            match want {
                Want::Nothing => {
                    if let RequestState::Evaluating { read, .. } = &mut active.state {
                        *read += ids.len();
                    }
                }
                Want::Last => {
                    if begins {
                        active.answer.prompt_is_read();
                    }
                    active.state = RequestState::Sampling { row };
                    row += 1;
                }
                Want::All => {
                    active.state = RequestState::Sampling { row };
                    row += ids.len();
                }
            }
        }
    }
}
