//! The KV cache of one sequence in host memory. Sequences share its storage, and blocks of it are stored on disk.

use kernels::{KvLayer, KvType};

use crate::model::error::DeviceError;

/// Keys and values of every layer, position after position. Clones share their storage until one of them is written to.
#[derive(Clone)]
pub struct KvCache {
    layers: Vec<KvLayer>,
    len: usize,
}

impl KvCache {
    /// Positions by which storage is shared; blocks begin and end at multiples of it.
    pub const SEGMENT: usize = KvLayer::SEGMENT;

    /// An empty cache.
    pub fn new(kv: KvType, layers: usize, kv_heads: usize, head_dim: usize) -> KvCache {
        let layer = |_| KvLayer::new(kv, kv_heads, head_dim);
        KvCache {
            layers: (0..layers).map(layer).collect(),
            len: 0,
        }
    }

    /// Positions in the cache.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if it holds no position.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory of keys and values in bytes, shared storage included.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(KvLayer::bytes).sum()
    }

    /// The layers, to which a pass appends; [`KvCache::commit`] completes the pass, [`KvCache::truncate`] removes it.
    pub(crate) fn layers(&mut self) -> &mut [KvLayer] {
        &mut self.layers
    }

    /// Adds `tokens` to the length, once all layers hold these positions.
    pub(crate) fn commit(&mut self, tokens: usize) {
        self.len += tokens;
    }

    /// Removes all but the first `len` positions.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        for layer in &mut self.layers {
            layer.truncate(self.len);
        }
    }

    /// The first `len` positions; storage behind them is not held.
    #[must_use]
    pub fn prefix(&self, len: usize) -> KvCache {
        let len = self.len.min(len);
        let layer = |layer: &KvLayer| layer.prefix(len);
        KvCache {
            layers: self.layers.iter().map(layer).collect(),
            len,
        }
    }

    /// Bytes of a block of this many positions, which must be whole segments.
    pub fn block_bytes(&self, positions: usize) -> usize {
        let segment: usize = self.layers.iter().map(KvLayer::segment_bytes).sum();
        positions / Self::SEGMENT * segment
    }

    /// Encodes positions `first..first + positions`, whole segments, for [`KvCache::append_block`]: bit for bit as
    /// stored.
    ///
    /// # Errors
    /// Fails if out of memory.
    pub fn block(&self, first: usize, positions: usize) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = Vec::new();
        kernels::reserve(&mut bytes, self.block_bytes(positions))?;
        for segment in first / Self::SEGMENT..(first + positions) / Self::SEGMENT {
            for layer in &self.layers {
                layer.encode_segment(segment, &mut bytes);
            }
        }
        Ok(bytes)
    }

    /// Appends a block of this many positions behind those of the cache, which must end at a segment.
    ///
    /// # Errors
    /// Fails if `bytes` is not such a block, or out of memory; the cache is then unchanged.
    pub fn append_block(&mut self, bytes: &[u8], positions: usize) -> Result<(), DeviceError> {
        let expected = self.block_bytes(positions);
        if bytes.len() != expected || !self.len.is_multiple_of(Self::SEGMENT) {
            return Err(DeviceError::Input(format!(
                "a block of {positions} positions has {expected} bytes, not {}",
                bytes.len()
            )));
        }
        let mut rest = bytes;
        for _ in 0..positions / Self::SEGMENT {
            for layer in &mut self.layers {
                let (segment, after) = rest.split_at(layer.segment_bytes());
                rest = after;
                if let Err(error) = layer.append_segment(segment) {
                    self.truncate(self.len);
                    return Err(error.into());
                }
            }
        }
        self.len += positions;
        Ok(())
    }
}
