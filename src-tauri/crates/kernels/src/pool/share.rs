//! The range of tasks that a worker has left, which others may take from.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pieces that are left to a worker: the first in the high half, the end in the low one. In a cache line of its own,
/// since the worker changes it with every task. No order is asked of memory: tasks go to one worker each, and what
/// they read and write is ordered by the job's beginning and end.
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

    /// Takes the first task.
    pub fn first(&self) -> Option<usize> {
        let taken = self.change(|Range { start, end }| start + 1..end);
        (!taken.is_empty()).then_some(taken.start)
    }

    /// Takes the second half, which is the longer one.
    pub fn half(&self) -> Range<usize> {
        let half = |Range { start, end }| start + (end - start) / 2;
        let Range { start, end } = self.change(|left| left.start..half(left));
        half(start..end)..end
    }

    /// Changes what is left, unless nothing is; gives what was.
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

fn unpack(share: u64) -> Range<usize> {
    (share >> 32) as usize..(share & u64::from(u32::MAX)) as usize
}
