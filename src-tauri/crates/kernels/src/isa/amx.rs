//! AMX: products of 16 tokens with 16 rows in one instruction, in bf16 with f32 sums.
//!
//! Weights and activations are both rounded to bf16 (8 bits of mantissa), which is more precise than the 8-bit integers of
//! the other levels; and since weights are multiplied by their scales first, sums need no scaling between blocks. A tile
//! of weights holds 32 columns of a panel's 16 rows as 16 × (16 rows × 2 columns), a tile of activations 16 tokens × 32
//! columns; two of these are adjacent. The instructions have no stable intrinsics yet.
//!
//! int8 tiles would take half as many instructions, but only one scale for 256 columns of a row leaves the sums long
//! enough without scaling. With weights requantised so, the logits of a Q4_K_M model had a relative error of 0.111, against
//! 0.089 for llama.cpp's activations in groups of 256, and less for bf16.
//!
//! Linux saves the tile registers of a thread only if the process has asked for it: [`permitted`].

use std::arch::asm;
use std::arch::x86_64::*;

/// Rows of a tile of activations.
pub(crate) const TILE_ROWS: usize = 16;
/// Rows of two tiles, whose sums are in registers together.
pub(crate) const PAIR: usize = 2 * TILE_ROWS;
/// Columns of a tile.
pub(crate) const COLUMNS: usize = 32;
/// Elements of a tile.
pub(crate) const TILE_LEN: usize = TILE_ROWS * COLUMNS;
/// Returns true if the processor has AMX with bf16 and the system lets this process use it.
pub(crate) fn permitted() -> bool {
    static PERMITTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *PERMITTED.get_or_init(|| {
        let features = __cpuid_count(7, 0).edx;
        // Bits 22 and 24 of leaf 7: AMX-BF16, AMX-TILE.
        let has = is_x86_feature_detected!("avx512bf16") && features >> 22 & 0b101 == 0b101;
        has && request_permission()
    })
}

/// Asks the kernel to save tile registers for this process; returns true on success.
#[cfg(target_os = "linux")]
fn request_permission() -> bool {
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    // SAFETY: the call takes two numbers and touches no memory; a kernel that does not know it
    // answers with an error.
    unsafe {
        libc::syscall(
            libc::SYS_arch_prctl,
            ARCH_REQ_XCOMP_PERM,
            XFEATURE_XTILEDATA,
        ) == 0
    }
}

#[cfg(not(target_os = "linux"))]
fn request_permission() -> bool {
    false
}

/// The operand of LDTILECFG: palette 1, eight tiles of 16 rows of 64 bytes.
#[repr(C, align(64))]
struct TileConfig([u8; 64]);

static TILE_CONFIG: TileConfig = {
    let mut shapes = [0; 64];
    shapes[0] = 1;
    let mut tile = 0;
    while tile < 8 {
        shapes[16 + tile * 2] = 64;
        shapes[48 + tile] = 16;
        tile += 1;
    }
    TileConfig(shapes)
};

/// The configured tile registers; they are released when this is dropped, so that a context switch has none to save.
pub(crate) struct TileRegisters(());

impl TileRegisters {
    /// # Safety
    /// AMX is [`permitted`].
    pub unsafe fn new() -> TileRegisters {
        // SAFETY: AMX is permitted by the caller's contract; the operand is a valid configuration of 64 bytes.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const TILE_CONFIG, options(nostack, readonly))
        };
        TileRegisters(())
    }
}

impl Drop for TileRegisters {
    fn drop(&mut self) {
        // SAFETY: a `TileRegisters` exists only where AMX is permitted.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

#[inline(always)]
pub(crate) fn bits(x: __m512bh) -> __m512i {
    // SAFETY: both are 64 bytes without invalid values.
    unsafe { std::mem::transmute::<__m512bh, __m512i>(x) }
}

/// The sums of 32 tokens and 32 rows of weights, which four tile registers hold.
#[derive(Clone, Copy)]
pub(crate) struct SumTiles {
    pub at: *mut f32,
    /// The distance between two tokens, in elements.
    pub stride: usize,
}

// The registers of sums keep their values between the following functions: compiled code never touches tile registers,
// which Rust knows only as clobbers, and the code between the calls uses vector registers only.

/// Zeroes the registers of sums.
///
/// # Safety
/// The tile registers are configured ([`TileRegisters`]).
#[inline(always)]
pub(crate) unsafe fn zero_sums() {
    // SAFETY: the caller has configured the tile registers, and no memory is accessed.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            options(nostack, nomem),
        );
    }
}

