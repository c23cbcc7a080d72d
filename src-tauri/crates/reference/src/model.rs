//! The model: tokens in, logits out.

use std::path::Path;

use candle_core::{Device, Tensor};
use candle_transformers::models::smol::quantized_smollm3::QuantizedModelForCausalLM;

use crate::error::ReferenceError;
use crate::outline::{MOST_TOGETHER, ModelOutline};

/// A model as candle computes it, with the cache of one sequence.
pub struct ReferenceModel {
    model: QuantizedModelForCausalLM,
    outline: ModelOutline,
    /// Tokens in the cache.
    position: usize,
    /// A single token was read: candle's cache for longer passes lacks it from there on.
    decoding: bool,
}

impl ReferenceModel {
    /// Opens a GGUF file where its memory fits into `available` bytes, or where that is not known. candle prints its
    /// progress to stdout.
    ///
    /// # Errors
    /// When the file cannot be read, candle does not cover the model, or it does not fit.
    ///
    /// # Panics
    /// candle may panic on a malformed file.
    pub fn open(path: &Path, available: Option<u64>) -> Result<ReferenceModel, ReferenceError> {
        let outline = ModelOutline::read(path)?;
        if let Some(available) = available.filter(|&available| available < outline.memory) {
            return Err(ReferenceError::Memory {
                needed: outline.memory,
                available,
            });
        }
        // Of its two ways of attention, this one takes rotated pairs in the order in which GGUF files keep them, for heads
        // of any width.
        let interleaved = true;
        let model = QuantizedModelForCausalLM::from_gguf(path, &Device::Cpu, interleaved)?;
        Ok(ReferenceModel {
            model,
            outline,
            position: 0,
            decoding: false,
        })
    }

    /// The file's dimensions.
    pub fn outline(&self) -> &ModelOutline {
        &self.outline
    }

    /// Forgets the sequence.
    pub fn reset(&mut self) {
        self.model.clear_kv_cache();
        self.position = 0;
        self.decoding = false;
    }

    /// Reads `tokens` after those that were read before; logits `[vocab]` after the last of them.
    ///
    /// A prompt is read in passes of several tokens, and what follows a single token one by one, as candle demands.
    ///
    /// # Errors
    /// When there are no tokens, more than the context holds, one that is not in the vocabulary, or candle fails: then
    /// the sequence is to be reset.
    pub fn append(&mut self, tokens: &[u32]) -> Result<Vec<f32>, ReferenceError> {
        let ModelOutline { vocab, context, .. } = self.outline;
        let length = self.position + tokens.len();
        if length > context {
            return Err(ReferenceError::TooLong {
                tokens: length,
                context,
            });
        }
        if let Some(&id) = tokens.iter().find(|&&id| id as usize >= vocab) {
            return Err(ReferenceError::UnknownToken { id, vocab });
        }
        let mut logits = None;
        let mut rest = tokens;
        while !rest.is_empty() {
            let together = if self.decoding { 1 } else { MOST_TOGETHER };
            let (pass, later) = rest.split_at(rest.len().min(together));
            let input = Tensor::new(pass, &Device::Cpu)?.unsqueeze(0)?;
            logits = Some(self.model.forward(&input, self.position)?);
            self.decoding |= pass.len() == 1;
            self.position += pass.len();
            rest = later;
        }
        let logits = logits.ok_or(ReferenceError::Empty)?;
        Ok(logits.flatten_all()?.to_vec1()?)
    }

    /// Logits `[vocab]` after every one of `tokens`, read from an empty cache one by one; `each` takes them in order.
    ///
    /// # Errors
    /// As [`ReferenceModel::append`].
    pub fn all_logits(
        &mut self,
        tokens: &[u32],
        each: &mut dyn FnMut(Vec<f32>),
    ) -> Result<(), ReferenceError> {
        self.reset();
        for token in tokens {
            each(self.append(std::slice::from_ref(token))?);
        }
        Ok(())
    }
}
