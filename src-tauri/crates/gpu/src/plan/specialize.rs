//! The kernels of a model, by what they compute, with the constants that its dimensions set.

use kernels::KvType;

use crate::exec::executor::CoopMatrices;
use crate::kernel::Kernel;
use crate::model::Shape;
use crate::weights::format::{GROUP, WeightFormat};
use crate::weights::matrix::{GpuMatrix, MatrixPart};

/// Invocations of a workgroup.
const THREADS: usize = 128;
/// Pairs of rows that a workgroup computes.
const PAIRS: usize = 8;
/// Tokens up to which every row is read once for all of them; more are computed in tiles.
pub(crate) const FEW: usize = 8;
/// Pairs of a gate's row and up's row: whole groups, because what follows quantises them. A tile has as many.
const GATE_PAIRS: usize = 32;
/// Subgroups that share a tile of cooperative matrices, and rows and tokens that each of them has.
pub(crate) const SHARERS: usize = 4;
const SHARE: usize = 32;
/// Query heads that a workgroup attends for at most.
const MOST_SHARED: usize = 8;

/// What a product does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FusedPrologue {
    /// None: the activations are stored.
    None,
    /// RMS norm of the residual stream.
    RmsNorm,
    /// Merge of attention's chunks.
    MergeChunks,
}

/// What a product does with its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FusedEpilogue {
    /// Stores the sums, or adds them to what is there.
    Store {
        stride: usize,
        first: usize,
        add: bool,
    },
    /// RoPE of queries and keys; keys and values go into the KV cache.
    RopeStoreKv { kv: KvType, rotated: bool },
    /// silu(gate) ⊙ up.
    SwiGlu { dot4: bool },
}

/// How products are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arithmetic {
    /// Activations are integers.
    pub(crate) dot4: bool,
    /// Many tokens are multiplied in these.
    pub(crate) matrices: Option<CoopMatrices>,
}

/// A part of a matrix for a kernel.
pub(crate) struct RowRange<'a, B> {
    matrix: &'a GpuMatrix<B>,
    part: &'a MatrixPart<B>,
}

