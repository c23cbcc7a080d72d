//! The loops of a product: one strip of 32 rows at a time, against one token or many.

pub(crate) mod activations;
#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
#[cfg(target_arch = "aarch64")]
pub(crate) mod i8mm;
pub(crate) mod integers;
pub(crate) mod tiles;

use crate::isa::{Isa, LANES, Scalar};
use crate::product::activations::Scale;
use crate::weights::block::BlockType;
use crate::weights::layout::{Format, GROUP, Head, Header, Layout, quants, scales, with_format};

/// Panels of 16 rows in a strip, the piece of work that a thread draws.
pub(crate) const STRIP_PANELS: usize = 2;
/// Rows of a strip.
pub(crate) const STRIP: usize = STRIP_PANELS * LANES;
/// Tokens whose results are gathered before they are handed on.
pub(crate) const TOKENS: usize = 512;
/// Tokens up to which weights are streamed: each weight is unpacked as it comes from memory, which
/// is what takes the time.
pub(crate) const STREAM: usize = 8;
/// How far ahead of the loop memory is asked for, in bytes.
const AHEAD: usize = 4096;
/// Columns of floats unpacked at a time: a strip of them stays in the L1 cache.
const FLOAT_COLS: usize = 128;
/// Bytes of these.
pub(crate) const UNPACKED: usize = STRIP * FLOAT_COLS * size_of::<f32>();

/// One strip of weights and the tokens to multiply it with.
#[derive(Clone, Copy)]
pub(crate) struct Strip<'a> {
    pub ty: BlockType,
    /// One panel or two, `panel_bytes` each.
    pub panels: &'a [u8],
    pub panel_bytes: usize,
    pub cols: usize,
    pub x: Tokens<'a>,
}

/// `m` rows of activations; quantised weights meet integers, float weights floats.
#[derive(Clone, Copy)]
pub(crate) enum Tokens<'a> {
    Integers {
        m: usize,
        bytes: &'a [i8],
        scales: &'a [Scale],
    },
    Floats {
        m: usize,
        x: &'a [f32],
    },
}

impl Tokens<'_> {
    pub fn len(self) -> usize {
        match self {
            Tokens::Integers { m, .. } | Tokens::Floats { m, .. } => m,
        }
    }
}

/// A worker's own memory.
pub(crate) struct Stage {
    pub unpacked: Box<Unpacked>,
    /// Results.
    pub sums: Box<Sums>,
    /// The gate's results, while the same strip of its twin is multiplied.
    pub gate: Box<Sums>,
}

/// Weights of a strip on their way from memory to the product, where they are not multiplied as they come.
#[repr(C, align(64))]
pub(crate) struct Unpacked {
    /// Floats: `[col][panel][16]`.
    pub weights: [u8; UNPACKED],
}

/// `[token][panel][16]`.
#[repr(C, align(64))]
pub(crate) struct Sums(pub [f32; TOKENS * STRIP]);

impl Stage {
    pub fn new() -> Self {
        // SAFETY: they are plain numbers, for which zero bytes are values.
        unsafe {
            Stage {
                unpacked: Box::new_zeroed().assume_init(),
                sums: Box::new_zeroed().assume_init(),
                gate: Box::new_zeroed().assume_init(),
            }
        }
    }
}

/// Multiplies a strip with at most [`TOKENS`] tokens; `stage.sums` holds the results.
///
/// # Safety
/// The machine has `I`; `strip` is packed weights of its type, and `x` has `m × cols` activations.
#[inline(always)]
pub(crate) unsafe fn multiply<I: Isa>(strip: &Strip, stage: &mut Stage) {
    let m = strip.x.len();
    debug_assert!(m <= TOKENS);
    // SAFETY: passed on.
    unsafe {
        match strip.x {
            Tokens::Integers { bytes, scales, .. } => {
                for (p, panel) in strip.panels.chunks_exact(strip.panel_bytes).enumerate() {
                    for first in (0..m).step_by(STREAM) {
                        let cell = first * strip.cols;
                        let x = Rows {
                            bytes: bytes.as_ptr().add(cell),
                            scales: scales.as_ptr().add(cell / GROUP),
                            cols: strip.cols,
                        };
                        let sums = stage.sums.0.as_mut_ptr().add(first * STRIP + p * LANES);
                        let m = (m - first).min(STREAM);
                        with_format!(
                            strip.ty,
                            // The one token of decoding keeps its sum in a register.
                            F => if m == 1 {
                                stream::<I, F>(panel, x, 1, sums);
                            } else {
                                stream::<I, F>(panel, x, m, sums);
                            },
                            else debug_assert!(false, "float weights meet floats")
                        );
                    }
                }
            }
            Tokens::Floats { x, .. } => floats::<I>(strip, m, x, stage),
        }
    }
}

