//! The forward pass, top to bottom, as fused operations: five per layer for one token.

use kernels::KvType;

use crate::device::limits::COOP_TOKENS;
use crate::error::GpuError;
use crate::exec::executor::Executor;
use crate::kernel::Kernel;
use crate::plan::buffers::{ActivationBuffers, ActivationFormat, PassBuffers};
use crate::plan::kv_cache::GpuKvCache;
use crate::plan::options::Options;
use crate::plan::pass::{Grid, Op, Plan, When};
use crate::plan::specialize::{self, Arithmetic, FusedEpilogue, FusedPrologue, RowRange};
use crate::plan::tiling::{ATTENTION_ROWS, MAT_VEC_MAX_TOKENS, TILE_TOKENS, VOCAB_PARTS};
use crate::shape::Shape;
use crate::weights::matrix::{GpuLayer, GpuMatrix, GpuNorm, GpuWeights};

/// Builds the plans of a pass over up to `tokens` tokens.
pub(crate) struct PlanBuilder<'a, E: Executor> {
    pub(crate) exec: &'a mut E,
    pub(crate) shape: &'a Shape,
    /// Index in the model of the first layer on the device.
    pub(crate) first_layer: usize,
    pub(crate) options: Options,
    pub(crate) buffers: &'a PassBuffers<E::Buffer>,
    pub(crate) cache: &'a GpuKvCache<E::Buffer>,
    pub(crate) tokens: usize,
    pub(crate) ops: Plan<E::BoundKernel>,
}

/// Source of a product's activations.
enum ActivationSource<'a, B> {
    /// RMS norm of the residual stream.
    RmsNorm(&'a GpuNorm<B>),
    /// The chunks of attention, to be merged.
    Chunks,
    /// A buffer.
    Stored(&'a ActivationBuffers<B>),
}

/// Target of a product's results.
enum ResultTarget<'a, B> {
    /// Columns `first..` of rows of `stride` values; added to the present values or stored.
    Rows {
        y: &'a B,
        stride: usize,
        first: usize,
        add: bool,
    },
    /// q, k, v of the layer with this index on the device.
    Qkv(usize),
    /// silu(gate) ⊙ up.
    SwiGlu { activations: ActivationFormat },
}

impl<'a, E: Executor> PlanBuilder<'a, E> {
    /// Takes the operations so far.
    pub(crate) fn take(&mut self) -> Plan<E::BoundKernel> {
        std::mem::take(&mut self.ops)
    }

    /// x ← the tokens' embeddings.
    pub(crate) fn embed(&mut self, table: &'a GpuMatrix<E::Buffer>) -> Result<(), GpuError> {
        for rows in RowRange::parts(table) {
            let buffers = [rows.buffer(), &self.buffers.tokens, &self.buffers.x];
            let kernel = specialize::embed(rows);
            self.op("embed", &kernel, &buffers, Grid::Tokens, When::Always)?;
        }
        Ok(())
    }

    /// A layer: five operations for one token.
    pub(crate) fn layer(
        &mut self,
        index: usize,
        layer: &'a GpuLayer<E::Buffer>,
    ) -> Result<(), GpuError> {
        self.attention_input(index, layer)?;
        self.attention(index)?;
        self.attention_output(&layer.attn_output)?;
        self.feed_forward(layer)
    }

    fn rotates(&self, index: usize) -> bool {
        self.shape.rotates(self.first_layer + index)
    }

