//! The KV cache of one sequence on a device.

use kernels::KvType;

use crate::error::GpuError;
use crate::exec::executor::Executor;
use crate::shape::Shape;

/// Positions by which the cache grows.
const GROWTH: usize = 1024;

/// Keys and values of every layer on the device, `[capacity, K]` each, and RoPE's angles `[capacity, rotary / 2, 2]`.
pub(crate) struct GpuKvCache<B> {
    ty: KvType,
    /// K
    width: usize,
    capacity: usize,
    layers: Vec<GpuKvLayer<B>>,
    pub(crate) rotation: B,
}

/// One layer's keys and values, each a buffer of values and, if they are quantised, one of scales.
pub(crate) struct GpuKvLayer<B> {
    keys: Vec<B>,
    values: Vec<B>,
}

impl<B> GpuKvLayer<B> {
    /// The buffers in the order of the kernels' bindings.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &B> {
        self.keys.iter().chain(&self.values)
    }
}

impl<B: Clone> GpuKvCache<B> {
    /// An empty cache for the last `layers` layers of the model.
    pub(crate) fn new<E: Executor<Buffer = B>>(
        exec: &mut E,
        shape: &Shape,
        layers: usize,
        ty: KvType,
    ) -> Result<GpuKvCache<B>, GpuError> {
        let mut cache = GpuKvCache {
            ty,
            width: shape.kv_width(),
            capacity: 0,
            layers: Vec::new(),
            rotation: exec.buffer("rotation", 0)?,
        };
        for _ in 0..layers {
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

    /// Memory of the keys and values, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let all: u64 = sizes(self.ty, self.width, self.capacity).iter().sum();
        usize::try_from(2 * all).unwrap_or(usize::MAX) * self.layers.len()
    }

    /// Bytes that one layer reads to attend to `positions`.
    pub(crate) fn bytes_read(&self, shape: &Shape, positions: usize) -> u64 {
        2 * sizes(self.ty, shape.kv_width(), positions)
            .iter()
            .sum::<u64>()
    }

    /// Positions that are allocated.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Grows to at least `positions`, which exceed the capacity, and keeps the content.
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
            // A device that is nearly full has no room for two caches: each layer's old one is freed before the next grows.
            if self.capacity > 0 {
                exec.wait_idle()?;
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

/// Bytes of the buffers that hold `positions` of `width` values: values, and scales if quantised.
fn sizes(ty: KvType, width: usize, positions: usize) -> Vec<u64> {
    let values = (width * positions) as u64;
    match ty {
        KvType::F32 => vec![4 * values],
        KvType::F16 => vec![2 * values],
        KvType::Q8_0 => vec![values, values / 8],
    }
}
