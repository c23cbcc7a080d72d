//! The packed layout of weights.
//!
//! Sixteen rows make a *panel*; within it, a block's header is followed by its groups of 32 columns. In a 64-byte vector of
//! a group, the four bytes of lane r are four columns of row r, so that one dot-product instruction advances all 16 rows by
//! four columns, and no sum crosses lanes. A vector of nibbles holds columns 4v.. in the low bits and 16 + 4v.. in the
//! high bits; crumbs (2 bits) hold four such sets, single bits eight. The packed weights take exactly as many bytes as the
//! file's.

use std::marker::PhantomData;

use crate::isa::{Isa, LANES};
use crate::weights::block::{BlockType, IQ4_VALUES};

/// Columns of a group, the step of the integer products and of the activations' scales.
pub(crate) const GROUP: usize = 32;

/// Storage of a header's scales, 16 rows side by side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderLayout {
    /// No header: plain floats.
    None,
    /// f16 d.
    D,
    /// f16 d and dmin, one minimum a block.
    DM,
    /// f16 d and dmin, 16 × (4-bit scale, 4-bit minimum).
    K2,
    /// f16 d, 16 six-bit scales with 32 added.
    K3,
    /// f16 d and dmin, eight 6-bit scales and eight 6-bit minima.
    K4,
    /// f16 d, 16 signed bytes.
    K6,
    /// f16 d, eight 6-bit scales with 32 added: high bits, four scales to a byte, then nibbles, two to a byte.
    X4,
}

/// The packed layout of a block type.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// Columns of a block.
    pub cols: usize,
    /// Columns that share a scale.
    pub group: usize,
    /// The integer that stands for zero.
    pub zero: u8,
    pub header: HeaderLayout,
    /// True if nibbles index [`IQ4_VALUES`].
    pub table: bool,
    pub nibbles: bool,
    pub crumbs: bool,
    pub bits: bool,
    pub bytes: bool,
}

impl Layout {
    pub const fn of(ty: BlockType) -> Layout {
        let (header, nibbles, crumbs, bits, bytes) = match ty {
            BlockType::F32 | BlockType::F16 | BlockType::BF16 => {
                (HeaderLayout::None, false, false, false, false)
            }
            BlockType::Q4_0 => (HeaderLayout::D, true, false, false, false),
            BlockType::Q4_1 => (HeaderLayout::DM, true, false, false, false),
            BlockType::Q5_0 => (HeaderLayout::D, true, false, true, false),
            BlockType::Q5_1 => (HeaderLayout::DM, true, false, true, false),
            BlockType::Q8_0 => (HeaderLayout::D, false, false, false, true),
            BlockType::Q2K => (HeaderLayout::K2, false, true, false, false),
            BlockType::Q3K => (HeaderLayout::K3, false, true, true, false),
            BlockType::Q4K => (HeaderLayout::K4, true, false, false, false),
            BlockType::Q5K => (HeaderLayout::K4, true, false, true, false),
            BlockType::Q6K => (HeaderLayout::K6, true, true, false, false),
            BlockType::IQ4NL => (HeaderLayout::D, true, false, false, false),
            BlockType::IQ4XS => (HeaderLayout::X4, true, false, false, false),
        };
        let cols = ty.block_len();
        let (group, zero) = (ty.group(), ty.zero());
        Layout {
            cols,
            group,
            zero,
            header,
            table: matches!(ty, BlockType::IQ4NL | BlockType::IQ4XS),
            nibbles,
            crumbs,
            bits,
            bytes,
        }
    }

    /// True if the integers take a full byte once they are unpacked ([`Isa::dot_bytes`]).
    pub const fn full_bytes(self) -> bool {
        self.bytes || self.table
    }

    /// Parts of a group of 32 that have a scale of their own, in the weights or in the activations
    /// ([`crate::product::activations::Granularity`]).
    pub const fn halves(self) -> usize {
        if self.bytes { 2 } else { GROUP / self.group }
    }

