//! The plans of a model: one set of kernels for each size of pass.

use crate::plan::pass::Plan;

/// The plans of a model, by the number of tokens in a pass.
pub(crate) struct ModelPlans<B> {
    /// One token.
    pub(crate) decode: PassPlans<B>,
    /// 2 to [`MAT_VEC_MAX_TOKENS`](crate::plan::tiling::MAT_VEC_MAX_TOKENS).
    pub(crate) small_batch: PassPlans<B>,
    /// More.
    pub(crate) prefill: PassPlans<B>,
}

/// The parts of a pass.
pub(crate) struct PassPlans<B> {
    /// x ← the tokens' embeddings.
    pub(crate) embed: Plan<B>,
    /// One per layer.
    pub(crate) layers: Vec<Plan<B>>,
    /// Logits of one token.
    pub(crate) last: Plan<B>,
    /// The output norm of all tokens.
    pub(crate) normed: Plan<B>,
    /// Logits of a batch of normed tokens.
    pub(crate) head: Plan<B>,
    /// Sampling of the next token.
    pub(crate) sample: Plan<B>,
}

impl<B> PassPlans<B> {
    /// A pass over one token with sampling of the next; `embed` is set if the token is not embedded yet.
    pub(crate) fn token(&self, embed: bool) -> impl Iterator<Item = &Plan<B>> {
        let embed = embed.then_some(&self.embed);
        let layers = embed.into_iter().chain(&self.layers);
        layers.chain([&self.last, &self.sample])
    }
}
