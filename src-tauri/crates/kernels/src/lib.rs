//! Products of quantised weights, attention, the thread pool and positioned reads: all code on the hot path, and all
//! unsafe code.
//!
//! # Bounds
//!
//! Decoding multiplies one vector with every weight of the model. No weight is used twice, so that memory bandwidth bounds
//! it, and arithmetic must only keep up. Prefill multiplies hundreds of vectors with each weight, and arithmetic bounds it.
//! One layout serves both; [`read_bandwidth`] and [`integer_rate`] measure the two bounds.
//!
//! # The layout
//!
//! A quantised weight is `scale · q − min`, with a small unsigned integer q, and scale and min shared by 16 or 32
//! neighbours in a row. Activations are quantised once per product to signed bytes with a scale per 32
//! (`product/activations`); integers multiply integers, and scales are applied once per group:
//!
//! ```text
//! y[r] = Σ over groups g of  x_scale[g] · (scale[r][g] · Σ q[r][k] · x[k])  −  min[r][g] · x_sum[g]
//! ```
//!
//! The instructions for `Σ q · x` (VPDPBUSD and its relatives) add four byte products within each 32-bit lane. So 16 rows
//! are packed side by side into a *panel* (`weights/layout`, `weights/pack`): lane r of a vector holds four consecutive
//! columns of row r, the four activations are the same for all lanes and are broadcast, and each lane accumulates its own
//! row's sum. There are no horizontal sums, the scales of 16 rows are one vector, and rows missing from the last panel are
//! zeros. Integers narrower than a byte lie in planes (nibbles, crumbs, bits) that unpack with a shift and a mask; the
//! nibbles of IQ4_NL and IQ4_XS are then looked up in a register, and q is the table's byte with 128 added. Every
//! ggml type is packed without loss in exactly the bytes of the file, and one layout serves every machine. Packing moves
//! whole planes of 16 rows at once, about as fast as the system clears the pages for them.
//!
//! # The loops
//!
//! All block sizes are in one table, `blocking`, with the names of BLIS. A product is divided into *row blocks* of two
//! panels; each thread has a queue of neighbouring ones and steals from others when it is empty (`pool`).
//!
//! *Few tokens* (`product/stream`, up to [`Cpu::BATCH_INVARIANT_MAX`]): a row block streams from memory through registers,
//! where it is unpacked, multiplied and scaled, with a prefetch ahead of the loads. Each token's result is bit-identical to
//! a pass of that token alone, so that drafted tokens can be verified in one pass (speculative decoding). Products of the
//! same input are one job: q, k and v; gate and up. Float weights use the same loops in f32 (`product/floats`), and
//! [`Cpu::exact`] does so for every type.
//!
//! *Many tokens* (`product/integers`): activations are packed as tiles in the order in which they are read, with their
//! scales (`product/activations`). A thread multiplies a *row-block group* with an outer K block at a time, whose tokens
//! stay in the L2 cache while the row blocks of the group pass over them; a K block of a row block is unpacked into the L1
//! cache; then micro-tiles of one panel by as many tokens as there are registers for sums are multiplied, and every
//! activation is broadcast by the instruction that multiplies it. The SwiGLU epilogue of a feed-forward layer writes the
//! tiles of its second product directly, never floats.
//!
//! *AMX* (`product/amx`) multiplies 16 tokens with 16 rows in an instruction, in bf16. All other work is software-pipelined
//! with it: between two tile instructions the vector units unpack some of the next K block and run some of the epilogue of
//! the previous row blocks.
//!
//! *Attention* (`attention`) converts a KV block once for all queries and query heads that share it, keeps an online
//! softmax, and is divided by key heads, query blocks and KV splits. With many queries, KV blocks are multiplied in 16-bit
//! integers, or in bf16 on AMX.
//!
//! # Levels
//!
//! All loops are generic over one trait of some forty operations on 16 lanes (`isa`). A file per instruction set implements
//! them; `dispatch` compiles the loops once for each level and picks at run time. Instructions that multiply matrices (AMX,
//! aarch64's i8mm) replace the products of many tokens, and leave the rest to the level below. The scalar level is the same
//! loops over plain arrays: it runs anywhere, and the tests compare every other level with it, and all levels with plain
//! f32.
//!
//! # Safety
//!
//! The loops have no checks of their own. They rely on lengths that [`Cpu`]'s methods assert, on panels that only
//! [`Cpu::pack`] makes after it has compared the bytes with the shape, and on routines that are only picked on a machine
//! with their instructions. Threads write disjoint parts of a result through `pool::disjoint::DisjointSlice`.

mod attention;
mod blocking;
mod cpu;
mod dispatch;
mod elementwise;
mod error;
mod isa;
mod level;
mod memory;
mod pool;
mod product;
mod roofline;
mod routines;
mod weights;

pub use attention::kv::KvLayer;
pub use cpu::Cpu;
pub use error::{PackError, ShapeError};
pub use inference::KvType;
pub use level::{CpuLevel, CpuLevelError};
pub use memory::reserve::{OutOfMemory, reserve};
pub use memory::stored::{ReadObserver, Stored, read_exact_at};
pub use roofline::arithmetic::integer_rate;
pub use roofline::bandwidth::read_bandwidth;
pub use weights::block::{BlockType, Levels};
pub use weights::dequantise::dequantise;
pub use weights::matrix::Matrix;
