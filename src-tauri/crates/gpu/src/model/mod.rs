//! A model on a device, with the cache of one sequence.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use kernels::KvType;

use crate::error::GpuError;
use crate::exec::executor::{Dispatch, Executor};
use crate::model::submit_budget::{MOST_TOKENS, SubmitBudget};
use crate::plan::buffers::{GpuKvCache, MOST_CHUNKS, PassBuffers};
use crate::plan::builder::PlanBuilder;
use crate::plan::pass::{PassParams, Plan};
use crate::plan::specialize::FEW;
use crate::weights::format::GROUP;
use crate::weights::matrix::{GpuMatrix, GpuWeights};

/// The widest activations of one token that a workgroup keeps to itself.
pub(crate) const WIDEST: usize = 3072;

/// A model's dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub embedding: usize,
    /// Width inside the feed-forward part.
    pub feed_forward: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Values in a head.
    pub head_dim: usize,
    /// Tokens in the vocabulary.
    pub vocab: usize,
    /// Epsilon of every norm.
    pub eps: f32,
    /// Values of each head that are rotated.
    pub rotary: usize,
    /// Whether each block rotates.
    pub rotated: Vec<bool>,
}

impl Shape {
    pub(crate) fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    pub(crate) fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Of a model's last `layers` blocks.
    fn keep_last(&mut self, layers: usize) {
        self.layers = layers;
        self.rotated.drain(..self.rotated.len() - layers);
    }

    /// Whether the kernels can serve these dimensions.
    fn check(&self) -> Result<(), GpuError> {
        let widths = [self.embedding, self.feed_forward, self.head_dim];
        let fits = widths.iter().all(|width| width.is_multiple_of(GROUP))
            && self.head_dim <= 256
            && self.embedding.max(self.q_width()) <= WIDEST;
        if fits {
            Ok(())
        } else {
            Err(GpuError::Unsupported(format!("widths of {widths:?}")))
        }
    }
}

/// How a model is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How keys and values are kept.
    pub kv: KvType,
    /// Activations in f32 throughout: exact, and for GPUs without integer products.
    pub floats: bool,
    /// Cooperative matrices, where the device has them and `floats` does not forbid them, for many tokens at once.
    pub matrices: bool,
}

