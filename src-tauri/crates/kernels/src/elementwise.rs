//! Element-wise loops: RMS norm, RoPE and SwiGLU.

use crate::isa::{Isa, LANES};

/// `y = x / √(mean x² + eps) ⊙ weight`, for one row.
///
/// # Safety
/// The machine has `I`; the three slices are equally long.
#[inline(always)]
pub(crate) unsafe fn rms_norm<I: Isa>(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    debug_assert!(x.len() == weight.len() && x.len() == y.len());
    let whole = x.len() / LANES * LANES;
    // SAFETY: vectors end at `whole`, inside all three slices.
    unsafe {
        let mut squares = I::splat(0.0);
        for i in (0..whole).step_by(LANES) {
            let v = I::load(x.as_ptr().add(i));
            squares = I::fma(v, v, squares);
        }
        let rest: f32 = x[whole..].iter().map(|v| v * v).sum();
        let scale = 1.0 / ((I::sum(squares) + rest) / x.len() as f32 + eps).sqrt();
        for i in (0..whole).step_by(LANES) {
            let v = I::mul(I::load(x.as_ptr().add(i)), I::splat(scale));
            I::store(
                y.as_mut_ptr().add(i),
                I::mul(v, I::load(weight.as_ptr().add(i))),
            );
        }
        for i in whole..x.len() {
            y[i] = x[i] * scale * weight[i];
        }
    }
}

/// Rotates the pairs of the first `rotary` components of every head of one row; `cos_sin` holds
/// `rotary / 2` pairs of cosine and sine.
///
/// # Safety
/// The machine has `I`; `x` is whole heads; `rotary <= head_dim` and `cos_sin` is `rotary` long.
#[inline(always)]
pub(crate) unsafe fn rotate<I: Isa>(
    x: &mut [f32],
    head_dim: usize,
    rotary: usize,
    cos_sin: &[f32],
) {
    debug_assert!(
        x.len().is_multiple_of(head_dim) && rotary <= head_dim && cos_sin.len() == rotary
    );
    let whole = rotary / LANES * LANES;
    // SAFETY: vectors end at `whole`, inside every head and inside `cos_sin`.
    unsafe {
        for i in (0..whole).step_by(LANES) {
            // (c, s, …) becomes (c, c, …) and (−s, s, …).
            let (mut cos, mut sin) = ([0.0; LANES], [0.0; LANES]);
            for j in (0..LANES).step_by(2) {
                (cos[j], cos[j + 1]) = (cos_sin[i + j], cos_sin[i + j]);
                (sin[j], sin[j + 1]) = (-cos_sin[i + j + 1], cos_sin[i + j + 1]);
            }
            let (cos, sin) = (I::load(cos.as_ptr()), I::load(sin.as_ptr()));
            for head in x.chunks_exact_mut(head_dim) {
                let p = head.as_mut_ptr().add(i);
                let v = I::load(p);
                I::store(p, I::fma(v, cos, I::mul(I::swap_pairs(v), sin)));
            }
        }
    }
    for head in x.chunks_exact_mut(head_dim) {
        let pairs = head[whole..rotary].chunks_exact_mut(2);
        for (pair, cos_sin) in pairs.zip(cos_sin[whole..].chunks_exact(2)) {
            let (a, b, cos, sin) = (pair[0], pair[1], cos_sin[0], cos_sin[1]);
            (pair[0], pair[1]) = (a * cos - b * sin, a * sin + b * cos);
        }
    }
}

/// `gate = gate / (1 + e^−gate) · up`; both are whole vectors.
///
/// # Safety
/// The machine has `I`; the slices are equally long, a multiple of 16.
#[inline(always)]
pub(crate) unsafe fn silu_mul<I: Isa>(gate: &mut [f32], up: &[f32]) {
    debug_assert!(gate.len() == up.len() && gate.len().is_multiple_of(LANES));
    // SAFETY: steps of whole vectors stay inside both slices.
    unsafe {
        for i in (0..gate.len()).step_by(LANES) {
            let p = gate.as_mut_ptr().add(i);
            I::store(
                p,
                silu_mul_vector::<I>(I::load(p), I::load(up.as_ptr().add(i))),
            );
        }
    }
}

/// `gate / (1 + e^−gate) · up`.
///
/// # Safety
/// The machine has `I`.
#[inline(always)]
pub(crate) unsafe fn silu_mul_vector<I: Isa>(gate: I::F, up: I::F) -> I::F {
    // SAFETY: no pointers.
    unsafe {
        let down = I::add(I::splat(1.0), I::exp(I::sub(I::splat(0.0), gate)));
        I::mul(I::div(gate, down), up)
    }
}
