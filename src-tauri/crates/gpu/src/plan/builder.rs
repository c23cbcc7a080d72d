//! The forward pass, top to bottom, as operations: what the engine's ten operations become once they are fused.

use kernels::KvType;

use crate::error::GpuError;
use crate::exec::executor::Executor;
use crate::kernel::Kernel;
use crate::model::{Options, Shape};
use crate::plan::buffers::{Activations, GpuKvCache, PassBuffers};
use crate::plan::pass::{Grid, Op, Plan, When};
use crate::plan::specialize::{
    self, Arithmetic, FEW, FusedEpilogue, FusedPrologue, PARTS, RowRange,
};
use crate::weights::matrix::{GpuLayer, GpuMatrix, GpuNorm, GpuWeights};

/// Writes down a pass over `columns` tokens.
pub(crate) struct PlanBuilder<'a, E: Executor> {
    pub(crate) exec: &'a mut E,
    pub(crate) shape: &'a Shape,
    pub(crate) options: Options,
    pub(crate) scratch: &'a PassBuffers<E::Buffer>,
    pub(crate) cache: &'a GpuKvCache<E::Buffer>,
    pub(crate) columns: usize,
    pub(crate) ops: Plan<E::BoundKernel>,
}

/// Where a product's activations come from.
enum ActivationSource<'a, B> {
    /// RMS norm of the residual stream.
    RmsNorm(&'a GpuNorm<B>),
    /// Attention's chunks, to be merged.
    Chunks,
    /// Stored activations.
    Stored(&'a Activations<B>),
}

/// Where a product's sums go.
enum ResultTarget<'a, B> {
    /// Rows of so many values, from one on; added to what is there or not.
    Rows {
        y: &'a B,
        stride: usize,
        first: usize,
        add: bool,
    },
    /// q, k, v of a block.
    Qkv(usize),
    /// silu(gate) ⊙ up, for a product with integers or not.
    SwiGlu { dot4: bool },
}

impl<'a, E: Executor> PlanBuilder<'a, E> {
    /// What has been written down so far.
    pub(crate) fn take(&mut self) -> Plan<E::BoundKernel> {
        std::mem::take(&mut self.ops)
    }

    /// x ← the tokens' rows of the table.
    pub(crate) fn embed(&mut self, table: &'a GpuMatrix<E::Buffer>) -> Result<(), GpuError> {
        for rows in RowRange::parts(table) {
            let buffers = [rows.buffer(), &self.scratch.tokens, &self.scratch.x];
            self.op(
                "embed",
                &specialize::embed(rows),
                &buffers,
                Grid::Tokens,
                When::Always,
            )?;
        }
        Ok(())
    }

    /// A block: five operations for one token.
    pub(crate) fn layer(
        &mut self,
        index: usize,
        layer: &'a GpuLayer<E::Buffer>,
    ) -> Result<(), GpuError> {
        self.attention_input(index, layer)?;
        self.attend(index)?;
        self.output(&layer.attn_output)?;
        self.feed_forward(layer)
    }

    /// q, k, v ← products of norm(x); rotation; k and v into the cache.
    fn attention_input(
        &mut self,
        index: usize,
        layer: &'a GpuLayer<E::Buffer>,
    ) -> Result<(), GpuError> {
        let s = self.scratch;
        let weights = [&layer.attn_q, &layer.attn_k, &layer.attn_v].map(RowRange::whole);
        let from = ActivationSource::RmsNorm(&layer.attn_norm);
        if self.columns == 1 && self.cache.ty() != KvType::Q8_0 {
            return self.product(
                "q, k, v",
                &weights,
                from,
                ResultTarget::Qkv(index),
                When::Always,
            );
        }
        let to = ResultTarget::Rows {
            y: &s.qkv,
            stride: self.shape.q_width() + 2 * self.shape.kv_width(),
            first: 0,
            add: false,
        };
        self.product("q, k, v", &weights, from, to, When::Always)?;
        let rotated = self.shape.rotated[index];
        let kernel = specialize::place(self.shape, self.options.kv, rotated);
        let mut buffers = vec![&s.qkv, &s.queries];
        if rotated {
            buffers.push(&self.cache.rotation);
        }
        buffers.extend(self.cache.layer(index).buffers());
        self.op("place", &kernel, &buffers, Grid::Tokens, When::Always)
    }

