//! SmolLM3's forward pass, top to bottom, on any backend.

use std::sync::atomic::{AtomicBool, Ordering};

use kernels::KvType;

use crate::model::backend::{Backend, BackendError};
use crate::model::config::Config;
use crate::model::rope::Rotation;
use crate::model::weights::{Layer, Weights};
use crate::run::sampler::Sampling;

/// Which positions' logits are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing: the tokens only go into the cache.
    Nothing,
    /// The last position's.
    Last,
    /// Every position's.
    All,
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pass {
    /// The tokens are in the cache and the logits are there.
    Complete,
    /// It was told to stop; the cache is as it was before.
    Cancelled,
}

/// What a token costs on a GPU.
pub struct Profile {
    /// By what is done.
    pub kernels: Vec<gpu::KernelCost>,
    /// Bytes that the device reads from its memory in a second, where it tells the time.
    pub bandwidth: Option<f64>,
}

/// What the rest of the engine sees of a loaded model, whichever backend it is on.
pub trait Evaluate: Send {
    /// Runs `ids` behind what the cache holds. At most [`Evaluate::chunk`] tokens at once.
    ///
    /// # Errors
    /// When the device fails; the cache is then as it was before.
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, BackendError>;
    /// Forgets all but the first `len` positions.
    fn truncate(&mut self, len: usize);
    /// Most tokens that one pass takes.
    fn chunk(&self) -> usize;
    /// Tokens up to which a pass gives bit for bit what passes over each of them give.
    fn few(&self) -> usize {
        1
    }
    /// Memory that the cache holds, in bytes.
    fn kv_bytes(&self) -> usize;
    /// Why the model is no longer on the device that it was loaded on.
    fn failed(&self) -> Option<&str> {
        None
    }
    /// What a token costs on a GPU; the cache is as before.
    ///
    /// # Errors
    /// When the device fails.
    fn profile(&mut self) -> Result<Option<Profile>, BackendError> {
        Ok(None)
    }
    /// The device's own choice of tokens, where it has one.
    fn chooser(&mut self) -> Option<&mut dyn Choose> {
        None
    }
}

/// A device that chooses tokens itself. It is asked for a token while the pass after it runs already, so that it
/// never waits for the host.
pub trait Choose {
    /// Sets how tokens are chosen, and which never are; false where the device cannot choose so.
    ///
    /// # Errors
    /// When the device fails.
    fn sample(&mut self, sampling: &Sampling, suppressed: &[u32]) -> Result<bool, BackendError>;
    /// Starts a pass over `id`, or else over the token that the pass before chooses; `noise` in 0..1 picks what
    /// follows.
    ///
    /// # Errors
    /// When the device fails.
    fn follow(&mut self, id: Option<u32>, noise: f64) -> Result<(), BackendError>;
    /// Passes whose choice has not been asked for.
    fn ahead(&mut self) -> usize;
    /// Waits for the first of these; `None` where the host has to choose.
    ///
    /// # Errors
    /// When the device fails.
    fn chosen(&mut self) -> Result<Option<u32>, BackendError>;
}

/// Whether a pass can take these tokens.
pub(crate) fn check_ids(ids: &[u32], chunk: usize, vocab: usize) -> Result<(), BackendError> {
    if ids.is_empty() || ids.len() > chunk {
        return Err(BackendError::Failed(format!(
            "a pass takes 1 to {chunk} tokens, not {}",
            ids.len()
        )));
    }
    match ids.iter().find(|&&id| id as usize >= vocab) {
        Some(id) => Err(BackendError::Failed(format!(
            "token {id} is not in the vocabulary"
        ))),
        None => Ok(()),
    }
}

/// A model on a device, with the cache of one sequence.
pub struct Model<B: Backend> {
    config: Config,
    backend: B,
    weights: Weights<B>,
    rotation: Rotation,
    kv: Vec<B::KvLayer>,
    /// Positions in the cache.
    len: usize,
    chunk: usize,
    scratch: Scratch<B>,
}

/// Activations, made once for the largest chunk.
struct Scratch<B: Backend> {
    /// `[m, E]` the residual stream
    x: B::Rows,
    /// `[m, E]` normed
    h: B::Rows,
    /// `[m, H]`
    q: B::Rows,
    /// `[m, K]`
    k: B::Rows,
    /// `[m, K]`
    v: B::Rows,
    /// `[m, H]` attended
    a: B::Rows,
    at: B::Positions,
}

impl<B: Backend> Model<B> {
    /// A model with an empty cache. `chunk` is the most tokens that one pass takes.
    ///
    /// # Errors
    /// When the device has no room for cache or scratch.
    pub fn new(
        config: Config,
        backend: B,
        weights: Weights<B>,
        kv: KvType,
        chunk: usize,
    ) -> Result<Model<B>, BackendError> {
        let rows = |cols| backend.rows(chunk, cols);
        let (e, h, k) = (config.embedding, config.q_width(), config.kv_width());
        let scratch = Scratch {
            x: rows(e)?,
            h: rows(e)?,
            q: rows(h)?,
            k: rows(k)?,
            v: rows(k)?,
            a: rows(h)?,
            at: backend.positions()?,
        };
        let layer = |_| backend.kv_layer(kv, config.kv_heads, config.head_dim);
        let kv = (0..config.layers).map(layer).collect::<Result<_, _>>()?;
        let rotation = Rotation::new(&config.rope);
        Ok(Model {
            config,
            backend,
            weights,
            rotation,
            kv,
            len: 0,
            chunk,
            scratch,
        })
    }

