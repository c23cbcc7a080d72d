//! How fast this machine reads memory: the wall that decoding runs into.

use std::hint::black_box;
use std::time::Instant;

use crate::pool::Pool;

/// Bytes read in a pass: several times any last-level cache that a core of ours can see.
const BUFFER: usize = 512 << 20;
const PIECE: usize = 4 << 20;

/// Bytes per second at which `threads` threads together read memory: the best of a few passes
/// over a buffer larger than the caches.
pub fn read_bandwidth(threads: usize) -> f64 {
    let pool = Pool::new(threads);
    let buffer = vec![1_u64; BUFFER / 8];
    let best = (0..4)
        .map(|_| {
            let start = Instant::now();
            pool.pieces(BUFFER / PIECE, |_, i| {
                let piece = &buffer[i * PIECE / 8..(i + 1) * PIECE / 8];
                let mut sums = [0_u64; 64];
                for line in piece.chunks_exact(64) {
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
