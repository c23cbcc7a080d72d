//! Packing: from ggml's rows to panels; [`crate::weights::layout`] defines the layout.
//!
//! A file stores a block's integers in the same planes as a panel does (nibbles, crumbs and single bits), but row by row and
//! with other columns sharing a byte. So integers are not unpacked: quads of bytes are loaded from 16 rows at once, a row
//! to a lane, and planes move with shifts and masks.

use std::mem::MaybeUninit;

use crate::isa::{Isa, LANES};
use crate::weights::block::BlockType;
use crate::weights::layout::{GROUP, HeaderLayout, Layout, QuantFormat, bits, with_quant_format};

#[cfg(test)]
mod tests;

/// Packs up to 16 rows of `source` (whole rows, `row_bytes` each) into one panel, every byte of
/// which is written; rows that are missing become zeros.
///
/// # Safety
/// The machine has `I`.
///
/// # Panics
/// Panics if the rows are not whole blocks, or the panel does not have exactly the size of 16 of them.
#[inline(always)]
pub(crate) unsafe fn pack_panel<I: Isa>(
    ty: BlockType,
    source: &[u8],
    row_bytes: usize,
    panel: &mut [MaybeUninit<u8>],
) {
    assert!(
        row_bytes.is_multiple_of(ty.block_bytes())
            && panel.len() == LANES * row_bytes
            && source.len() <= panel.len(),
        "a panel takes 16 rows of whole blocks"
    );
    let mut padded = Vec::new();
    let source = if source.len() < panel.len() {
        padded.extend_from_slice(source);
        padded.resize(panel.len(), 0);
        &padded
    } else {
        source
    };
    let rows = SourceRows {
        first: source.as_ptr(),
        row_bytes,
    };
    let panel: *mut u8 = panel.as_mut_ptr().cast();
    // SAFETY: the machine has `I` by this function's contract; by the assertion, and padding, 16 rows of whole blocks are
    // readable, and a panel of as many bytes is writable.
    unsafe {
        with_quant_format!(ty, F => {
            for b in 0..row_bytes / ty.block_bytes() {
                let out = panel.add(b * F::LAYOUT.block_bytes());
                pack_block::<I, F>(rows.from(b * ty.block_bytes()), out);
            }
        }, else match ty {
            BlockType::F32 => interleave::<I, 4>(rows, panel),
            _ => interleave::<I, 2>(rows, panel),
        });
    }
}

/// Sixteen rows that lie one after another.
#[derive(Clone, Copy)]
struct SourceRows {
    first: *const u8,
    row_bytes: usize,
}

impl SourceRows {
    /// The rows without their first `at` bytes.
    ///
    /// # Safety
    /// A row has as many bytes.
    #[inline(always)]
    unsafe fn from(self, at: usize) -> SourceRows {
        // SAFETY: the first row has `at` bytes, by this method's contract.
        let first = unsafe { self.first.add(at) };
        SourceRows { first, ..self }
    }

    /// The `N` bytes of each row from byte `at` on.
    ///
    /// # Safety
    /// A row has as many bytes.
    #[inline(always)]
    unsafe fn each<const N: usize>(self, at: usize) -> [[u8; N]; LANES] {
        // SAFETY: each row has `N` bytes from `at` on, by this method's contract; an array of bytes needs no alignment.
        std::array::from_fn(|lane| unsafe {
            self.first
                .add(lane * self.row_bytes + at)
                .cast::<[u8; N]>()
                .read()
        })
    }

    /// The 16 bytes of each row from byte `at` on, as four quads.
    ///
    /// # Safety
    /// The machine has `I`, and a row has as many bytes.
    #[inline(always)]
    unsafe fn quads<I: Isa>(self, at: usize) -> [I::W; 4] {
        // SAFETY: each row has these bytes, and the machine has `I`, by this method's contract.
        unsafe { I::load_quads(self.first.add(at), self.row_bytes) }
    }

    /// The 32 bytes of each row from byte `at` on, as eight quads.
    ///
    /// # Safety
    /// Same as [`SourceRows::quads`].
    #[inline(always)]
    unsafe fn eight_quads<I: Isa>(self, at: usize) -> [I::W; 8] {
        // SAFETY: each row has these bytes, and the machine has `I`, by this method's contract.
        unsafe {
            let [a, b, c, d] = self.quads::<I>(at);
            let [e, f, g, h] = self.quads::<I>(at + 16);
            [a, b, c, d, e, f, g, h]
        }
    }
}