    /// Positions in the cache.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Runs `ids` as [`Evaluate::append`] does and gives what the blocks make of them `[m, E]`; `None` when it was told
    /// to stop.
    ///
    /// # Errors
    /// When the device fails; the cache is then as it was before.
    pub fn residual(
        &mut self,
        ids: &[u32],
        cancel: &AtomicBool,
    ) -> Result<Option<&B::Rows>, BackendError> {
        check_ids(ids, self.chunk, self.config.vocab)?;
        let pass = self.blocks(ids, Want::All, cancel);
        let complete = self.book(ids.len(), pass)? == Pass::Complete;
        Ok(complete.then_some(&self.scratch.x))
    }

    /// A pass over so many tokens has ended so. `Cancelled` and errors leave keys of some blocks behind.
    fn book(
        &mut self,
        tokens: usize,
        pass: Result<Pass, BackendError>,
    ) -> Result<Pass, BackendError> {
        match pass {
            Ok(Pass::Complete) => self.len += tokens,
            Ok(Pass::Cancelled) | Err(_) => self.cut(self.len),
        }
        pass
    }

    /// Forgets all but the first `len` positions.
    pub fn cut(&mut self, len: usize) {
        self.len = self.len.min(len);
        for kv in &mut self.kv {
            self.backend.truncate(kv, self.len);
        }
    }

    /// The pass itself.
    fn run(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, BackendError> {
        if self.blocks(ids, want, cancel)? == Pass::Cancelled {
            return Ok(Pass::Cancelled);
        }
        if want != Want::Nothing {
            let (b, s, eps) = (&self.backend, &mut self.scratch, self.config.eps);
            b.rms_norm(&s.x, &self.weights.output_norm, eps, &mut s.h)?; // [wanted, E]
            b.logits(&s.h, self.weights.head(), logits)?; // [wanted, V]
        }
        Ok(Pass::Complete)
    }

    /// x ← the embedding, then block after block; in the end only the rows whose logits are wanted.
    fn blocks(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
    ) -> Result<Pass, BackendError> {
        let Model {
            config,
            backend: b,
            weights,
            rotation,
            kv,
            scratch: s,
            ..
        } = self;
        let (eps, head_dim) = (config.eps, config.head_dim);
        let stop = || cancel.load(Ordering::Relaxed);

        b.embed(&weights.token_embd, ids, &mut s.x)?; // [m, E]
        b.place(rotation, self.len, ids.len(), &mut s.at)?;

        for (i, (layer, kv)) in weights.layers.iter().zip(kv).enumerate() {
            let Layer {
                attn_q,
                attn_k,
                attn_v,
                attn_output,
                ..
            } = layer;
            let Layer {
                ffn_gate,
                ffn_up,
                ffn_down,
                ..
            } = layer;
            if stop() {
                return Ok(Pass::Cancelled);
            }
            b.rms_norm(&s.x, &layer.attn_norm, eps, &mut s.h)?; // [m, E]
            b.qkv(
                &s.h,
                [attn_q, attn_k, attn_v],
                [&mut s.q, &mut s.k, &mut s.v],
            )?; // [m, H], [m, K], [m, K]
            if config.rotates(i) {
                b.rope(&mut s.q, head_dim, &s.at)?;
                b.rope(&mut s.k, head_dim, &s.at)?;
            }
            b.attention(&s.q, &s.k, &s.v, kv, &s.at, &mut s.a)?; // [m, H]
            if i + 1 == config.layers {
                // The cache is complete: from here on only the rows whose logits are wanted count.
                let first = match want {
                    Want::Nothing => return Ok(Pass::Complete),
                    Want::Last => ids.len() - 1,
                    Want::All => 0,
                };
                if first > 0 {
                    b.rows_from(&s.x, first, &mut s.h)?;
                    b.rows_from(&s.a, first, &mut s.q)?;
                    std::mem::swap(&mut s.x, &mut s.h); // [wanted, E]
                    std::mem::swap(&mut s.a, &mut s.q); // [wanted, H]
                }
            }
            b.product_add(&s.a, attn_output, &mut s.x)?; // [m, E]

            if stop() {
                return Ok(Pass::Cancelled);
            }
            b.rms_norm(&s.x, &layer.ffn_norm, eps, &mut s.h)?; // [m, E]
            b.feed_forward(&s.h, [ffn_gate, ffn_up, ffn_down], &mut s.x)?; // [m, E]
        }
        Ok(Pass::Complete)
    }
}

impl<B> Evaluate for Model<B>
where
    B: Backend<Matrix: Send, Norm: Send, Rows: Send, Positions: Send, KvLayer: Send> + Send,
{
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, BackendError> {
        check_ids(ids, self.chunk, self.config.vocab)?;
        let pass = self.run(ids, want, cancel, logits);
        self.book(ids.len(), pass)
    }

    fn truncate(&mut self, len: usize) {
        self.cut(len);
    }

    fn chunk(&self) -> usize {
        self.chunk
    }

    fn few(&self) -> usize {
        B::FEW
    }

    fn kv_bytes(&self) -> usize {
        self.kv.iter().map(|kv| self.backend.kv_bytes(kv)).sum()
    }
}
