//! Super-blocks of 256 values: Q4_K, Q5_K and Q6_K.
//!
//! After the search group by group ([`search`](crate::search)) the scales of the groups are rounded themselves. The
//! best of the neighbouring integers depends on the values of the group, so these are tried; then the two factors of
//! the whole block are fitted to the chosen integers by linear regression, and everything is repeated once.

use half::f16;
use kernels::BlockType;

use crate::search::{
    Affine, affine_error, affine_level, fit_affine, fit_symmetric, nearest, symmetric_error,
    symmetric_level,
};

/// Values in a block.
pub(crate) const BLOCK: usize = 256;
/// Largest integer for the scale or the minimum of a group in Q4_K and Q5_K.
const MOST_AFFINE: f32 = 63.0;
/// Rounds of refinement over a whole block.
const ROUNDS: usize = 2;

/// Appends the blocks of `values`, whose number is a multiple of 256.
pub(crate) fn encode(ty: BlockType, values: &[f32], out: &mut Vec<u8>) {
    for block in values.as_chunks::<BLOCK>().0 {
        match ty {
            BlockType::Q4K => AffineBlock::fit(block, 15.0).pack(block, 15.0, out),
            BlockType::Q5K => AffineBlock::fit(block, 31.0).pack(block, 31.0, out),
            _ => SymmetricBlock::fit(block).pack(block, out),
        }
    }
}

/// Eight groups of 32: `w = d · scale · q − dmin · min`.
#[derive(Clone, Copy)]
struct AffineBlock {
    d: f16,
    dmin: f16,
    scales: [f32; 8],
    mins: [f32; 8],
}

impl AffineBlock {
    fn fit(x: &[f32; BLOCK], levels: f32) -> AffineBlock {
        let groups = x.as_chunks::<32>().0;
        let mut fits = [Affine {
            scale: 0.0,
            min: 0.0,
        }; 8];
        for (fit, group) in fits.iter_mut().zip(groups) {
            *fit = fit_affine(group, levels);
        }
        let most = |of: fn(&Affine) -> f32| fits.iter().map(of).fold(0.0, f32::max);
        let mut block = AffineBlock {
            d: f16::from_f32(most(|fit| fit.scale) / MOST_AFFINE),
            dmin: f16::from_f32(most(|fit| fit.min) / MOST_AFFINE),
            scales: [0.0; 8],
            mins: [0.0; 8],
        };
        for (j, fit) in fits.iter().enumerate() {
            block.scales[j] = over(fit.scale, block.d).clamp(0.0, MOST_AFFINE);
            block.mins[j] = over(fit.min, block.dmin).clamp(0.0, MOST_AFFINE);
        }
        let mut error = block.refit(groups, levels);
        for _ in 0..ROUNDS {
            let mut next = block.refactored(groups, levels);
            let next_error = next.refit(groups, levels);
            if next_error >= error {
                break;
            }
            (block, error) = (next, next_error);
        }
        block
    }

    fn group(&self, j: usize) -> Affine {
        Affine {
            scale: self.d.to_f32() * self.scales[j],
            min: self.dmin.to_f32() * self.mins[j],
        }
    }

    /// Moves each group's two integers to the best neighbours; returns the squared error.
    fn refit(&mut self, groups: &[[f32; 32]], levels: f32) -> f32 {
        let mut total = 0.0;
        for (j, group) in groups.iter().enumerate() {
            let (scale, min) = (self.scales[j], self.mins[j]);
            let mut best = (affine_error(group, self.group(j), levels), scale, min);
            for scale in [scale - 1.0, scale, scale + 1.0] {
                for min in [min - 1.0, min, min + 1.0] {
                    let inside = |v: f32| (0.0..=MOST_AFFINE).contains(&v);
                    if !inside(scale) || !inside(min) {
                        continue;
                    }
                    (self.scales[j], self.mins[j]) = (scale, min);
                    let error = affine_error(group, self.group(j), levels);
                    if error < best.0 {
                        best = (error, scale, min);
                    }
                }
            }
            total += best.0;
            (self.scales[j], self.mins[j]) = (best.1, best.2);
        }
        total
    }