/// Offsets in a file's block; 0 also for parts that a type does not have.
struct BlockOffsets {
    d: usize,
    scales: usize,
    nibbles: usize,
    crumbs: usize,
    bits: usize,
    bytes: usize,
}

impl BlockOffsets {
    const fn of(ty: BlockType) -> BlockOffsets {
        let (d, scales, nibbles, crumbs, bits, bytes) = match ty {
            BlockType::F32 | BlockType::F16 | BlockType::BF16 => (0, 0, 0, 0, 0, 0),
            BlockType::Q4_0 => (0, 0, 2, 0, 0, 0),
            BlockType::Q4_1 => (0, 0, 4, 0, 0, 0),
            BlockType::Q5_0 => (0, 0, 6, 0, 2, 0),
            BlockType::Q5_1 => (0, 0, 8, 0, 4, 0),
            BlockType::Q8_0 => (0, 0, 0, 0, 0, 2),
            BlockType::Q2K => (80, 0, 0, 16, 0, 0),
            BlockType::Q3K => (108, 96, 0, 32, 0, 0),
            BlockType::Q4K => (0, 4, 16, 0, 0, 0),
            BlockType::Q5K => (0, 4, 48, 0, 16, 0),
            BlockType::Q6K => (208, 192, 0, 128, 0, 0),
            BlockType::IQ4NL => (0, 0, 2, 0, 0, 0),
            BlockType::IQ4XS => (0, 2, 8, 0, 0, 0),
        };
        BlockOffsets {
            d,
            scales,
            nibbles,
            crumbs,
            bits,
            bytes,
        }
    }
}

/// Packs a block of 16 rows.
///
/// # Safety
/// The machine has `I`; `rows` have a block of `F`, and `out` has room for 16.
#[inline(always)]
unsafe fn pack_block<I: Isa, F: QuantFormat>(rows: SourceRows, out: *mut u8) {
    let block = const { BlockOffsets::of(F::TYPE) };
    // SAFETY: reads stay inside the type's block, and writes inside its packed layout.
    unsafe {
        pack_header::<I>(F::LAYOUT.header, block.d, block.scales, rows, out);
        let groups = out.add(F::LAYOUT.header_bytes());
        if F::LAYOUT.cols == GROUP {
            pack_group::<I>(F::LAYOUT, &block, rows, groups);
        } else {
            pack_groups::<I>(F::LAYOUT, &block, rows, groups);
        }
    }
}

