//! Activations and weights as tiles of the matrix unit.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::blocking::KC_AMX;
use crate::elementwise::silu_mul_vector;
use crate::isa::amx::{COLUMNS, PAIR, TILE_LEN, bits, put_pair};
use crate::isa::avx512::Avx512;
use crate::isa::{Isa, LANES};
use crate::product::activations::{Granularity, TileShape};
use crate::weights::block::BlockType;
use crate::weights::layout::{self, GROUP, QuantFormat, quants};

const _: () = assert!(COLUMNS == GROUP);

/// Pairs of tiles of activations, adjacent, so that a K block is read sequentially.
pub(crate) const SHAPE: TileShape = TileShape {
    mr: PAIR,
    kc: KC_AMX,
    group_len: COLUMNS,
};

/// Converts `columns` of the rows of `x`, each of `cols` floats, to pairs of tiles, `[row / 32][column / 32][32][32]`; in the
/// last pair, rows beyond those of `x` are left unchanged.
///
/// # Safety
/// The machine has AVX-512 with bf16; `x` is whole rows, `columns` are whole groups of them, and `tiles` is as many whole
/// tiles.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(crate) unsafe fn pack_activations(
    _: Granularity,
    x: &[f32],
    cols: usize,
    columns: Range<usize>,
    tiles: &mut [u16],
) {
    let block = PAIR * columns.len();
    debug_assert!(tiles.len() == (x.len() / cols).div_ceil(PAIR) * block);
    for (t, x) in x.chunks_exact(cols).enumerate() {
        let tiles = &mut tiles[t / PAIR * block..];
        let groups = x[columns.clone()].chunks_exact(COLUMNS);
        for (x, tile) in groups.zip(tiles.chunks_exact_mut(2 * TILE_LEN)) {
            // SAFETY: a group is two vectors; row t % 32 of a pair of tiles is 32 elements.
            unsafe {
                let (low, high) = (
                    Avx512::load(x.as_ptr()),
                    Avx512::load(x.as_ptr().add(LANES)),
                );
                let row = tile.as_mut_ptr().add(t % PAIR * COLUMNS);
                _mm512_storeu_si512(row.cast(), bits(_mm512_cvtne2ps_pbh(high, low)));
            }
        }
    }
}

/// Scales and minima of a block.
pub(crate) struct BlockScales {
    scale: [f32; 256],
    min: [f32; 256],
}

impl BlockScales {
    pub fn new() -> BlockScales {
        BlockScales {
            scale: [0.0; 256],
            min: [0.0; 256],
        }
    }
}

/// Unpacks quarter `Q` of a panel's group that begins at `column` to the group's tile: columns 4Q.. and 16 + 4Q.., which
/// share bytes. The quarters of a block must be unpacked in order: the first one fills `scales` for all.
///
/// # Safety
/// The machine has AVX-512 with bf16; the panel has such a group; `tile` is writable for a tile.
#[inline(always)]
pub(crate) unsafe fn unpack<F: QuantFormat, const Q: usize>(
    panel: *const u8,
    column: usize,
    scales: &mut BlockScales,
    tile: *mut u16,
) {
    let layout = F::LAYOUT;
    let BlockScales { scale, min } = scales;
    // SAFETY: the group lies inside its block; a tile is 16 vectors of 32 numbers.
    unsafe {
        let block = panel.add(column / layout.cols * layout.block_bytes());
        let inner = column % layout.cols / GROUP;
        if Q == 0 && inner == 0 {
            layout::scales::<Avx512, F>(block, scale.as_mut_ptr(), min.as_mut_ptr());
        }
        let quants = quants::<Avx512, F>(block, inner);
        for v in [Q, Q + 4] {
            let at = layout.scale_of(inner, v * layout.halves() / 8) * LANES;
            let scale = Avx512::load(scale.as_ptr().add(at));
            let min = Avx512::load(min.as_ptr().add(at));
            let (w, byte) = (quants[v], _mm512_set1_epi32(0xff));
            // No closure: it would be compiled without the level's features.
            let [a, b, c, d] = [
                weights(_mm512_and_si512(w, byte), scale, min),
                weights(
                    _mm512_and_si512(_mm512_srli_epi32::<8>(w), byte),
                    scale,
                    min,
                ),
                weights(
                    _mm512_and_si512(_mm512_srli_epi32::<16>(w), byte),
                    scale,
                    min,
                ),
                weights(_mm512_srli_epi32::<24>(w), scale, min),
            ];
            put_pair(tile.add(v * 2 * GROUP), a, b);
            put_pair(tile.add((v * 2 + 1) * GROUP), c, d);
        }
    }
}

/// `scale · q − min`.
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
unsafe fn weights(q: __m512i, scale: __m512, min: __m512) -> __m512 {
    // SAFETY: no pointers.
    unsafe { _mm512_fmsub_ps(_mm512_cvtepi32_ps(q), scale, min) }
}

/// Unpacks float weights: columns 8 · `quarter`.. of the group.
///
/// # Safety
/// Same as [`unpack`].
#[inline(always)]
pub(crate) unsafe fn unpack_floats(
    ty: BlockType,
    panel: *const u8,
    column: usize,
    quarter: usize,
    tile: *mut u16,
) {
    // SAFETY: a panel of floats has 16 values per column.
    unsafe {
        let values = |c: usize| {
            let at = (column + c) * LANES;
            match ty {
                BlockType::F16 => Avx512::load_f16(panel.cast::<u16>().add(at)),
                BlockType::BF16 => Avx512::load_bf16(panel.cast::<u16>().add(at)),
                _ => Avx512::load(panel.cast::<f32>().add(at)),
            }
        };
        for pair in quarter * 4..quarter * 4 + 4 {
            put_pair(
                tile.add(pair * GROUP),
                values(pair * 2),
                values(pair * 2 + 1),
            );
        }
    }
}

/// SiLU(gate) · up of a token and 32 rows, as a row of a tile of activations.
///
/// # Safety
/// The machine has AVX-512 with bf16; `gate` and `up` are two vectors, and `row` is as long.
#[inline(always)]
pub(crate) unsafe fn silu_mul_to_tile(gate: *const f32, up: *const f32, row: &mut [u16]) {
    debug_assert!(row.len() == COLUMNS);
    // SAFETY: `gate` and `up` are readable for two vectors, and `row` is 32 bf16, by the caller's contract.
    unsafe {
        let [low, high] = [
            silu_mul_vector::<Avx512>(Avx512::load(gate), Avx512::load(up)),
            silu_mul_vector::<Avx512>(Avx512::load(gate.add(LANES)), Avx512::load(up.add(LANES))),
        ];
        let both = bits(_mm512_cvtne2ps_pbh(high, low));
        _mm512_storeu_si512(row.as_mut_ptr().cast(), both);
    }
}
