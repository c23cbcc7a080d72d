//! Kernels specialised for a model: the constants and flags of each operation.

use kernels::KvType;

use crate::device::limits::{COOP_ROW_PAIRS, COOP_SUBGROUPS, COOP_TOKENS, CoopMatrices};
use crate::kernel::Kernel;
use crate::plan::buffers::ActivationFormat;
use crate::plan::tiling::{
    ATTENTION_MAX_HEADS, LONG_ROW, MANY_ROWS, MAT_VEC_LONG_ROW_PAIRS, MAT_VEC_MANY_ROW_PAIRS,
    MAT_VEC_MAX_TOKENS, MAT_VEC_ROW_PAIRS, THREADS, TILE_ROW_PAIRS, TOKEN_MAX_THREADS,
    TOKEN_THREADS, VOCAB_PARTS,
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
    SwiGlu { activations: ActivationFormat },
}

/// The arithmetic of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arithmetic {
    pub(crate) activations: ActivationFormat,
    /// Cooperative matrices, for tiles of tokens.
    pub(crate) matrices: Option<CoopMatrices>,
}

impl Arithmetic {
    /// The arithmetic of a product of these weights with up to `tokens` tokens, in `matrices` if they are many.
    pub(crate) fn new<B>(
        weights: &[RowRange<'_, B>],
        tokens: usize,
        floats: bool,
        matrices: Option<CoopMatrices>,
    ) -> Arithmetic {
        let matrices = matrices.filter(|_| !floats && tokens > MAT_VEC_MAX_TOKENS);
        let integers = !floats && weights.iter().all(|rows| !rows.format().is_float());
        let activations = match matrices {
            Some(_) => ActivationFormat::F16,
            None if integers => ActivationFormat::Int8,
            None => ActivationFormat::F32,
        };
        Arithmetic {
            activations,
            matrices,
        }
    }
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

/// Adds the flag of the format of the activations `name`: x, or f, which SwiGLU makes.
fn with_activations(kernel: Kernel, name: &str, format: ActivationFormat) -> Kernel {
    let [int8, f16] = if name == "x" {
        ["x_DOT4", "x_HALF"]
    } else {
        ["f_DOT4", "f_HALF"]
    };
    kernel
        .flag(int8, format == ActivationFormat::Int8)
        .flag(f16, format == ActivationFormat::F16)
}

/// x ← norm(source).
pub(crate) fn rms_norm(shape: &Shape, activations: ActivationFormat) -> Kernel {
    let kernel = kernel("rms_norm", shape.embedding);
    with_activations(kernel, "x", activations).float("EPS", shape.eps)
}

/// x ← attended, from its chunks.
pub(crate) fn merge(shape: &Shape, activations: ActivationFormat) -> Kernel {
    let kernel = kernel("attention_merge", shape.q_width());
    with_heads(with_activations(kernel, "x", activations), shape)
}

/// Attention of `tokens` tokens to each chunk of the KV cache.
pub(crate) fn attention(shape: &Shape, kv: KvType, tokens: usize, max_threads: usize) -> Kernel {
    let threads = if tokens == 1 {
        TOKEN_THREADS.min(max_threads)
    } else {
        THREADS
    };
    let kernel = kernel_with_threads("attention", threads, shape.q_width())
        .number("SHARED", heads_per_workgroup(shape))
        .number("TOKENS", tokens)
        .number("ROWS", tokens * heads_per_workgroup(shape));
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

/// Pairs of rows and invocations of a workgroup of the matrix–vector kernel.
fn mat_vec_block(
    epilogue: FusedEpilogue,
    rows: usize,
    cols: usize,
    tokens: usize,
    max_threads: usize,
) -> (usize, usize) {
    let (pairs, threads) = match epilogue {
        FusedEpilogue::SwiGlu { .. } => (TILE_ROW_PAIRS, TOKEN_THREADS),
        _ if rows >= MANY_ROWS => (MAT_VEC_MANY_ROW_PAIRS, THREADS),
        _ if cols >= LONG_ROW => (MAT_VEC_LONG_ROW_PAIRS, TOKEN_MAX_THREADS),
        _ => (MAT_VEC_ROW_PAIRS, TOKEN_MAX_THREADS),
    };
    let threads = if tokens == 1 { threads } else { THREADS };
    (pairs, threads.min(max_threads))
}

/// Weights times activations of up to `tokens` tokens, with prologue and epilogue, and the number of workgroups.
pub(crate) fn product<B>(
    shape: &Shape,
    weights: &[RowRange<'_, B>],
    arithmetic: Arithmetic,
    tokens: usize,
    prologue: FusedPrologue,
    epilogue: FusedEpilogue,
    max_threads: usize,
) -> (Kernel, usize) {
    let rows: usize = weights.iter().map(|rows| rows.part.rows).sum();
    let Arithmetic {
        activations,
        matrices,
    } = arithmetic;
    let all_pairs = match epilogue {
        FusedEpilogue::SwiGlu { .. } => rows / 2,
        _ => rows.div_ceil(2),
    };
    let (file, pairs, threads) = match matrices {
        Some(matrices) => ("mat_mul_coop", COOP_ROW_PAIRS, matrices.threads()),
        None if tokens > MAT_VEC_MAX_TOKENS => ("mat_mul", TILE_ROW_PAIRS, THREADS),
        None => {
            let cols = weights[0].matrix.cols;
            let (pairs, threads) = mat_vec_block(epilogue, rows, cols, tokens, max_threads);
            ("mat_vec", pairs, threads)
        }
    };
    let kernel = kernel_with_threads(file, threads, weights[0].matrix.cols)
        .flag("NORM", prologue == FusedPrologue::RmsNorm)
        .flag("MERGE", prologue == FusedPrologue::MergeChunks)
        .flag("x_STAGED", prologue != FusedPrologue::None)
        .number("PAIRS", pairs)
        .number("ALL_PAIRS", all_pairs)
        .number("ALL_ROWS", rows)
        .float("EPS", shape.eps);
    let kernel = with_activations(kernel, "x", activations);
    let mut kernel = with_weights(with_heads(kernel, shape), weights);
    if let Some(CoopMatrices { edge, paired, .. }) = matrices {
        let [row_subgroups, token_subgroups] = COOP_SUBGROUPS;
        kernel = kernel
            .flag("EDGE_8", edge == 8)
            .flag("PAIRED", paired)
            .number("ROW_SUBGROUPS", row_subgroups)
            .number("TOKEN_SUBGROUPS", token_subgroups)
            .number("ROW_EDGES", 2 * COOP_ROW_PAIRS / row_subgroups / edge)
            .number("TOKEN_EDGES", COOP_TOKENS / token_subgroups / edge);
    } else if tokens <= MAT_VEC_MAX_TOKENS {
        // The smallest subgroups have four invocations.
        kernel = kernel
            .number("COLUMNS", tokens)
            .number("PARTIALS", pairs.max(threads / 4));
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
        FusedEpilogue::SwiGlu { activations } => {
            kernel.epilogue = "epilogue_swiglu";
            with_activations(kernel, "f", activations)
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