/// Writes the scales and minima of a block of 16 rows.
///
/// # Safety
/// Same as [`pack_block`]; `d` and `scales` are the type's offsets.
#[inline(always)]
unsafe fn pack_header<I: Isa>(
    header: HeaderLayout,
    d: usize,
    scales: usize,
    rows: SourceRows,
    out: *mut u8,
) {
    // SAFETY: reads end before the block does: 16 bytes from `scales` on, or 16 bytes that end with the scales; writes
    // are the `header_bytes` of the layout.
    unsafe {
        match header {
            HeaderLayout::None => {}
            HeaderLayout::D | HeaderLayout::K3 | HeaderLayout::K6 | HeaderLayout::X4 => {
                out.cast::<[[u8; 2]; LANES]>().write(rows.each::<2>(d));
            }
            HeaderLayout::DM | HeaderLayout::K2 | HeaderLayout::K4 => {
                let mut both = rows.each::<4>(d);
                if header == HeaderLayout::DM {
                    // Q4_1 and Q5_1 add the minimum; a panel subtracts it.
                    both = both.map(|[d, e, m, n]| [d, e, m, n ^ 0x80]);
                }
                let both = I::load_w(both.as_ptr().cast());
                I::store_w(out, I::unzip_halves(both));
            }
        }
        match header {
            HeaderLayout::None | HeaderLayout::D | HeaderLayout::DM => {}
            HeaderLayout::K2 | HeaderLayout::K6 => {
                let out = out.add(if header == HeaderLayout::K2 { 64 } else { 32 });
                put_bytes::<I>(&rows.quads::<I>(scales), out);
            }
            HeaderLayout::K3 => {
                let [_, a, b, c] = rows.quads::<I>(scales - 4);
                let sets = [
                    I::or(bits::<I>(a, 0, 0, 15), bits::<I>(c, 0, 4, 3)),
                    I::or(bits::<I>(b, 0, 0, 15), bits::<I>(c, 2, 4, 3)),
                    I::or(bits::<I>(a, 4, 0, 15), bits::<I>(c, 4, 4, 3)),
                    I::or(bits::<I>(b, 4, 0, 15), bits::<I>(c, 6, 4, 3)),
                ];
                put_sixes::<I>(sets, out.add(32));
            }
            HeaderLayout::K4 => {
                let [_, a, b, c] = rows.quads::<I>(scales - 4);
                let sets = [
                    bits::<I>(a, 0, 0, 63),
                    I::or(bits::<I>(c, 0, 0, 15), bits::<I>(a, 6, 4, 3)),
                    bits::<I>(b, 0, 0, 63),
                    I::or(bits::<I>(c, 4, 0, 15), bits::<I>(b, 6, 4, 3)),
                ];
                put_sixes::<I>(sets, out.add(64));
            }
            HeaderLayout::X4 => {
                for (i, high) in rows.each::<2>(scales).into_iter().enumerate() {
                    out.add(32 + i).write(high[0]);
                    out.add(32 + LANES + i).write(high[1]);
                }
                let low = rows.each::<4>(scales + 2);
                let low = I::load_w(low.as_ptr().cast());
                I::store_w(out.add(64), I::unzip_bytes(low));
            }
        }
    }
}

/// Stores four sets of 16 times 4 six-bit numbers as [`crate::weights::layout::sixes`] reads them.
///
/// # Safety
/// The machine has `I`, and `out` has room for 192 bytes.
#[inline(always)]
unsafe fn put_sixes<I: Isa>([a, b, c, d]: [I::W; 4], out: *mut u8) {
    // SAFETY: three vectors are written.
    unsafe {
        let low_ab = I::or(bits::<I>(a, 0, 0, 15), bits::<I>(b, 0, 4, 15));
        let low_cd = I::or(bits::<I>(c, 0, 0, 15), bits::<I>(d, 0, 4, 15));
        let high_ab = I::or(bits::<I>(a, 4, 0, 3), bits::<I>(b, 4, 2, 3));
        let high_cd = I::or(bits::<I>(c, 4, 4, 3), bits::<I>(d, 4, 6, 3));
        put_bytes::<I>(&[low_ab, low_cd, I::or(high_ab, high_cd)], out);
    }
}

/// Stores the first bytes of all lanes, then the second ones and so on, of each vector.
///
/// # Safety
/// The machine has `I`, and `out` has room for them.
#[inline(always)]
unsafe fn put_bytes<I: Isa>(vectors: &[I::W], out: *mut u8) {
    for (i, &w) in vectors.iter().enumerate() {
        // SAFETY: `out` has room for all vectors, by this function's contract.
        unsafe { I::store_w(out.add(i * 64), I::unzip_bytes(w)) };
    }
}

/// Packs the integers of a block of one group, whose planes are the same in the file and in a panel.
///
/// # Safety
/// Same as [`pack_block`].
#[inline(always)]
unsafe fn pack_group<I: Isa>(
    layout: Layout,
    block: &BlockOffsets,
    rows: SourceRows,
    mut out: *mut u8,
) {
    // SAFETY: rows and room are those of `pack_block`'s contract; each vector stored is one that `group_bytes` counts.
    unsafe {
        if layout.bytes {
            store::<I>(&rows.eight_quads::<I>(block.bytes), out);
        }
        if layout.nibbles {
            store::<I>(&rows.quads::<I>(block.nibbles), out);
            out = out.add(256);
        }
        if layout.bits {
            let spread = rows.each::<4>(block.bits).map(spread);
            I::store_w(out, I::load_w(spread.as_ptr().cast()));
        }
    }
}

/// Stores vectors one after another.
///
/// # Safety
/// The machine has `I`, and `out` has room for them.
#[inline(always)]
unsafe fn store<I: Isa>(vectors: &[I::W], out: *mut u8) {
    for (i, &w) in vectors.iter().enumerate() {
        // SAFETY: `out` has room for all vectors, by this function's contract.
        unsafe { I::store_w(out.add(i * 64), w) };
    }
}