    /// Returns the same integers with the factors that fit them best: the regression of `x` on `scale · q` and `−min`.
    fn refactored(&self, groups: &[[f32; 32]], levels: f32) -> AffineBlock {
        let (mut aa, mut ab, mut bb, mut ax, mut bx) = (0.0f32, 0.0f32, 0.0f32, 0.0f32, 0.0f32);
        for (j, group) in groups.iter().enumerate() {
            let (mut q_sum, mut qq, mut qx, mut x_sum) = (0.0f32, 0.0f32, 0.0f32, 0.0f32);
            let fit = self.group(j);
            let inverse = if fit.scale > 0.0 {
                1.0 / fit.scale
            } else {
                0.0
            };
            for &x in group {
                let q = affine_level(x, inverse, fit.min, levels);
                q_sum += q;
                qq += q * q;
                qx += q * x;
                x_sum += x;
            }
            let (scale, min) = (self.scales[j], self.mins[j]);
            aa += scale * scale * qq;
            ab -= scale * min * q_sum;
            bb += min * min * group.len() as f32;
            ax += scale * qx;
            bx -= min * x_sum;
        }
        let determinant = aa * bb - ab * ab;
        let (d, dmin) = if bb == 0.0 && aa > 0.0 {
            (ax / aa, 0.0)
        } else if determinant > 0.0 {
            (
                (ax * bb - bx * ab) / determinant,
                (bx * aa - ax * ab) / determinant,
            )
        } else {
            return *self;
        };
        if d <= 0.0 || dmin < 0.0 {
            return *self;
        }
        AffineBlock {
            d: f16::from_f32(d),
            dmin: f16::from_f32(dmin),
            ..*self
        }
    }

    /// Packs the block. Q4_K: factors, 12 bytes of 6-bit scales and minima, 128 bytes of nibbles; Q5_K has 32 bytes of
    /// fifth bits between.
    fn pack(&self, x: &[f32; BLOCK], levels: f32, out: &mut Vec<u8>) {
        let mut q = [0u8; BLOCK];
        for ((j, group), q) in x
            .as_chunks::<32>()
            .0
            .iter()
            .enumerate()
            .zip(q.chunks_exact_mut(32))
        {
            let fit = self.group(j);
            let inverse = if fit.scale > 0.0 {
                1.0 / fit.scale
            } else {
                0.0
            };
            for (q, &x) in q.iter_mut().zip(group) {
                *q = byte(affine_level(x, inverse, fit.min, levels));
            }
        }
        out.extend(self.d.to_le_bytes());
        out.extend(self.dmin.to_le_bytes());
        let (scales, mins) = (self.scales.map(byte), self.mins.map(byte));
        for j in 0..4 {
            out.push(scales[j] | (scales[j + 4] >> 4) << 6);
        }
        for j in 0..4 {
            out.push(mins[j] | (mins[j + 4] >> 4) << 6);
        }
        for j in 4..8 {
            out.push(scales[j] & 15 | (mins[j] & 15) << 4);
        }
        let groups = q.as_chunks::<32>().0;
        if levels > 15.0 {
            out.extend((0..32).map(|i| {
                let bits = (0..8).map(|j| (groups[j][i] >> 4) << j);
                bits.fold(0, |byte, bit| byte | bit)
            }));
        }
        for pair in groups.chunks_exact(2) {
            out.extend((0..32).map(|i| pair[0][i] & 15 | (pair[1][i] & 15) << 4));
        }
    }
}

/// Sixteen groups of 16: `w = d · scale · (q − 32)`.
#[derive(Clone, Copy)]
struct SymmetricBlock {
    d: f16,
    /// Integers from -128 to 127.
    scales: [f32; 16],
}

/// Integers below zero of a value in Q6_K.
const LEVELS: f32 = 32.0;
/// Integers below zero of a scale in Q6_K.
const SCALES: f32 = 128.0;

