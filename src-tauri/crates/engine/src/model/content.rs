//! Identity of a model's weights: a hash of all bytes that were read while they were loaded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kernels::{BlockType, ReadObserver, Stored};
use sha2::{Digest, Sha256};

use crate::model::config::Config;
use crate::model::weights::{self, Tensor, TensorBytes, WeightSource};
use crate::summary::hex;

/// Weights that are hashed as they are read. This needs no second pass over the file, and the hash is of the loaded
/// bytes even if the file changes meanwhile.
pub struct HashedWeights {
    source: Arc<dyn WeightSource + Send + Sync>,
    pieces: ReadPieces,
}

/// Start of a piece of the weights.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    /// Offset in the file.
    File(u64),
    /// Beginning of a tensor in memory, by its name.
    Tensor(String),
}

/// Length and hash of each piece that was read; `None` if it was read twice with different bytes.
#[derive(Debug, Default)]
struct ReadPieces(Mutex<BTreeMap<Start, Option<(usize, blake3::Hash)>>>);

impl ReadPieces {
    fn add(&self, start: Start, bytes: &[u8]) {
        let piece = Some((bytes.len(), blake3::hash(bytes)));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(start)
            .and_modify(|before| *before = before.filter(|before| Some(*before) == piece))
            .or_insert(piece);
    }
}

impl ReadObserver for ReadPieces {
    fn read(&self, start: u64, bytes: &[u8]) {
        self.add(Start::File(start), bytes);
    }
}

impl HashedWeights {
    /// Wraps `source`.
    pub fn new(source: Arc<dyn WeightSource + Send + Sync>) -> Self {
        Self {
            source,
            pieces: ReadPieces::default(),
        }
    }

    /// SHA-256 over the hashes of all pieces. `None` if not all weights were read, or a piece was read twice with
    /// different bytes.
    pub fn content(&self, config: &Config) -> Option<String> {
        let pieces = self.pieces.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut hash, mut read) = (Sha256::new(), 0_u64);
        for (start, piece) in &*pieces {
            let (len, piece) = (*piece)?;
            read += len as u64;
            hash.update(format!("{start:?} {len} {piece}\n"));
        }
        let is_all = read == weights::stored_bytes(&*self.source, config);
        is_all.then(|| hex(&hash.finalize()))
    }
}

impl WeightSource for HashedWeights {
    fn shape(&self, name: &str) -> Option<(BlockType, usize, usize)> {
        self.source.shape(name)
    }

    fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let mut tensor = self.source.tensor(name)?;
        match &mut tensor.bytes {
            TensorBytes::Stored(Stored::File { observer, .. }) => *observer = Some(&self.pieces),
            TensorBytes::Stored(Stored::Memory(bytes)) => {
                self.pieces.add(Start::Tensor(name.to_owned()), bytes);
            }
            TensorBytes::Generated(bytes) => {
                self.pieces.add(Start::Tensor(name.to_owned()), bytes);
            }
        }
        Some(tensor)
    }
}
