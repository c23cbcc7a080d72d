//! From ggml's rows to panels; see [`crate::layout`] for where each bit goes.

use half::f16;

use crate::block::{BlockType, Levels};
use crate::isa::LANES;
use crate::layout::{GROUP, Header, Layout};

/// Packs up to 16 rows of `source` (whole rows, `row_bytes` each) into one panel; rows that are
/// missing become zeros.
#[inline(always)]
pub(crate) fn pack_panel(ty: BlockType, source: &[u8], row_bytes: usize, panel: &mut [u8]) {
    let layout = Layout::of(ty);
    if layout.header == Header::None {
        return interleave(source, row_bytes, ty.block_bytes(), panel);
    }
    let mut levels = Levels::new();
    // The integers of a block, as quads of columns: [cols / 4][16 rows].
    let mut quads = [[0_u32; LANES]; 64];
    for (b, out) in panel.chunks_exact_mut(layout.block_bytes()).enumerate() {
        out[..layout.header_bytes()].fill(0);
        for lane in 0..LANES {
            let at = lane * row_bytes + b * ty.block_bytes();
            if let Some(block) = source.get(at..at + ty.block_bytes()) {
                levels.read(ty, block);
                write_header(layout.header, &levels, lane, out);
                for (quad, q) in quads.iter_mut().zip(levels.q.as_chunks::<4>().0) {
                    quad[lane] = u32::from_le_bytes(*q);
                }
            } else {
                for quad in &mut quads {
                    quad[lane] = 0;
                }
            }
        }
        let groups = out[layout.header_bytes()..].chunks_exact_mut(layout.group_bytes());
        for (out, quads) in groups.zip(quads.as_chunks::<8>().0) {
            write_group(layout, quads, out);
        }
    }
}

#[inline(always)]
fn write_header(header: Header, levels: &Levels, lane: usize, out: &mut [u8]) {
    let mut put_half = |at: usize, value: f16| {
        out[at + lane * 2..][..2].copy_from_slice(&value.to_le_bytes());
    };
    put_half(0, levels.d);
    if matches!(header, Header::DM | Header::K2 | Header::K4) {
        put_half(32, levels.dmin);
    }
    match header {
        Header::None | Header::D | Header::DM => {}
        Header::K2 => {
            for g in 0..16 {
                out[64 + g * LANES + lane] = levels.scale[g].cast_unsigned() | levels.min[g] << 4;
            }
        }
        Header::K3 => {
            for g in 0..16 {
                let scale = (levels.scale[g] + 32).cast_unsigned();
                put_six(&mut out[32..224], g * LANES + lane, scale);
            }
        }
        Header::K4 => {
            for g in 0..8 {
                let scale = levels.scale[g].cast_unsigned();
                put_six(&mut out[64..256], g * LANES + lane, scale);
                put_six(&mut out[64..256], (8 + g) * LANES + lane, levels.min[g]);
            }
        }
        Header::K6 => {
            for g in 0..16 {
                out[32 + g * LANES + lane] = levels.scale[g].cast_unsigned();
            }
        }
    }
}

/// Stores number `i` of 256 six-bit ones into zeroed bytes.
#[inline(always)]
fn put_six(out: &mut [u8], i: usize, value: u8) {
    let (set, at) = (i / 64, i % 64);
    out[set / 2 * 64 + at] |= (value & 15) << (set % 2 * 4);
    out[128 + at] |= value >> 4 << (set * 2);
}

/// The number that [`put_six`] stored.
pub(crate) fn get_six(bytes: &[u8], i: usize) -> u8 {
    let (set, at) = (i / 64, i % 64);
    bytes[set / 2 * 64 + at] >> (set % 2 * 4) & 15 | (bytes[128 + at] >> (set * 2) & 3) << 4
}

/// Stores the planes of 32 columns of 16 rows.
#[inline(always)]
fn write_group(layout: Layout, quads: &[[u32; LANES]; 8], out: &mut [u8]) {
    let mut planes = out.chunks_exact_mut(64);
    let mut store = |plane: &dyn Fn(usize) -> u32| {
        if let Some(out) = planes.next() {
            for (lane, out) in out.chunks_exact_mut(4).enumerate() {
                out.copy_from_slice(&plane(lane).to_le_bytes());
            }
        }
    };
    let mut place = 0;
    if layout.bytes {
        for quad in quads {
            store(&|lane| quad[lane] ^ 0x8080_8080);
        }
    }
    if layout.nibbles {
        for v in 0..4 {
            store(&|lane| quads[v][lane] & 0x0f0f_0f0f | (quads[v + 4][lane] & 0x0f0f_0f0f) << 4);
        }
        place = 4;
    }
    if layout.crumbs {
        for v in 0..2 {
            let crumb = |i: usize, lane: usize| quads[v * 4 + i][lane] >> place & 0x0303_0303;
            store(&|lane| {
                crumb(0, lane) | crumb(1, lane) << 2 | crumb(2, lane) << 4 | crumb(3, lane) << 6
            });
        }
        place += 2;
    }
    if layout.bits {
        store(&|lane| (0..8).fold(0, |w, v| w | (quads[v][lane] >> place & 0x0101_0101) << v));
    }
}

/// Floats: column by column, 16 rows side by side.
#[inline(always)]
fn interleave(source: &[u8], row_bytes: usize, size: usize, panel: &mut [u8]) {
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

/// Reads row `lane` of a panel back as floats, value for value what
/// [`dequantise`](crate::dequantise) gives.
pub(crate) fn unpack_row(ty: BlockType, panel: &[u8], lane: usize, out: &mut [f32]) {
    let layout = Layout::of(ty);
    if layout.header == Header::None {
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

fn read_scale(header: Header, b: &[u8], g: usize, lane: usize) -> (f32, f32) {
    let half = |at: usize| f16::from_le_bytes([b[at + lane * 2], b[at + lane * 2 + 1]]).to_f32();
    let d = half(0);
    match header {
        Header::None | Header::D => (d, 0.0),
        Header::DM => (d, half(32)),
        Header::K2 => {
            let both = b[64 + g * LANES + lane];
            (d * f32::from(both & 15), half(32) * f32::from(both >> 4))
        }
        Header::K3 => (
            d * (f32::from(get_six(&b[32..], g * LANES + lane)) - 32.0),
            0.0,
        ),
        Header::K4 => (
            d * f32::from(get_six(&b[64..], g * LANES + lane)),
            half(32) * f32::from(get_six(&b[64..], (8 + g) * LANES + lane)),
        ),
        Header::K6 => (d * f32::from(b[32 + g * LANES + lane].cast_signed()), 0.0),
    }
}

/// The integer of column `c` of a group.
fn read_quant(layout: Layout, group: &[u8], c: usize, lane: usize) -> u8 {
    let (v, at) = (c / 4, lane * 4 + c % 4);
    if layout.bytes {
        return group[v * 64 + at] ^ 0x80;
    }
    let (mut q, mut place, mut plane) = (0, 0, 0);
    if layout.nibbles {
        q = group[v % 4 * 64 + at] >> (v / 4 * 4) & 15;
        (place, plane) = (4, 256);
    }
    if layout.crumbs {
        q |= (group[plane + v / 4 * 64 + at] >> (v % 4 * 2) & 3) << place;
        (place, plane) = (place + 2, plane + 128);
    }
    if layout.bits {
        q |= (group[plane + at] >> v & 1) << place;
    }
    q
}
