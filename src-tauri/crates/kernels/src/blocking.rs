//! Every block size of the products and of attention, in one table.
//!
//! # Products
//!
//! `y[m][rows] = x[m][cols] · Wᵀ`. The names are those of BLIS, with the tokens as M, the rows of the weights as N and
//! the columns as K:
//!
//! | level | word in the code | what stays where | stream | floats | i8mm | integers | AMX |
//! |---|---|---|---|---|---|---|---|
//! | MR × NR | micro-tile | sums in registers: tokens × rows | 1..8 × 16 | 1..4 × 16 | 6 × 16 | [`MR_NARROW`] or [`MR_WIDE`] × 16 | 32 × 32 |
//! | KC | K block | columns of a row block, unpacked, in the L1 cache | – | [`KC_FLOATS`] | [`KC_I8MM`] | [`KC_INTEGERS`] | [`KC_AMX`] |
//! | KC outer | outer K block | columns of all tokens of a pass, in the L2 cache | – | – | – | [`KC_OUTER_INTEGERS`] | [`KC_OUTER_AMX`] |
//! | MC | pass | tokens | [`MC_STREAM`] | [`MC_STREAM`] | [`MC_STREAM`] | [`MC_INTEGERS`] | [`MC_AMX`] |
//! | NC | row-block group | row blocks that a worker multiplies with one pass | 1 | 1 | 1 | [`NC_INTEGERS`] | [`NC_AMX`] |
//!
//! Weights are packed in *panels* of NR = 16 rows ([`LANES`]); two panels are a *row block* of [`ROW_BLOCK`] rows, the
//! unit of work of a thread. Within a panel, *groups* of 32 columns share the activations' scales.
//!
//! # Attention
//!
//! Keys and values come in *KV blocks* ([`KV_BLOCK`], [`KV_BLOCK_AMX`]), each multiplied with a *query block*, as in
//! FlashAttention. Long contexts are cut into *KV splits* ([`KV_SPLIT_BLOCKS`]) whose partial results are merged, as in
//! Flash-Decoding.

use crate::isa::LANES;

/// Panels of a row block.
pub(crate) const ROW_BLOCK_PANELS: usize = 2;
/// Rows of a row block.
pub(crate) const ROW_BLOCK: usize = ROW_BLOCK_PANELS * LANES;

/// Largest number of tokens whose products and attention are bit-identical to passes of one token each. Products of so
/// few tokens stream: each weight is unpacked in registers as it comes from memory, whose bandwidth bounds them.
pub(crate) const BATCH_INVARIANT_MAX: usize = 8;
/// Prefetch distance of a streaming product, in bytes.
pub(crate) const PREFETCH_BYTES: usize = 4096;

/// Tokens of a pass without tiles of activations: their sums stay in a worker's scratch until they are stored.
pub(crate) const MC_STREAM: usize = 512;
/// Tokens of a pass in integers: with an outer K block they are 400 KiB, for an L2 cache of half a megabyte or more.
pub(crate) const MC_INTEGERS: usize = 264;
/// Tokens of a pass on AMX: with an outer K block they are 1 MiB as tiles, half of a 2 MiB L2 cache.
#[cfg(target_arch = "x86_64")]
pub(crate) const MC_AMX: usize = 256;

/// Tokens of a micro-tile in integers where a level has 16 registers or fewer lanes than 16 in each.
pub(crate) const MR_NARROW: usize = 4;
/// Tokens of a micro-tile in integers where a level has 32 registers of 16 lanes.
#[cfg(target_arch = "x86_64")]
pub(crate) const MR_WIDE: usize = 12;

/// Columns of a K block in floats.
pub(crate) const KC_FLOATS: usize = 128;
/// Columns of a K block of i8mm, which takes the place of the unpacked floats.
#[cfg(target_arch = "aarch64")]
pub(crate) const KC_I8MM: usize = 256;
/// Columns of a K block in integers.
pub(crate) const KC_INTEGERS: usize = 512;
/// Columns of a K block on AMX. Longer ones would store sums less often, but their weights would leave the L1 cache.
#[cfg(target_arch = "x86_64")]
pub(crate) const KC_AMX: usize = 512;
/// Columns of an outer K block in integers.
pub(crate) const KC_OUTER_INTEGERS: usize = 1024;
/// Columns of an outer K block on AMX.
#[cfg(target_arch = "x86_64")]
pub(crate) const KC_OUTER_AMX: usize = 2048;

/// Row blocks of the largest group in integers: few, so that a slow core leaves many to the others.
pub(crate) const NC_INTEGERS: usize = 4;
/// Row blocks of the largest group on AMX.
#[cfg(target_arch = "x86_64")]
pub(crate) const NC_AMX: usize = 16;

/// Bytes of a K block of a row block in floats, the largest that is unpacked without tiles of activations.
pub(crate) const UNPACKED_BYTES: usize = ROW_BLOCK * KC_FLOATS * size_of::<f32>();

/// Positions of a KV block.
pub(crate) const KV_BLOCK: usize = 64;
/// Tiles of 16 positions in a KV block.
pub(crate) const KV_BLOCK_TILES: usize = KV_BLOCK / LANES;
/// Positions of a KV block on AMX: its keys and its values, as tiles, take half of the L1 cache each.
#[cfg(target_arch = "x86_64")]
pub(crate) const KV_BLOCK_AMX: usize = 128;
/// KV blocks of a split when queries are few. Splits then do not depend on the number of queries, so that a token's
/// result does not depend on its batch.
pub(crate) const KV_SPLIT_BLOCKS: usize = 8;
/// Positions that the storage of keys and values grows by, and that sequences share.
pub(crate) const KV_SEGMENT: usize = 128;