    fn attend(&mut self, index: usize) -> Result<(), GpuError> {
        let s = self.scratch;
        let tokens = if self.columns > FEW { 4 } else { 1 };
        let kernel = specialize::attend(self.shape, self.options.kv, tokens);
        let mut buffers = vec![&s.queries];
        buffers.extend(self.cache.layer(index).buffers());
        buffers.extend([&s.sums, &s.peaks]);
        let heads = self.shape.heads / specialize::shared(self.shape);
        self.op(
            "attend",
            &kernel,
            &buffers,
            Grid::Chunks { heads, tokens },
            When::Always,
        )
    }

    /// x ← x + output · attended. One token's few chunks are merged by every workgroup, many by an operation of
    /// their own.
    fn output(&mut self, output: &'a GpuMatrix<E::Buffer>) -> Result<(), GpuError> {
        let s = self.scratch;
        let weights = [RowRange::whole(output)];
        let mut apart = When::Always;
        if self.columns == 1 {
            let to = self.residual();
            self.product(
                "output",
                &weights,
                ActivationSource::Chunks,
                to,
                When::FewChunks,
            )?;
            apart = When::ManyChunks;
        }
        let dot4 = self.dot4(&weights);
        let mut buffers = s.attended.of(dot4);
        buffers.extend([&s.sums, &s.peaks]);
        self.op(
            "merge",
            &specialize::merge(self.shape, dot4),
            &buffers,
            Grid::Tokens,
            apart,
        )?;
        let from = ActivationSource::Stored(&s.attended);
        self.product("output", &weights, from, self.residual(), apart)
    }

    /// f ← silu(gate · norm(x)) ⊙ (up · norm(x)), then x ← x + down · f.
    fn feed_forward(&mut self, layer: &'a GpuLayer<E::Buffer>) -> Result<(), GpuError> {
        let s = self.scratch;
        let inner = [&layer.ffn_gate, &layer.ffn_up].map(RowRange::whole);
        let down = [RowRange::whole(&layer.ffn_down)];
        let to = ResultTarget::SwiGlu {
            dot4: self.dot4(&down),
        };
        let from = ActivationSource::RmsNorm(&layer.ffn_norm);
        self.product("gate, up", &inner, from, to, When::Always)?;
        let from = ActivationSource::Stored(&s.gated);
        self.product("down", &down, from, self.residual(), When::Always)
    }

    /// Logits of the pass's one wanted token.
    pub(crate) fn last(&mut self, weights: &'a GpuWeights<E::Buffer>) -> Result<(), GpuError> {
        self.head(weights, 1)
    }

    /// The norm of all tokens, for [`PlanBuilder::few`].
    pub(crate) fn normed(&mut self, weights: &'a GpuWeights<E::Buffer>) -> Result<(), GpuError> {
        let dot4 = self.dot4(&[RowRange::whole(weights.head())]);
        self.activate(&weights.output_norm, dot4, When::Always)
    }

    /// Logits of a few tokens from the wanted one on, once they are normed.
    pub(crate) fn few(&mut self, weights: &'a GpuWeights<E::Buffer>) -> Result<(), GpuError> {
        self.head(weights, FEW)
    }

    fn head(&mut self, weights: &'a GpuWeights<E::Buffer>, columns: usize) -> Result<(), GpuError> {
        let before = std::mem::replace(&mut self.columns, columns);
        for rows in RowRange::parts(weights.head()) {
            let from = if columns == 1 {
                ActivationSource::RmsNorm(&weights.output_norm)
            } else {
                ActivationSource::Stored(&self.scratch.normed)
            };
            let to = ResultTarget::Rows {
                y: &self.scratch.logits,
                stride: self.shape.vocab,
                first: rows.first(),
                add: false,
            };
            self.product("logits", &[rows], from, to, When::Always)?;
        }
        self.columns = before;
        Ok(())
    }

    /// The next token from the logits, embedded where the table is in one part.
    pub(crate) fn choose(&mut self, weights: &'a GpuWeights<E::Buffer>) -> Result<(), GpuError> {
        let (s, table) = (self.scratch, &weights.token_embd);
        let buffers = [&s.logits, &s.sampling, &s.suppressed, &s.parts];
        let survey = specialize::survey(self.shape);
        self.op(
            "survey",
            &survey,
            &buffers,
            Grid::Fixed(PARTS),
            When::Always,
        )?;
        let whole = (table.parts.len() == 1).then(|| RowRange::whole(table));
        let mut buffers = vec![&s.logits, &s.sampling, &s.suppressed, &s.parts, &s.tokens];
        if let Some(rows) = &whole {
            buffers.insert(0, rows.buffer());
            buffers.push(&s.x);
        }
        let choose = specialize::choose(self.shape, whole);
        self.op("choose", &choose, &buffers, Grid::Fixed(1), When::Always)
    }

