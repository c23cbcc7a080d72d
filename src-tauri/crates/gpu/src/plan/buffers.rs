//! Buffers beside the weights: activations and the cache.

use kernels::KvType;

use crate::error::GpuError;
use crate::exec::executor::Executor;
use crate::model::Shape;
use crate::plan::specialize::PARTS;

/// Positions by which the cache grows.
const GROWTH: usize = 1024;
/// Chunks of the cache that are attended to side by side.
pub(crate) const MOST_CHUNKS: usize = 32;

/// Activations of a width, in groups of 32 with a scale or as floats.
pub(crate) struct Activations<B> {
    bytes: B,
    scales: B,
    floats: B,
}

impl<B> Activations<B> {
    pub(crate) fn new<E: Executor<Buffer = B>>(
        exec: &mut E,
        name: &str,
        values: usize,
    ) -> Result<Activations<B>, GpuError> {
        Ok(Activations {
            bytes: exec.buffer(name, values as u64)?,
            scales: exec.buffer(name, values as u64 / 2)?,
            floats: exec.buffer(name, 4 * values as u64)?,
        })
    }

    /// The buffers that kernels with or without integer products bind.
    pub(crate) fn of(&self, dot4: bool) -> Vec<&B> {
        if dot4 {
            vec![&self.bytes, &self.scales]
        } else {
            vec![&self.floats]
        }
    }
}

/// Activations of up to `columns` tokens.
pub(crate) struct PassBuffers<B> {
    /// The ids to be embedded; where one was chosen, it and what is to be said of it.
    pub(crate) tokens: B,
    /// `[m, E]` the residual stream
    pub(crate) x: B,
    /// `[m, E]`
    pub(crate) normed: Activations<B>,
    /// `[m, H + 2 K]`
    pub(crate) qkv: B,
    /// `[m, H]` rotated
    pub(crate) queries: B,
    /// `[m, heads, chunks, head_dim]`
    pub(crate) sums: B,
    /// `[m, heads, chunks, 2]`
    pub(crate) peaks: B,
    /// `[m, H]`
    pub(crate) attended: Activations<B>,
    /// `[m, F]`
    pub(crate) gated: Activations<B>,
    /// `[few, V]`
    pub(crate) logits: B,
    /// How tokens are chosen.
    pub(crate) sampling: B,
    /// A bit for each token of the vocabulary: set where it is never chosen.
    pub(crate) suppressed: B,
    /// What each part of the logits holds.
    pub(crate) parts: B,
}

impl<B> PassBuffers<B> {
    pub(crate) fn new<E: Executor<Buffer = B>>(
        exec: &mut E,
        shape: &Shape,
        columns: usize,
        few: usize,
    ) -> Result<PassBuffers<B>, GpuError> {
        let floats = |exec: &mut E, name: &str, values: usize| exec.buffer(name, 4 * values as u64);
        let (e, h, k) = (shape.embedding, shape.q_width(), shape.kv_width());
        // Only a few tokens have their cache parted.
        let partials = columns.max(few * MOST_CHUNKS) * shape.heads;
        Ok(PassBuffers {
            tokens: floats(exec, "tokens", columns)?,
            x: floats(exec, "x", columns * e)?,
            normed: Activations::new(exec, "normed", columns * e)?,
            qkv: floats(exec, "qkv", columns * (h + 2 * k))?,
            queries: floats(exec, "queries", columns * h)?,
            sums: floats(exec, "sums", partials * shape.head_dim)?,
            peaks: floats(exec, "peaks", partials * 2)?,
            attended: Activations::new(exec, "attended", columns * h)?,
            gated: Activations::new(exec, "gated", columns * shape.feed_forward)?,
            logits: floats(exec, "logits", few * shape.vocab)?,
            sampling: floats(exec, "sampling", 4)?,
            suppressed: floats(exec, "suppressed", shape.vocab.div_ceil(32))?,
            parts: floats(exec, "parts", 4 * PARTS)?,
        })
    }
}