    /// q, k, v ← products of norm(x); biases, norms and RoPE of q and k; k and v into the KV cache.
    fn attention_input(
        &mut self,
        index: usize,
        layer: &'a GpuLayer<E::Buffer>,
    ) -> Result<(), GpuError> {
        let buffers = self.buffers;
        let weights = [&layer.attn_q, &layer.attn_k, &layer.attn_v].map(RowRange::whole);
        let source = ActivationSource::RmsNorm(&layer.attn_norm);
        let is_plain = layer.qkv_bias.is_none() && layer.head_norms.is_none();
        if self.tokens == 1 && self.cache.ty() != KvType::Q8_0 && is_plain {
            let target = ResultTarget::Qkv(index);
            return self.product("q, k, v", &weights, source, target, When::Always);
        }
        let target = ResultTarget::Rows {
            y: &buffers.qkv,
            stride: self.shape.q_width() + 2 * self.shape.kv_width(),
            first: 0,
            add: false,
        };
        self.product("q, k, v", &weights, source, target, When::Always)?;
        if !is_plain {
            self.bias_and_norm(layer)?;
        }
        let rotates = self.rotates(index);
        let kernel = specialize::rope_store_kv(self.shape, self.options.kv, rotates);
        let mut bindings = vec![&buffers.qkv, &buffers.queries];
        if rotates {
            bindings.push(&self.cache.rotation);
        }
        bindings.extend(self.cache.layer(index).buffers());
        self.op("rope, kv", &kernel, &bindings, Grid::Tokens, When::Always)
    }

    /// q, k, v ← q, k, v with their biases, each head of q and k normed.
    fn bias_and_norm(&mut self, layer: &'a GpuLayer<E::Buffer>) -> Result<(), GpuError> {
        let (bias, norms) = (layer.qkv_bias.as_ref(), layer.head_norms.as_ref());
        let kernel = specialize::qkv_bias_norm(self.shape, bias.is_some(), norms.is_some());
        let mut bindings = vec![&self.buffers.qkv];
        bindings.extend(bias.into_iter().flatten().map(GpuNorm::buffer));
        bindings.extend(norms.into_iter().flatten().map(GpuNorm::buffer));
        self.op("bias, norm", &kernel, &bindings, Grid::Tokens, When::Always)
    }

    fn attention(&mut self, index: usize) -> Result<(), GpuError> {
        let shared = specialize::heads_per_workgroup(self.shape);
        let tokens = if self.tokens > MAT_VEC_MAX_TOKENS {
            (ATTENTION_ROWS / shared).max(1)
        } else {
            1
        };
        let max_threads = self.exec.limits().invocations as usize;
        let kernel = specialize::attention(self.shape, self.options.kv, tokens, max_threads);
        let mut bindings = vec![&self.buffers.queries];
        bindings.extend(self.cache.layer(index).buffers());
        bindings.extend([&self.buffers.sums, &self.buffers.stats]);
        let heads = self.shape.heads / shared;
        let grid = Grid::Chunks { heads, tokens };
        self.op("attention", &kernel, &bindings, grid, When::Always)
    }

    /// x ← x + output · attended. The chunks of one token are merged in the product's prologue; those of several tokens,
    /// and many on a device that shares its memory, by a separate kernel.
    fn attention_output(&mut self, output: &'a GpuMatrix<E::Buffer>) -> Result<(), GpuError> {
        let buffers = self.buffers;
        let weights = [RowRange::whole(output)];
        let mut unfused = When::Always;
        if self.tokens == 1 {
            let always = self.exec.limits().discrete;
            let fused = if always {
                When::Always
            } else {
                When::FewChunks
            };
            let (source, target) = (ActivationSource::Chunks, self.residual());
            self.product("output", &weights, source, target, fused)?;
            if always {
                return Ok(());
            }
            unfused = When::ManyChunks;
        }
        let format = self.arithmetic(&weights).activations;
        let mut bindings = buffers.attended.of(format);
        bindings.extend([&buffers.sums, &buffers.stats]);
        let merge = specialize::merge(self.shape, format);
        self.op("merge", &merge, &bindings, Grid::Tokens, unfused)?;
        let source = ActivationSource::Stored(&buffers.attended);
        self.product("output", &weights, source, self.residual(), unfused)
    }