    fn residual(&self) -> ResultTarget<'a, E::Buffer> {
        ResultTarget::Rows {
            y: &self.scratch.x,
            stride: self.shape.embedding,
            first: 0,
            add: true,
        }
    }

    /// How these weights are multiplied.
    fn arithmetic(&self, weights: &[RowRange<'_, E::Buffer>]) -> Arithmetic {
        let Options {
            floats, matrices, ..
        } = self.options;
        let has = self.exec.limits().matrices;
        Arithmetic {
            dot4: self.dot4(weights),
            matrices: has.filter(|_| matrices && !floats),
        }
    }

    /// Whether these weights are multiplied in integers.
    fn dot4(&self, weights: &[RowRange<'_, E::Buffer>]) -> bool {
        !self.options.floats && weights.iter().all(|rows| !rows.format().is_float())
    }

    /// Weights times activations. For one token the norm is part of the product; for more it is made once before.
    fn product(
        &mut self,
        what: &'static str,
        weights: &[RowRange<'a, E::Buffer>],
        from: ActivationSource<'a, E::Buffer>,
        to: ResultTarget<'a, E::Buffer>,
        when: When,
    ) -> Result<(), GpuError> {
        let s = self.scratch;
        let dot4 = self.dot4(weights);
        let from = match from {
            ActivationSource::RmsNorm(norm) if self.columns > 1 => {
                self.activate(norm, dot4, when)?;
                ActivationSource::Stored(&s.normed)
            }
            from => from,
        };
        let mut buffers = Vec::new();
        if let ActivationSource::Stored(activations) = from {
            buffers.extend(activations.of(dot4));
        }
        buffers.extend(weights.iter().map(RowRange::buffer));
        let before = match from {
            ActivationSource::RmsNorm(norm) => {
                buffers.extend([&s.x, norm.buffer()]);
                FusedPrologue::RmsNorm
            }
            ActivationSource::Chunks => {
                buffers.extend([&s.sums, &s.peaks]);
                FusedPrologue::MergeChunks
            }
            ActivationSource::Stored(_) => FusedPrologue::None,
        };
        let after = match to {
            ResultTarget::Rows {
                y,
                stride,
                first,
                add,
            } => {
                buffers.push(y);
                FusedEpilogue::Store { stride, first, add }
            }
            ResultTarget::Qkv(index) => {
                let rotated = self.shape.rotated[index];
                buffers.push(&s.queries);
                buffers.extend(self.cache.layer(index).buffers());
                if rotated {
                    buffers.push(&self.cache.rotation);
                }
                FusedEpilogue::RopeStoreKv {
                    kv: self.options.kv,
                    rotated,
                }
            }
            ResultTarget::SwiGlu { dot4 } => {
                buffers.extend(s.gated.of(dot4));
                FusedEpilogue::SwiGlu { dot4 }
            }
        };
        let arithmetic = self.arithmetic(weights);
        let (kernel, groups) =
            specialize::product(self.shape, weights, arithmetic, self.columns, before, after);
        let grid = if self.columns > FEW {
            Grid::Tiles(groups)
        } else {
            Grid::Fixed(groups)
        };
        self.op(what, &kernel, &buffers, grid, when)?;
        if let Some(op) = self.ops.last_mut() {
            op.bytes = weights.iter().map(RowRange::bytes).sum();
        }
        Ok(())
    }

    /// normed ← norm(x).
    fn activate(
        &mut self,
        norm: &'a GpuNorm<E::Buffer>,
        dot4: bool,
        when: When,
    ) -> Result<(), GpuError> {
        let mut buffers = self.scratch.normed.of(dot4);
        buffers.extend([&self.scratch.x, norm.buffer()]);
        let kernel = specialize::activate(self.shape, dot4);
        self.op("norm", &kernel, &buffers, Grid::Tokens, when)
    }

    fn op(
        &mut self,
        what: &'static str,
        kernel: &Kernel,
        buffers: &[&E::Buffer],
        grid: Grid,
        when: When,
    ) -> Result<(), GpuError> {
        let bound = self.exec.bind(kernel, buffers)?;
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
