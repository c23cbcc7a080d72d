//! Bytes per second from memory: the bandwidth bound of decoding.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::Instant;

use crate::memory::arena::Arena;
use crate::pool::Pool;

/// Bytes of a pass: several times any last-level cache.
const BUFFER: usize = 512 << 20;
const TASK: usize = 4 << 20;

/// Bytes per second that `threads` threads read from memory: the best of a few passes over a buffer larger than the
/// caches, in the same kind of memory as packed weights. NaN if the system has no memory for it.
pub fn read_bandwidth(threads: usize) -> f64 {
    let pool = Pool::new(threads);
    let Ok(uninit) = Arena::default().take(BUFFER) else {
        return f64::NAN;
    };
    pool.parallel_for(BUFFER / TASK, |_, i| {
        // SAFETY: each part is borrowed by one task.
        unsafe { uninit.part(i, TASK) }.fill(MaybeUninit::new(0));
    });
    // SAFETY: all parts were written, and none is borrowed any more.
    let buffer = unsafe { uninit.finish() };
    let best = (0..4)
        .map(|_| {
            let start = Instant::now();
            pool.parallel_for(BUFFER / TASK, |_, i| {
                // As many sums as fit the registers of every x86-64.
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
