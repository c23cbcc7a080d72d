//! The input of a pass, and the logits that it returns.

/// Input of a pass.
#[derive(Clone, Copy, Debug)]
pub enum PassInput<'a> {
    /// Token ids.
    Ids(&'a [u32]),
    /// `[tokens, E]` the residual stream of earlier layers, which run on another device.
    Rows(&'a [f32]),
}

impl<'a> PassInput<'a> {
    /// Number of tokens; `width` is that of the residual stream.
    pub(crate) fn tokens(self, width: usize) -> usize {
        match self {
            PassInput::Ids(ids) => ids.len(),
            PassInput::Rows(rows) => rows.len() / width,
        }
    }

    /// The first `tokens` tokens, and the others.
    pub(crate) fn split_at(self, tokens: usize, width: usize) -> (PassInput<'a>, PassInput<'a>) {
        match self {
            PassInput::Ids(ids) => {
                let (now, later) = ids.split_at(tokens);
                (PassInput::Ids(now), PassInput::Ids(later))
            }
            PassInput::Rows(rows) => {
                let (now, later) = rows.split_at(tokens * width);
                (PassInput::Rows(now), PassInput::Rows(later))
            }
        }
    }
}

/// Positions whose logits a pass returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// None: the tokens only go into the KV cache.
    Nothing,
    /// The last position.
    Last,
    /// Every position.
    All,
}