    /// Number of quads of columns whose products with activations (at most 127), two per sum, fit 16 bits: a power of
    /// two that does not exceed the columns of a scale.
    pub const fn short_run(self) -> usize {
        let bits = 4 * self.nibbles as u32 + 2 * self.crumbs as u32 + self.bits as u32;
        match (i16::MAX as usize) / (2 * 127 * ((1 << bits) - 1)) {
            0..2 => 1,
            2..4 => 2,
            4..8 => 4,
            _ => GROUP / 4 / self.halves(),
        }
    }

    /// Index of the scale of half `h` of group `g` in its block.
    pub const fn scale_of(self, g: usize, h: usize) -> usize {
        (g * GROUP + h * GROUP / self.halves()) / self.group
    }

    /// Bytes of a block's header, for 16 rows.
    pub const fn header_bytes(self) -> usize {
        match self.header {
            HeaderLayout::None => 0,
            HeaderLayout::D => 32,
            HeaderLayout::DM => 64,
            HeaderLayout::K2 => 64 + 256,
            HeaderLayout::K3 => 32 + 192,
            HeaderLayout::K4 => 64 + 192,
            HeaderLayout::K6 => 32 + 256,
            HeaderLayout::X4 => 32 + 96,
        }
    }

    /// Bytes of a group's integers, for 16 rows.
    pub const fn group_bytes(self) -> usize {
        64 * (4 * self.nibbles as usize
            + 2 * self.crumbs as usize
            + self.bits as usize
            + 8 * self.bytes as usize)
    }

    /// Bytes of a block of 16 rows.
    pub const fn block_bytes(self) -> usize {
        self.header_bytes() + self.cols / GROUP * self.group_bytes()
    }
}

/// A quantised type, known at compile time.
pub(crate) trait QuantFormat {
    const TYPE: BlockType;
    const LAYOUT: Layout = Layout::of(Self::TYPE);
}

/// Names a type for [`QuantFormat`] by its number in [`BlockType::ALL`].
pub(crate) struct FormatOf<const N: usize>(PhantomData<()>);

impl<const N: usize> QuantFormat for FormatOf<N> {
    const TYPE: BlockType = BlockType::ALL[N];
}

/// Evaluates `$body` with `$f` standing for the format of the quantised type `$ty`; a float type
/// gives `$float`.
macro_rules! with_quant_format {
    ($ty:expr, $f:ident => $body:expr, else $float:expr) => {{
        use $crate::weights::block::BlockType as T;
        macro_rules! arm {
            ($n:literal) => {{
                type $f = $crate::weights::layout::FormatOf<$n>;
                $body
            }};
        }
        match $ty {
            T::F32 | T::F16 | T::BF16 => $float,
            T::Q4_0 => arm!(2),
            T::Q4_1 => arm!(3),
            T::Q5_0 => arm!(4),
            T::Q5_1 => arm!(5),
            T::Q8_0 => arm!(6),
            T::Q2K => arm!(7),
            T::Q3K => arm!(8),
            T::Q4K => arm!(9),
            T::Q5K => arm!(10),
            T::Q6K => arm!(11),
            T::IQ4NL => arm!(12),
            T::IQ4XS => arm!(13),
        }
    }};
}
pub(crate) use with_quant_format;

/// A block's header, unpacked for 16 rows; [`BlockHeader::scale`] converts a scale to floats.
pub(crate) struct BlockHeader<I: Isa> {
    block: *const u8,
    d: I::F,
    dmin: I::F,
    /// Scales, and minima where they have bytes of their own.
    bytes: [[u8; 256]; 2],
}

