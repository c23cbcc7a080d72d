//! Kernels specialised for a model: the constants and flags of each operation.

use kernels::KvType;

use crate::device::limits::{COOP_SUBGROUPS, CoopMatrices};
use crate::kernel::Kernel;
use crate::plan::tiling::{
    ATTENTION_MAX_HEADS, COOP_SUBGROUP_TILE, MAT_VEC_MAX_TOKENS, MAT_VEC_ROW_PAIRS, THREADS,
    TILE_ROW_PAIRS, VOCAB_PARTS,
};
use crate::shape::Shape;
use crate::weight_format::{GROUP, WeightFormat};
use crate::weights::matrix::{GpuMatrix, MatrixPart};

/// The prologue of a product, which makes its activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FusedPrologue {
    /// None: the activations are stored.
    None,
    /// RMS norm of the residual stream.
    RmsNorm,
    /// Merge of attention's chunks.
    MergeChunks,
}

/// The epilogue of a product, which processes its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FusedEpilogue {
    /// Stores the sums, or adds them to the present values.
    Store {
        stride: usize,
        first: usize,
        add: bool,
    },
    /// RoPE of queries and keys; keys and values go into the KV cache.
    RopeStoreKv { kv: KvType, rotates: bool },
    /// silu(gate) ⊙ up.
    SwiGlu { dot4: bool },
}

/// The arithmetic of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arithmetic {
    /// Activations are int8.
    pub(crate) dot4: bool,
    /// Cooperative matrices, for tiles of tokens.
    pub(crate) matrices: Option<CoopMatrices>,
}

/// The rows of a matrix that one kernel binds.
pub(crate) struct RowRange<'a, B> {
    matrix: &'a GpuMatrix<B>,
    part: &'a MatrixPart<B>,
}

