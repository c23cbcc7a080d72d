//! The forward pass on the CPU, top to bottom.

use std::sync::atomic::{AtomicBool, Ordering};

use gpu::Layer;
use kernels::{Cpu, CpuLevel, KvType};

use crate::model::activations::{Activations, CosSin, Operations};
use crate::model::config::Config;
use crate::model::error::DeviceError;
use crate::model::evaluate::{Evaluate, Pass, Want, check_ids};
use crate::model::kv_cache::KvCache;
use crate::model::rope::Rotation;
use crate::model::weights::{self, CpuWeights, WeightSource};
use crate::open_error::OpenError;

/// A model on the CPU, with the cache of one sequence.
pub struct CpuModel {
    config: Config,
    operations: Operations,
    weights: CpuWeights,
    rotation: Rotation,
    kv: KvCache,
    chunk: usize,
    block: usize,
    buffers: Buffers,
}

/// Activations, allocated once for the largest chunk.
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
    at: CosSin,
}

impl CpuModel {
    /// A model with an empty cache. `chunk` is the most tokens of one pass.
    ///
    /// # Errors
    /// Fails if there is no memory for cache or scratch.
    pub fn new(
        config: Config,
        cpu: Cpu,
        weights: CpuWeights,
        kv: KvType,
        chunk: usize,
    ) -> Result<CpuModel, DeviceError> {
        let rows = |cols| Activations::new(chunk, cols);
        let (e, h, k) = (
            config.shape.embedding,
            config.shape.q_width(),
            config.shape.kv_width(),
        );
        let buffers = Buffers {
            x: rows(e)?,
            h: rows(e)?,
            q: rows(h)?,
            k: rows(k)?,
            v: rows(k)?,
            a: rows(h)?,
            at: CosSin::default(),
        };
        let kv = KvCache::new(
            kv,
            config.shape.layers,
            config.shape.kv_heads,
            config.shape.head_dim,
        );
        let rotation = Rotation::new(&config.rope, config.shape.rotary);
        Ok(CpuModel {
            block: cpu_block(&config).min(chunk),
            config,
            operations: Operations(cpu),
            weights,
            rotation,
            kv,
            chunk,
            buffers,
        })
    }

    /// Loads the weights from `source`; `progress` is called with the part that is done.
    ///
    /// # Errors
    /// Fails if a tensor is missing or misshapen, or out of memory.
    pub fn load(
        config: &Config,
        cpu: Cpu,
        source: &dyn WeightSource,
        kv: KvType,
        chunk: usize,
        progress: &mut dyn FnMut(f32),
    ) -> Result<CpuModel, OpenError> {
        let weights = weights::load(&cpu, source, config, progress)?;
        Ok(CpuModel::new(config.clone(), cpu, weights, kv, chunk)?)
    }

    #[cfg(test)]
    pub fn with_block(mut self, block: usize) -> Self {
        self.block = block;
        self
    }

    /// Positions in the cache.
    pub fn positions(&self) -> usize {
        self.kv.len()
    }

    /// Runs `ids` as [`Evaluate::append`] does and returns the residual stream after the layers, `[m, E]`; `None` when
    /// cancelled.
    ///
    /// # Errors
    /// Returns the device's error; the cache is then unchanged.
    pub fn residual(
        &mut self,
        ids: &[u32],
        cancel: &AtomicBool,
    ) -> Result<Option<&[f32]>, DeviceError> {
        check_ids(ids, self.chunk, self.config.shape.vocab)?;
        let pass = self.run_layers(ids, Want::All, cancel);
        let complete = self.commit(ids.len(), pass)? == Pass::Complete;
        Ok(complete.then_some(self.buffers.x.get()))
    }

    /// Commits the keys and values of a complete pass over this number of tokens, or removes those that an incomplete one
    /// left in some layers.
    fn commit(
        &mut self,
        tokens: usize,
        pass: Result<Pass, DeviceError>,
    ) -> Result<Pass, DeviceError> {
        match pass {
            Ok(Pass::Complete) => self.kv.commit(tokens),
            Ok(Pass::Cancelled) | Err(_) => self.kv.truncate(self.kv.len()),
        }
        pass
    }

    /// The forward pass.
    fn run(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        if self.run_layers(ids, want, cancel)? == Pass::Cancelled {
            return Ok(Pass::Cancelled);
        }
        if want != Want::Nothing {
            let (ops, s, eps) = (&self.operations, &mut self.buffers, self.config.shape.eps);
            ops.rms_norm(&s.x, &self.weights.output_norm, eps, &mut s.h); // [wanted, E]
            ops.logits(&s.h, self.weights.head(), logits)?; // [wanted, V]
        }
        Ok(Pass::Complete)
    }

