//! Compiles the loops once per level, and picks a level's routines: the one place that does either.

use std::mem::MaybeUninit;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use crate::attention::amx as amx_attention;
use crate::attention::scratch::AttentionScratch;
use crate::attention::task::{Attention, AttentionTask};
use crate::attention::vectors;
#[cfg(target_arch = "x86_64")]
use crate::blocking::{MC_AMX, MR_WIDE, NC_AMX};
use crate::blocking::{MC_INTEGERS, MR_NARROW, NC_INTEGERS};
use crate::elementwise;
#[cfg(target_arch = "x86_64")]
use crate::isa::amx;
use crate::isa::peak;
use crate::isa::scalar::Scalar;
use crate::level::CpuLevel;
use crate::product::activations::{self, ActivationScale, Granularity};
#[cfg(target_arch = "x86_64")]
use crate::product::amx as amx_product;
use crate::product::row_block::{ProductScratch, RowBlockTask};
use crate::product::tiles::{RowBlockGroup, TileScratch};
use crate::product::{integers, stream};
use crate::routines::{Routines, TileRoutines};
use crate::weights::block::BlockType;
use crate::weights::pack::pack_panel;

/// Compiles every routine for one level, with micro-tiles of `$mr` tokens: as many as there are registers for sums.
macro_rules! routines {
    ($name:ident, $isa:ty, $mr:expr $(, $features:literal)?) => {
        mod $name {
            use crate::dispatch::*;

            /// # Safety
            /// The machine has the level.
            $(#[target_feature(enable = $features)])?
            unsafe fn pack(ty: BlockType, source: &[u8], row: usize, panel: &mut [MaybeUninit<u8>]) {
                // SAFETY: the target features are the instructions of `$isa`;
                // the machine has them, by this function's contract.
                unsafe { pack_panel::<$isa>(ty, source, row, panel) }
            }

            /// # Safety
            /// Same as [`activations::quantise`].
            $(#[target_feature(enable = $features)])?
            unsafe fn quantise(granularity: Granularity, x: &[f32], bytes: &mut [i8], scales: &mut [ActivationScale]) {
                // SAFETY: the target features are the instructions of `$isa`;
                // the lengths are this function's contract.
                unsafe { activations::quantise::<$isa>(granularity, x, bytes, scales) }
            }

            /// # Safety
            /// Same as [`stream::multiply`].
            $(#[target_feature(enable = $features)])?
            unsafe fn multiply(row_block: &RowBlockTask, scratch: &mut ProductScratch) {
                // SAFETY: the target features are the instructions of `$isa`;
                // the weights are packed and the activations as long, by this function's contract.
                unsafe { stream::multiply::<$isa>(row_block, scratch) }
            }

            /// # Safety
            /// Same as [`integers::pack_activations`].
            $(#[target_feature(enable = $features)])?
            unsafe fn pack_activations(
                granularity: Granularity,
                x: &[f32],
                cols: usize,
                columns: Range<usize>,
                tiles: &mut [u16],
            ) {
                // SAFETY: the target features are the instructions of `$isa`;
                // the lengths are this function's contract.
                unsafe { integers::pack_activations::<$isa, { $mr }>(granularity, x, cols, columns, tiles) }
            }

            /// # Safety
            /// Same as [`integers::multiply`].
            $(#[target_feature(enable = $features)])?
            unsafe fn multiply_tiles(block_group: &RowBlockGroup, scratch: &mut TileScratch) {
                // SAFETY: the target features are the instructions of `$isa`;
                // the shapes of weights, tiles and results are this function's contract.
                unsafe { integers::multiply::<$isa, { $mr }>(block_group, scratch) }
            }

            /// # Safety
            /// Same as [`elementwise::rms_norm`].
            $(#[target_feature(enable = $features)])?
            unsafe fn rms_norm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
                // SAFETY: the target features are the instructions of `$isa`;
                // equal lengths are this function's contract.
                unsafe { elementwise::rms_norm::<$isa>(x, weight, eps, y) }
            }

            /// # Safety
            /// Same as [`elementwise::rotate`].
            $(#[target_feature(enable = $features)])?
            unsafe fn rotate(x: &mut [f32], head_dim: usize, rotary: usize, cos_sin: &[f32]) {
                // SAFETY: the target features are the instructions of `$isa`;
                // whole heads and the length of `cos_sin` are this function's contract.
                unsafe { elementwise::rotate::<$isa>(x, head_dim, rotary, cos_sin) }
            }

            /// # Safety
            /// Same as [`elementwise::silu_mul`].
            $(#[target_feature(enable = $features)])?
            unsafe fn silu_mul(gate: &mut [f32], up: &[f32]) {
                // SAFETY: the target features are the instructions of `$isa`;
                // equal lengths of whole vectors are this function's contract.
                unsafe { elementwise::silu_mul::<$isa>(gate, up) }
            }

            /// # Safety
            /// Same as [`vectors::attend_task`].
            $(#[target_feature(enable = $features)])?
            unsafe fn attend(a: &Attention, task: &AttentionTask, scratch: &mut AttentionScratch) {
                // SAFETY: the target features are the instructions of `$isa`;
                // the task lies inside the attention, by this function's contract.
                unsafe { vectors::attend_task::<$isa>(a, task, scratch) }
            }

            /// # Safety
            /// Same as [`peak::peak_dots`].
            $(#[target_feature(enable = $features)])?
            unsafe fn peak_dots(passes: usize) -> i32 {
                // SAFETY: the target features are the instructions of `$isa`;
                // the machine has them, by this function's contract.
                unsafe { peak::peak_dots::<$isa>(passes) }
            }

            pub(super) const ROUTINES: Routines = Routines {
                pack,
                quantise,
                multiply,
                multiply_one: multiply,
                rms_norm,
                rotate,
                silu_mul,
                attend,
                attends_on_amx: false,
                peak_dots,
                tiles: &[TILES],
            };

            pub(super) const TILES: TileRoutines = TileRoutines {
                granularity: Granularity::of,
                max_tokens: usize::MAX,
                shape: integers::shape($mr),
                pack: pack_activations,
                multiply: multiply_tiles,
                scratch: integers::SCRATCH,
                mc: MC_INTEGERS,
                nc: NC_INTEGERS,
            };
        }
    };
}

routines!(scalar, Scalar, MR_NARROW);
#[cfg(target_arch = "x86_64")]
routines!(
    avx2,
    crate::isa::avx2::Avx2<false>,
    MR_NARROW,
    "avx2,fma,f16c"
);
#[cfg(target_arch = "x86_64")]
routines!(
    avxvnni,
    crate::isa::avx2::Avx2<true>,
    MR_NARROW,
    "avx2,fma,f16c,avxvnni"
);
#[cfg(target_arch = "x86_64")]
routines!(
    avx512,
    crate::isa::avx512::Avx512,
    MR_WIDE,
    "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
);

#[cfg(target_arch = "aarch64")]
routines!(neon, crate::isa::neon::Neon<false>, MR_NARROW, "neon");
#[cfg(target_arch = "aarch64")]
routines!(
    dotprod,
    crate::isa::neon::Neon<true>,
    MR_NARROW,
    "neon,dotprod"
);

/// AVX-512, with decoding in 256-bit vectors.
#[cfg(target_arch = "x86_64")]
pub(crate) const AVX512_SPLIT: Routines = Routines {
    multiply_one: multiply_one_split,
    ..avx512::ROUTINES
};

/// # Safety
/// The machine has AVX-512 and AVX2. Otherwise same as [`crate::product::stream::multiply`].
#[cfg(target_arch = "x86_64")]
unsafe fn multiply_one_split(row_block: &RowBlockTask, scratch: &mut ProductScratch) {
    // The AVX2 level takes full bytes as signed numbers, whose sums are rounded differently.
    let multiply = match row_block.ty {
        BlockType::Q8_0 | BlockType::IQ4NL | BlockType::IQ4XS => avx512::ROUTINES.multiply,
        _ => avx2::ROUTINES.multiply,
    };
    // SAFETY: the machine has both levels and the row block is packed, by this function's contract.
    unsafe { multiply(row_block, scratch) };
}

/// Returns true if this CPU runs a 512-bit operation as two of 256 bits: AMD's Zen 4, of family 19h. Measured there at
/// the shape of SmolLM3-3B on two cores, five alternating rounds: 16.7 tokens/s (median) with the AVX2 routine for one
/// token, 16.0 with the AVX-512 one. Zen 5 (family 1Ah) and Intel's server CPUs have vectors of full width.
#[cfg(target_arch = "x86_64")]
fn splits_512_bits() -> bool {
    use std::arch::x86_64::__cpuid;
    let vendor = __cpuid(0);
    let is_amd = [vendor.ebx, vendor.edx, vendor.ecx]
        == [b"Auth", b"enti", b"cAMD"].map(|word| u32::from_le_bytes(*word));
    is_amd && family(__cpuid(1).eax) == 0x19
}

/// The family of a CPU, from its signature (leaf 1 of CPUID): base family and extended family.
#[cfg(target_arch = "x86_64")]
fn family(signature: u32) -> u32 {
    match (signature >> 8) & 0xf {
        0xf => 0xf + ((signature >> 20) & 0xff),
        base => base,
    }
}

/// AVX-512, with products of many tokens and attention of many queries on the matrix unit.
#[cfg(target_arch = "x86_64")]
const AMX: Routines = Routines {
    tiles: &[
        // A micro-tile is two tiles of tokens, which does not pay for one.
        TileRoutines {
            max_tokens: amx::TILE_ROWS,
            ..avx512::TILES
        },
        TileRoutines {
            // Every type is converted to bf16, except f32, which has more bits.
            granularity: |ty| (ty != BlockType::F32).then_some(Granularity::Group),
            max_tokens: usize::MAX,
            shape: amx_product::pack::SHAPE,
            pack: amx_product::pack::pack_activations,
            multiply: amx_product::multiply,
            scratch: amx_product::SCRATCH,
            mc: MC_AMX,
            nc: NC_AMX,
        },
    ],
    attend: amx_attention::attend_task_amx,
    attends_on_amx: true,
    peak_dots: amx::peak_dots,
    ..avx512::ROUTINES
};

/// The int8 dot product, with products of many tokens by the int8 matrix product.
#[cfg(target_arch = "aarch64")]
const I8MM: Routines = Routines {
    multiply: crate::product::i8mm::multiply,
    multiply_one: crate::product::i8mm::multiply,
    peak_dots: crate::product::i8mm::peak_dots,
    tiles: &[],
    ..dotprod::ROUTINES
};

/// Returns the routines of `level`; only a machine that has the level may call them.
pub(crate) fn routines_for(level: CpuLevel) -> &'static Routines {
    match level {
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx2 => &avx2::ROUTINES,
        #[cfg(target_arch = "x86_64")]
        CpuLevel::AvxVnni => &avxvnni::ROUTINES,
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx512 if splits_512_bits() => &AVX512_SPLIT,
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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_read_from_base_and_extension() {
        // Genoa (Zen 4), Turin (Zen 5), Milan (Zen 3), Sapphire Rapids.
        let signatures = [0x00a1_0f11, 0x00b0_0f21, 0x00a0_0f11, 0x0008_06f8];
        assert_eq!(signatures.map(family), [0x19, 0x1a, 0x19, 6]);
    }
}