impl SymmetricBlock {
    fn fit(x: &[f32; BLOCK]) -> SymmetricBlock {
        let groups = x.as_chunks::<16>().0;
        let mut fits = [0.0f32; 16];
        for (fit, group) in fits.iter_mut().zip(groups) {
            *fit = fit_symmetric(group, LEVELS);
        }
        let largest = fits.iter().copied().fold(0.0f32, |largest, scale| {
            if scale.abs() > largest.abs() {
                scale
            } else {
                largest
            }
        });
        let mut block = SymmetricBlock {
            d: f16::from_f32(largest / -SCALES),
            scales: [0.0; 16],
        };
        block.scales = fits.map(|fit| over(fit, block.d).clamp(-SCALES, SCALES - 1.0));
        let mut error = block.refit(groups);
        for _ in 0..ROUNDS {
            let mut next = block.refactored(groups);
            let next_error = next.refit(groups);
            if next_error >= error {
                break;
            }
            (block, error) = (next, next_error);
        }
        block
    }

    /// Moves each group's scale to the best neighbour; returns the squared error.
    fn refit(&mut self, groups: &[[f32; 16]]) -> f32 {
        let d = self.d.to_f32();
        let mut total = 0.0;
        for (scale, group) in self.scales.iter_mut().zip(groups) {
            let mut best = (symmetric_error(group, d * *scale, LEVELS), *scale);
            for near in [*scale - 1.0, *scale + 1.0] {
                if !(-SCALES..SCALES).contains(&near) {
                    continue;
                }
                let error = symmetric_error(group, d * near, LEVELS);
                if error < best.0 {
                    best = (error, near);
                }
            }
            total += best.0;
            *scale = best.1;
        }
        total
    }

    /// Returns the same integers with the factor that fits them best.
    fn refactored(&self, groups: &[[f32; 16]]) -> SymmetricBlock {
        let (mut aa, mut ax) = (0.0f32, 0.0f32);
        for (&scale, group) in self.scales.iter().zip(groups) {
            let step = self.d.to_f32() * scale;
            let inverse = if step == 0.0 { 0.0 } else { 1.0 / step };
            for &x in group {
                let a = scale * symmetric_level(x, inverse, LEVELS);
                aa += a * a;
                ax += a * x;
            }
        }
        if aa <= 0.0 {
            return *self;
        }
        SymmetricBlock {
            d: f16::from_f32(ax / aa),
            ..*self
        }
    }

    /// Packs the block: 128 bytes of lower nibbles, 64 bytes of upper two bits, 16 scales, the factor.
    fn pack(&self, x: &[f32; BLOCK], out: &mut Vec<u8>) {
        let d = self.d.to_f32();
        let mut q = [0u8; BLOCK];
        for ((group, &scale), q) in x
            .as_chunks::<16>()
            .0
            .iter()
            .zip(&self.scales)
            .zip(q.chunks_exact_mut(16))
        {
            let inverse = if d * scale == 0.0 {
                0.0
            } else {
                1.0 / (d * scale)
            };
            for (q, &x) in q.iter_mut().zip(group) {
                *q = byte(symmetric_level(x, inverse, LEVELS) + LEVELS);
            }
        }
        // Half a block is four runs of 32 values, which share bytes.
        let halves = q.as_chunks::<128>().0;
        for half in halves {
            let low = |a: usize, b: usize| {
                (0..32).map(move |i| half[a + i] & 15 | (half[b + i] & 15) << 4)
            };
            out.extend(low(0, 64));
            out.extend(low(32, 96));
        }
        for half in halves {
            out.extend((0..32).map(|i| {
                (0..4).fold(0, |byte, run| byte | (half[32 * run + i] >> 4) << (2 * run))
            }));
        }
        #[expect(clippy::cast_possible_truncation, reason = "within -128 and 127")]
        out.extend(self.scales.map(|scale| (scale as i8).cast_unsigned()));
        out.extend(self.d.to_le_bytes());
    }
}

/// Returns the integer by which `factor` comes nearest to `x`.
fn over(x: f32, factor: f16) -> f32 {
    match factor.to_f32() {
        0.0 => 0.0,
        factor => nearest(x / factor),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number from 0 to 63"
)]
fn byte(level: f32) -> u8 {
    level as u8
}