/// Loads the registers of sums.
///
/// # Safety
/// The tile registers are configured, and `sums` is readable for 32 × 32 floats.
#[inline(always)]
pub(crate) unsafe fn load_sums(sums: SumTiles) {
    // SAFETY: the caller has configured the tile registers; each instruction reads 16 rows of 64 bytes of `sums`.
    unsafe {
        asm!(
            "tileloadd tmm0, [{first} + {stride}]",
            "tileloadd tmm1, [{first} + {stride} + 64]",
            "tileloadd tmm2, [{second} + {stride}]",
            "tileloadd tmm3, [{second} + {stride} + 64]",
            first = in(reg) sums.at,
            second = in(reg) sums.at.add(TILE_ROWS * sums.stride),
            stride = in(reg) sums.stride * size_of::<f32>(),
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            options(nostack, readonly),
        );
    }
}

/// Stores the registers of sums and loads those at `next`, each register as soon as it is free.
///
/// # Safety
/// Same as [`store_sums`] for `sums` and as [`load_sums`] for `next`, which has the same stride.
#[inline(always)]
pub(crate) unsafe fn store_and_load_sums(sums: SumTiles, next: *const f32) {
    // SAFETY: the caller has configured the tile registers; stores write the 32 × 32 sums, loads read those at `next`.
    unsafe {
        asm!(
            "tilestored [{first} + {stride}], tmm0",
            "tileloaddt1 tmm0, [{next} + {stride}]",
            "tilestored [{first} + {stride} + 64], tmm1",
            "tileloaddt1 tmm1, [{next} + {stride} + 64]",
            "tilestored [{second} + {stride}], tmm2",
            "tileloaddt1 tmm2, [{next_second} + {stride}]",
            "tilestored [{second} + {stride} + 64], tmm3",
            "tileloaddt1 tmm3, [{next_second} + {stride} + 64]",
            first = in(reg) sums.at,
            second = in(reg) sums.at.add(TILE_ROWS * sums.stride),
            next = in(reg) next,
            next_second = in(reg) next.add(TILE_ROWS * sums.stride),
            stride = in(reg) sums.stride * size_of::<f32>(),
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            options(nostack),
        );
    }
}

/// Stores the registers of sums.
///
/// # Safety
/// The tile registers are configured, and `sums` is writable for 32 × 32 floats.
#[inline(always)]
pub(crate) unsafe fn store_sums(sums: SumTiles) {
    // SAFETY: the caller has configured the tile registers; each instruction writes 16 rows of 64 bytes of `sums`.
    unsafe {
        asm!(
            "tilestored [{first} + {stride}], tmm0",
            "tilestored [{first} + {stride} + 64], tmm1",
            "tilestored [{second} + {stride}], tmm2",
            "tilestored [{second} + {stride} + 64], tmm3",
            first = in(reg) sums.at,
            second = in(reg) sums.at.add(TILE_ROWS * sums.stride),
            stride = in(reg) sums.stride * size_of::<f32>(),
            options(nostack),
        );
    }
}

/// Multiplies 32 columns of two panels, two tiles, with those of 32 tokens, two tiles, and adds the products to the sums.
/// Tokens are loaded with a non-temporal hint: they would evict weights from the L1 cache, which the next tokens need.
///
/// # Safety
/// The tile registers are configured, and each pointer is readable for two tiles.
#[inline(always)]
pub(crate) unsafe fn multiply_add_2x2(weights: *const u16, tokens: *const u16) {
    // SAFETY: the caller has configured the tile registers; each load reads one of the two tiles at its pointer.
    unsafe {
        asm!(
            "tileloadd tmm6, [{weights} + {row}]",
            "tileloaddt1 tmm4, [{tokens} + {row}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{weights} + {row} + 1024]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloaddt1 tmm5, [{tokens} + {row} + 1024]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            row = in(reg) COLUMNS * 2,
            weights = in(reg) weights,
            tokens = in(reg) tokens,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, readonly, preserves_flags),
        );
    }
}

