//! AMX: products of 16 tokens with 16 rows in one instruction, in bf16 with f32 sums.
//!
//! PackedBytes and activations are both rounded to bf16 (8 bits of mantissa), finer than the 8-bit
//! integers of the other levels; and since scales are multiplied in before, nothing interrupts the
//! sums. A tile of weights holds 32 columns of a panel's 16 rows as 16 × (16 rows × 2 columns), a
//! tile of activations 16 tokens × 32 columns; two of these lie together. The instructions have no stable intrinsics yet.
//!
//! Integers would take half as many instructions. But only a scale for each row's 256 columns leaves the sums alone for
//! long enough, and rounded to that the weights of a Q4_K_M model moved its logits by 0.111 of their size, where
//! llama.cpp's activations in such groups move them by 0.089, and bf16 less. So they were left.
//!
//! Linux saves the tiles of a thread only if the process has asked for it: [`permitted`].

use std::arch::asm;
use std::arch::x86_64::*;

/// Rows of a tile of activations.
pub(crate) const TILE_ROWS: usize = 16;
/// Tokens whose sums are in registers together: two tiles of them.
pub(crate) const PAIR: usize = 2 * TILE_ROWS;
/// Columns of a tile.
pub(crate) const COLUMNS: usize = 32;
/// Numbers of a tile.
pub(crate) const TILE_LEN: usize = TILE_ROWS * COLUMNS;
/// Whether the processor has AMX with bf16 and the system lets this process use it.
pub(crate) fn permitted() -> bool {
    static PERMITTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *PERMITTED.get_or_init(|| {
        let features = __cpuid_count(7, 0).edx;
        // Bits 22 and 24 of leaf 7: AMX-BF16, AMX-TILE_LEN.
        let has = is_x86_feature_detected!("avx512bf16") && features >> 22 & 0b101 == 0b101;
        has && request_permission()
    })
}

/// Asks the kernel to save tile registers for this process.
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

/// What LDTILECFG reads: palette 1, eight tiles of 16 rows of 64 bytes.
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

/// The tile registers, configured until this is dropped: then a switch of threads has nothing to save.
pub(crate) struct TileRegisters(());

impl TileRegisters {
    /// # Safety
    /// AMX is [`permitted`].
    pub unsafe fn new() -> TileRegisters {
        // SAFETY: by contract; the operand is a valid configuration of 64 bytes.
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
    /// Numbers from one token's to the next's.
    pub stride: usize,
}

// The registers of sums keep their values from one of the following functions to the next: compiled code
// never touches tile registers, which Rust knows as nothing but clobbers, and what is called between uses vectors
// only.

/// Begins sums anew.
///
/// # Safety
/// The tiles are configured.
#[inline(always)]
pub(crate) unsafe fn zero_sums() {
    // SAFETY: by contract.
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

/// Goes on with sums.
///
/// # Safety
/// The tiles are configured, and the sums are there.
#[inline(always)]
pub(crate) unsafe fn load_sums(sums: SumTiles) {
    // SAFETY: by contract.
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

/// Takes sums out of the registers, and goes on with those at `next`: each register as soon as it is free.
///
/// # Safety
/// As [`store_sums`] and [`load_sums`]; they are as far apart.
#[inline(always)]
pub(crate) unsafe fn store_and_load_sums(sums: SumTiles, next: *const f32) {
    // SAFETY: by contract.
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

/// Takes sums out of the registers.
///
/// # Safety
/// The tiles are configured, and there is room for the sums.
#[inline(always)]
pub(crate) unsafe fn store_sums(sums: SumTiles) {
    // SAFETY: by contract.
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

/// Adds to the sums the products of two panels' 32 columns, two tiles, and of 32 tokens, two tiles. These are loaded as
/// what is not needed again soon: they would push weights out of the L1 cache, which the next tokens meet again.
///
/// # Safety
/// The tiles are configured, and the pointers are good for that.
#[inline(always)]
pub(crate) unsafe fn multiply_add_2x2(weights: *const u16, tokens: *const u16) {
    // SAFETY: by contract.
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

/// Scores of 32 rows of queries and `positions` keys, tiles as [`multiply_add_2x2`] takes them, of keys
/// `[position / 32][dim / 32]`; written as `[row][position]`.
///
/// # Safety
/// The tiles are configured, the pointers are good for that, and `positions` and `dim` are multiples of 32.
#[inline(always)]
pub(crate) unsafe fn scores(
    queries: *const u16,
    keys: *const u16,
    dim: usize,
    positions: usize,
    to: *mut f32,
) {
    let groups = dim / COLUMNS;
    // SAFETY: by contract.
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

/// Adds values times weights to the sums `[row][dim]` of 32 rows: tiles as [`multiply_add_2x2`] takes them, of
/// values `[dim / 32][position / 32]`.
///
/// # Safety
/// As [`scores`].
#[inline(always)]
pub(crate) unsafe fn accumulate_values(
    weights: *const u16,
    values: *const u16,
    positions: usize,
    dim: usize,
    sums: *mut f32,
) {
    let groups = positions / COLUMNS;
    // SAFETY: by contract.
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
    // SAFETY: by contract; the tiles are zero, which takes as long as anything else.
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

/// Stores two columns of 16 rows as bf16, side by side for each row.
///
/// # Safety
/// The machine has AVX-512 with bf16, and `to` has room for 32 numbers.
#[inline(always)]
pub(crate) unsafe fn put_pair(to: *mut u16, first: __m512, second: __m512) {
    // SAFETY: by contract.
    unsafe {
        let side_by_side = _mm512_set_epi16(
            31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20,
            4, 19, 3, 18, 2, 17, 1, 16, 0,
        );
        let both = bits(_mm512_cvtne2ps_pbh(second, first));
        _mm512_storeu_si512(to.cast(), _mm512_permutexvar_epi16(side_by_side, both));
    }
}