/// Moves one bit per column, in order, to bit `v` of byte `j` for column `4v + j`.
#[inline(always)]
fn spread(bits: [u8; 4]) -> [u8; 4] {
    let bits = u32::from_le_bytes(bits);
    let four = |v: u32| {
        let x = bits >> (4 * v) & 15;
        (x | x << 7 | x << 14 | x << 21) & 0x0101_0101
    };
    (0..8).fold(0, |w, v| w | four(v) << v).to_le_bytes()
}

/// Packs the integers of a block of eight groups. The file keeps 32 columns in the lowest bits of
/// 32 bytes, the next 32 in the bits above, and so on.
///
/// # Safety
/// Same as [`pack_block`].
#[inline(always)]
unsafe fn pack_groups<I: Isa>(
    layout: Layout,
    block: &BlockOffsets,
    rows: SourceRows,
    out: *mut u8,
) {
    let group = layout.group_bytes();
    // SAFETY: rows and room are those of `pack_block`'s contract; each plane is written where `group_bytes` counts it.
    unsafe {
        let mut plane = out;
        if layout.table {
            // The nibbles of a group are in the order of a panel.
            for g in 0..8 {
                store::<I>(
                    &rows.quads::<I>(block.nibbles + 16 * g),
                    plane.add(g * group),
                );
            }
            return;
        }
        if layout.nibbles {
            for i in 0..4 {
                let quads = rows.eight_quads::<I>(block.nibbles + 32 * i);
                // Q6_K has the nibbles of 64 columns below those of the next 64.
                let (low, high) = if layout.crumbs {
                    (i / 2 * 4 + i % 2, i / 2 * 4 + i % 2 + 2)
                } else {
                    (2 * i, 2 * i + 1)
                };
                for (g, from) in [(low, 0), (high, 4)] {
                    for v in 0..4 {
                        let below = bits::<I>(quads[v], from, 0, 15);
                        let above = bits::<I>(quads[v + 4], from, 4, 15);
                        I::store_w(plane.add(g * group + v * 64), I::or(below, above));
                    }
                }
            }
            plane = plane.add(256);
        }
        if layout.crumbs {
            for i in 0..2 {
                let quads = rows.eight_quads::<I>(block.crumbs + 32 * i);
                for j in 0..4 {
                    for v in 0..2 {
                        let mut w = I::splat_w(0);
                        for k in 0..4 {
                            let crumb = bits::<I>(quads[v * 4 + k], j as u32 * 2, k as u32 * 2, 3);
                            w = I::or(w, crumb);
                        }
                        I::store_w(plane.add((i * 4 + j) * group + v * 64), w);
                    }
                }
            }
            plane = plane.add(128);
        }
        if layout.bits {
            let quads = rows.eight_quads::<I>(block.bits);
            for g in 0..8 {
                let mut w = I::splat_w(0);
                for v in 0..8 {
                    w = I::or(w, bits::<I>(quads[v], g as u32, v as u32, 1));
                }
                I::store_w(plane.add(g * group), w);
            }
        }
    }
}

/// Floats of `SIZE` bytes: column by column, 16 rows side by side.
///
/// # Safety
/// The machine has `I`; `rows` are whole values, and `out` has room for 16 rows.
#[inline(always)]
unsafe fn interleave<I: Isa, const SIZE: usize>(rows: SourceRows, out: *mut u8) {
    let quads = rows.row_bytes / 16;
    // SAFETY: reads 16 bytes at a time, then the rest of the rows value by value, and writes as many.
    unsafe {
        for i in 0..quads {
            for (j, quad) in rows.quads::<I>(i * 16).into_iter().enumerate() {
                let quad = if SIZE == 2 {
                    I::unzip_halves(quad)
                } else {
                    quad
                };
                I::store_w(out.add((i * 4 + j) * 64), quad);
            }
        }
        for at in (quads * 16..rows.row_bytes).step_by(SIZE) {
            let out = out.add(at * LANES).cast::<[[u8; SIZE]; LANES]>();
            out.write(rows.each::<SIZE>(at));
        }
    }
}