    /// f ← silu(gate · norm(x)) ⊙ (up · norm(x)), then x ← x + down · f.
    fn feed_forward(&mut self, layer: &'a GpuLayer<E::Buffer>) -> Result<(), GpuError> {
        let inner = [&layer.ffn_gate, &layer.ffn_up].map(RowRange::whole);
        let down = [RowRange::whole(&layer.ffn_down)];
        let target = ResultTarget::SwiGlu {
            activations: self.arithmetic(&down).activations,
        };
        let source = ActivationSource::RmsNorm(&layer.ffn_norm);
        self.product("gate, up", &inner, source, target, When::Always)?;
        let source = ActivationSource::Stored(&self.buffers.gated);
        self.product("down", &down, source, self.residual(), When::Always)
    }

    /// Logits of one token, the parameter `column` of the pass.
    pub(crate) fn last_logits(
        &mut self,
        weights: &'a GpuWeights<E::Buffer>,
    ) -> Result<(), GpuError> {
        self.logits(weights, 1)
    }

    /// The output norm of all tokens, for [`PlanBuilder::batch_logits`].
    pub(crate) fn output_norm(
        &mut self,
        weights: &'a GpuWeights<E::Buffer>,
    ) -> Result<(), GpuError> {
        let format = self
            .arithmetic_of(&[RowRange::whole(weights.head())], MAT_VEC_MAX_TOKENS)
            .activations;
        self.rms_norm(&weights.output_norm, format, When::Always)
    }

    /// Logits of a small batch of normed tokens from `column` on.
    pub(crate) fn batch_logits(
        &mut self,
        weights: &'a GpuWeights<E::Buffer>,
    ) -> Result<(), GpuError> {
        self.logits(weights, MAT_VEC_MAX_TOKENS)
    }

    fn logits(
        &mut self,
        weights: &'a GpuWeights<E::Buffer>,
        tokens: usize,
    ) -> Result<(), GpuError> {
        let before = std::mem::replace(&mut self.tokens, tokens);
        for rows in RowRange::parts(weights.head()) {
            let source = if tokens == 1 {
                ActivationSource::RmsNorm(&weights.output_norm)
            } else {
                ActivationSource::Stored(&self.buffers.normed)
            };
            let target = ResultTarget::Rows {
                y: &self.buffers.logits,
                stride: self.shape.vocab,
                first: rows.first(),
                add: false,
            };
            self.product("logits", &[rows], source, target, When::Always)?;
        }
        self.tokens = before;
        Ok(())
    }

    /// Samples the next token from the logits, and embeds it if the table is in one part.
    pub(crate) fn sample(&mut self, weights: &'a GpuWeights<E::Buffer>) -> Result<(), GpuError> {
        let (buffers, table) = (self.buffers, &weights.token_embd);
        let inputs = [
            &buffers.logits,
            &buffers.sampling,
            &buffers.suppressed,
            &buffers.vocab_stats,
        ];
        let reduce = specialize::sample_reduce(self.shape);
        let grid = Grid::Fixed(VOCAB_PARTS);
        self.op("sample, reduce", &reduce, &inputs, grid, When::Always)?;
        let whole = (table.parts.len() == 1).then(|| RowRange::whole(table));
        let mut bindings = inputs.to_vec();
        bindings.push(&buffers.tokens);
        if let Some(rows) = &whole {
            bindings.insert(0, rows.buffer());
            bindings.push(&buffers.x);
        }
        let sample = specialize::sample(self.shape, whole);
        self.op("sample", &sample, &bindings, Grid::Fixed(1), When::Always)
    }