/// Keys and values of every block, `[capacity, K]` each, and the rotation's angles `[capacity, rotary / 2, 2]`.
pub(crate) struct GpuKvCache<B> {
    ty: KvType,
    capacity: usize,
    layers: Vec<GpuKvLayer<B>>,
    pub(crate) rotation: B,
}

/// One block's keys and values; scales only where they are quantised.
pub(crate) struct GpuKvLayer<B> {
    keys: Vec<B>,
    values: Vec<B>,
}

impl<B> GpuKvLayer<B> {
    /// In the order in which the kernels bind them.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &B> {
        self.keys.iter().chain(&self.values)
    }
}

impl<B: Clone> GpuKvCache<B> {
    pub(crate) fn new<E: Executor<Buffer = B>>(
        exec: &mut E,
        shape: &Shape,
        ty: KvType,
    ) -> Result<GpuKvCache<B>, GpuError> {
        let mut cache = GpuKvCache {
            ty,
            capacity: 0,
            layers: Vec::new(),
            rotation: exec.buffer("rotation", 0)?,
        };
        for _ in 0..shape.layers {
            cache.layers.push(GpuKvLayer {
                keys: cache.buffers(exec, shape, 0)?,
                values: cache.buffers(exec, shape, 0)?,
            });
        }
        Ok(cache)
    }

    pub(crate) fn layer(&self, index: usize) -> &GpuKvLayer<B> {
        &self.layers[index]
    }

    pub(crate) fn ty(&self) -> KvType {
        self.ty
    }

    pub(crate) fn bytes(&self, shape: &Shape) -> usize {
        let width = shape.kv_width();
        let all: u64 = sizes(self.ty, width, self.capacity).iter().sum();
        usize::try_from(2 * all).unwrap_or(usize::MAX) * shape.layers
    }

    /// Bytes that a block reads to attend to so many positions.
    pub(crate) fn read_by(&self, shape: &Shape, positions: usize) -> u64 {
        2 * sizes(self.ty, shape.kv_width(), positions)
            .iter()
            .sum::<u64>()
    }

    /// Positions that there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes room for `positions`, more than there is room for.
    pub(crate) fn reserve<E: Executor<Buffer = B>>(
        &mut self,
        exec: &mut E,
        shape: &Shape,
        positions: usize,
        angles: &dyn Fn(usize, usize) -> Vec<f32>,
    ) -> Result<(), GpuError> {
        let capacity = positions.next_multiple_of(GROWTH);
        let used = sizes(self.ty, shape.kv_width(), self.capacity);
        for index in 0..self.layers.len() {
            let grown = GpuKvLayer {
                keys: self.buffers(exec, shape, capacity)?,
                values: self.buffers(exec, shape, capacity)?,
            };
            let before = self.layers[index].buffers();
            let used = used.iter().chain(&used);
            for ((from, to), &bytes) in before.zip(grown.buffers()).zip(used) {
                if bytes > 0 {
                    exec.copy(from, to, bytes)?;
                }
            }
            self.layers[index] = grown;
            // A device that is nearly full has no room for a second cache: block by block the old one goes.
            if self.capacity > 0 {
                exec.settle()?;
            }
        }
        let angles = angles(0, capacity);
        self.rotation = exec.buffer("rotation", size_of_val(&*angles) as u64)?;
        exec.write(&self.rotation, 0, bytemuck::cast_slice(&angles))?;
        self.capacity = capacity;
        Ok(())
    }

    fn buffers<E: Executor<Buffer = B>>(
        &self,
        exec: &mut E,
        shape: &Shape,
        capacity: usize,
    ) -> Result<Vec<B>, GpuError> {
        sizes(self.ty, shape.kv_width(), capacity)
            .into_iter()
            .map(|bytes| exec.buffer("cache", bytes))
            .collect()
    }
}

/// Bytes of the buffers that hold `positions` of `width` values.
fn sizes(ty: KvType, width: usize, positions: usize) -> Vec<u64> {
    let values = (width * positions) as u64;
    match ty {
        KvType::F32 => vec![4 * values],
        KvType::F16 => vec![2 * values],
        KvType::Q8_0 => vec![values, values / 8],
    }
}
