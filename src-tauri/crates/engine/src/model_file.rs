//! A model's file, read and checked, without its weights.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::gguf::Gguf;
use crate::model::config::Config;
use crate::model::weights::{self, WeightSource};
use crate::open_error::OpenError;
use crate::summary::{ModelSummary, hex};
use crate::text::prompt::PromptEncoder;
use crate::text::protocol::ChosenProtocol;
use crate::text::template::ChatTemplate;
use crate::text::tokenizer::Tokenizer;

const CHAT_TEMPLATE: &str = "tokenizer.chat_template";
/// Longest chat template in bytes; the published ones have 5,000.
const MAX_TEMPLATE_BYTES: usize = 64 << 10;

/// A model file: configuration, tokenizer, template and source of weights. Clones share it.
#[derive(Clone)]
pub struct ModelFile {
    path: Option<Arc<Path>>,
    pub(crate) weights: Arc<dyn WeightSource + Send + Sync>,
    pub(crate) config: Config,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: Arc<ChatTemplate>,
    pub(crate) prompts: Arc<PromptEncoder>,
    pub(crate) summary: ModelSummary,
    /// Seconds of reading it.
    pub(crate) read_s: f64,
}

impl ModelFile {
    /// Reads the file at `path` and checks everything but the values of its weights: header,
    /// dimensions, tensor shapes and offsets, tokenizer. A chat template of unknown text does not run and is not an error.
    ///
    /// # Errors
    /// The first problem.
    pub fn open(path: &Path) -> Result<ModelFile, OpenError> {
        let started = Instant::now();
        let gguf = Gguf::open(path)?;
        tracing::info!(file = %path.display(), version = gguf.version(), tensors = gguf.tensors().len(), "model file");
        let mut file = ModelFile::of_gguf(gguf)?;
        file.read_s = started.elapsed().as_secs_f64();
        Ok(file)
    }

    /// Checks a file whose header is already read, like [`ModelFile::open`].
    ///
    /// # Errors
    /// The first problem.
    pub fn of_gguf(gguf: Gguf) -> Result<ModelFile, OpenError> {
        let path = gguf.path().map(Arc::from);
        let described = ModelFile::describe(&gguf)?;
        let file = described.with_weights(Arc::new(gguf.without_metadata()))?;
        Ok(ModelFile { path, ..file })
    }

    /// Makes a model with the metadata of `gguf` and weights of another source, such as a generator.
    ///
    /// # Errors
    /// The first problem.
    pub fn from_parts(
        gguf: &Gguf,
        weights: Arc<dyn WeightSource + Send + Sync>,
    ) -> Result<ModelFile, OpenError> {
        ModelFile::describe(gguf)?.with_weights(weights)
    }

    fn describe(gguf: &Gguf) -> Result<Described, OpenError> {
        let config = Config::from_gguf(gguf)?;
        let tokenizer = Tokenizer::from_gguf(gguf)?;
        let chat_template = gguf.str(CHAT_TEMPLATE);
        if let Some(bytes) = chat_template.map(str::len)
            && bytes > MAX_TEMPLATE_BYTES
        {
            return Err(OpenError::LongTemplate {
                key: CHAT_TEMPLATE,
                bytes,
                most: MAX_TEMPLATE_BYTES,
            });
        }
        let has_token = |text: &str| tokenizer.special(text).is_some();
        let chosen = ChosenProtocol::of_model(chat_template, config.architecture, has_token)
            .ok_or(OpenError::NoChatFormat)?;
        let template = ChatTemplate::of_file(chat_template, chosen);
        Ok(Described {
            summary: ModelSummary::new(gguf, &config, chosen, &template),
            template: Arc::new(template),
            config,
            tokenizer,
        })
    }

    /// Its path, if it is a file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Facts about the model, with its trained context.
    pub fn summary(&self) -> &ModelSummary {
        &self.summary
    }

    /// SHA-256 over the fingerprint, the time of the last change, and samples of each tensor, so that models with equal
    /// headers but different weights differ. It describes the opened file, even if its path leads elsewhere by now.
    /// `None` if the file cannot be read.
    pub fn content_hash(&self) -> Option<String> {
        let mut hash = Sha256::new().chain_update(&self.summary.fingerprint);
        if let Some(changed) = self.weights.modified().ok()? {
            hash.update(format!("{changed:?}"));
        }
        weights::sample(&*self.weights, &self.config, &mut |bytes| {
            hash.update(bytes)
        })
        .ok()?;
        Some(hex(&hash.finalize()))
    }

    /// The chat template of the file, or its replacement.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// The model's dimensions.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The source of the weights.
    pub fn weights(&self) -> &dyn WeightSource {
        &*self.weights
    }
}

/// The content of a file's metadata.
struct Described {
    config: Config,
    tokenizer: Tokenizer,
    template: Arc<ChatTemplate>,
    summary: ModelSummary,
}

impl Described {
    fn with_weights(
        self,
        weights: Arc<dyn WeightSource + Send + Sync>,
    ) -> Result<ModelFile, OpenError> {
        weights::check(&*weights, &self.config)?;
        let tokenizer = Arc::new(self.tokenizer);
        let template = Arc::clone(&self.template);
        Ok(ModelFile {
            path: None,
            weights,
            config: self.config,
            prompts: Arc::new(PromptEncoder::new(template, Arc::clone(&tokenizer))),
            tokenizer,
            template: self.template,
            summary: self.summary,
            read_s: 0.0,
        })
    }
}