/// What a pass begins with.
#[derive(Clone, Copy, Debug)]
pub enum PassInput<'a> {
    /// Tokens.
    Ids(&'a [u32]),
    /// What blocks before these have made of tokens: rows of the residual stream.
    Rows(&'a [f32]),
}

impl<'a> PassInput<'a> {
    /// Tokens, where a row has so many values.
    fn tokens(self, width: usize) -> usize {
        match self {
            PassInput::Ids(ids) => ids.len(),
            PassInput::Rows(rows) => rows.len() / width,
        }
    }

    /// The first so many tokens, and the others.
    fn split_at(self, tokens: usize, width: usize) -> (PassInput<'a>, PassInput<'a>) {
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

/// Which positions' logits are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// None.
    Nothing,
    /// The last one's.
    Last,
    /// All.
    All,
}

/// How a token is chosen; a temperature of 0 takes the likeliest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceSampling {
    /// Flattens or sharpens the distribution.
    pub temperature: f32,
    /// Keep the likeliest that together have this probability.
    pub top_p: f32,
    /// Keep those at least this likely relative to the likeliest.
    pub min_p: f32,
    /// Keep so many; 0 for all.
    pub top_k: u32,
}

/// What `choose.wgsl` says of a token.
const COVERED: u32 = 0;
const NOT_COVERED: u32 = 1;

/// Submits under way at once while a prompt is read: enough that the device never waits, few enough that Stop does.
const FLIGHTS: usize = 2;

/// Angles of `count` positions from the first on: cosine and sine of every pair.
pub type Angles = Box<dyn Fn(usize, usize) -> Vec<f32> + Send>;

/// A model on a device, with the cache of one sequence.
pub struct DeviceModel<E: Executor> {
    exec: E,
    shape: Shape,
    options: Options,
    weights: GpuWeights<E::Buffer>,
    angles: Angles,
    scratch: PassBuffers<E::Buffer>,
    cache: GpuKvCache<E::Buffer>,
    len: usize,
    plans: Option<ModelPlans<E::BoundKernel>>,
    /// Passes whose chosen token has not been asked for yet.
    ahead: VecDeque<E::Submission>,
    pace: SubmitBudget,
    /// Submits under way, and when the one before them was done.
    flights: VecDeque<InFlight<E::Submission>>,
    landed: Option<Instant>,
}

/// A submit under way.
struct InFlight<T> {
    ticket: T,
    units: f64,
    started: Instant,
}

/// The passes that a model makes.
struct ModelPlans<B> {
    one: PassPlans<B>,
    few: PassPlans<B>,
    many: PassPlans<B>,
}

/// A pass over a number of tokens.
struct PassPlans<B> {
    embed: Plan<B>,
    layers: Vec<Plan<B>>,
    /// Logits of one token.
    last: Plan<B>,
    /// All tokens normed, and logits of a few of them.
    normed: Plan<B>,
    head: Plan<B>,
    /// The token that follows.
    choose: Plan<B>,
}

impl<B> PassPlans<B> {
    /// A pass over one token and the choice of the next, with the token embedded or not.
    fn token(&self, embedded: bool) -> impl Iterator<Item = &Plan<B>> {
        let embed = embedded.then_some(&self.embed);
        let layers = embed.into_iter().chain(&self.layers);
        layers.chain([&self.last, &self.choose])
    }
}

impl<E: Executor> DeviceModel<E> {
    /// A model with an empty cache. Where `weights` have fewer blocks than `shape`, they are its last; where the
    /// device has no room for the scratch beside them, the first of these go.
    ///
    /// # Errors
    /// When the kernels cannot serve it, or the device has no room for a block and the scratch.
    pub fn new(
        mut exec: E,
        mut shape: Shape,
        options: Options,
        mut weights: GpuWeights<E::Buffer>,
        angles: Angles,
    ) -> Result<DeviceModel<E>, GpuError> {
        shape.check()?;
        check(&weights)?;
        shape.keep_last(weights.layers.len());
        let scratch = loop {
            match PassBuffers::new(&mut exec, &shape, MOST_TOKENS, FEW) {
                Err(GpuError::OutOfMemory(_)) if weights.layers.len() > 1 => {
                    weights.layers.remove(0);
                    shape.keep_last(weights.layers.len());
                    exec.settle()?;
                }
                made => break made?,
            }
        };
        let cache = GpuKvCache::new(&mut exec, &shape, options.kv)?;
        Ok(DeviceModel {
            exec,
            shape,
            options,
            weights,
            angles,
            scratch,
            cache,
            len: 0,
            plans: None,
            ahead: VecDeque::new(),
            pace: SubmitBudget::default(),
            flights: VecDeque::new(),
            landed: None,
        })
    }

    /// Forgets all but the first `len` positions.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.ahead.clear();
        self.flights.clear();
    }

    /// How [`DeviceModel::follow`] chooses from now on; tokens in `suppressed` never.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn sample(&mut self, sampling: DeviceSampling, suppressed: &[u32]) -> Result<(), GpuError> {
        let DeviceSampling {
            temperature,
            top_p,
            min_p,
            top_k,
        } = sampling;
        let sharpness = if temperature > 0.0 {
            1.0 / temperature
        } else {
            0.0
        };
        let words = [sharpness.to_bits(), top_p.to_bits(), min_p.to_bits(), top_k];
        let buffer = &self.scratch.sampling;
        self.exec.write(buffer, 0, bytemuck::cast_slice(&words))?;
        let mut mask = vec![0u32; self.shape.vocab.div_ceil(32)];
        for &id in suppressed {
            if let Some(word) = mask.get_mut(id as usize / 32) {
                *word |= 1 << (id % 32);
            }
        }
        let buffer = &self.scratch.suppressed;
        self.exec.write(buffer, 0, bytemuck::cast_slice(&mask))
    }

    /// Starts a pass over `id`, or over the token that the pass before it chooses, and the choice of what follows,
    /// which `noise` in 0..1 picks. It waits for nothing.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn follow(&mut self, id: Option<u32>, noise: f32) -> Result<(), GpuError> {
        self.reserve(self.len + 1)?;
        let plans = self.plans.take().map_or_else(|| self.plan(), Ok)?;
        let steps = &plans.one;
        let mut pass = PassParams::new(self.len, 1, MOST_CHUNKS);
        pass.noise = noise;
        let mut dispatches = Vec::with_capacity(5 * steps.layers.len() + 4);
        if let Some(id) = id {
            self.exec
                .write(&self.scratch.tokens, 0, bytemuck::bytes_of(&id))?;
        }
        for plan in steps.token(id.is_some() || !self.embeds_choice()) {
            pass.record(plan, &mut dispatches);
        }
        let reading = Some((&self.scratch.tokens, 8));
        let ticket = self.exec.submit(&dispatches, reading)?;
        self.ahead.push_back(ticket);
        self.len += 1;
        self.plans = Some(plans);
        Ok(())
    }

    /// Whether the operation that chooses a token embeds it too.
    fn embeds_choice(&self) -> bool {
        self.weights.token_embd.parts.len() == 1
    }

    /// Passes that were started and whose choice has not been asked for.
    pub fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// Waits for the first of the passes that were started and gives what it chose; `None` where more tokens would
    /// have had to be looked at than the device does.
    ///
    /// # Errors
    /// When the device fails, or what it chose from were no numbers.
    pub fn chosen(&mut self) -> Result<Option<u32>, GpuError> {
        let nothing = || GpuError::Wrong("no pass was started".to_owned());
        let ticket = self.ahead.pop_front().ok_or_else(nothing)?;
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&self.exec.take(ticket)?);
        match words[..] {
            [id, COVERED] if (id as usize) < self.shape.vocab => Ok(Some(id)),
            [_, NOT_COVERED] => Ok(None),
            _ => Err(GpuError::Wrong(format!("{words:?} instead of a token"))),
        }
    }

    /// Runs `input` behind what the cache holds; false when it was told to stop, and the cache is then as before.
    ///
    /// # Errors
    /// When the device fails; what the cache holds is then not known.
    pub fn append(
        &mut self,
        input: PassInput<'_>,
        wanted: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<bool, GpuError> {
        let width = self.shape.embedding;
        let (mut rest, mut left) = (input, input.tokens(width));
        self.reserve(self.len + left)?;
        logits.clear();
        let before = self.len;
        while left > 0 {
            let most = self.pace.tokens(self.layer_units(1));
            let tokens = left.min(most);
            let (now, later) = rest.split_at(tokens, width);
            (rest, left) = (later, left - tokens);
            let here = match wanted {
                Want::Last if left > 0 => Want::Nothing,
                wanted => wanted,
            };
            if !self.pass(now, here, cancel, logits)? {
                self.len = before;
                return Ok(false);
            }
            self.len += tokens;
        }
        if logits.iter().any(|logit| !logit.is_finite()) {
            return Err(GpuError::Wrong("a logit that is no number".to_owned()));
        }
        Ok(true)
    }

    fn pass(
        &mut self,
        input: PassInput<'_>,
        wanted: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<bool, GpuError> {
        let plans = self.plans.take().map_or_else(|| self.plan(), Ok)?;
        let tokens = input.tokens(self.shape.embedding);
        let steps = match tokens {
            1 => &plans.one,
            2..=FEW => &plans.few,
            _ => &plans.many,
        };
        let most_chunks = if tokens > FEW { 1 } else { MOST_CHUNKS };
        let pass = PassParams::new(self.len, tokens, most_chunks);
        let (buffer, bytes) = match input {
            PassInput::Ids(ids) => (&self.scratch.tokens, bytemuck::cast_slice(ids)),
            PassInput::Rows(rows) => (&self.scratch.x, bytemuck::cast_slice(rows)),
        };
        self.exec.write(buffer, 0, bytes)?;
        let mut dispatches = Vec::new();
        if matches!(input, PassInput::Ids(_)) {
            pass.record(&steps.embed, &mut dispatches);
        }
        let complete = self.layers(steps, pass, dispatches, cancel)?;
        if complete {
            self.logits(steps, pass, wanted, logits)?;
        }
        self.plans = Some(plans);
        Ok(complete)
    }

    /// The blocks behind other dispatches, as many at once as the device does in time; false when it was told to stop.
    fn layers<'a>(
        &mut self,
        steps: &'a PassPlans<E::BoundKernel>,
        pass: PassParams,
        mut dispatches: Vec<Dispatch<'a, E::BoundKernel>>,
        cancel: &AtomicBool,
    ) -> Result<bool, GpuError> {
        let units = self.layer_units(pass.tokens);
        let mut left = &steps.layers[..];
        while !left.is_empty() {
            if cancel.load(Ordering::Relaxed) {
                return Ok(false);
            }
            // A few tokens are soon done; more are cut.
            let most = if pass.tokens > FEW {
                self.pace.pieces(units)
            } else {
                left.len()
            };
            let (now, later) = left.split_at(left.len().min(most));
            for plan in now {
                pass.record(plan, &mut dispatches);
            }
            while self.flights.len() >= FLIGHTS {
                self.land()?;
            }
            let ticket = self.exec.submit(&dispatches, None)?;
            self.flights.push_back(InFlight {
                ticket,
                units: units * now.len() as f64,
                started: Instant::now(),
            });
            dispatches.clear();
            left = later;
        }
        Ok(true)
    }

    /// Waits for the first submit that is under way and learns from it.
    fn land(&mut self) -> Result<(), GpuError> {
        if let Some(flight) = self.flights.pop_front() {
            self.exec.take(flight.ticket)?;
            let now = Instant::now();
            let started = self
                .landed
                .map_or(flight.started, |at| at.max(flight.started));
            self.pace.learn(flight.units, now - started);
            self.landed = Some(now);
        }
        Ok(())
    }

    /// Reads the wanted logits.
    fn logits(
        &mut self,
        steps: &PassPlans<E::BoundKernel>,
        pass: PassParams,
        wanted: Want,
        logits: &mut Vec<f32>,
    ) -> Result<(), GpuError> {
        let (first, all) = match wanted {
            Want::Nothing => return Ok(()),
            Want::Last => (pass.tokens - 1, false),
            Want::All => (0, pass.tokens > 1),
        };
        let mut dispatches = Vec::new();
        if all {
            pass.record(&steps.normed, &mut dispatches);
        }
        for column in (first..pass.tokens).step_by(FEW) {
            let pass = PassParams { column, ..pass };
            pass.record(if all { &steps.head } else { &steps.last }, &mut dispatches);
            let rows = FEW.min(pass.tokens - column);
            let bytes = (4 * rows * self.shape.vocab) as u64;
            let reading = Some((&self.scratch.logits, bytes));
            let ticket = self.exec.submit(&dispatches, reading)?;
            let read = self.exec.take(ticket)?;
            logits.extend(bytemuck::pod_collect_to_vec::<u8, f32>(&read));
            dispatches.clear();
        }
        // They were done before the logits; nobody looked when.
        self.flights.clear();
        Ok(())
    }

    /// What a block has to do for so many tokens, in products of two numbers.
    fn layer_units(&self, tokens: usize) -> f64 {
        let shape = &self.shape;
        let attention = 2 * shape.embedding * (shape.q_width() + shape.kv_width());
        let weights = attention + 3 * shape.embedding * shape.feed_forward;
        // The cache is read by every token: its share grows with what is in it.
        let cache = 2 * (self.len + tokens) * shape.q_width();
        tokens as f64 * (weights + cache) as f64
    }

    /// Room for `positions` in the cache.
    fn reserve(&mut self, positions: usize) -> Result<(), GpuError> {
        if positions > self.cache.capacity() {
            // What is bound holds the memory of the cache as it was.
            self.plans = None;
            self.cache
                .reserve(&mut self.exec, &self.shape, positions, &*self.angles)?;
        }
        Ok(())
    }

    fn plan(&mut self) -> Result<ModelPlans<E::BoundKernel>, GpuError> {
        Ok(ModelPlans {
            one: self.steps(1)?,
            few: self.steps(FEW)?,
            many: self.steps(MOST_TOKENS)?,
        })
    }

    fn steps(&mut self, columns: usize) -> Result<PassPlans<E::BoundKernel>, GpuError> {
        let mut recorder = PlanBuilder {
            exec: &mut self.exec,
            shape: &self.shape,
            options: self.options,
            scratch: &self.scratch,
            cache: &self.cache,
            columns,
            ops: Vec::new(),
        };
        recorder.embed(&self.weights.token_embd)?;
        let embed = recorder.take();
        let mut layers = Vec::new();
        for (index, layer) in self.weights.layers.iter().enumerate() {
            recorder.layer(index, layer)?;
            layers.push(recorder.take());
        }
        recorder.last(&self.weights)?;
        let last = recorder.take();
        recorder.normed(&self.weights)?;
        let normed = recorder.take();
        recorder.few(&self.weights)?;
        let head = recorder.take();
        recorder.choose(&self.weights)?;
        let choose = recorder.take();
        Ok(PassPlans {
            embed,
            layers,
            last,
            normed,
            head,
            choose,
        })
    }
}

