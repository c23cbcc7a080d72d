//! The forward pass on the CPU, top to bottom.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use gpu::Layer;
use kernels::{Cpu, CpuLevel, KvType};

use crate::model::activations::{Activations, CosSin, Operations};
use crate::model::config::Config;
use crate::model::error::DeviceError;
use crate::model::evaluate::{Cache, Evaluate, Pass, PassSlot, Want, cache_of, check_slots};
use crate::model::kv_cache::KvCache;
use crate::model::rope::Rotation;
use crate::model::weights::{self, CpuWeights, WeightSource};
use crate::open_error::OpenError;

/// A model on the CPU.
pub struct CpuModel {
    config: Config,
    operations: Operations,
    weights: CpuWeights,
    rotation: Rotation,
    kv: KvType,
    chunk: usize,
    block: usize,
    buffers: Buffers,
}

/// A sequence in a pass on the CPU.
pub struct CpuSlot<'a> {
    /// The cache, to which the pass appends.
    pub cache: &'a mut KvCache,
    /// The next tokens.
    pub ids: &'a [u32],
    /// The positions whose logits are computed.
    pub want: Want,
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
    /// Makes a model with sequences of this type of keys and values. `chunk` is the most tokens of one pass.
    ///
    /// # Errors
    /// Fails if there is no memory for scratch.
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

    /// Makes an empty cache.
    pub fn empty_cache(&self) -> KvCache {
        let shape = &self.config.shape;
        KvCache::new(self.kv, shape.layers, shape.kv_heads, shape.head_dim)
    }

    /// Checks the tokens of a pass.
    ///
    /// # Errors
    /// Same as [`check_slots`].
    pub fn check(&self, slots: &[PassSlot<'_>]) -> Result<(), DeviceError> {
        check_slots(slots, self.chunk, self.config.shape.vocab)
    }

    /// Runs the tokens of a checked sequence and returns the residual stream after the layers, `[m, E]`; `None` when cancelled.
    ///
    /// # Errors
    /// Returns the device's error; the cache is then unchanged.
    pub fn residual(
        &mut self,
        slot: CpuSlot<'_>,
        cancel: &AtomicBool,
    ) -> Result<Option<&[f32]>, DeviceError> {
        let want = Want::All;
        let mut slots = [CpuSlot { want, ..slot }];
        let pass = self.run_layers(&mut slots, cancel);
        let complete = commit(&mut slots, pass)? == Pass::Complete;
        Ok(complete.then_some(self.buffers.x.get()))
    }

    /// The forward pass. The rows of all slots go through one product with each weight.
    fn run(
        &mut self,
        slots: &mut [CpuSlot<'_>],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        if self.run_layers(slots, cancel)? == Pass::Cancelled {
            return Ok(Pass::Cancelled);
        }
        if slots.iter().any(|slot| slot.want != Want::Nothing) {
            let (ops, s, eps) = (&self.operations, &mut self.buffers, self.config.shape.eps);
            ops.rms_norm(&s.x, &self.weights.output_norm, eps, &mut s.h); // [wanted, E]
            ops.logits(&s.h, self.weights.head(), logits)?; // [wanted, V]
        }
        Ok(Pass::Complete)
    }

    /// x ← the embedding, then layer after layer; after the last attention only the rows whose logits are wanted.
    fn run_layers(
        &mut self,
        slots: &mut [CpuSlot<'_>],
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let CpuModel {
            config,
            operations: ops,
            weights,
            rotation,
            block,
            buffers: s,
            ..
        } = self;
        let (eps, head_dim) = (config.shape.eps, config.shape.head_dim);
        let is_cancelled = || cancel.load(Ordering::Relaxed);

        ops.embed(
            &weights.token_embd,
            slots.iter().map(|slot| slot.ids),
            &mut s.x,
        ); // [m, E]
        let positions = slots
            .iter()
            .map(|slot| (slot.cache.positions(), slot.ids.len()));
        s.at.fill(rotation, positions);
        let (rows, wanted) = rows(slots);

        for (i, layer) in weights.layers.iter().enumerate() {
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
            for (slot, rows) in slots.iter_mut().zip(&rows) {
                let kv = &mut slot.cache.layers()[i];
                ops.attention([&s.q, &s.k, &s.v], rows, kv, *block, &mut s.a)?; // [m, H]
            }
            if i + 1 == config.shape.layers {
                // The caches are complete: the rest is computed only for the rows whose logits are wanted.
                if wanted.is_empty() {
                    return Ok(Pass::Complete);
                }
                s.x.keep(&wanted); // [wanted, E]
                s.a.keep(&wanted); // [wanted, H]
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

/// Returns the rows of each slot in a pass, and those whose logits are wanted.
fn rows(slots: &[CpuSlot<'_>]) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let mut end = 0;
    let rows: Vec<Range<usize>> = slots
        .iter()
        .map(|slot| {
            let start = end;
            end += slot.ids.len();
            start..end
        })
        .collect();
    let wanted = slots.iter().zip(&rows).filter_map(|(slot, rows)| {
        let first = match slot.want {
            Want::Nothing => return None,
            Want::Last => rows.end - 1,
            Want::All => rows.start,
        };
        Some(first..rows.end)
    });
    let wanted = wanted.collect();
    (rows, wanted)
}

/// Commits the keys and values of a complete pass, or removes those that an incomplete one left in some layers.
fn commit(slots: &mut [CpuSlot<'_>], pass: Result<Pass, DeviceError>) -> Result<Pass, DeviceError> {
    for slot in slots {
        match pass {
            Ok(Pass::Complete) => slot.cache.commit(slot.ids.len()),
            Ok(Pass::Cancelled) | Err(_) => slot.cache.truncate(slot.cache.positions()),
        }
    }
    pass
}

impl Evaluate for CpuModel {
    fn new_cache(&mut self) -> Result<Box<dyn Cache>, DeviceError> {
        Ok(Box::new(self.empty_cache()))
    }

    fn forward(
        &mut self,
        slots: &mut [PassSlot<'_>],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        self.check(slots)?;
        let slots = slots.iter_mut().map(|slot| {
            Ok(CpuSlot {
                cache: cache_of(slot.cache)?,
                ids: slot.ids,
                want: slot.want,
            })
        });
        let mut slots = slots.collect::<Result<Vec<_>, DeviceError>>()?;
        let pass = self.run(&mut slots, cancel, logits);
        commit(&mut slots, pass)
    }

    fn chunk(&self) -> usize {
        self.chunk
    }

    fn block(&self) -> Option<usize> {
        Some(self.block.max(KvCache::SEGMENT))
    }

    fn batch_limit(&self) -> usize {
        Cpu::BATCH_INVARIANT_MAX
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

    /// The tiny model with sequences of this type.
    fn tiny(cpu: Cpu, kv: KvType) -> CpuModel {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
        let gguf = Gguf::open(&fixture).expect("the fixture is committed");
        let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
        CpuModel::load(&config, cpu, &gguf, kv, 64, &mut |_| {}).expect("it loads")
    }

    fn ids(seed: usize, count: usize) -> Vec<u32> {
        let id = |at| (seed * 31 + at * 7) % 500;
        (0..count)
            .map(|at| u32::try_from(id(at)).expect("an id"))
            .collect()
    }

    /// Three sequences with keys and values of different lengths.
    fn sequences(model: &mut CpuModel) -> Vec<Box<dyn Cache>> {
        let never = AtomicBool::new(false);
        let sequence = |(seed, count)| {
            let mut cache = model.new_cache().expect("memory");
            for ids in ids(seed, count).chunks(64) {
                let slot = PassSlot {
                    cache: &mut *cache,
                    ids,
                    want: Want::Nothing,
                };
                let pass = model.forward(&mut [slot], &never, &mut Vec::new());
                assert_eq!(pass.expect("it runs"), Pass::Complete);
            }
            cache
        };
        [(1, 5), (2, 40), (3, 140)].map(sequence).into()
    }

    /// The keys and values, bit for bit.
    fn bits(cache: &mut dyn Cache) -> (usize, Vec<u8>) {
        let positions = cache.positions();
        let kv = cache.in_host_memory().expect("on the CPU");
        let whole = positions / KvCache::SEGMENT * KvCache::SEGMENT;
        (positions, kv.block(0, whole).expect("memory"))
    }

    #[test]
    fn sequences_in_one_pass_have_the_bits_of_passes_by_themselves() {
        let levels = CpuLevel::available().into_iter().map(Some);
        let never = AtomicBool::new(false);
        for level in levels.chain([None]) {
            for kv in [KvType::F16, KvType::Q8_0] {
                let cpu = level.map_or_else(|| Cpu::exact(2), |level| Cpu::new(2, level));
                let mut model = tiny(cpu, kv);
                let (mut alone, mut together) = (sequences(&mut model), sequences(&mut model));
                // A draft that is verified, a prompt that is read, and a token that is decoded.
                let inputs = [(3, Want::All), (4, Want::Nothing), (1, Want::Last)];
                for round in 0..40 {
                    let inputs = inputs.map(|(count, want)| (ids(round, count), want));
                    let mut expected = Vec::new();
                    for (cache, (ids, want)) in alone.iter_mut().zip(&inputs) {
                        let mut logits = Vec::new();
                        let slot = PassSlot {
                            cache: &mut **cache,
                            ids,
                            want: *want,
                        };
                        let pass = model.forward(&mut [slot], &never, &mut logits);
                        assert_eq!(pass.expect("it runs"), Pass::Complete);
                        expected.append(&mut logits);
                    }
                    let slots = together.iter_mut().zip(&inputs);
                    let slots = slots.map(|(cache, (ids, want))| PassSlot {
                        cache: &mut **cache,
                        ids,
                        want: *want,
                    });
                    let mut logits = Vec::new();
                    let pass = model.forward(&mut slots.collect::<Vec<_>>(), &never, &mut logits);
                    assert_eq!(pass.expect("it runs"), Pass::Complete);
                    assert_eq!(logits, expected, "{level:?} {kv:?} {round}");
                }
                for (alone, together) in alone.iter_mut().zip(&mut together) {
                    assert!(
                        bits(&mut **alone) == bits(&mut **together),
                        "{level:?} {kv:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_pass_that_is_cancelled_or_refused_changes_no_sequence() {
        let mut model = tiny(Cpu::new(2, CpuLevel::best()), KvType::F16);
        let mut caches = sequences(&mut model);
        let before: Vec<_> = caches.iter_mut().map(|cache| bits(&mut **cache)).collect();
        let unknown = u32::MAX;
        for (ids, cancel) in [(vec![1, 2], true), (vec![unknown], false), (vec![], false)] {
            let slots = caches.iter_mut().map(|cache| PassSlot {
                cache: &mut **cache,
                ids: &ids,
                want: Want::Last,
            });
            let cancel = AtomicBool::new(cancel);
            let mut slots = slots.collect::<Vec<_>>();
            let pass = model.forward(&mut slots, &cancel, &mut Vec::new());
            assert!(!matches!(pass, Ok(Pass::Complete)), "{ids:?}");
            let after: Vec<_> = caches.iter_mut().map(|cache| bits(&mut **cache)).collect();
            assert!(before == after, "{ids:?}");
        }
    }

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
