//! Unpacking: a row of a panel to floats, for the look-up of embeddings.

use half::f16;

use crate::isa::LANES;
use crate::weights::block::{BlockType, IQ4_VALUES};
use crate::weights::layout::{GROUP, HeaderLayout, Layout};

/// Reads row `lane` of a panel back as floats, equal to those of [`dequantise`](crate::dequantise).
pub(crate) fn unpack_row(ty: BlockType, panel: &[u8], lane: usize, out: &mut [f32]) {
    let layout = Layout::of(ty);
    if layout.header == HeaderLayout::None {
        let size = ty.block_bytes();
        for (o, values) in out.iter_mut().zip(panel.chunks_exact(size * LANES)) {
            let value = &values[lane * size..][..size];
            *o = match *value {
                [a, b, c, d] => f32::from_le_bytes([a, b, c, d]),
                [a, b] if ty == BlockType::F16 => f16::from_le_bytes([a, b]).to_f32(),
                [a, b] => half::bf16::from_le_bytes([a, b]).to_f32(),
                _ => unreachable!("floats have two or four bytes"),
            };
        }
        return;
    }
    let blocks = panel.chunks_exact(layout.block_bytes());
    for (block, out) in blocks.zip(out.chunks_exact_mut(layout.cols)) {
        let (header, groups) = block.split_at(layout.header_bytes());
        for (c, out) in out.iter_mut().enumerate() {
            let (scale, min) = read_scale(layout.header, header, c / layout.group, lane);
            let group = &groups[c / GROUP * layout.group_bytes()..][..layout.group_bytes()];
            let q = read_quant(layout, group, c % GROUP, lane);
            *out = scale * (f32::from(q) - f32::from(layout.zero)) - min;
        }
    }
}

fn read_scale(header: HeaderLayout, b: &[u8], g: usize, lane: usize) -> (f32, f32) {
    let half = |at: usize| f16::from_le_bytes([b[at + lane * 2], b[at + lane * 2 + 1]]).to_f32();
    let d = half(0);
    match header {
        HeaderLayout::None | HeaderLayout::D => (d, 0.0),
        HeaderLayout::DM => (d, half(32)),
        HeaderLayout::K2 => {
            let both = b[64 + g * LANES + lane];
            (d * f32::from(both & 15), half(32) * f32::from(both >> 4))
        }
        HeaderLayout::K3 => (
            d * (f32::from(get_six(&b[32..], g * LANES + lane)) - 32.0),
            0.0,
        ),
        HeaderLayout::K4 => (
            d * f32::from(get_six(&b[64..], g * LANES + lane)),
            half(32) * f32::from(get_six(&b[64..], (8 + g) * LANES + lane)),
        ),
        HeaderLayout::X4 => {
            let low = b[64 + g / 2 * LANES + lane] >> (g % 2 * 4) & 15;
            let high = b[32 + g / 4 * LANES + lane] >> (g % 4 * 2) & 3;
            (d * (f32::from(low | high << 4) - 32.0), 0.0)
        }
        HeaderLayout::K6 => (d * f32::from(b[32 + g * LANES + lane].cast_signed()), 0.0),
    }
}

/// The integer of column `c` of a group.
fn read_quant(layout: Layout, group: &[u8], c: usize, lane: usize) -> u8 {
    let (v, at) = (c / 4, lane * 4 + c % 4);
    if layout.bytes {
        return group[v * 64 + at] ^ 0x80;
    }
    let (mut q, mut shift, mut plane) = (0, 0, 0);
    if layout.nibbles {
        q = group[v % 4 * 64 + at] >> (v / 4 * 4) & 15;
        if layout.table {
            return IQ4_VALUES[usize::from(q)];
        }
        (shift, plane) = (4, 256);
    }
    if layout.crumbs {
        q |= (group[plane + v / 4 * 64 + at] >> (v % 4 * 2) & 3) << shift;
        (shift, plane) = (shift + 2, plane + 128);
    }
    if layout.bits {
        q |= (group[plane + at] >> v & 1) << shift;
    }
    q
}

/// Number `i` of 256 six-bit ones.
fn get_six(bytes: &[u8], i: usize) -> u8 {
    let (set, at) = (i / 64, i % 64);
    bytes[set / 2 * 64 + at] >> (set % 2 * 4) & 15 | (bytes[128 + at] >> (set * 2) & 3) << 4
}