impl<I: Isa> BlockHeader<I> {
    /// Reads a header.
    ///
    /// # Safety
    /// The machine has `I`; `block` is a packed block of `F`, for as long as this lives.
    #[inline(always)]
    pub unsafe fn of<F: QuantFormat>(block: *const u8) -> Self {
        let mut bytes = [[0; 256]; 2];
        // SAFETY: a header has `header_bytes` bytes, and each offset below stays inside it.
        unsafe {
            let (d, dmin) = match F::LAYOUT.header {
                HeaderLayout::None => (I::splat(0.0), I::splat(0.0)),
                HeaderLayout::DM | HeaderLayout::K2 | HeaderLayout::K4 => {
                    (I::load_f16(block.cast()), I::load_f16(block.add(32).cast()))
                }
                HeaderLayout::D | HeaderLayout::K3 | HeaderLayout::K6 | HeaderLayout::X4 => {
                    (I::load_f16(block.cast()), I::splat(0.0))
                }
            };
            match F::LAYOUT.header {
                HeaderLayout::None | HeaderLayout::D | HeaderLayout::DM | HeaderLayout::K6 => {}
                HeaderLayout::K2 => {
                    for (bytes, shift) in bytes.iter_mut().zip([0, 4]) {
                        for v in 0..4 {
                            let w = I::shr(I::load_w(block.add(64 + v * 64)), shift);
                            I::store_w(bytes.as_mut_ptr().add(v * 64), I::and(w, I::splat_w(15)));
                        }
                    }
                }
                HeaderLayout::K3 => bytes[0] = sixes::<I>(block.add(32)),
                HeaderLayout::K4 => bytes[0] = sixes::<I>(block.add(64)),
                HeaderLayout::X4 => {
                    let low = I::load_w(block.add(64));
                    I::store_w(bytes[0].as_mut_ptr(), I::and(low, I::splat_w(15)));
                    let odd = I::and(I::shr(low, 4), I::splat_w(15));
                    I::store_w(bytes[0].as_mut_ptr().add(64), odd);
                    // Two sets are high bits; the rest is replaced by the next step, or unused.
                    let high = I::load_w(block.add(32));
                    for c in 0..4 {
                        let w = bits::<I>(high, c * 2, 4, 3);
                        I::store_w(bytes[1].as_mut_ptr().add(c as usize * 32), w);
                    }
                }
            }
            BlockHeader {
                block,
                d,
                dmin,
                bytes,
            }
        }
    }

    /// Scale and minimum `n` ([`Layout::scale_of`]), so that `w = scale · q − min` with q as [`quants`] gives it.
    ///
    /// # Safety
    /// Same as [`BlockHeader::of`], for the same `F`; the block has a scale `n`.
    #[inline(always)]
    pub unsafe fn scale<F: QuantFormat>(&self, n: usize) -> (I::F, I::F) {
        let layout = F::LAYOUT;
        // SAFETY: scales of 16 rows lie side by side, `cols / group` of them.
        unsafe {
            let bytes = |of: usize, n: usize| self.bytes[of].as_ptr().add(n * LANES);
            let scale = match layout.header {
                HeaderLayout::None | HeaderLayout::D => self.d,
                HeaderLayout::DM => return (self.d, self.dmin),
                HeaderLayout::K2 => {
                    let (s, m) = (I::load_u8(bytes(0, n)), I::load_u8(bytes(1, n)));
                    return (I::mul(self.d, s), I::mul(self.dmin, m));
                }
                HeaderLayout::K4 => {
                    let minima = layout.cols / layout.group;
                    let (s, m) = (I::load_u8(bytes(0, n)), I::load_u8(bytes(0, minima + n)));
                    return (I::mul(self.d, s), I::mul(self.dmin, m));
                }
                HeaderLayout::K3 => {
                    let s = I::sub(I::load_u8(bytes(0, n)), I::splat(32.0));
                    I::mul(self.d, s)
                }
                HeaderLayout::X4 => {
                    let low = I::load_u8(bytes(0, n % 2 * 4 + n / 2));
                    let high = I::load_u8(bytes(1, n % 4 * 2 + n / 4));
                    I::mul(self.d, I::sub(I::add(low, high), I::splat(32.0)))
                }
                HeaderLayout::K6 => {
                    I::mul(self.d, I::load_i8(self.block.add(32 + n * LANES).cast()))
                }
            };
            let zero = if layout.full_bytes() && I::SIGNED_BYTES {
                0.0
            } else {
                f32::from(layout.zero)
            };
            (scale, I::mul(scale, I::splat(zero)))
        }
    }
}