impl<'a, B> RowRange<'a, B> {
    /// A matrix that is in one part.
    pub(crate) fn whole(matrix: &'a GpuMatrix<B>) -> RowRange<'a, B> {
        RowRange {
            matrix,
            part: &matrix.parts[0],
        }
    }

    /// The parts of a matrix.
    pub(crate) fn parts(matrix: &'a GpuMatrix<B>) -> impl Iterator<Item = RowRange<'a, B>> {
        matrix
            .parts
            .iter()
            .map(move |part| RowRange { matrix, part })
    }

    pub(crate) fn buffer(&self) -> &'a B {
        &self.part.buffer
    }

    /// The first row of the part.
    pub(crate) fn first(&self) -> usize {
        self.part.first
    }

    /// Bytes of the weights.
    pub(crate) fn bytes(&self) -> u64 {
        self.matrix.format.bytes(self.part.rows, self.matrix.cols)
    }

    pub(crate) fn format(&self) -> WeightFormat {
        self.matrix.format
    }
}

const ROWS: [&str; 3] = ["ROWS0", "ROWS1", "ROWS2"];
const ALL: [&str; 3] = ["ALL0", "ALL1", "ALL2"];

fn kernel(file: &'static str, cols: usize) -> Kernel {
    kernel_of(file, THREADS, cols)
}

fn kernel_of(file: &'static str, threads: usize, cols: usize) -> Kernel {
    Kernel::new(file)
        .number("THREADS", threads)
        .number("GROUPS", cols / GROUP)
}

fn with_weights<B>(mut kernel: Kernel, weights: &[RowRange<'_, B>]) -> Kernel {
    for (index, rows) in weights.iter().enumerate() {
        kernel.weights.push(rows.matrix.format);
        kernel = kernel
            .number(ROWS[index], rows.part.rows)
            .number(ALL[index], rows.part.rows * rows.matrix.cols / GROUP);
    }
    kernel
}

/// target ← rows of the table.
pub(crate) fn embed<B>(rows: RowRange<'_, B>) -> Kernel {
    let kernel = kernel("embed", rows.matrix.cols).number("FIRST", rows.part.first);
    with_weights(kernel, &[rows])
}

/// x ← norm(source).
pub(crate) fn activate(shape: &Shape, dot4: bool) -> Kernel {
    kernel("activate", shape.embedding)
        .flag("x_DOT4", dot4)
        .float("EPS", shape.eps)
}

/// x ← attended, from its chunks.
pub(crate) fn merge(shape: &Shape, dot4: bool) -> Kernel {
    heads(kernel("merge", shape.q_width()), shape).flag("x_DOT4", dot4)
}

/// Partial sums of attention for every few tokens.
pub(crate) fn attend(shape: &Shape, kv: KvType, tokens: usize) -> Kernel {
    let kernel = kernel("attend", shape.q_width())
        .number("SHARED", shared(shape))
        .number("TOKENS", tokens);
    cached(heads(kernel, shape), kv).number("KV_HEADS", shape.kv_heads)
}

/// Query heads that share a key head and are computed by one workgroup.
pub(crate) fn shared(shape: &Shape) -> usize {
    let ratio = shape.heads / shape.kv_heads;
    (1..=MOST_SHARED.min(ratio))
        .rev()
        .find(|n| ratio.is_multiple_of(*n))
        .unwrap_or(1)
}

/// Rotation and cache of q, k and v that lie one behind the other.
pub(crate) fn place(shape: &Shape, kv: KvType, rotated: bool) -> Kernel {
    cached(heads(kernel("place", shape.embedding), shape), kv)
        .flag("ROTATED", rotated)
        .number("ROTARY", shape.rotary)
        .number("Q_WIDTH", shape.q_width())
        .number("KV_WIDTH", shape.kv_width())
}

/// Weights times activations of `columns` tokens, with what precedes and follows, and its number of workgroups.
pub(crate) fn product<B>(
    shape: &Shape,
    weights: &[RowRange<'_, B>],
    arithmetic: Arithmetic,
    columns: usize,
    before: FusedPrologue,
    after: FusedEpilogue,
) -> (Kernel, usize) {
    let rows: usize = weights.iter().map(|rows| rows.part.rows).sum();
    let Arithmetic { dot4, matrices } = arithmetic;
    let tiled = columns > FEW;
    let matrices = matrices.filter(|_| tiled);
    let (all_pairs, pairs) = match after {
        FusedEpilogue::SwiGlu { .. } => (rows / 2, GATE_PAIRS),
        _ if tiled => (rows.div_ceil(2), GATE_PAIRS),
        FusedEpilogue::Store { .. } | FusedEpilogue::RopeStoreKv { .. } => {
            (rows.div_ceil(2), PAIRS)
        }
    };
    let file = match (tiled, matrices) {
        (false, _) => "product",
        (true, None) => "tile",
        (true, Some(_)) => "coop",
    };
    let threads = matrices.map_or(THREADS, |it| SHARERS * it.subgroup);
    let kernel = kernel_of(file, threads, weights[0].matrix.cols)
        .flag("NORM", before == FusedPrologue::RmsNorm)
        .flag("MERGE", before == FusedPrologue::MergeChunks)
        .flag("x_STAGED", before != FusedPrologue::None)
        .flag("x_DOT4", dot4)
        .number("PAIRS", pairs)
        .number("ALL_PAIRS", all_pairs)
        .number("ALL_ROWS", rows)
        .float("EPS", shape.eps);
    let mut kernel = with_weights(heads(kernel, shape), weights);
    if !tiled {
        kernel = kernel.number("COLUMNS", columns);
    }
    if let Some(CoopMatrices { edge, paired, .. }) = matrices {
        kernel = kernel.flag("EDGE_8", edge == 8).flag("PAIRED", paired);
        kernel.each = SHARE / edge;
    }
    kernel = match after {
        FusedEpilogue::Store { stride, first, add } => {
            kernel.after = "after_rows";
            kernel
                .flag("THREE", weights.len() == 3)
                .flag("ADD", add)
                .number("STRIDE", stride)
                .number("FIRST", first)
        }
        FusedEpilogue::RopeStoreKv { kv, rotated } => {
            kernel.after = "after_place";
            cached(kernel, kv)
                .flag("ROTATED", rotated)
                .number("ROTARY", shape.rotary)
        }
        FusedEpilogue::SwiGlu { dot4 } => {
            kernel.after = "after_gate";
            kernel.flag("f_DOT4", dot4)
        }
    };
    (kernel, all_pairs.div_ceil(pairs))
}

/// Parts of the vocabulary that are surveyed side by side.
pub(crate) const PARTS: usize = 64;

fn vocabulary(kernel: Kernel, shape: &Shape) -> Kernel {
    kernel
        .number("VOCAB", shape.vocab)
        .number("SLICE", shape.vocab.div_ceil(PARTS))
        .number("PARTS", PARTS)
}

/// What each part of the logits holds.
pub(crate) fn survey(shape: &Shape) -> Kernel {
    vocabulary(kernel("survey", shape.embedding), shape)
}

/// Chooses a token and, where the table is in one part, embeds it.
pub(crate) fn choose<B>(shape: &Shape, table: Option<RowRange<'_, B>>) -> Kernel {
    let kernel = kernel("choose", shape.embedding).flag("EMBED", table.is_some());
    vocabulary(with_weights(kernel, table.as_slice()), shape)
}

fn heads(kernel: Kernel, shape: &Shape) -> Kernel {
    kernel
        .number("HEADS", shape.heads)
        .number("HEAD_DIM", shape.head_dim)
}

/// With the flag that says how keys and values are kept.
fn cached(kernel: Kernel, kv: KvType) -> Kernel {
    kernel
        .flag("KV_F32", kv == KvType::F32)
        .flag("KV_F16", kv == KvType::F16)
}