/// One panel times a few tokens: weights go from memory through registers once. `sums` is
/// `[token][STRIP]`.
///
/// # Safety
/// As [`multiply`]; `m` is at most [`STREAM`].
#[inline(always)]
unsafe fn stream<I: Isa, F: Format>(panel: &[u8], x: Rows, m: usize, sums: *mut f32) {
    let layout = F::LAYOUT;
    let halves = layout.halves();
    let run = if I::SHORT && !layout.bytes {
        layout.short_run()
    } else {
        8 / halves
    };
    // SAFETY: a panel is `cols / layout.cols` blocks, each with a header and its groups; the
    // activations have as many groups of 32 bytes and one `Scale` each. Reading ahead touches
    // nothing.
    unsafe {
        let mut sum = [I::splat(0.0); STREAM];
        let mut group = 0;
        for block in panel.chunks_exact(layout.block_bytes()) {
            let block = block.as_ptr();
            for line in (0..layout.header_bytes()).step_by(64) {
                I::prefetch(block.wrapping_add(AHEAD + line));
            }
            let head = Head::<I>::of::<F>(block);
            for g in 0..layout.cols / GROUP {
                let at = layout.header_bytes() + g * layout.group_bytes();
                for line in (0..layout.group_bytes()).step_by(64) {
                    I::prefetch(block.wrapping_add(AHEAD + at + line));
                }
                let w = quants::<I, F>(block, g);
                let mut scales = [(I::splat(0.0), I::splat(0.0)); 2];
                for h in 0..halves {
                    scales[h] = head.scale::<F>(layout.scale_of(g, h));
                }
                for t in 0..m {
                    let bytes = x.bytes.add(t * x.cols + group * GROUP);
                    let x_scale = x.scales.add(t * x.cols / GROUP + group);
                    for h in 0..halves {
                        let mut acc = I::zero_i();
                        for first in (h * 8 / halves..(h + 1) * 8 / halves).step_by(run) {
                            let mut part = I::zero_i();
                            for v in first..first + run {
                                let quad = I::splat_quad(bytes.add(v * 4));
                                part = if layout.bytes {
                                    I::dot_bytes(part, w[v], quad)
                                } else {
                                    I::dot_short(part, w[v], quad)
                                };
                            }
                            acc = if layout.bytes || !I::SHORT {
                                part
                            } else {
                                I::add_short(acc, part)
                            };
                        }
                        let (scale, min) = scales[h];
                        sum[t] = add_group::<I>(sum[t], acc, scale, min, {
                            let total = if halves == 1 {
                                (*x_scale).total
                            } else {
                                (*x_scale).sum[h]
                            };
                            ((*x_scale).unit[h], total)
                        });
                    }
                }
                group += 1;
            }
        }
        for (t, sum) in sum.into_iter().enumerate().take(m) {
            I::store(sums.add(t * STRIP), sum);
        }
    }
}

/// Adds a group's integers to a sum of floats: the one order of operations that every loop keeps,
/// so that a token's result does not depend on how many others are multiplied with it.
///
/// # Safety
/// The machine has `I`.
#[inline(always)]
pub(crate) unsafe fn add_group<I: Isa>(
    sum: I::F,
    acc: I::I,
    scale: I::F,
    min: I::F,
    (unit, total): (f32, f32),
) -> I::F {
    // SAFETY: no pointers.
    unsafe {
        let part = I::mul(I::float(acc), scale);
        I::fnma(min, I::splat(total), I::fma(part, I::splat(unit), sum))
    }
}

/// Rows of activations from some token and column on.
#[derive(Clone, Copy)]
struct Rows {
    bytes: *const i8,
    scales: *const Scale,
    cols: usize,
}

/// A strip in floats: for float weights, and for the exact executor.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn floats<I: Isa>(strip: &Strip, m: usize, x: &[f32], stage: &mut Stage) {
    let panels = strip.panels.len() / strip.panel_bytes;
    // SAFETY: `weights` is as large as FLOAT_COLS columns of two panels; rows of x are `cols` long.
    unsafe {
        for first in (0..strip.cols).step_by(FLOAT_COLS) {
            let cols = (strip.cols - first).min(FLOAT_COLS);
            for (p, panel) in strip.panels.chunks_exact(strip.panel_bytes).enumerate() {
                unstage_floats::<I>(strip.ty, panel, first, cols, p, stage);
            }
            let mut token = 0;
            while token < m {
                let tokens = (m - token).min(4);
                let x = x.as_ptr().add(token * strip.cols + first);
                for p in 0..panels {
                    let fresh = first == 0;
                    match tokens {
                        1 => float_tile::<I, 1>(stage, p, cols, x, strip.cols, token, fresh),
                        2 => float_tile::<I, 2>(stage, p, cols, x, strip.cols, token, fresh),
                        3 => float_tile::<I, 3>(stage, p, cols, x, strip.cols, token, fresh),
                        _ => float_tile::<I, 4>(stage, p, cols, x, strip.cols, token, fresh),
                    }
                }
                token += tokens;
            }
        }
    }
}

