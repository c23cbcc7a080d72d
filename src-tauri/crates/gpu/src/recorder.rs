//! The forward pass, top to bottom, as operations: what the engine's ten operations become once they are fused.

use kernels::KvType;

use crate::exec::Executor;
use crate::failure::Failure;
use crate::kernel::Kernel;
use crate::model::{Options, Shape};
use crate::plan::{Grid, Op, Plan, When};
use crate::products::{self, After, Arithmetic, Before, FEW, PARTS, Rows};
use crate::scratch::{Activations, Cache, Scratch};
use crate::weights::{LayerWeights, Matrix, Norm, Weights};

/// Writes down a pass over `columns` tokens.
pub(crate) struct Recorder<'a, E: Executor> {
    pub(crate) exec: &'a mut E,
    pub(crate) shape: &'a Shape,
    pub(crate) options: Options,
    pub(crate) scratch: &'a Scratch<E::Buffer>,
    pub(crate) cache: &'a Cache<E::Buffer>,
    pub(crate) columns: usize,
    pub(crate) ops: Plan<E::Bound>,
}

/// Where a product's activations come from.
enum From<'a, B> {
    /// The norm of the residual stream.
    Norm(&'a Norm<B>),
    /// Attention's partial sums.
    Partials,
    /// They lie ready.
    Ready(&'a Activations<B>),
}

/// Where a product's sums go.
enum To<'a, B> {
    /// Rows of so many values, from one on; added to what is there or not.
    Rows {
        y: &'a B,
        stride: usize,
        first: usize,
        add: bool,
    },
    /// q, k, v of a block.
    Place(usize),
    /// silu(gate) ⊙ up, for a product with integers or not.
    Gate { dot4: bool },
}

impl<'a, E: Executor> Recorder<'a, E> {
    /// What has been written down so far.
    pub(crate) fn take(&mut self) -> Plan<E::Bound> {
        std::mem::take(&mut self.ops)
    }