impl<E: Executor> Drop for DeviceModel<E> {
    /// Drivers crash when a process ends over work that is under way.
    fn drop(&mut self) {
        if let Err(failure) = self.exec.settle() {
            tracing::debug!(%failure, "a device that failed is let go");
        }
    }
}

/// Kernels read a block's matrices whole, and those that they read together alike.
fn check<B>(weights: &GpuWeights<B>) -> Result<(), GpuError> {
    for layer in &weights.layers {
        let together: [&[&GpuMatrix<B>]; 4] = [
            &[&layer.attn_q, &layer.attn_k, &layer.attn_v],
            &[&layer.attn_output],
            &[&layer.ffn_gate, &layer.ffn_up],
            &[&layer.ffn_down],
        ];
        for matrices in together {
            let float = matrices[0].format.is_float();
            if matrices.iter().any(|it| it.format.is_float() != float) {
                let mixed = "floats and integers in one product".to_owned();
                return Err(GpuError::Unsupported(mixed));
            }
            if matrices.iter().any(|it| it.parts.len() != 1) {
                let large = "a matrix larger than a binding".to_owned();
                return Err(GpuError::Unsupported(large));
            }
        }
    }
    Ok(())
}

mod memory;
mod profile;
mod submit_budget;

pub use profile::KernelCost;

#[cfg(test)]
mod tests;