/// Writes all of a block's scales and minima, `[cols / group][16]` each.
///
/// # Safety
/// The machine has `I`; `block` is a packed block of `F`; `scale` and `min` have room.
#[inline(always)]
pub(crate) unsafe fn scales<I: Isa, F: QuantFormat>(
    block: *const u8,
    scale: *mut f32,
    min: *mut f32,
) {
    // SAFETY: `block` is a packed block of `F` by the caller's contract; the outputs have a vector for each scale.
    unsafe {
        let head = BlockHeader::<I>::of::<F>(block);
        for n in 0..F::LAYOUT.cols / F::LAYOUT.group {
            let (s, m) = head.scale::<F>(n);
            I::store(scale.add(n * LANES), s);
            I::store(min.add(n * LANES), m);
        }
    }
}

/// 256 six-bit numbers: low nibbles in two vectors (64 numbers in the low bits, 64 in the high bits), then the two high bits
/// of all in one vector, in sets of 64.
///
/// # Safety
/// The machine has `I` and `p` is readable for 192 bytes.
#[inline(always)]
unsafe fn sixes<I: Isa>(p: *const u8) -> [u8; 256] {
    let mut out = [0; 256];
    // SAFETY: three vectors are read, four written to the array of four.
    unsafe {
        let high = I::load_w(p.add(128));
        for v in 0..4 {
            let low = I::shr(I::load_w(p.add(v / 2 * 64)), v as u32 % 2 * 4);
            let low = I::and(low, I::splat_w(15));
            let w = I::or(low, bits::<I>(high, v as u32 * 2, 4, 3));
            I::store_w(out.as_mut_ptr().add(v * 64), w);
        }
    }
    out
}

/// The bits `mask << from` of every byte, moved to `mask << to`.
///
/// # Safety
/// The machine has `I`.
#[inline(always)]
pub(crate) unsafe fn bits<I: Isa>(w: I::W, from: u32, to: u32, mask: u8) -> I::W {
    // SAFETY: no pointers.
    unsafe {
        let moved = if from > to {
            I::shr(w, from - to)
        } else {
            I::shl(w, to - from)
        };
        I::and(moved, I::splat_w(mask << to))
    }
}

/// The integers of [`IQ4_VALUES`], signed or with 128 added.
const fn iq4_values(signed: bool) -> [u8; 16] {
    let mut values = IQ4_VALUES;
    let mut i = 0;
    while signed && i < 16 {
        values[i] ^= 0x80;
        i += 1;
    }
    values
}

/// The integers of group `g` of a block: vector `v` holds columns 4v..4v + 4 of 16 rows.
///
/// # Safety
/// The machine has `I`; `block` is a packed block of `F` with a group `g`.
#[inline(always)]
pub(crate) unsafe fn quants<I: Isa, F: QuantFormat>(block: *const u8, g: usize) -> [I::W; 8] {
    let layout = F::LAYOUT;
    // SAFETY: the planes of a group lie one after another in its `group_bytes`.
    unsafe {
        let mut w = [I::splat_w(0); 8];
        let mut p = block.add(layout.header_bytes() + g * layout.group_bytes());
        if layout.bytes {
            for (v, w) in w.iter_mut().enumerate() {
                *w = I::load_w(p.add(v * 64));
                if !I::SIGNED_BYTES {
                    *w = I::xor(*w, I::splat_w(0x80));
                }
            }
        }
        let mut shift = 0;
        if layout.nibbles {
            for v in 0..4 {
                let both = I::load_w(p.add(v * 64));
                w[v] = I::and(both, I::splat_w(15));
                w[v + 4] = I::and(I::shr(both, 4), I::splat_w(15));
            }
            p = p.add(256);
            shift = 4;
        }
        if layout.table {
            for w in &mut w {
                *w = I::look_up(&const { iq4_values(I::SIGNED_BYTES) }, *w);
            }
        }
        if layout.crumbs {
            for v in 0..8 {
                let set = I::load_w(p.add(v / 4 * 64));
                w[v] = I::or(w[v], bits::<I>(set, v as u32 % 4 * 2, shift, 3));
            }
            p = p.add(128);
            shift += 2;
        }
        if layout.bits {
            let set = I::load_w(p);
            for (v, w) in w.iter_mut().enumerate() {
                *w = I::or(*w, bits::<I>(set, v as u32, shift, 1));
            }
        }
        w
    }
}
