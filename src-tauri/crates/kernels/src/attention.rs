//! Causal attention over a layer's keys and values, tile by tile with a running maximum.

use crate::kv::{KvLayer, TILE};
use crate::pool::{Parts, Pool};

/// `out[m][heads][dim]` from `q[m][heads][dim]`; query `i` sees positions `0..=past + i`.
pub(crate) fn attention(
    pool: &Pool,
    q: &[f32],
    m: usize,
    heads: usize,
    kv: &KvLayer,
    past: usize,
    out: &mut [f32],
) {
    let dim = kv.head_dim();
    let shared = heads / kv.kv_heads();
    let scale = 1.0 / (dim as f32).sqrt();
    let parts = Parts::new(out);
    pool.pieces(m * kv.kv_heads(), |_, piece| {
        let (i, kv_head) = (piece / kv.kv_heads(), piece % kv.kv_heads());
        let first = (i * heads + kv_head * shared) * dim;
        // SAFETY: a piece is one query row and one group of heads; no other piece writes these.
        let out = unsafe { parts.slice(first, shared * dim) };
        let q = &q[first..first + shared * dim];
        let mut tile = vec![0.0; dim * TILE];
        let (mut most, mut sum) = (vec![f32::NEG_INFINITY; shared], vec![0.0_f32; shared]);
        let mut weight = vec![[0.0_f32; TILE]; shared];
        out.fill(0.0);
        let seen = past + i + 1;
        for t in 0..seen.div_ceil(TILE) {
            let lanes = (seen - t * TILE).min(TILE);
            kv.read_keys(kv_head, t, &mut tile);
            for h in 0..shared {
                let mut score = [0.0_f32; TILE];
                for (x, k) in q[h * dim..(h + 1) * dim]
                    .iter()
                    .zip(tile.chunks_exact(TILE))
                {
                    for (s, k) in score.iter_mut().zip(k) {
                        *s += x * k;
                    }
                }
                let top = score[..lanes].iter().fold(most[h], |a, s| a.max(s * scale));
                let fade = (most[h] - top).exp();
                most[h] = top;
                sum[h] *= fade;
                for o in &mut out[h * dim..(h + 1) * dim] {
                    *o *= fade;
                }
                for (w, s) in weight[h].iter_mut().zip(&score[..lanes]) {
                    *w = (s * scale - top).exp();
                    sum[h] += *w;
                }
            }
            kv.read_values(kv_head, t, &mut tile);
            for h in 0..shared {
                for (w, v) in weight[h][..lanes].iter().zip(tile.chunks_exact(dim)) {
                    for (o, v) in out[h * dim..(h + 1) * dim].iter_mut().zip(v) {
                        *o += w * v;
                    }
                }
            }
        }
        for h in 0..shared {
            for o in &mut out[h * dim..(h + 1) * dim] {
                *o /= sum[h];
            }
        }
    });
}