    fn residual(&self) -> ResultTarget<'a, E::Buffer> {
        ResultTarget::Rows {
            y: &self.buffers.x,
            stride: self.shape.embedding,
            first: 0,
            add: true,
        }
    }

    /// The arithmetic of a product with these weights.
    fn arithmetic(&self, weights: &[RowRange<'_, E::Buffer>]) -> Arithmetic {
        self.arithmetic_of(weights, self.tokens)
    }

    fn arithmetic_of(&self, weights: &[RowRange<'_, E::Buffer>], tokens: usize) -> Arithmetic {
        let Options {
            floats, matrices, ..
        } = self.options;
        let has = self.exec.limits().matrices.filter(|_| matrices);
        Arithmetic::new(weights, tokens, floats, has)
    }

    /// Weights times activations. For one token the norm is a prologue of the product; for more it is a separate
    /// operation.
    fn product(
        &mut self,
        what: &'static str,
        weights: &[RowRange<'a, E::Buffer>],
        source: ActivationSource<'a, E::Buffer>,
        target: ResultTarget<'a, E::Buffer>,
        when: When,
    ) -> Result<(), GpuError> {
        let buffers = self.buffers;
        let arithmetic = self.arithmetic(weights);
        let format = arithmetic.activations;
        let source = match source {
            ActivationSource::RmsNorm(norm) if self.tokens > 1 => {
                self.rms_norm(norm, format, when)?;
                ActivationSource::Stored(&buffers.normed)
            }
            source => source,
        };
        let mut bindings = Vec::new();
        if let ActivationSource::Stored(activations) = source {
            bindings.extend(activations.of(format));
        }
        bindings.extend(weights.iter().map(RowRange::buffer));
        let prologue = match source {
            ActivationSource::RmsNorm(norm) => {
                bindings.extend([&buffers.x, norm.buffer()]);
                FusedPrologue::RmsNorm
            }
            ActivationSource::Chunks => {
                bindings.extend([&buffers.sums, &buffers.stats]);
                FusedPrologue::MergeChunks
            }
            ActivationSource::Stored(_) => FusedPrologue::None,
        };
        let epilogue = match target {
            ResultTarget::Rows {
                y,
                stride,
                first,
                add,
            } => {
                bindings.push(y);
                FusedEpilogue::Store { stride, first, add }
            }
            ResultTarget::Qkv(index) => {
                let rotates = self.rotates(index);
                bindings.push(&buffers.queries);
                bindings.extend(self.cache.layer(index).buffers());
                if rotates {
                    bindings.push(&self.cache.rotation);
                }
                FusedEpilogue::RopeStoreKv {
                    kv: self.options.kv,
                    rotates,
                }
            }
            ResultTarget::SwiGlu { activations } => {
                bindings.extend(buffers.gated.of(activations));
                FusedEpilogue::SwiGlu { activations }
            }
        };
        let (kernel, groups) = specialize::product(
            self.shape,
            weights,
            arithmetic,
            self.tokens,
            prologue,
            epilogue,
            self.exec.limits().invocations as usize,
        );
        let grid = match arithmetic.matrices {
            Some(_) => Grid::Tiles {
                groups,
                tokens: COOP_TOKENS,
            },
            None if self.tokens > MAT_VEC_MAX_TOKENS => Grid::Tiles {
                groups,
                tokens: TILE_TOKENS,
            },
            None => Grid::Fixed(groups),
        };
        self.op(what, &kernel, &bindings, grid, when)?;
        if let Some(op) = self.ops.last_mut() {
            op.bytes = weights.iter().map(RowRange::bytes).sum();
        }
        Ok(())
    }

    /// normed ← norm(x).
    fn rms_norm(
        &mut self,
        norm: &'a GpuNorm<E::Buffer>,
        format: ActivationFormat,
        when: When,
    ) -> Result<(), GpuError> {
        let mut bindings = self.buffers.normed.of(format);
        bindings.extend([&self.buffers.x, norm.buffer()]);
        let kernel = specialize::rms_norm(self.shape, format);
        self.op("norm", &kernel, &bindings, Grid::Tokens, when)
    }

    fn op(
        &mut self,
        what: &'static str,
        kernel: &Kernel,
        bindings: &[&E::Buffer],
        grid: Grid,
        when: When,
    ) -> Result<(), GpuError> {
        let bound = self.exec.bind(kernel, bindings)?;
        self.ops.push(Op {
            bound,
            what,
            bytes: 0,
            grid,
            when,
        });
        Ok(())
    }
}
