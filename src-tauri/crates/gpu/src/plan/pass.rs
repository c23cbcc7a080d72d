//! A pass as plain data: kernels bound to buffers, and how often each runs.

use crate::exec::executor::Dispatch;

/// How many workgroups an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// So many.
    Fixed(usize),
    /// One a token.
    Tokens,
    /// So many for each tile of tokens.
    Tiles(usize),
    /// So many for each chunk of the cache and every few tokens.
    Chunks { heads: usize, tokens: usize },
}

/// When an operation is part of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// The cache has few chunks: who reads the partial results merges them.
    FewChunks,
    /// The cache has many chunks.
    ManyChunks,
}

/// Tokens, and positions of the cache, that a kernel takes at a time.
pub(crate) const TILE: usize = 64;
/// Chunks that a reader merges by itself.
const FEW: usize = 4;

/// A kernel with its place in the pass.
pub(crate) struct Op<B> {
    pub(crate) bound: B,
    /// What it does, for measurements.
    pub(crate) what: &'static str,
    /// Bytes of weights that it reads.
    pub(crate) bytes: u64,
    pub(crate) grid: Grid,
    pub(crate) when: When,
}

/// Operations in their order.
pub(crate) type Plan<B> = Vec<Op<B>>;

/// What differs from pass to pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PassParams {
    /// Positions in the cache before.
    pub(crate) past: usize,
    /// New tokens.
    pub(crate) tokens: usize,
    /// The token whose logits are wanted, where one is.
    pub(crate) column: usize,
    /// Positions of a chunk, and the number of chunks.
    pub(crate) chunk: usize,
    pub(crate) chunks: usize,
    /// What picks a token, where one is chosen.
    pub(crate) noise: f32,
}

impl PassParams {
    /// A pass over `tokens` new tokens, the cache parted into at most `most` chunks of whole tiles.
    pub(crate) fn new(past: usize, tokens: usize, most: usize) -> PassParams {
        let positions = past + tokens;
        let chunk = positions.div_ceil(most).next_multiple_of(TILE);
        PassParams {
            past,
            tokens,
            column: 0,
            chunk,
            chunks: positions.div_ceil(chunk),
            noise: 0.0,
        }
    }

    /// Whether an operation is part of this pass.
    pub(crate) fn has<B>(&self, op: &Op<B>) -> bool {
        match op.when {
            When::Always => true,
            When::FewChunks => self.chunks <= FEW,
            When::ManyChunks => self.chunks > FEW,
        }
    }

    /// The dispatches of `plan` in this pass.
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
            self.noise.to_bits(),
            self.tokens as u32,
        ];
        for op in plan.iter().filter(|op| self.has(op)) {
            let groups = match op.grid {
                Grid::Fixed(groups) => [groups, 1, 1],
                Grid::Tokens => [self.tokens, 1, 1],
                Grid::Tiles(groups) => [groups, self.tokens.div_ceil(TILE), 1],
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
    fn chunks_cover_the_cache_and_are_few() {
        for (past, tokens) in [(0, 1), (63, 1), (64, 1), (2047, 1), (2048, 8), (65_535, 1)] {
            let pass = PassParams::new(past, tokens, 32);
            assert!(pass.chunks <= 32 && pass.chunks * pass.chunk >= past + tokens);
            assert!((pass.chunks - 1) * pass.chunk < past + tokens);
        }
    }

    #[test]
    fn who_merges_follows_from_the_chunks() {
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
