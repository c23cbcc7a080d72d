//! The engine as its owner sees it: one loaded model with one sequence.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kernels::{CpuLevel, CpuLevelError, KvType};

use crate::check::Rates;
use crate::context::{Context, kv_bytes_per_token};
use crate::device::{DeviceChoice, DeviceRequest};
use crate::gguf::{Gguf, GgufError};
use crate::model::config::{Config, ConfigError};
use crate::model::error::DeviceError;
use crate::model::weights::{self, WeightError, WeightSource};
use crate::place::{Placed, Reopen, place};
use crate::run::generate::{Event, Finished, GenerateError, GenerateParams, Generator};
use crate::run::session::Session;
use crate::summary::ModelSummary;
use crate::synthetic::{Synthetic, UnknownShape};
use crate::text::prompt::{Conversation, Prompt, PromptError};
use crate::text::template::{ChatTemplate, TemplateSandbox};
use crate::text::tokenizer::{Tokenizer, TokenizerError};

/// How a model is to be loaded.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Where it is to run.
    pub device: DeviceRequest,
    /// Why there, in words for people, where the caller knows.
    pub because: Option<String>,
    /// What was measured of the GPU and the CPU, where it is to be used only as far as that pays.
    pub rates: Option<Rates>,
    /// CPU threads; `None` for one per physical core.
    pub threads: Option<usize>,
    /// Length of the context in tokens; `None` for what the model was trained for, as far as memory allows.
    pub context: Option<usize>,
    /// Whether YaRN may stretch the context beyond what the model was trained for.
    pub stretch: bool,
    /// How keys and values are kept.
    pub kv: KvType,
    /// All arithmetic in f32, on the CPU unless a GPU was asked for: slow, for measuring the fidelity of the fast way.
    pub exact: bool,
    /// The CPU's instruction set level; `None` for what `GOLDCREST_CPU` asks for, else the best there is.
    pub cpu_level: Option<CpuLevel>,
    /// Accept software Vulkan as a GPU.
    pub software_gpu: bool,
    /// Use a GPU's cooperative matrices, where it has them.
    pub gpu_matrices: bool,
    /// Where the file's chat template runs if its text is unknown; without, the built-in SmolLM3 protocol is used then.
    pub sandbox: Option<Arc<dyn TemplateSandbox>>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            device: DeviceRequest::Auto,
            because: None,
            rates: None,
            threads: None,
            context: None,
            stretch: true,
            kv: KvType::F16,
            exact: false,
            cpu_level: None,
            software_gpu: false,
            gpu_matrices: false,
            sandbox: None,
        }
    }
}

