//! Everything in Goldcrest that must be fast, and everything that is unsafe.
//!
//! # Where the time goes
//!
//! A token of the answer multiplies one vector with every weight of the model: nothing is used
//! twice, so that decoding runs at the speed at which weights come from memory, and all that
//! arithmetic must do is keep out of the way. Reading a prompt multiplies hundreds of vectors with
//! each weight: there arithmetic is everything. The layout serves both.
//!
//! # The layout
//!
//! A quantised weight is `scale · q − min`, with a small unsigned integer q, and scale and min
//! shared by 16 or 32 neighbours in a row. Activations are rounded once per product to signed
//! bytes with a scale per 32 (`activations`); integers then multiply integers, and scales come
//! in once per group:
//!
//! ```text
//! y[r] = Σ over groups g of  x_unit[g] · (scale[r][g] · Σ q[r][k] · x[k])  −  min[r][g] · x_sum[g]
//! ```
//!
//! The instructions for `Σ q · x` (VPDPBUSD and its kin) add four byte products within each 32-bit
//! lane. So 16 rows are packed side by side into a *panel* (`layout`, `pack`): lane r of a
//! vector holds four consecutive columns of row r, the four activations are the same for all lanes
//! and are broadcast, and each lane gathers its own row's sum. There are no horizontal sums, the
//! scales of 16 rows are one vector, and rows that do not fill a panel are zeros that nobody
//! reads. Integers narrower than a byte lie in planes (nibbles, crumbs, bits) that unpack with a
//! shift and a mask. Every ggml type is packed without loss and without growing: a panel has
//! exactly the bytes of its 16 rows in the file, and one layout serves every machine. Packing
//! takes nothing apart: it loads 16 rows a row to a lane and moves whole planes, about as fast as
//! the system clears the pages for them.
//!
//! # The loops
//!
//! A product is cut into row blocks of two panels; each thread has a share of neighbouring ones (`pool`). Up to
//! eight tokens meet a row block while it streams from memory through registers: load, mask, multiply,
//! scale (`product`), with memory asked for ahead; each token's result is bit for bit what it is
//! alone, so that guessed tokens can be checked together. What shares its input runs as one task of
//! work: q, k and v; gate and up. Float weights take the same way in f32, and [`Cpu::exact`] takes it
//! with every type.
//!
//! Many tokens are first laid out as tiles, in the order in which they will be read, with their scales
//! beside them (`activations`). A thread draws a row-block group of row blocks and a K block of columns at a time, so
//! that 264 tokens of the K block stay in the L2 cache while the row blocks of the row-block group pass over them
//! (`product/integers`): 512 columns of a row block are unpacked into the L1 cache, then one panel by as many
//! tokens as there are registers for sums are multiplied, with every activation broadcast by the
//! instruction that multiplies it. What a feed-forward layer's first half gives is written as tiles for
//! the second, and never as floats.
//!
//! A matrix unit (`isa/amx`) multiplies 16 tokens with 16 rows in an instruction, in
//! bf16. It is so fast that everything else must happen in its shadow: 256 tokens stay in the L2
//! cache while row blocks pass by, a row block's 512 columns in the L1 cache while these tokens do, and between
//! two of its instructions the vectors unpack a little of what comes next and hand on a little of the
//! last results.
//!
//! Attention (`attention`) turns a K block of keys and values into vectors once for all queries and
//! query heads that meet it, keeps a running maximum and sum, and is split by heads, queries and
//! stretches of positions. When many queries meet a K block, it is multiplied in 16-bit integers, or in
//! bf16 by the matrix unit.
//!
//! # Levels
//!
//! All loops are generic over one trait of some forty 16-lane operations (`isa`). A file per
//! instruction set says how its machine does them; `routines` compiles the loops once for each
//! and picks at run time. Instructions that multiply matrices (AMX, aarch64's i8mm) replace the
//! products of many tokens, and leave the rest to the level below. The scalar level is the same loops
//! over plain arrays: it runs anywhere, and the test battery holds every other level against it, and all of them against plain f32.
//!
//! # Safety
//!
//! Loops check nothing: they rely on lengths that [`Cpu`]'s methods assert, on panels that only
//! [`Cpu::pack`] makes after it has checked the file's bytes against the shape, and on routines
//! that are only picked on a machine that has their instructions. Threads write disjoint parts of
//! a result through `pool::DisjointSlice`.

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

pub use attention::kv::{KvLayer, KvType};
pub use cpu::Cpu;
pub use error::{PackError, ShapeError};
pub use level::{CpuLevel, CpuLevelError};
pub use memory::reserve::{OutOfMemory, reserve};
pub use memory::stored::{Stored, read_exact_at};
pub use roofline::arithmetic::integer_rate;
pub use roofline::bandwidth::read_bandwidth;
pub use weights::block::{BlockType, Levels};
pub use weights::dequantise::dequantise;
pub use weights::matrix::Matrix;