impl<'a, B> RowRange<'a, B> {
    /// All rows of a matrix in one part.
    pub(crate) fn whole(matrix: &'a GpuMatrix<B>) -> RowRange<'a, B> {
        RowRange {
            matrix,
            part: &matrix.parts[0],
        }
    }

    /// The rows of each part of a matrix.
    pub(crate) fn parts(matrix: &'a GpuMatrix<B>) -> impl Iterator<Item = RowRange<'a, B>> {
        matrix
            .parts
            .iter()
            .map(move |part| RowRange { matrix, part })
    }

    pub(crate) fn buffer(&self) -> &'a B {
        &self.part.buffer
    }

    /// Index of the first row.
    pub(crate) fn first(&self) -> usize {
        self.part.first
    }

    /// Size of the weights, in bytes.
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
    kernel_with_threads(file, THREADS, cols)
}

fn kernel_with_threads(file: &'static str, threads: usize, cols: usize) -> Kernel {
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

/// x ← the tokens' rows of the table.
pub(crate) fn embed<B>(rows: RowRange<'_, B>) -> Kernel {
    let kernel = kernel("embed", rows.matrix.cols).number("FIRST", rows.part.first);
    with_weights(kernel, &[rows])
}

/// x ← norm(source).
pub(crate) fn rms_norm(shape: &Shape, dot4: bool) -> Kernel {
    kernel("rms_norm", shape.embedding)
        .flag("x_DOT4", dot4)
        .float("EPS", shape.eps)
}

/// x ← attended, from its chunks.
pub(crate) fn merge(shape: &Shape, dot4: bool) -> Kernel {
    with_heads(kernel("attention_merge", shape.q_width()), shape).flag("x_DOT4", dot4)
}

/// Attention of `tokens` tokens to each chunk of the KV cache.
pub(crate) fn attention(shape: &Shape, kv: KvType, tokens: usize) -> Kernel {
    let kernel = kernel("attention", shape.q_width())
        .number("SHARED", heads_per_workgroup(shape))
        .number("TOKENS", tokens);
    with_kv_type(with_heads(kernel, shape), kv).number("KV_HEADS", shape.kv_heads)
}

/// Query heads of one workgroup of attention; they share a key head.
pub(crate) fn heads_per_workgroup(shape: &Shape) -> usize {
    let ratio = shape.heads / shape.kv_heads;
    (1..=ATTENTION_MAX_HEADS.min(ratio))
        .rev()
        .find(|n| ratio.is_multiple_of(*n))
        .unwrap_or(1)
}

/// Biases of rows `[q, k, v]`, and norms of each head of q and k.
pub(crate) fn qkv_bias_norm(shape: &Shape, bias: bool, head_norms: bool) -> Kernel {
    with_heads(kernel("qkv_bias_norm", shape.embedding), shape)
        .number("KV_HEADS", shape.kv_heads)
        .flag("BIAS", bias)
        .flag("HEAD_NORMS", head_norms)
        .float("EPS", shape.eps)
}

/// RoPE of rows `[q, k, v]`; keys and values into the KV cache.
pub(crate) fn rope_store_kv(shape: &Shape, kv: KvType, rotates: bool) -> Kernel {
    with_kv_type(
        with_heads(kernel("rope_store_kv", shape.embedding), shape),
        kv,
    )
    .flag("ROTATED", rotates)
    .number("ROTARY", shape.rotary)
    .number("Q_WIDTH", shape.q_width())
    .number("KV_WIDTH", shape.kv_width())
}

/// Weights times activations of up to `tokens` tokens, with prologue and epilogue, and the number of workgroups.
pub(crate) fn product<B>(
    shape: &Shape,
    weights: &[RowRange<'_, B>],
    arithmetic: Arithmetic,
    tokens: usize,
    prologue: FusedPrologue,
    epilogue: FusedEpilogue,
) -> (Kernel, usize) {
    let rows: usize = weights.iter().map(|rows| rows.part.rows).sum();
    let Arithmetic { dot4, matrices } = arithmetic;
    let tiled = tokens > MAT_VEC_MAX_TOKENS;
    let matrices = matrices.filter(|_| tiled);
    let (all_pairs, pairs) = match epilogue {
        FusedEpilogue::SwiGlu { .. } => (rows / 2, TILE_ROW_PAIRS),
        _ if tiled => (rows.div_ceil(2), TILE_ROW_PAIRS),
        FusedEpilogue::Store { .. } | FusedEpilogue::RopeStoreKv { .. } => {
            (rows.div_ceil(2), MAT_VEC_ROW_PAIRS)
        }
    };
    let file = match (tiled, matrices) {
        (false, _) => "mat_vec",
        (true, None) => "mat_mul",
        (true, Some(_)) => "mat_mul_coop",
    };
    let threads = matrices.map_or(THREADS, |it| COOP_SUBGROUPS * it.subgroup);
    let kernel = kernel_with_threads(file, threads, weights[0].matrix.cols)
        .flag("NORM", prologue == FusedPrologue::RmsNorm)
        .flag("MERGE", prologue == FusedPrologue::MergeChunks)
        .flag("x_STAGED", prologue != FusedPrologue::None)
        .flag("x_DOT4", dot4)
        .number("PAIRS", pairs)
        .number("ALL_PAIRS", all_pairs)
        .number("ALL_ROWS", rows)
        .float("EPS", shape.eps);
    let mut kernel = with_weights(with_heads(kernel, shape), weights);
    if !tiled {
        kernel = kernel.number("COLUMNS", tokens);
    }
    if let Some(CoopMatrices { edge, paired, .. }) = matrices {
        kernel = kernel.flag("EDGE_8", edge == 8).flag("PAIRED", paired);
        kernel.each = COOP_SUBGROUP_TILE / edge;
    }
    kernel = match epilogue {
        FusedEpilogue::Store { stride, first, add } => {
            kernel.epilogue = "epilogue_store";
            kernel
                .flag("THREE", weights.len() == 3)
                .flag("ADD", add)
                .number("STRIDE", stride)
                .number("FIRST", first)
        }
        FusedEpilogue::RopeStoreKv { kv, rotates } => {
            kernel.epilogue = "epilogue_rope_store_kv";
            with_kv_type(kernel, kv)
                .flag("ROTATED", rotates)
                .number("ROTARY", shape.rotary)
        }
        FusedEpilogue::SwiGlu { dot4 } => {
            kernel.epilogue = "epilogue_swiglu";
            kernel.flag("f_DOT4", dot4)
        }
    };
    (kernel, all_pairs.div_ceil(pairs))
}

fn with_vocab(kernel: Kernel, shape: &Shape) -> Kernel {
    kernel
        .number("VOCAB", shape.vocab)
        .number("SLICE", shape.vocab.div_ceil(VOCAB_PARTS))
        .number("PARTS", VOCAB_PARTS)
}

/// Statistics of each part of the logits.
pub(crate) fn sample_reduce(shape: &Shape) -> Kernel {
    with_vocab(kernel("sample_reduce", shape.embedding), shape)
}

/// Samples a token and, if the table is in one part, embeds it.
pub(crate) fn sample<B>(shape: &Shape, table: Option<RowRange<'_, B>>) -> Kernel {
    let kernel = kernel("sample", shape.embedding).flag("EMBED", table.is_some());
    with_vocab(with_weights(kernel, table.as_slice()), shape)
}

fn with_heads(kernel: Kernel, shape: &Shape) -> Kernel {
    kernel
        .number("HEADS", shape.heads)
        .number("HEAD_DIM", shape.head_dim)
}

/// Adds the flag of the KV cache's type.
fn with_kv_type(kernel: Kernel, kv: KvType) -> Kernel {
    kernel
        .flag("KV_F32", kv == KvType::F32)
        .flag("KV_F16", kv == KvType::F16)
}
