//! The left side of a product: floats, and the same rounded to 8 bits in groups of 32.

use std::ops::Range;

use crate::isa::{Isa, LANES};
use crate::layout::GROUP;
use crate::pool::{Parts, Pool};
use crate::routines::Routines;

/// What a group's integers need to become a product again.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Scale {
    /// The activation that an integer of 1 stands for.
    pub scale: f32,
    /// The sum of the group's rounded activations, …
    pub sum: f32,
    /// … and of each half of it: what a minimum or an offset of the weights multiplies.
    pub halves: [f32; 2],
}

/// Rounded activations, `[m][cols]`; buffers grow to the largest product and stay.
#[derive(Default)]
pub(crate) struct Rounded {
    bytes: Vec<i8>,
    scales: Vec<Scale>,
}

impl Rounded {
    /// Rounds `x[m][cols]`; `cols` is a multiple of 32.
    pub fn fill(&mut self, pool: &Pool, routines: &Routines, x: &[f32], m: usize, cols: usize) {
        /// Rows of a piece: enough work to be worth another thread.
        const ROWS: usize = 8;
        debug_assert!(x.len() == m * cols && cols.is_multiple_of(GROUP));
        let groups = cols / GROUP;
        if self.bytes.len() < m * cols {
            self.bytes.resize(m * cols, 0);
            self.scales.resize(m * groups, Scale::default());
        }
        let bytes = Parts::new(&mut self.bytes);
        let scales = Parts::new(&mut self.scales);
        pool.pieces(m.div_ceil(ROWS), |_, piece| {
            let rows = piece * ROWS..((piece + 1) * ROWS).min(m);
            // SAFETY: each row belongs to one piece, and this executor's routines were chosen for
            // this machine; lengths are those that `round` names.
            unsafe {
                let x = &x[rows.start * cols..rows.end * cols];
                let bytes = bytes.slice(rows.start * cols, rows.len() * cols);
                let scales = scales.slice(rows.start * groups, rows.len() * groups);
                (routines.round)(x, bytes, scales);
            }
        });
    }

    /// The integers at `cells`, whole groups, and their scales.
    pub fn part(&self, cells: Range<usize>) -> (&[i8], &[Scale]) {
        let groups = cells.start / GROUP..cells.end / GROUP;
        (&self.bytes[cells], &self.scales[groups])
    }
}

/// Rounds whole groups: per 32 activations, the largest becomes ±127.
///
/// # Safety
/// The machine has `I`; `x` is whole groups, `bytes` as long, and `scales` one per group.
#[inline(always)]
pub(crate) unsafe fn round<I: Isa>(x: &[f32], bytes: &mut [i8], scales: &mut [Scale]) {
    debug_assert!(x.len() == bytes.len() && x.len() == scales.len() * GROUP);
    // SAFETY: every group has two vectors of floats and of bytes.
    unsafe {
        for (g, s) in scales.iter_mut().enumerate() {
            let from = x.as_ptr().add(g * GROUP);
            let to = bytes.as_mut_ptr().add(g * GROUP);
            let (a, b) = (I::load(from), I::load(from.add(LANES)));
            let largest = I::largest(I::max(I::abs(a), I::abs(b)));
            let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
            let inverse = I::splat(inverse);
            let (a, b) = (I::round(I::mul(a, inverse)), I::round(I::mul(b, inverse)));
            I::store_low_bytes(to, a);
            I::store_low_bytes(to.add(LANES), b);
            let scale = largest / 127.0;
            let halves = [scale * I::sum_i(a) as f32, scale * I::sum_i(b) as f32];
            *s = Scale {
                scale,
                sum: halves[0] + halves[1],
                halves,
            };
        }
    }
}
