//! SmolLM3's forward pass on the CPU, top to bottom.

use std::sync::atomic::{AtomicBool, Ordering};

use kernels::{Cpu, KvLayer, KvType};

use crate::model::activations::{Activations, Angles, Operations};
use crate::model::config::Config;
use crate::model::error::DeviceError;
use crate::model::evaluate::{Evaluate, Pass, Want, check_ids};
use crate::model::rope::Rotation;
use crate::model::weights::{CpuWeights, Layer};

/// A model on the CPU, with the cache of one sequence.
pub struct CpuModel {
    config: Config,
    operations: Operations,
    weights: CpuWeights,
    rotation: Rotation,
    kv: Vec<KvLayer>,
    /// Positions in the cache.
    len: usize,
    chunk: usize,
    buffers: Buffers,
}

/// Activations, made once for the largest chunk.
struct Buffers {
    /// `[m, E]` the residual stream
    x: Activations,
    /// `[m, E]` normed
    h: Activations,
    /// `[m, H]`
    q: Activations,
    /// `[m, K]`
    k: Activations,
    /// `[m, K]`
    v: Activations,
    /// `[m, H]` attended
    a: Activations,
    at: Angles,
}

impl CpuModel {
    /// A model with an empty cache. `chunk` is the most tokens of one pass.
    ///
    /// # Errors
    /// When the device has no room for cache or scratch.
    pub fn new(
        config: Config,
        cpu: Cpu,
        weights: CpuWeights,
        kv: KvType,
        chunk: usize,
    ) -> Result<CpuModel, DeviceError> {
        let rows = |cols| Activations::new(chunk, cols);
        let (e, h, k) = (config.embedding, config.q_width(), config.kv_width());
        let buffers = Buffers {
            x: rows(e)?,
            h: rows(e)?,
            q: rows(h)?,
            k: rows(k)?,
            v: rows(k)?,
            a: rows(h)?,
            at: Angles::default(),
        };
        let layer = |_| KvLayer::new(kv, config.kv_heads, config.head_dim);
        let kv = (0..config.layers).map(layer).collect();
        let rotation = Rotation::new(&config.rope);
        Ok(CpuModel {
            config,
            operations: Operations(cpu),
            weights,
            rotation,
            kv,
            len: 0,
            chunk,
            buffers,
        })
    }

    /// Positions in the cache.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Runs `ids` as [`Evaluate::append`] does and returns the residual stream after the blocks, `[m, E]`; `None` when
    /// cancelled.
    ///
    /// # Errors
    /// When the device fails; the cache is then as it was before.
    pub fn residual(
        &mut self,
        ids: &[u32],
        cancel: &AtomicBool,
    ) -> Result<Option<&[f32]>, DeviceError> {
        check_ids(ids, self.chunk, self.config.vocab)?;
        let pass = self.blocks(ids, Want::All, cancel);
        let complete = self.commit(ids.len(), pass)? == Pass::Complete;
        Ok(complete.then_some(self.buffers.x.get()))
    }

    /// Takes over the keys and values of a pass over this number of tokens, or removes those that one without an end
    /// left in some blocks.
    fn commit(
        &mut self,
        tokens: usize,
        pass: Result<Pass, DeviceError>,
    ) -> Result<Pass, DeviceError> {
        match pass {
            Ok(Pass::Complete) => self.len += tokens,
            Ok(Pass::Cancelled) | Err(_) => self.truncate(self.len),
        }
        pass
    }

    /// The pass itself.
    fn run(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        if self.blocks(ids, want, cancel)? == Pass::Cancelled {
            return Ok(Pass::Cancelled);
        }
        if want != Want::Nothing {
            let (b, s, eps) = (&self.operations, &mut self.buffers, self.config.eps);
            b.rms_norm(&s.x, &self.weights.output_norm, eps, &mut s.h); // [wanted, E]
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
    ) -> Result<Pass, DeviceError> {
        let CpuModel {
            config,
            operations: b,
            weights,
            rotation,
            kv,
            buffers: s,
            ..
        } = self;
        let (eps, head_dim) = (config.eps, config.head_dim);
        let stop = || cancel.load(Ordering::Relaxed);

        b.embed(&weights.token_embd, ids, &mut s.x); // [m, E]
        s.at.fill(rotation, self.len, ids.len());

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
            b.rms_norm(&s.x, &layer.attn_norm, eps, &mut s.h); // [m, E]
            b.qkv(
                &s.h,
                [attn_q, attn_k, attn_v],
                [&mut s.q, &mut s.k, &mut s.v],
            )?; // [m, H], [m, K], [m, K]
            if config.rotates(i) {
                b.rope(&mut s.q, head_dim, &s.at);
                b.rope(&mut s.k, head_dim, &s.at);
            }
            b.attention(&s.q, &s.k, &s.v, kv, &mut s.a)?; // [m, H]
            if i + 1 == config.layers {
                // The cache is complete: from here on only the rows whose logits are wanted count.
                let first = match want {
                    Want::Nothing => return Ok(Pass::Complete),
                    Want::Last => ids.len() - 1,
                    Want::All => 0,
                };
                if first > 0 {
                    b.rows_from(&s.x, first, &mut s.h);
                    b.rows_from(&s.a, first, &mut s.q);
                    std::mem::swap(&mut s.x, &mut s.h); // [wanted, E]
                    std::mem::swap(&mut s.a, &mut s.q); // [wanted, H]
                }
            }
            b.product_add(&s.a, attn_output, &mut s.x)?; // [m, E]

            if stop() {
                return Ok(Pass::Cancelled);
            }
            b.rms_norm(&s.x, &layer.ffn_norm, eps, &mut s.h); // [m, E]
            b.feed_forward(&s.h, [ffn_gate, ffn_up, ffn_down], &mut s.x)?; // [m, E]
        }
        Ok(Pass::Complete)
    }
}

impl Evaluate for CpuModel {
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        check_ids(ids, self.chunk, self.config.vocab)?;
        let pass = self.run(ids, want, cancel, logits);
        self.commit(ids.len(), pass)
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        for kv in &mut self.kv {
            kv.truncate(self.len);
        }
    }

    fn chunk(&self) -> usize {
        self.chunk
    }

    fn batch_limit(&self) -> usize {
        Cpu::FEW
    }

    fn kv_bytes(&self) -> usize {
        self.kv.iter().map(KvLayer::bytes).sum()
    }
}
