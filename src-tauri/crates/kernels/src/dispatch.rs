//! The loops, compiled once per level, and the one place that picks.

use std::mem::MaybeUninit;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use crate::attention::amx as attention_amx;
use crate::attention::scratch::Desk as AttentionDesk;
use crate::attention::task::{Attention, Piece};
use crate::attention::vectors;
use crate::elementwise;
#[cfg(target_arch = "x86_64")]
use crate::isa::amx;
use crate::isa::peak;
use crate::isa::scalar::Scalar;
use crate::level::CpuLevel;
use crate::product::activations::{self, Grain, Scale};
#[cfg(target_arch = "x86_64")]
use crate::product::amx as amx_product;
use crate::product::row_block::{Stage, Strip};
use crate::product::tiles::{Bunch, Desk};
use crate::product::{integers, stream};
use crate::routines::{Routines, TileRoutines};
use crate::weights::block::BlockType;
use crate::weights::pack::pack_panel;

/// Compiles every routine for one level, with tiles of so many tokens: as many as there are registers for sums.
macro_rules! routines {
    ($name:ident, $isa:ty, $tokens:literal $(, $features:literal)?) => {
        mod $name {
            use crate::dispatch::*;

            /// # Safety
            /// The machine has the level.
            $(#[target_feature(enable = $features)])?
            unsafe fn pack(ty: BlockType, source: &[u8], row: usize, panel: &mut [MaybeUninit<u8>]) {
                // SAFETY: the level is this function's own.
                unsafe { pack_panel::<$isa>(ty, source, row, panel) }
            }

            /// # Safety
            /// As [`activations::round`].
            $(#[target_feature(enable = $features)])?
            unsafe fn round(grain: Grain, x: &[f32], bytes: &mut [i8], scales: &mut [Scale]) {
                // SAFETY: as above; the rest is passed on.
                unsafe { activations::round::<$isa>(grain, x, bytes, scales) }
            }

            /// # Safety
            /// As [`stream::multiply`].
            $(#[target_feature(enable = $features)])?
            unsafe fn multiply(strip: &Strip, stage: &mut Stage) {
                // SAFETY: as above.
                unsafe { stream::multiply::<$isa>(strip, stage) }
            }

            /// # Safety
            /// As [`integers::arrange`].
            $(#[target_feature(enable = $features)])?
            unsafe fn arrange(
                grain: Grain,
                x: &[f32],
                cols: usize,
                columns: Range<usize>,
                tiles: &mut [u16],
            ) {
                // SAFETY: as above.
                unsafe { integers::arrange::<$isa, $tokens>(grain, x, cols, columns, tiles) }
            }

            /// # Safety
            /// As [`integers::multiply`].
            $(#[target_feature(enable = $features)])?
            unsafe fn multiply_tiles(bunch: &Bunch, desk: &mut Desk) {
                // SAFETY: as above.
                unsafe { integers::multiply::<$isa, $tokens>(bunch, desk) }
            }

            /// # Safety
            /// As [`elementwise::rms_norm`].
            $(#[target_feature(enable = $features)])?
            unsafe fn rms_norm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
                // SAFETY: as above.
                unsafe { elementwise::rms_norm::<$isa>(x, weight, eps, y) }
            }

            /// # Safety
            /// As [`elementwise::rotate`].
            $(#[target_feature(enable = $features)])?
            unsafe fn rotate(x: &mut [f32], head_dim: usize, rotary: usize, turn: &[f32]) {
                // SAFETY: as above.
                unsafe { elementwise::rotate::<$isa>(x, head_dim, rotary, turn) }
            }

            /// # Safety
            /// As [`elementwise::silu_mul`].
            $(#[target_feature(enable = $features)])?
            unsafe fn silu_mul(gate: &mut [f32], up: &[f32]) {
                // SAFETY: as above.
                unsafe { elementwise::silu_mul::<$isa>(gate, up) }
            }

            /// # Safety
            /// As [`vectors::attend_piece`].
            $(#[target_feature(enable = $features)])?
            unsafe fn attend(a: &Attention, piece: &Piece, desk: &mut AttentionDesk) {
                // SAFETY: as above.
                unsafe { vectors::attend_piece::<$isa>(a, piece, desk) }
            }

            /// # Safety
            /// As [`peak::dots`].
            $(#[target_feature(enable = $features)])?
            unsafe fn dots(passes: usize) -> i32 {
                // SAFETY: as above.
                unsafe { peak::dots::<$isa>(passes) }
            }

            pub(super) const ROUTINES: Routines = Routines {
                pack,
                round,
                multiply,
                rms_norm,
                rotate,
                silu_mul,
                attend,
                attends_in_tiles: false,
                dots,
                tiles: &[TILES],
            };

            pub(super) const TILES: TileRoutines = TileRoutines {
                grain: Grain::of,
                most: usize::MAX,
                shape: integers::shape($tokens),
                arrange,
                multiply: multiply_tiles,
                room: integers::ROOM,
                tokens: integers::TOKENS,
                strips: integers::BUNCH,
            };
        }
    };
}

routines!(scalar, Scalar, 4);
#[cfg(target_arch = "x86_64")]
routines!(avx2, crate::isa::avx2::Avx2<false>, 4, "avx2,fma,f16c");
#[cfg(target_arch = "x86_64")]
routines!(
    avxvnni,
    crate::isa::avx2::Avx2<true>,
    4,
    "avx2,fma,f16c,avxvnni"
);
#[cfg(target_arch = "x86_64")]
routines!(
    avx512,
    crate::isa::avx512::Avx512,
    12,
    "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
);

#[cfg(target_arch = "aarch64")]
routines!(neon, crate::isa::neon::Neon<false>, 4, "neon");
#[cfg(target_arch = "aarch64")]
routines!(dotprod, crate::isa::neon::Neon<true>, 4, "neon,dotprod");

/// AVX-512 but for what its matrix unit does.
#[cfg(target_arch = "x86_64")]
const AMX: Routines = Routines {
    tiles: &[
        // Two tiles are multiplied together, which does not pay for one.
        TileRoutines {
            most: amx::TOKENS,
            ..avx512::TILES
        },
        TileRoutines {
            // All become bf16, but for floats that are finer.
            grain: |ty| (ty != BlockType::F32).then_some(Grain::Group),
            most: usize::MAX,
            shape: amx_product::pack::SHAPE,
            arrange: amx_product::pack::arrange,
            multiply: amx_product::multiply,
            room: amx_product::ROOM,
            tokens: amx_product::PASS,
            strips: amx_product::BUNCH,
        },
    ],
    attend: attention_amx::attend_in_tiles,
    attends_in_tiles: true,
    dots: amx::dots,
    ..avx512::ROUTINES
};

/// The dot product but for what the matrix product does.
#[cfg(target_arch = "aarch64")]
const I8MM: Routines = Routines {
    multiply: crate::product::i8mm::multiply,
    dots: crate::product::i8mm::dots,
    tiles: &[],
    ..dotprod::ROUTINES
};

/// The routines of `level`, which the machine must have for them to be called.
pub(crate) fn routines_for(level: CpuLevel) -> &'static Routines {
    match level {
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx2 => &avx2::ROUTINES,
        #[cfg(target_arch = "x86_64")]
        CpuLevel::AvxVnni => &avxvnni::ROUTINES,
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx512 => &avx512::ROUTINES,
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Amx => &AMX,
        #[cfg(target_arch = "aarch64")]
        CpuLevel::Neon => &neon::ROUTINES,
        #[cfg(target_arch = "aarch64")]
        CpuLevel::NeonDotprod => &dotprod::ROUTINES,
        #[cfg(target_arch = "aarch64")]
        CpuLevel::NeonI8mm => &I8MM,
        _ => &scalar::ROUTINES,
    }
}
