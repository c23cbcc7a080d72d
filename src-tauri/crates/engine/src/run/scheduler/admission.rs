//! Admission of requests to the passes: by urgency, and by the room in memory.

use inference::{ModelRequest, Priority};

use super::Scheduler;
use super::active::RequestState;
use super::waiting::{WaitingRequest, only_own};
use crate::model::kv_cache::KvCache;
use crate::run::sequence::{NEGLIGIBLE, Sequence};

/// Sequences in a pass, at most. Further requests wait.
const MAX_ACTIVE: usize = 8;
/// Tokens that an answer is expected to have at most.
const EXPECTED_TOKENS: usize = 1024;

impl Scheduler {
    /// Gives sequences to answers that wait: first to those that had one, except where an answer of the user waits and
    /// these are of programs.
    pub(super) fn admit(&mut self) {
        if std::mem::take(&mut self.may_resume) || self.active.is_empty() {
            while self.resume() {}
        }
        while let Some(WaitingRequest { request: next, .. }) = self.waiting.front()
            && next.priority.is_answer()
            && self
                .paused
                .iter()
                .all(|it| it.request.priority > next.priority)
        {
            let ids = next.prompt.ids.clone();
            let (tokens, priority, only) = (self.expected(next), next.priority, only_own(next));
            if self.is_being_read(&ids, priority, only) {
                return;
            }
            let is_full = self.active.len() >= MAX_ACTIVE;
            if !is_full && self.has_room_beside(&ids, tokens, only) {
                let next = self.waiting.pop_front();
                next.into_iter().for_each(|next| self.activate(next));
            } else if !self.comes_before_another(priority) {
                return;
            } else if is_full {
                self.yield_place();
            } else {
                self.pause("a more urgent one has no room");
            }
        }
    }

    /// Returns true if a request that is as urgent is about to read more of these tokens than are in memory.
    fn is_being_read(&self, ids: &[u32], priority: Priority, only: Option<u64>) -> bool {
        if self.session.block().is_none() {
            // Sequences in the memory of a device are not shared.
            return false;
        }
        let cached = self.cached(ids, only);
        self.active.iter().any(|it| {
            let reads = matches!(it.state, RequestState::Restoring | RequestState::Reading);
            let is_usable = only.is_none_or(|label| it.sequence.label == label);
            let tokens = it.answer.tokens().iter().zip(ids);
            reads
                && is_usable
                && it.request.priority <= priority
                && tokens.take_while(|(a, b)| a == b).count() > cached + NEGLIGIBLE
        })
    }

    /// Tokens of a prompt that are in memory.
    fn cached(&self, ids: &[u32], only: Option<u64>) -> usize {
        let usable = self
            .active
            .iter()
            .map(|it| &it.sequence)
            .filter(|it| only.is_none_or(|label| it.label == label));
        let active = usable.map(|it| it.common(ids)).max();
        active.max(self.session.common(ids, only)).unwrap_or(0)
    }

    /// Index of the newest of the least urgent active requests.
    fn least_urgent(&self) -> Option<usize> {
        let active = self.active.iter().enumerate();
        let last = active.max_by_key(|(_, it)| it.request.priority);
        last.map(|(at, _)| at)
    }

    /// Returns true if an active request is less urgent than this.
    fn comes_before_another(&self, priority: Priority) -> bool {
        let mut active = self.active.iter();
        active.any(|it| it.request.priority > priority)
    }

    /// Pauses the newest of the least urgent requests. Its sequence stays in memory.
    fn yield_place(&mut self) {
        let Some(at) = self.least_urgent() else {
            return;
        };
        let mut paused = self.active.remove(at);
        let mut sequence = std::mem::take(&mut paused.sequence);
        sequence.truncate(sequence.common(paused.answer.tokens()));
        if paused.is_kept {
            self.session.park(sequence);
        }
        paused.read_again();
        self.paused.push_front(paused);
    }

    /// Resumes the request that was paused last if there is room for it, and no more urgent one waits. Returns true if it
    /// did.
    fn resume(&mut self) -> bool {
        let Some(next) = self.paused.front() else {
            return false;
        };
        let first = self.waiting.front();
        if self.active.len() >= MAX_ACTIVE
            || first.is_some_and(|it| it.request.priority < next.request.priority)
        {
            return false;
        }
        let ids = next.answer.tokens().to_vec();
        let tokens = self.expected(&next.request).max(ids.len());
        let only = only_own(&next.request);
        if !self.has_room_beside(&ids, tokens, only) {
            return false;
        }
        if let Some(mut next) = self.paused.pop_front() {
            next.sequence = self.take(&ids, &next.request);
            self.active.push(next);
        }
        true
    }

    /// Takes a sequence with tokens of `ids` that are in memory, but not the last one: that is evaluated for its logits.
    pub(super) fn take(&mut self, ids: &[u32], request: &ModelRequest) -> Sequence {
        let active = self.active.iter_mut().map(|it| &mut it.sequence);
        let (label, only) = (request.conversation, only_own(request));
        let mut sequence = self.session.take(ids, label, only, active);
        sequence.truncate(ids.len() - 1);
        sequence
    }

    /// Tokens that a request is expected to have in the end.
    fn expected(&self, request: &ModelRequest) -> usize {
        let most = request.params.max_tokens.unwrap_or(usize::MAX);
        (request.prompt.ids.len() + most.min(EXPECTED_TOKENS)).min(self.context)
    }

    /// Returns true if memory has room for a sequence that begins with `ids` and gets `tokens`, beside what the active
    /// requests are expected to need. Other parked sequences are freed for it.
    fn has_room_beside(&mut self, ids: &[u32], tokens: usize, only: Option<u64>) -> bool {
        if self.active.is_empty() {
            return true;
        }
        let active = self.active.iter();
        let growth = active.map(|it| {
            let expected = self.expected(&it.request);
            expected.saturating_sub(it.sequence.tokens.len())
        });
        let growth: usize = growth.sum();
        let cached = self.cached(ids, only);
        self.has_room(growth + tokens.saturating_sub(cached), ids)
    }

    /// Returns true if memory has room for this number of tokens, for which parked sequences are freed, except for the one
    /// that has a beginning in common with `ids`.
    fn has_room(&mut self, tokens: usize, ids: &[u32]) -> bool {
        // A device refuses what it has no room for.
        self.session.block().is_none()
            || (self.has_room)(tokens)
            || self.session.free_parked(ids) && (self.has_room)(tokens)
    }

    /// Pauses the newest request if memory has no room for the next tokens of all.
    pub(super) fn pause_for_memory(&mut self) {
        let lengths = self.active.iter().map(|it| it.sequence.tokens.len());
        let segments = lengths.filter(|len| *len > 0 && len.is_multiple_of(KvCache::SEGMENT));
        let tokens = segments.count() * KvCache::SEGMENT;
        if self.active.len() > 1 && tokens > 0 && !self.has_room(tokens, &[]) {
            self.pause("memory is short");
        }
    }

    /// Pauses the newest request, as for memory.
    #[cfg(test)]
    pub fn pause_newest(&mut self) {
        if self.active.len() > 1 {
            self.pause("a test");
        }
    }

    /// Pauses the newest of the least urgent requests, and frees its memory.
    pub(super) fn pause(&mut self, reason: &str) {
        tracing::debug!(reason, "a request waits for the memory of others");
        if let Some(at) = self.least_urgent() {
            let mut newest = self.active.remove(at);
            newest.read_again();
            self.paused.push_front(newest);
            self.may_resume = false;
        }
    }
}
