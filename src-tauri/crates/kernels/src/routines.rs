//! The loops, compiled once per level, and the one place that picks.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::attention::{self, Attention, Piece};
use crate::isa::Scalar;
#[cfg(target_arch = "x86_64")]
use crate::isa::amx;
use crate::level::CpuLevel;
use crate::product::activations::{self, Arrange, Grain, Scale, TileShape};
#[cfg(target_arch = "x86_64")]
use crate::product::amx as amx_product;
use crate::product::tiles::{Bunch, Desk, Room};
use crate::product::{self, Stage, Strip, integers};
use crate::weights::block::BlockType;
use crate::weights::layout::GROUP;
use crate::weights::matrix::Matrix;
use crate::weights::pack::pack_panel;

/// What an executor calls; every entry is unsafe to call on a machine without its level.
pub(crate) struct Routines {
    pub pack: unsafe fn(BlockType, &[u8], usize, &mut [MaybeUninit<u8>]),
    pub round: unsafe fn(Grain, &[f32], &mut [i8], &mut [Scale]),
    pub multiply: unsafe fn(&Strip, &mut Stage),
    pub rms_norm: unsafe fn(&[f32], &[f32], f32, &mut [f32]),
    pub rotate: unsafe fn(&mut [f32], usize, usize, &[f32]),
    pub silu_mul: unsafe fn(&mut [f32], &[f32]),
    pub attend: unsafe fn(&Attention, &Piece, &mut attention::Desk),
    /// Whether `attend` uses a matrix unit.
    pub attends_in_tiles: bool,
    pub dots: unsafe fn(usize) -> i32,
    /// Products of many tokens, done by the first that serves them; where none does, `multiply` does them.
    pub tiles: &'static [TileRoutines],
}

/// Products of many tokens in tiles.
pub(crate) struct TileRoutines {
    grain: fn(BlockType) -> Option<Grain>,
    /// The most tokens that it is the fastest for.
    most: usize,
    pub shape: TileShape,
    /// Makes tiles of activations.
    pub arrange: Arrange,
    pub multiply: unsafe fn(&Bunch, &mut Desk),
    pub room: Room,
    /// The most tokens that it multiplies.
    pub tokens: usize,
    /// The most strips; an even number.
    pub strips: usize,
}

/// Compiles every routine for one level, with tiles of so many tokens: as many as there are registers for sums.
macro_rules! routines {
    ($name:ident, $isa:ty, $tokens:literal $(, $features:literal)?) => {
        mod $name {
            use super::*;

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
            /// As [`product::multiply`].
            $(#[target_feature(enable = $features)])?
            unsafe fn multiply(strip: &Strip, stage: &mut Stage) {
                // SAFETY: as above.
                unsafe { product::multiply::<$isa>(strip, stage) }
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
            /// As [`crate::elementwise::rms_norm`].
            $(#[target_feature(enable = $features)])?
            unsafe fn rms_norm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
                // SAFETY: as above.
                unsafe { crate::elementwise::rms_norm::<$isa>(x, weight, eps, y) }
            }

            /// # Safety
            /// As [`crate::elementwise::rotate`].
            $(#[target_feature(enable = $features)])?
            unsafe fn rotate(x: &mut [f32], head_dim: usize, rotary: usize, turn: &[f32]) {
                // SAFETY: as above.
                unsafe { crate::elementwise::rotate::<$isa>(x, head_dim, rotary, turn) }
            }

            /// # Safety
            /// As [`crate::elementwise::silu_mul`].
            $(#[target_feature(enable = $features)])?
            unsafe fn silu_mul(gate: &mut [f32], up: &[f32]) {
                // SAFETY: as above.
                unsafe { crate::elementwise::silu_mul::<$isa>(gate, up) }
            }

            /// # Safety
            /// As [`attention::attend_piece`].
            $(#[target_feature(enable = $features)])?
            unsafe fn attend(a: &Attention, piece: &Piece, desk: &mut attention::Desk) {
                // SAFETY: as above.
                unsafe { attention::attend_piece::<$isa>(a, piece, desk) }
            }

            /// # Safety
            /// As [`crate::roofline::arithmetic::dots`].
            $(#[target_feature(enable = $features)])?
            unsafe fn dots(passes: usize) -> i32 {
                // SAFETY: as above.
                unsafe { crate::roofline::arithmetic::dots::<$isa>(passes) }
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
routines!(avx2, crate::isa::Avx2<false>, 4, "avx2,fma,f16c");
#[cfg(target_arch = "x86_64")]
routines!(avxvnni, crate::isa::Avx2<true>, 4, "avx2,fma,f16c,avxvnni");
#[cfg(target_arch = "x86_64")]
routines!(
    avx512,
    crate::isa::Avx512,
    12,
    "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
);

#[cfg(target_arch = "aarch64")]
routines!(neon, crate::isa::Neon<false>, 4, "neon");
#[cfg(target_arch = "aarch64")]
routines!(dotprod, crate::isa::Neon<true>, 4, "neon,dotprod");

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
            shape: amx::SHAPE,
            arrange: amx::arrange,
            multiply: amx_product::multiply,
            room: amx_product::ROOM,
            tokens: amx_product::PASS,
            strips: amx_product::BUNCH,
        },
    ],
    attend: attention::attend_in_tiles,
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

impl TileRoutines {
    /// How finely the activations of `m` tokens are to be rounded for a matrix, if it serves them.
    pub fn grain(&self, m: usize, w: &Matrix) -> Option<Grain> {
        let serves = m <= self.most && w.cols().is_multiple_of(GROUP);
        (self.grain)(w.block_type()).filter(|_| serves)
    }
}

impl Routines {
    /// The routines of `level`, which the machine must have for them to be called.
    pub fn of(level: CpuLevel) -> &'static Routines {
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
}