    /// x ← the embedding, then layer after layer; after the last attention only the rows whose logits are wanted.
    fn run_layers(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let CpuModel {
            config,
            operations: ops,
            weights,
            rotation,
            kv,
            block,
            buffers: s,
            ..
        } = self;
        let (eps, head_dim) = (config.shape.eps, config.shape.head_dim);
        let is_cancelled = || cancel.load(Ordering::Relaxed);

        ops.embed(&weights.token_embd, ids, &mut s.x); // [m, E]
        s.at.fill(rotation, kv.len(), ids.len());

        for (i, (layer, kv)) in weights.layers.iter().zip(kv.layers()).enumerate() {
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
            if is_cancelled() {
                return Ok(Pass::Cancelled);
            }
            ops.rms_norm(&s.x, &layer.attn_norm, eps, &mut s.h); // [m, E]
            ops.qkv(
                &s.h,
                [attn_q, attn_k, attn_v],
                [&mut s.q, &mut s.k, &mut s.v],
            )?; // [m, H], [m, K], [m, K]
            if let Some([q, k, v]) = &layer.qkv_bias {
                ops.add_bias(&mut s.q, q);
                ops.add_bias(&mut s.k, k);
                ops.add_bias(&mut s.v, v);
            }
            if let Some([q, k]) = &layer.head_norms {
                ops.head_norm(&mut s.q, q, eps);
                ops.head_norm(&mut s.k, k, eps);
            }
            if config.shape.rotates(i) {
                ops.rope(&mut s.q, head_dim, &s.at);
                ops.rope(&mut s.k, head_dim, &s.at);
            }
            ops.attention(&s.q, &s.k, &s.v, kv, *block, &mut s.a)?; // [m, H]
            if i + 1 == config.shape.layers {
                // The cache is complete: the rest is computed only for the rows whose logits are wanted.
                let first = match want {
                    Want::Nothing => return Ok(Pass::Complete),
                    Want::Last => ids.len() - 1,
                    Want::All => 0,
                };
                if first > 0 {
                    ops.rows_from(&s.x, first, &mut s.h);
                    ops.rows_from(&s.a, first, &mut s.q);
                    std::mem::swap(&mut s.x, &mut s.h); // [wanted, E]
                    std::mem::swap(&mut s.a, &mut s.q); // [wanted, H]
                }
            }
            ops.product_add(&s.a, attn_output, &mut s.x)?; // [m, E]

            if is_cancelled() {
                return Ok(Pass::Cancelled);
            }
            ops.rms_norm(&s.x, &layer.ffn_norm, eps, &mut s.h); // [m, E]
            ops.feed_forward(&s.h, [ffn_gate, ffn_up, ffn_down], &mut s.x)?; // [m, E]
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
        check_ids(ids, self.chunk, self.config.shape.vocab)?;
        let pass = self.run(ids, want, cancel, logits);
        self.commit(ids.len(), pass)
    }

    fn truncate(&mut self, len: usize) {
        self.kv.truncate(len);
    }

    fn chunk(&self) -> usize {
        self.chunk
    }

    fn block(&self) -> usize {
        self.block
    }

    fn batch_limit(&self) -> usize {
        Cpu::BATCH_INVARIANT_MAX
    }

    fn kv_bytes(&self) -> usize {
        self.kv.bytes()
    }

    fn kv_cache(&mut self) -> Option<&mut KvCache> {
        Some(&mut self.kv)
    }
}

/// Tokens per pass on the CPU, at most.
pub const MAX_CPU_CHUNK: usize = 512;

/// Tokens of a block on the CPU: enough to reuse every weight that is read, yet few enough that Stop takes effect
/// within a layer, and that few tokens remain behind the last whole block, which is the unit of storage. It depends on
/// the model only, so that answers do not depend on the machine's speed.
pub fn cpu_block(config: &Config) -> usize {
    const PRODUCTS_PER_LAYER: usize = 12_000_000_000;
    let layer = config.products_per_token() as usize / config.shape.layers;
    let fits = (PRODUCTS_PER_LAYER / layer).clamp(32, MAX_CPU_CHUNK);
    1 << fits.ilog2()
}

/// Tokens per pass on the CPU: a block, or two at the levels that are fast enough.
pub fn cpu_chunk(config: &Config, level: CpuLevel) -> usize {
    let blocks = match level {
        CpuLevel::AvxVnni | CpuLevel::Avx512 | CpuLevel::Amx => 2,
        _ => 1,
    };
    (blocks * cpu_block(config)).min(MAX_CPU_CHUNK)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::gguf::Gguf;

    #[test]
    fn a_pass_on_the_cpu_has_a_number_of_tokens_that_fits_the_model() {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
        let gguf = Gguf::open(&fixture).expect("the fixture is committed");
        let tiny = Config::from_gguf(&gguf).expect("a SmolLM3 file");
        let small = Config::smollm3_3b();
        // Queries and attention output, keys and values, and three matrices of the feed-forward network.
        let layer = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 11_008;
        assert_eq!(small.products_per_token(), 36 * layer);
        assert_eq!(cpu_block(&small), 128);
        assert_eq!(cpu_chunk(&small, CpuLevel::Avx2), 128);
        assert_eq!(cpu_chunk(&small, CpuLevel::Amx), 256);
        assert_eq!(cpu_block(&tiny), MAX_CPU_CHUNK);
        assert_eq!(cpu_chunk(&tiny, CpuLevel::Amx), MAX_CPU_CHUNK);
        let mut huge = small;
        huge.shape.embedding = 1 << 15;
        huge.shape.feed_forward = 1 << 17;
        assert_eq!(cpu_block(&huge), 32);
    }
}
