//! Plans as data: kernels bound to buffers, and the workgroups of each.

use crate::exec::executor::Dispatch;
use crate::plan::tiling::{FUSED_MERGE_MAX_CHUNKS, TILE_TOKENS};

/// The workgroups of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// A fixed number.
    Fixed(usize),
    /// One per token.
    Tokens,
    /// `groups` for each tile of `tokens` tokens.
    Tiles { groups: usize, tokens: usize },
    /// `heads` for each chunk of the KV cache and every `tokens` tokens.
    Chunks { heads: usize, tokens: usize },
}

/// The passes that an operation is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// Those with few chunks of the KV cache: the consumer merges them in its prologue.
    FewChunks,
    /// Those with many chunks: a separate kernel merges them.
    ManyChunks,
}

/// A bound kernel of a plan.
pub(crate) struct Op<B> {
    pub(crate) bound: B,
    /// Name of the operation in profiles.
    pub(crate) what: &'static str,
    /// Weights that it reads, in bytes.
    pub(crate) bytes: u64,
    pub(crate) grid: Grid,
    pub(crate) when: When,
}

/// Operations in the order of execution.
pub(crate) type Plan<B> = Vec<Op<B>>;

/// The parameters of a pass; its kernels get them as immediates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PassParams {
    /// Positions in the KV cache before the pass.
    pub(crate) past: usize,
    /// New tokens.
    pub(crate) tokens: usize,
    /// Index of the first token whose logits are computed.
    pub(crate) column: usize,
    /// Positions of a chunk of the KV cache, whole tiles.
    pub(crate) chunk: usize,
    /// Chunks.
    pub(crate) chunks: usize,
    /// Uniform draw of the sampler, in 0..1.
    pub(crate) u: f32,
}

impl PassParams {
    /// A pass over `tokens` new tokens that splits the KV cache into at most `max_chunks` chunks.
    pub(crate) fn new(past: usize, tokens: usize, max_chunks: usize) -> PassParams {
        let positions = past + tokens;
        let chunk = positions.div_ceil(max_chunks).next_multiple_of(TILE_TOKENS);
        PassParams {
            past,
            tokens,
            column: 0,
            chunk,
            chunks: positions.div_ceil(chunk),
            u: 0.0,
        }
    }

    /// Returns true if an operation is part of this pass.
    pub(crate) fn includes<B>(&self, op: &Op<B>) -> bool {
        match op.when {
            When::Always => true,
            When::FewChunks => self.chunks <= FUSED_MERGE_MAX_CHUNKS,
            When::ManyChunks => self.chunks > FUSED_MERGE_MAX_CHUNKS,
        }
    }

    /// Appends the dispatches of `plan` in this pass.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "positions and workgroups are counted in u32"
    )]
    pub(crate) fn record<'a, B>(&self, plan: &'a Plan<B>, out: &mut Vec<Dispatch<'a, B>>) {
        let step = [self.past, self.column, self.chunk, self.chunks].map(|n| n as u32);
        let [past, column, chunk, chunks] = step;
        let step = [
            past,
            column,
            chunk,
            chunks,
            self.u.to_bits(),
            self.tokens as u32,
        ];
        for op in plan.iter().filter(|op| self.includes(op)) {
            let groups = match op.grid {
                Grid::Fixed(groups) => [groups, 1, 1],
                Grid::Tokens => [self.tokens, 1, 1],
                Grid::Tiles { groups, tokens } => [groups, self.tokens.div_ceil(tokens), 1],
                Grid::Chunks { heads, tokens } => {
                    [heads, self.chunks, self.tokens.div_ceil(tokens)]
                }
            };
            out.push(Dispatch {
                bound: &op.bound,
                groups: groups.map(|n| n as u32),
                step,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_cache_within_the_maximum() {
        for (past, tokens) in [(0, 1), (63, 1), (64, 1), (2047, 1), (2048, 8), (65_535, 1)] {
            let pass = PassParams::new(past, tokens, 32);
            assert!(pass.chunks <= 32 && pass.chunks * pass.chunk >= past + tokens);
            assert!((pass.chunks - 1) * pass.chunk < past + tokens);
        }
    }

    #[test]
    fn many_chunks_are_merged_by_a_kernel_of_their_own() {
        let op = |bound, when| Op {
            bound,
            what: "attend",
            bytes: 0,
            grid: Grid::Chunks {
                heads: 2,
                tokens: 1,
            },
            when,
        };
        let plan = vec![
            op('a', When::Always),
            op('f', When::FewChunks),
            op('m', When::ManyChunks),
        ];
        let kinds = |past| {
            let mut out = Vec::new();
            PassParams::new(past, 1, 32).record(&plan, &mut out);
            out.iter()
                .map(|dispatch| *dispatch.bound)
                .collect::<String>()
        };
        assert_eq!(kinds(0), "af");
        assert_eq!(kinds(255), "af");
        assert_eq!(kinds(256), "am");
    }
}