    /// x ← the tokens' rows of the table.
    pub(crate) fn embed(&mut self, table: &'a Matrix<E::Buffer>) -> Result<(), Failure> {
        for rows in Rows::parts(table) {
            let buffers = [rows.buffer(), &self.scratch.tokens, &self.scratch.x];
            self.op(
                "embed",
                &products::embed(rows),
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
        layer: &'a LayerWeights<E::Buffer>,
    ) -> Result<(), Failure> {
        self.attention_input(index, layer)?;
        self.attend(index)?;
        self.output(&layer.attn_output)?;
        self.feed_forward(layer)
    }

    /// q, k, v ← products of norm(x); rotation; k and v into the cache.
    fn attention_input(
        &mut self,
        index: usize,
        layer: &'a LayerWeights<E::Buffer>,
    ) -> Result<(), Failure> {
        let s = self.scratch;
        let weights = [&layer.attn_q, &layer.attn_k, &layer.attn_v].map(Rows::whole);
        let from = From::Norm(&layer.attn_norm);
        if self.columns == 1 && self.cache.ty() != KvType::Q8_0 {
            return self.product("q, k, v", &weights, from, To::Place(index), When::Always);
        }
        let to = To::Rows {
            y: &s.qkv,
            stride: self.shape.q_width() + 2 * self.shape.kv_width(),
            first: 0,
            add: false,
        };
        self.product("q, k, v", &weights, from, to, When::Always)?;
        let rotated = self.shape.rotated[index];
        let kernel = products::place(self.shape, self.options.kv, rotated);
        let mut buffers = vec![&s.qkv, &s.queries];
        if rotated {
            buffers.push(&self.cache.rotation);
        }
        buffers.extend(self.cache.layer(index).buffers());
        self.op("place", &kernel, &buffers, Grid::Tokens, When::Always)
    }

    fn attend(&mut self, index: usize) -> Result<(), Failure> {
        let s = self.scratch;
        let tokens = if self.columns > FEW { 4 } else { 1 };
        let kernel = products::attend(self.shape, self.options.kv, tokens);
        let mut buffers = vec![&s.queries];
        buffers.extend(self.cache.layer(index).buffers());
        buffers.extend([&s.sums, &s.peaks]);
        let heads = self.shape.heads / products::shared(self.shape);
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
    fn output(&mut self, output: &'a Matrix<E::Buffer>) -> Result<(), Failure> {
        let s = self.scratch;
        let weights = [Rows::whole(output)];
        let mut apart = When::Always;
        if self.columns == 1 {
            let to = self.residual();
            self.product("output", &weights, From::Partials, to, When::FewChunks)?;
            apart = When::ManyChunks;
        }
        let dot4 = self.dot4(&weights);
        let mut buffers = s.attended.of(dot4);
        buffers.extend([&s.sums, &s.peaks]);
        self.op(
            "merge",
            &products::merge(self.shape, dot4),
            &buffers,
            Grid::Tokens,
            apart,
        )?;
        let from = From::Ready(&s.attended);
        self.product("output", &weights, from, self.residual(), apart)
    }

    /// f ← silu(gate · norm(x)) ⊙ (up · norm(x)), then x ← x + down · f.
    fn feed_forward(&mut self, layer: &'a LayerWeights<E::Buffer>) -> Result<(), Failure> {
        let s = self.scratch;
        let inner = [&layer.ffn_gate, &layer.ffn_up].map(Rows::whole);
        let down = [Rows::whole(&layer.ffn_down)];
        let to = To::Gate {
            dot4: self.dot4(&down),
        };
        let from = From::Norm(&layer.ffn_norm);
        self.product("gate, up", &inner, from, to, When::Always)?;
        let from = From::Ready(&s.gated);
        self.product("down", &down, from, self.residual(), When::Always)
    }

    /// Logits of the pass's one wanted token.
    pub(crate) fn last(&mut self, weights: &'a Weights<E::Buffer>) -> Result<(), Failure> {
        self.head(weights, 1)
    }

    /// The norm of all tokens, for [`Recorder::few`].
    pub(crate) fn normed(&mut self, weights: &'a Weights<E::Buffer>) -> Result<(), Failure> {
        let dot4 = self.dot4(&[Rows::whole(weights.head())]);
        self.activate(&weights.output_norm, dot4, When::Always)
    }

    /// Logits of a few tokens from the wanted one on, once they are normed.
    pub(crate) fn few(&mut self, weights: &'a Weights<E::Buffer>) -> Result<(), Failure> {
        self.head(weights, FEW)
    }

    fn head(&mut self, weights: &'a Weights<E::Buffer>, columns: usize) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.columns, columns);
        for rows in Rows::parts(weights.head()) {
            let from = if columns == 1 {
                From::Norm(&weights.output_norm)
            } else {
                From::Ready(&self.scratch.normed)
            };
            let to = To::Rows {
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
    pub(crate) fn choose(&mut self, weights: &'a Weights<E::Buffer>) -> Result<(), Failure> {
        let (s, table) = (self.scratch, &weights.token_embd);
        let buffers = [&s.logits, &s.sampling, &s.suppressed, &s.parts];
        let survey = products::survey(self.shape);
        self.op(
            "survey",
            &survey,
            &buffers,
            Grid::Fixed(PARTS),
            When::Always,
        )?;
        let whole = (table.parts.len() == 1).then(|| Rows::whole(table));
        let mut buffers = vec![&s.logits, &s.sampling, &s.suppressed, &s.parts, &s.tokens];
        if let Some(rows) = &whole {
            buffers.insert(0, rows.buffer());
            buffers.push(&s.x);
        }
        let choose = products::choose(self.shape, whole);
        self.op("choose", &choose, &buffers, Grid::Fixed(1), When::Always)
    }

    fn residual(&self) -> To<'a, E::Buffer> {
        To::Rows {
            y: &self.scratch.x,
            stride: self.shape.embedding,
            first: 0,
            add: true,
        }
    }

    /// How these weights are multiplied.
    fn arithmetic(&self, weights: &[Rows<'_, E::Buffer>]) -> Arithmetic {
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
    fn dot4(&self, weights: &[Rows<'_, E::Buffer>]) -> bool {
        !self.options.floats && weights.iter().all(|rows| !rows.format().is_float())
    }

    /// Weights times activations. For one token the norm is part of the product; for more it is made once before.
    fn product(
        &mut self,
        what: &'static str,
        weights: &[Rows<'a, E::Buffer>],
        from: From<'a, E::Buffer>,
        to: To<'a, E::Buffer>,
        when: When,
    ) -> Result<(), Failure> {
        let s = self.scratch;
        let dot4 = self.dot4(weights);
        let from = match from {
            From::Norm(norm) if self.columns > 1 => {
                self.activate(norm, dot4, when)?;
                From::Ready(&s.normed)
            }
            from => from,
        };
        let mut buffers = Vec::new();
        if let From::Ready(activations) = from {
            buffers.extend(activations.of(dot4));
        }
        buffers.extend(weights.iter().map(Rows::buffer));
        let before = match from {
            From::Norm(norm) => {
                buffers.extend([&s.x, norm.buffer()]);
                Before::Norm
            }
            From::Partials => {
                buffers.extend([&s.sums, &s.peaks]);
                Before::Merge
            }
            From::Ready(_) => Before::Nothing,
        };
        let after = match to {
            To::Rows {
                y,
                stride,
                first,
                add,
            } => {
                buffers.push(y);
                After::Rows { stride, first, add }
            }
            To::Place(index) => {
                let rotated = self.shape.rotated[index];
                buffers.push(&s.queries);
                buffers.extend(self.cache.layer(index).buffers());
                if rotated {
                    buffers.push(&self.cache.rotation);
                }
                After::Place {
                    kv: self.options.kv,
                    rotated,
                }
            }
            To::Gate { dot4 } => {
                buffers.extend(s.gated.of(dot4));
                After::Gate { dot4 }
            }
        };
        let arithmetic = self.arithmetic(weights);
        let (kernel, groups) =
            products::product(self.shape, weights, arithmetic, self.columns, before, after);
        let grid = if self.columns > FEW {
            Grid::Tiles(groups)
        } else {
            Grid::Fixed(groups)
        };
        self.op(what, &kernel, &buffers, grid, when)?;
        if let Some(op) = self.ops.last_mut() {
            op.bytes = weights.iter().map(Rows::bytes).sum();
        }
        Ok(())
    }

    /// normed ← norm(x).
    fn activate(
        &mut self,
        norm: &'a Norm<E::Buffer>,
        dot4: bool,
        when: When,
    ) -> Result<(), Failure> {
        let mut buffers = self.scratch.normed.of(dot4);
        buffers.extend([&self.scratch.x, norm.buffer()]);
        let kernel = products::activate(self.shape, dot4);
        self.op("norm", &kernel, &buffers, Grid::Tokens, when)
    }

    fn op(
        &mut self,
        what: &'static str,
        kernel: &Kernel,
        buffers: &[&E::Buffer],
        grid: Grid,
        when: When,
    ) -> Result<(), Failure> {
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