/// Scores of 32 rows of queries and `positions` keys, both as tiles for [`multiply_add_2x2`], the keys as
/// `[position / 32][dim / 32]`; written as `[row][position]`.
///
/// # Safety
/// The tile registers are configured, `positions` and `dim` are multiples of 32, and the pointers have that many tiles and
/// scores.
#[inline(always)]
pub(crate) unsafe fn scores(
    queries: *const u16,
    keys: *const u16,
    dim: usize,
    positions: usize,
    to: *mut f32,
) {
    let groups = dim / COLUMNS;
    // SAFETY: tile `(pair, g)` is one of `positions / 32 × dim / 32` pairs of tiles, which the pointers have by contract.
    unsafe {
        for pair in 0..positions / PAIR {
            zero_sums();
            for g in 0..groups {
                multiply_add_2x2(
                    keys.add((pair * groups + g) * 2 * TILE_LEN),
                    queries.add(g * 2 * TILE_LEN),
                );
            }
            store_sums(SumTiles {
                at: to.add(pair * PAIR),
                stride: positions,
            });
        }
    }
}

/// Adds values times weights to the sums `[row][dim]` of 32 rows: tiles for [`multiply_add_2x2`], the values as
/// `[dim / 32][position / 32]`.
///
/// # Safety
/// The tile registers are configured, `positions` and `dim` are multiples of 32, and the pointers have that many tiles and
/// sums.
#[inline(always)]
pub(crate) unsafe fn accumulate_values(
    weights: *const u16,
    values: *const u16,
    positions: usize,
    dim: usize,
    sums: *mut f32,
) {
    let groups = positions / COLUMNS;
    // SAFETY: tile `(pair, g)` is one of `dim / 32 × positions / 32` pairs of tiles, which the pointers have by contract.
    unsafe {
        for pair in 0..dim / PAIR {
            let sums = SumTiles {
                at: sums.add(pair * PAIR),
                stride: dim,
            };
            load_sums(sums);
            for g in 0..groups {
                multiply_add_2x2(
                    values.add((pair * groups + g) * 2 * TILE_LEN),
                    weights.add(g * 2 * TILE_LEN),
                );
            }
            store_sums(sums);
        }
    }
}

/// Products of bytes that [`crate::roofline::arithmetic::integer_rate`] counts in as many passes, done in bf16.
///
/// # Safety
/// AMX is [`permitted`].
pub(crate) unsafe fn peak_dots(passes: usize) -> i32 {
    // A tile product is 16 × 16 × 32 products; a pass counts 64 × 12 × 64.
    let rounds = (passes * (64 * 12 * 64) / (4 * TILE_ROWS * TILE_LEN)).max(1);
    // SAFETY: AMX is permitted by the caller's contract; the tiles hold zeros, whose products take as long as any.
    unsafe {
        let _tiles = TileRegisters::new();
        asm!(
            "2:",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "dec {rounds}",
            "jnz 2b",
            rounds = inout(reg) rounds => _,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
    0
}

/// Stores two columns of 16 rows as bf16, interleaved.
///
/// # Safety
/// The machine has AVX-512 with bf16, and `to` is writable for 32 bf16.
#[inline(always)]
pub(crate) unsafe fn put_pair(to: *mut u16, first: __m512, second: __m512) {
    // SAFETY: the machine has the instructions, and one vector of 32 bf16 is written, by the caller's contract.
    unsafe {
        let side_by_side = _mm512_set_epi16(
            31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20,
            4, 19, 3, 18, 2, 17, 1, 16, 0,
        );
        let both = bits(_mm512_cvtne2ps_pbh(second, first));
        _mm512_storeu_si512(to.cast(), _mm512_permutexvar_epi16(side_by_side, both));
    }
}