/// Turns `cols` columns of one panel into floats.
///
/// # Safety
/// As [`floats`].
#[inline(always)]
unsafe fn unstage_floats<I: Isa>(
    ty: BlockType,
    panel: &[u8],
    first: usize,
    cols: usize,
    p: usize,
    stage: &mut Stage,
) {
    // SAFETY: as the caller's; a panel of floats has 16 values of `block_bytes` per column.
    unsafe {
        let out = stage
            .unpacked
            .weights
            .as_mut_ptr()
            .cast::<f32>()
            .add(p * LANES);
        let panel = panel.as_ptr();
        for c in 0..cols {
            let at = (first + c) * LANES;
            let value = match ty {
                BlockType::F32 => I::load(panel.cast::<f32>().add(at)),
                BlockType::F16 => I::load_f16(panel.cast::<u16>().add(at)),
                BlockType::BF16 => I::load_bf16(panel.cast::<u16>().add(at)),
                _ => break,
            };
            I::store(out.add(c * STRIP), value);
        }
        if Layout::of(ty).header != Header::None {
            unstage_exact(ty, panel, first, cols, out);
        }
    }
}

/// Turns `cols` quantised columns of one panel into floats; the reference needs no speed.
///
/// # Safety
/// As [`floats`].
unsafe fn unstage_exact(ty: BlockType, panel: *const u8, first: usize, cols: usize, out: *mut f32) {
    let layout = Layout::of(ty);
    let (mut scale, mut min) = ([0.0_f32; 256], [0.0_f32; 256]);
    for g in 0..cols / GROUP {
        let column = first + g * GROUP;
        let inner = column % layout.cols / GROUP;
        // SAFETY: as the caller's; any machine has `Scalar`.
        let quads = unsafe {
            let block = panel.add(column / layout.cols * layout.block_bytes());
            with_format!(ty, F => {
                scales::<Scalar, F>(block, scale.as_mut_ptr(), min.as_mut_ptr());
                quants::<Scalar, F>(block, inner)
            }, else return)
        };
        for (c, lane) in (0..GROUP).flat_map(|c| (0..LANES).map(move |lane| (c, lane))) {
            let q = f32::from(quads[c / 4][lane * 4 + c % 4]);
            let s = layout.scale_of(inner, c * layout.halves() / GROUP) * LANES + lane;
            // SAFETY: as the caller's.
            unsafe { *out.add((g * GROUP + c) * STRIP + lane) = scale[s] * q - min[s] };
        }
    }
}

/// One panel of floats times `T` tokens.
///
/// # Safety
/// The machine has `I`; the stage holds `cols` columns; `x` has `T` rows, `stride` apart.
#[inline(always)]
unsafe fn float_tile<I: Isa, const T: usize>(
    stage: &mut Stage,
    p: usize,
    cols: usize,
    x: *const f32,
    stride: usize,
    token: usize,
    fresh: bool,
) {
    // SAFETY: as the caller's.
    unsafe {
        let out = stage.sums.0.as_mut_ptr().add(token * STRIP + p * LANES);
        let weights = stage.unpacked.weights.as_ptr().cast::<f32>().add(p * LANES);
        // Two sums a token, for odd and even columns, hide the latency of the addition.
        let (mut even, mut odd) = ([I::splat(0.0); T], [I::splat(0.0); T]);
        for c in (0..cols & !1).step_by(2) {
            let (w0, w1) = (
                I::load(weights.add(c * STRIP)),
                I::load(weights.add((c + 1) * STRIP)),
            );
            for t in 0..T {
                let x = x.add(t * stride + c);
                even[t] = I::fma(w0, I::splat(*x), even[t]);
                odd[t] = I::fma(w1, I::splat(*x.add(1)), odd[t]);
            }
        }
        if cols % 2 == 1 {
            let w = I::load(weights.add((cols - 1) * STRIP));
            for t in 0..T {
                even[t] = I::fma(w, I::splat(*x.add(t * stride + cols - 1)), even[t]);
            }
        }
        for t in 0..T {
            let to = out.add(t * STRIP);
            let sum = I::add(even[t], odd[t]);
            I::store(to, if fresh { sum } else { I::add(I::load(to), sum) });
        }
    }
}
