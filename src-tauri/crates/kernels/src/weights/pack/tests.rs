//! Packing at every level, bit for bit against packing weight by weight.

use half::f16;

use super::*;
use crate::dispatch::routines_for;
use crate::level::CpuLevel;
use crate::weights::block::{IQ4_VALUES, Levels};

#[test]
fn every_level_packs_as_the_reference() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    for ty in BlockType::ALL {
        // Floats: rows that are no multiple of a load.
        for blocks in if ty.block_len() == 1 {
            [1, 37, 64]
        } else {
            [1, 2, 5]
        } {
            for rows in [1, 7, 15, 16] {
                let row_bytes = blocks * ty.block_bytes();
                let source: Vec<u8> = (0..rows * row_bytes).map(|_| noise()).collect();
                let mut plain = vec![0xff; LANES * row_bytes];
                plain_panel(ty, &source, row_bytes, &mut plain);
                for level in CpuLevel::available() {
                    let mut packed = vec![MaybeUninit::new(0xee_u8); LANES * row_bytes];
                    // SAFETY: the machine has the level.
                    unsafe { (routines_for(level).pack)(ty, &source, row_bytes, &mut packed) };
                    // SAFETY: every byte was initialised above.
                    let packed: Vec<u8> =
                        packed.iter().map(|b| unsafe { b.assume_init() }).collect();
                    let label = format!("{ty:?}, {rows} rows of {blocks} blocks, {level}");
                    assert!(
                        packed == plain,
                        "{label}: differs at byte {:?}",
                        packed.iter().zip(&plain).position(|(a, b)| a != b)
                    );
                }
            }
        }
    }
}

/// The reference: each block is unpacked to [`Levels`], and each integer stored by itself.
fn plain_panel(ty: BlockType, source: &[u8], row_bytes: usize, panel: &mut [u8]) {
    let layout = Layout::of(ty);
    if layout.header == HeaderLayout::None {
        return plain_floats(source, row_bytes, ty.block_bytes(), panel);
    }
    panel.fill(0);
    let missing = vec![0; ty.block_bytes()];
    let mut levels = Levels::new();
    for (b, out) in panel.chunks_exact_mut(layout.block_bytes()).enumerate() {
        for lane in 0..LANES {
            let at = lane * row_bytes + b * ty.block_bytes();
            let block = source.get(at..at + ty.block_bytes()).unwrap_or(&missing);
            levels.read(ty, block);
            write_header(layout.header, &levels, lane, out);
            let groups = out[layout.header_bytes()..].chunks_exact_mut(layout.group_bytes());
            for (out, q) in groups.zip(levels.q.chunks_exact(GROUP)) {
                for (c, &q) in q.iter().enumerate() {
                    write_quant(layout, c, lane, q, out);
                }
            }
        }
    }
}

/// Adds the integer `q` of column `c` to a group of zeros.
fn write_quant(layout: Layout, c: usize, lane: usize, q: u8, group: &mut [u8]) {
    let (v, at) = (c / 4, lane * 4 + c % 4);
    if layout.bytes {
        group[v * 64 + at] = q ^ 0x80;
        return;
    }
    let place = IQ4_VALUES.iter().position(|&value| value == q);
    let q = match place {
        Some(place) if layout.table => place as u8,
        _ => q,
    };
    let (mut plane, mut shift) = (0, 0);
    if layout.nibbles {
        group[v % 4 * 64 + at] |= (q & 15) << (v / 4 * 4);
        (plane, shift) = (256, 4);
    }
    if layout.crumbs {
        group[plane + v / 4 * 64 + at] |= (q >> shift & 3) << (v % 4 * 2);
        (plane, shift) = (plane + 128, shift + 2);
    }
    if layout.bits {
        group[plane + at] |= (q >> shift & 1) << v;
    }
}

fn write_header(header: HeaderLayout, levels: &Levels, lane: usize, out: &mut [u8]) {
    let mut put_half = |at: usize, value: f16| {
        out[at + lane * 2..][..2].copy_from_slice(&value.to_le_bytes());
    };
    put_half(0, levels.d);
    if matches!(
        header,
        HeaderLayout::DM | HeaderLayout::K2 | HeaderLayout::K4
    ) {
        put_half(32, levels.dmin);
    }
    match header {
        HeaderLayout::None | HeaderLayout::D | HeaderLayout::DM => {}
        HeaderLayout::K2 => {
            for g in 0..16 {
                out[64 + g * LANES + lane] = levels.scale[g].cast_unsigned() | levels.min[g] << 4;
            }
        }
        HeaderLayout::K3 => {
            for g in 0..16 {
                let scale = (levels.scale[g] + 32).cast_unsigned();
                put_six(&mut out[32..224], g * LANES + lane, scale);
            }
        }
        HeaderLayout::K4 => {
            for g in 0..8 {
                let scale = levels.scale[g].cast_unsigned();
                put_six(&mut out[64..256], g * LANES + lane, scale);
                put_six(&mut out[64..256], (8 + g) * LANES + lane, levels.min[g]);
            }
        }
        HeaderLayout::X4 => {
            for g in 0..8 {
                let scale = (levels.scale[g] + 32).cast_unsigned();
                out[32 + g / 4 * LANES + lane] |= scale >> 4 << (g % 4 * 2);
                out[64 + g / 2 * LANES + lane] |= (scale & 15) << (g % 2 * 4);
            }
        }
        HeaderLayout::K6 => {
            for g in 0..16 {
                out[32 + g * LANES + lane] = levels.scale[g].cast_unsigned();
            }
        }
    }
}

/// Stores number `i` of 256 six-bit ones into zeroed bytes.
fn put_six(out: &mut [u8], i: usize, value: u8) {
    let (set, at) = (i / 64, i % 64);
    out[set / 2 * 64 + at] |= (value & 15) << (set % 2 * 4);
    out[128 + at] |= value >> 4 << (set * 2);
}

fn plain_floats(source: &[u8], row_bytes: usize, size: usize, panel: &mut [u8]) {
    for (c, out) in panel.chunks_exact_mut(size * LANES).enumerate() {
        for (lane, out) in out.chunks_exact_mut(size).enumerate() {
            let at = lane * row_bytes + c * size;
            match source.get(at..at + size) {
                Some(value) => out.copy_from_slice(value),
                None => out.fill(0),
            }
        }
    }
}
