//! A worker's queue of tasks, from which other workers steal.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A range of tasks: the start in the high half, the end in the low one. In a cache line of its own, since its worker
/// changes it with every task. Relaxed ordering suffices: a task goes to one worker, and the beginning and end of the job
/// order what tasks read and write.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct WorkQueue(AtomicU64);

impl WorkQueue {
    pub fn set(&self, tasks: Range<usize>) {
        self.0.store(pack(tasks), Ordering::Relaxed);
    }

    pub fn left(&self) -> Range<usize> {
        unpack(self.0.load(Ordering::Relaxed))
    }

    /// Removes and returns the first task.
    pub fn pop_first(&self) -> Option<usize> {
        let taken = self.change(|Range { start, end }| start + 1..end);
        (!taken.is_empty()).then_some(taken.start)
    }

    /// Removes and returns the second half, which is the longer one.
    pub fn steal_half(&self) -> Range<usize> {
        let half = |Range { start, end }| start + (end - start) / 2;
        let Range { start, end } = self.change(|left| left.start..half(left));
        half(start..end)..end
    }

    /// Replaces the range, unless it is empty; returns the previous one.
    fn change(&self, to: impl Fn(Range<usize>) -> Range<usize>) -> Range<usize> {
        let next = |left| {
            let left = unpack(left);
            (!left.is_empty()).then(|| pack(to(left)))
        };
        let was = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        was.map_or(0..0, unpack)
    }
}

fn pack(tasks: Range<usize>) -> u64 {
    (tasks.start as u64) << 32 | tasks.end as u64
}

fn unpack(range: u64) -> Range<usize> {
    (range >> 32) as usize..(range & u64::from(u32::MAX)) as usize
}
