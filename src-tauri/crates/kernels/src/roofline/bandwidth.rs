//! How fast this machine reads memory: the wall that decoding runs into.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::Instant;

use crate::memory::arena::Arena;
use crate::pool::Pool;

/// Bytes read in a pass: several times any last-level cache that a core of ours can see.
const BUFFER: usize = 512 << 20;
const TASK: usize = 4 << 20;

/// Bytes per second at which `threads` threads together read memory: the best of a few passes
/// over a buffer larger than the caches, in the same kind of memory as packed weights. NaN where there is no room for it.
pub fn read_bandwidth(threads: usize) -> f64 {
    let pool = Pool::new(threads);
    let Ok(fresh) = Arena::default().take(BUFFER) else {
        return f64::NAN;
    };
    pool.tasks(BUFFER / TASK, |_, i| {
        // SAFETY: each part is handed to one task.
        unsafe { fresh.part(i, TASK) }.fill(MaybeUninit::new(0));
    });
    // SAFETY: all parts were written, and none is in use any more.
    let buffer = unsafe { fresh.finish() };
    let best = (0..4)
        .map(|_| {
            let start = Instant::now();
            pool.tasks(BUFFER / TASK, |_, i| {
                // As many sums as fit the registers of any x86-64.
                let mut sums = [0_u8; 128];
                for line in buffer.as_slice()[i * TASK..(i + 1) * TASK].chunks_exact(128) {
                    for (s, v) in sums.iter_mut().zip(line) {
                        *s ^= v;
                    }
                }
                black_box(sums);
            });
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    BUFFER as f64 / best
}
