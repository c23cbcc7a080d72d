//! The model: tokens in, logits out.

use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Tensor};
use candle_transformers::models::smol::quantized_smollm3::QuantizedModelForCausalLM;
use candle_transformers::models::{quantized_llama, quantized_qwen2, quantized_qwen3};

use crate::error::ReferenceError;
use crate::outline::{Family, MOST_TOGETHER, ModelOutline};

/// candle's implementation of an architecture.
enum Candle {
    SmolLm3(Box<QuantizedModelForCausalLM>),
    Llama(quantized_llama::ModelWeights),
    Qwen2(quantized_qwen2::ModelWeights),
    Qwen3(quantized_qwen3::ModelWeights),
}

impl Candle {
    fn open(path: &Path, architecture: Family) -> Result<Candle, ReferenceError> {
        let cpu = Device::Cpu;
        if architecture == Family::SmolLm3 {
            // The attention for rotated pairs in the order of GGUF files, with heads of any width.
            let interleaved = true;
            let model = QuantizedModelForCausalLM::from_gguf(path, &cpu, interleaved)?;
            return Ok(Candle::SmolLm3(Box::new(model)));
        }
        let mut file = File::open(path)?;
        let content = Content::read(&mut file)?;
        let file = &mut file;
        Ok(match architecture {
            Family::Qwen2 => Candle::Qwen2(quantized_qwen2::ModelWeights::from_gguf(
                content, file, &cpu,
            )?),
            Family::Qwen3 => Candle::Qwen3(quantized_qwen3::ModelWeights::from_gguf(
                content, file, &cpu,
            )?),
            Family::SmolLm3 | Family::Llama => Candle::Llama(
                quantized_llama::ModelWeights::from_gguf(content, file, &cpu)?,
            ),
        })
    }

    fn forward(&mut self, tokens: &Tensor, position: usize) -> candle_core::Result<Tensor> {
        match self {
            Candle::SmolLm3(model) => model.forward(tokens, position),
            Candle::Llama(model) => model.forward(tokens, position),
            Candle::Qwen2(model) => model.forward(tokens, position),
            Candle::Qwen3(model) => model.forward(tokens, position),
        }
    }

    fn clear(&mut self) {
        match self {
            Candle::SmolLm3(model) => model.clear_kv_cache(),
            Candle::Llama(model) => model.clear_kv_cache(),
            Candle::Qwen2(model) => model.clear_kv_cache(),
            Candle::Qwen3(model) => model.clear_kv_cache(),
        }
    }
}

/// A model as candle computes it, with the cache of one sequence.
pub struct ReferenceModel {
    model: Candle,
    outline: ModelOutline,
    /// Tokens in the cache.
    position: usize,
    /// A single token was read: the cache of candle's SmolLM3 for longer passes lacks it from there on.
    decoding: bool,
}

impl ReferenceModel {
    /// Opens a GGUF file if its memory fits into `available` bytes, or if that is not known. candle prints its progress
    /// to stdout.
    ///
    /// # Errors
    /// Fails if the file cannot be read, candle does not cover the model, or it does not fit.
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
        Ok(ReferenceModel {
            model: Candle::open(path, outline.architecture)?,
            outline,
            position: 0,
            decoding: false,
        })
    }

    /// Returns the file's dimensions.
    pub fn outline(&self) -> &ModelOutline {
        &self.outline
    }

    /// Clears the sequence.
    pub fn reset(&mut self) {
        self.model.clear();
        self.position = 0;
        self.decoding = false;
    }

    /// Appends `tokens` to the sequence; returns the logits `[vocab]` after the last of them.
    ///
    /// A prompt is read in passes of several tokens; after a single token, further ones are read one by one, as candle
    /// demands.
    ///
    /// # Errors
    /// Fails if there are no tokens, more than the context holds, one that is not in the vocabulary, or if candle
    /// fails: the sequence must then be reset.
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

    /// Computes the logits `[vocab]` after every one of `tokens`, read from an empty cache one by one; `each` takes
    /// them in order.
    ///
    /// # Errors
    /// Fails like [`ReferenceModel::append`].
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