/// Why a model does not open. The message is for people and names what is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not a readable GGUF file.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Not a model that this engine runs.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The weights are not those of such a model.
    #[error(transparent)]
    Weights(#[from] WeightError),
    /// The tokenizer in the file cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The CPU level that was asked for is not one of this machine's.
    #[error(transparent)]
    CpuLevel(#[from] CpuLevelError),
    /// The model does not fit.
    #[error("the model needs {} MB of memory where {} MB are free", needed >> 20, available >> 20)]
    Memory {
        /// Bytes needed for weights and a short context.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// The device has no room for cache or scratch.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No synthetic model of that name.
    #[error(transparent)]
    Synthetic(#[from] UnknownShape),
}

impl OpenError {
    /// What the device says, where it is why.
    pub(crate) fn of_device(&self) -> Option<&DeviceError> {
        match self {
            OpenError::Device(error) => Some(error),
            OpenError::Weights(error) => error.of_device(),
            _ => None,
        }
    }

    /// Whether it is for want of the device's memory.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self.of_device(), Some(DeviceError::OutOfMemory(_)))
    }
}

/// A loaded model with the KV cache of one sequence. It belongs to one thread.
pub struct Engine {
    session: Session,
    config: Config,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    /// The template that the file brings.
    file_template: Option<String>,
    summary: ModelSummary,
    device: DeviceChoice,
    /// How keys and values are kept.
    kv: KvType,
    pub(crate) load_s: f64,
    /// Bytes of weights that every generated token reads.
    pub(crate) bytes_per_token: u64,
}

const CHAT_TEMPLATE: &str = "tokenizer.chat_template";

/// A model's file, read but not loaded.
struct Description {
    config: Config,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    summary: ModelSummary,
}

impl Description {
    fn read(
        gguf: &Gguf,
        sandbox: Option<Arc<dyn TemplateSandbox>>,
    ) -> Result<Description, OpenError> {
        let config = Config::from_gguf(gguf)?;
        let tokenizer = Tokenizer::from_gguf(gguf)?;
        let template = ChatTemplate::of_file(gguf.str(CHAT_TEMPLATE), sandbox);
        let summary = ModelSummary::new(gguf, &config, &template);
        Ok(Description {
            config,
            tokenizer,
            template,
            summary,
        })
    }
}

impl Engine {
    /// Everything that can be wrong with a file, without loading its weights: header, dimensions, tensor shapes and
    /// offsets, tokenizer. A chat template of unknown text does not run, and is no error.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(path: &Path) -> Result<ModelSummary, OpenError> {
        let gguf = Gguf::open(path)?;
        let description = Description::read(&gguf, None)?;
        weights::check(&gguf, &description.config)?;
        Ok(description.summary)
    }

    /// Loads a model; `progress` hears the part that is done, from 0 to 1.
    ///
    /// # Errors
    /// When the file is not a model that this engine runs, or it does not fit into memory.
    pub fn open(
        path: &Path,
        options: &LoadOptions,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Engine, OpenError> {
        let gguf = Gguf::open(path)?;
        tracing::info!(file = %path.display(), version = gguf.version(), tensors = gguf.tensors().len(), "model file");
        let path = path.to_owned();
        let again = move || -> Result<Box<dyn WeightSource>, OpenError> {
            Ok(Box::new(Gguf::open(&path)?))
        };
        Engine::load(&gguf, &gguf, Box::new(again), options, progress)
    }

    /// A model of random weights in the shape that `spec` names, such as `smollm3-3b-q4_k_m`: for measurements
    /// that need no file. The same seed makes the same weights.
    ///
    /// # Errors
    /// When there is no such shape, or it does not fit into memory.
    pub fn synthetic(spec: &str, seed: u64, options: &LoadOptions) -> Result<Engine, OpenError> {
        let source = Synthetic::new(spec, seed)?;
        let gguf = source.metadata()?;
        let spec = spec.to_owned();
        let again = move || -> Result<Box<dyn WeightSource>, OpenError> {
            Ok(Box::new(Synthetic::new(&spec, seed)?))
        };
        Engine::load(&gguf, &source, Box::new(again), options, &mut |_| {})
    }

    fn load(
        gguf: &Gguf,
        source: &dyn WeightSource,
        again: Reopen,
        options: &LoadOptions,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Engine, OpenError> {
        let started = Instant::now();
        let Description {
            config,
            tokenizer,
            template,
            mut summary,
        } = Description::read(gguf, options.sandbox.clone())?;
        weights::check(source, &config)?;
        let wanted = Context::new(&config, source, options)?;
        let config = config.for_context(wanted.tokens);
        let Placed {
            session,
            device,
            context,
            kv,
        } = place(&config, source, again, options, wanted.tokens, progress)?;
        summary.context_length = context;
        summary.context_note = wanted.note;
        // Where the device has cut it, one that was asked for would get more: layers move to the CPU for it.
        summary.context_can_grow = wanted.can_grow || context < wanted.tokens;
        let load_s = started.elapsed().as_secs_f64();
        tracing::info!(
            name = summary.name,
            quantisation = summary.quantisation,
            context = summary.context_length,
            device = device.name,
            reason = device.reason,
            load_s,
            "model loaded"
        );
        let bytes_per_token = weights::bytes_per_token(source, &config);
        Ok(Engine {
            session,
            config,
            tokenizer,
            template,
            file_template: gguf.str(CHAT_TEMPLATE).map(str::to_owned),
            summary,
            device,
            kv,
            load_s,
            bytes_per_token,
        })
    }

    /// Facts about the model.
    pub fn summary(&self) -> &ModelSummary {
        &self.summary
    }

    /// The model's dimensions.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where it runs, and why there.
    pub fn device(&self) -> &DeviceChoice {
        &self.device
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The model's chat template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// Has the file's chat template run in `sandbox` from now on if its text is unknown, or the built-in one in its place.
    pub fn set_sandbox(&mut self, sandbox: Option<Arc<dyn TemplateSandbox>>) {
        self.template = ChatTemplate::of_file(self.file_template.as_deref(), sandbox);
        self.summary.set_template(&self.template);
    }

    /// What the model reads to go on with `conversation`.
    ///
    /// # Errors
    /// When it is empty, or the model's template refuses it.
    pub fn prompt(&self, conversation: &Conversation) -> Result<Prompt, PromptError> {
        Prompt::new(conversation, &self.template, &self.tokenizer)
    }

    /// As [`Engine::prompt`], looking at `cancel` while text is encoded.
    ///
    /// # Errors
    /// As [`Engine::prompt`], and when `cancel` was set.
    pub fn prompt_unless(
        &self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, PromptError> {
        Prompt::unless(conversation, &self.template, &self.tokenizer, cancel)
    }

    /// Memory that the KV cache holds now, in bytes.
    pub fn kv_bytes(&self) -> usize {
        self.session.kv_bytes()
    }

    /// How keys and values are kept.
    pub fn kv_type(&self) -> KvType {
        self.kv
    }

    /// Memory that it takes when the context is full, in bytes.
    pub fn full_kv_bytes(&self) -> u64 {
        kv_bytes_per_token(&self.config, self.kv) * self.summary.context_length as u64
    }

    /// Goes on from `prompt` until the turn ends. What the last call read or wrote is not read again as far as
    /// `prompt` begins with it. `cancel` is looked at several times per block, while the prompt is read too.
    ///
    /// # Errors
    /// When the prompt is empty or leaves no room for an answer, or the device fails.
    pub fn generate(
        &mut self,
        prompt: &[u32],
        params: &GenerateParams,
        cancel: &AtomicBool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Finished, GenerateError> {
        let Engine {
            session,
            tokenizer,
            summary,
            device,
            ..
        } = self;
        let finished = Generator {
            session,
            tokenizer,
            context: summary.context_length,
        }
        .run(prompt, params, cancel, on_event);
        if let Some(reason) = session.failure() {
            let reason = format!("The GPU failed and the CPU goes on: {reason}");
            *device = DeviceChoice::cpu(device.cpu_level, device.threads, reason);
        }
        finished
    }

    /// Logits `[vocab]` after the last of `tokens`, or after every one of them, read from an empty cache.
    ///
    /// # Errors
    /// When there are no tokens, more than the context holds, one that is not in the vocabulary, or the device fails.
    pub fn logits(&mut self, tokens: &[u32], all: bool) -> Result<Vec<Vec<f32>>, GenerateError> {
        let context = self.summary.context_length;
        if tokens.is_empty() {
            return Err(GenerateError::Empty);
        }
        if tokens.len() > context {
            return Err(GenerateError::TooLong {
                prompt: tokens.len(),
                context,
            });
        }
        let vocabulary = self.tokenizer.vocabulary_size();
        if let Some(&id) = tokens.iter().find(|&&id| id as usize >= vocabulary) {
            return Err(GenerateError::UnknownToken { id, vocabulary });
        }
        if all {
            return Ok(self.session.all_logits(tokens)?);
        }
        self.session.truncate(0);
        let _complete = self
            .session
            .read(tokens, &AtomicBool::new(false), &mut |_| {})?;
        Ok(vec![self.session.logits(0).to_vec()])
    }

    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }
}
