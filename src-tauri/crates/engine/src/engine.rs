//! The engine as its owner sees it: one loaded model with one sequence.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kernels::{Cpu, CpuLevel, CpuLevelError, KvType};

use crate::backend::candle::Candle;
use crate::backend::gpu::GpuModel;
use crate::backend::{Backend, BackendError};
use crate::config::{Config, ConfigError};
use crate::device::{self, DeviceChoice, DeviceKind, DeviceRequest};
use crate::forward::{Evaluate, Model};
use crate::generate::{Event, Finished, GenerateError, GenerateParams, Generator};
use crate::gguf::{Gguf, GgufError};
use crate::process;
use crate::prompt::{Conversation, Prompt, PromptError};
use crate::session::Session;
use crate::summary::ModelSummary;
use crate::survival::{Reload, Surviving};
use crate::synthetic::{Synthetic, UnknownShape};
use crate::template::{ChatTemplate, TemplateError};
use crate::tokenizer::{Tokenizer, TokenizerError};
use crate::weights::{self, WeightError, WeightSource, Weights};

/// How a model is to be loaded.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Where it is to run.
    pub device: DeviceRequest,
    /// CPU threads; `None` for one per physical core.
    pub threads: Option<usize>,
    /// Length of the context in tokens; `None` for what the model was trained for, as far as memory allows.
    pub context: Option<usize>,
    /// How keys and values are kept.
    pub kv: KvType,
    /// All arithmetic in f32, on the CPU unless a GPU was asked for: slow, for measuring the fidelity of the fast way.
    pub exact: bool,
    /// The CPU's instruction set level; `None` for what `GOLDCREST_CPU` asks for, else the best there is.
    pub cpu_level: Option<CpuLevel>,
    /// Let the processor play a GPU, as tests do.
    pub software_gpu: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            device: DeviceRequest::Auto,
            threads: None,
            context: None,
            kv: KvType::F16,
            exact: false,
            cpu_level: None,
            software_gpu: false,
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
    /// The chat template in the file cannot be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
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
    Device(#[from] BackendError),
    /// No synthetic model of that name.
    #[error(transparent)]
    Synthetic(#[from] UnknownShape),
}

/// A loaded model with the KV cache of one sequence. It belongs to one thread.
pub struct Engine {
    session: Session,
    config: Config,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    summary: ModelSummary,
    device: DeviceChoice,
    /// How keys and values are kept.
    kv: KvType,
    pub(crate) load_s: f64,
    /// Bytes of weights that every generated token reads.
    pub(crate) bytes_per_token: u64,
}

/// Gives a model's weights once more, for the CPU when a GPU has failed.
type Reopen = Box<dyn Fn() -> Result<Box<dyn WeightSource>, OpenError> + Send>;

/// A model's file, read but not loaded.
struct Description {
    config: Config,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    summary: ModelSummary,
}

impl Description {
    fn read(gguf: &Gguf) -> Result<Description, OpenError> {
        let config = Config::from_gguf(gguf)?;
        let tokenizer = Tokenizer::from_gguf(gguf)?;
        let template = match gguf.str("tokenizer.chat_template") {
            Some(source) => ChatTemplate::parse(source)?,
            None => ChatTemplate::built_in(),
        };
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
    /// offsets, tokenizer, template.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(path: &Path) -> Result<ModelSummary, OpenError> {
        let gguf = Gguf::open(path)?;
        let description = Description::read(&gguf)?;
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
        } = Description::read(gguf)?;
        weights::check(source, &config)?;
        summary.context_length = context(&config, source, options)?;
        let (model, device) = place(&config, source, again, options, progress)?;
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
        let session = Session::new(model);
        Ok(Engine {
            session,
            config,
            tokenizer,
            template,
            summary,
            device,
            kv: options.kv,
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

    /// What the model reads to go on with `conversation`.
    ///
    /// # Errors
    /// When it is empty, or the model's template refuses it.
    pub fn prompt(&self, conversation: &Conversation) -> Result<Prompt, PromptError> {
        Prompt::new(conversation, &self.template, &self.tokenizer)
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
        if let Some(reason) = session.failed() {
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

/// Memory beside weights and cache: activations, the tokenizer, a margin for everything else.
const OVERHEAD: u64 = 256 << 20;
/// The shortest context that is of any use.
const SHORTEST_CONTEXT: usize = 1024;

/// How long a context can be.
fn context(
    config: &Config,
    source: &dyn WeightSource,
    options: &LoadOptions,
) -> Result<usize, OpenError> {
    let wanted = options
        .context
        .unwrap_or(config.context)
        .clamp(1, config.context);
    let Some(available) = process::available() else {
        return Ok(wanted);
    };
    let per_token = kv_bytes_per_token(config, options.kv);
    let fixed = weights::bytes(source, config) + OVERHEAD;
    let needed = |context: usize| fixed.saturating_add(per_token.saturating_mul(context as u64));
    let least = if options.context.is_some() {
        wanted
    } else {
        wanted.min(SHORTEST_CONTEXT)
    };
    if needed(least) > available {
        return Err(OpenError::Memory {
            needed: needed(least),
            available,
        });
    }
    let room = usize::try_from((available - fixed) / per_token).unwrap_or(usize::MAX);
    Ok(wanted.min(room))
}

/// Bytes that one token takes in the cache.
pub(crate) fn kv_bytes_per_token(config: &Config, kv: KvType) -> u64 {
    let values = 2 * (config.layers * config.kv_width()) as u64;
    match kv {
        KvType::F32 => 4 * values,
        KvType::F16 => 2 * values,
        KvType::Q8_0 => values * 34 / 32,
    }
}

/// Loads the weights on the device that was asked for, or on the CPU where that does not work.
fn place(
    config: &Config,
    source: &dyn WeightSource,
    again: Reopen,
    options: &LoadOptions,
    progress: &mut dyn FnMut(f32),
) -> Result<(Box<dyn Evaluate>, DeviceChoice), OpenError> {
    let threads = options
        .threads
        .filter(|&threads| threads > 0)
        .unwrap_or_else(device::physical_cores);
    let (level, refused) = device::cpu_level(options.cpu_level, CpuLevel::detect())?;
    let exact = options.exact;
    let cpu = move || {
        if exact {
            Cpu::exact(threads)
        } else {
            Cpu::new(threads, level)
        }
    };
    let on_gpu = match options.device {
        DeviceRequest::Gpu => {
            let (config_again, kv) = (config.clone(), options.kv);
            let reload = move || -> Result<Box<dyn Evaluate>, OpenError> {
                let chunk = cpu_chunk(&config_again, level);
                load(&config_again, cpu(), &*again()?, kv, chunk, &mut |_| {})
            };
            let reload = Box::new(move || reload().map_err(|error| error.to_string()));
            on_gpu(config, source, reload, options, progress)
        }
        _ if options.exact => Err("Exact arithmetic runs on the CPU".to_owned()),
        request => on_candle(request, config, source, options, progress),
    };
    let reason = match on_gpu {
        Ok((model, kind, name)) => {
            let reason = "A GPU is there and has room for the model".to_owned();
            let choice = DeviceChoice {
                kind,
                name,
                reason,
                cpu_level: level,
                threads,
            };
            return Ok((model, choice));
        }
        Err(reason) => reason,
    };
    let cpu = cpu();
    let reason = match refused {
        Some(refused) => format!("{reason}. {refused}"),
        None => reason,
    };
    let choice = DeviceChoice::cpu(cpu.level(), cpu.threads(), reason);
    let model = load(
        config,
        cpu,
        source,
        options.kv,
        cpu_chunk(config, level),
        progress,
    )?;
    Ok((model, choice))
}

/// A model on a GPU, with the GPU's kind and name; or the reason in words why there is none.
type OnGpu = Result<(Box<dyn Evaluate>, DeviceKind, String), String>;

/// Loads the weights on any GPU; `reload` is for when it fails.
fn on_gpu(
    config: &Config,
    source: &dyn WeightSource,
    reload: Reload,
    options: &LoadOptions,
    progress: &mut dyn FnMut(f32),
) -> OnGpu {
    let exec = gpu::Wgpu::open(None, options.software_gpu)
        .map_err(|failure| format!("The CPU is used: {failure}"))?;
    let name = exec.info().to_string();
    let options = gpu::Options {
        kv: options.kv,
        floats: options.exact,
    };
    let model = GpuModel::load(exec, config, source, options, GPU_CHUNK, progress)
        .map_err(|error| format!("The GPU could not take the model: {error}"))?;
    let model = Surviving::new(Box::new(model), config.vocab, reload);
    Ok((Box::new(model), DeviceKind::Gpu, name))
}

/// Loads the weights on a GPU of candle's.
fn on_candle(
    request: DeviceRequest,
    config: &Config,
    source: &dyn WeightSource,
    options: &LoadOptions,
    progress: &mut dyn FnMut(f32),
) -> OnGpu {
    let gpu = device::open_candle(request)?;
    let backend = Candle::new(gpu.device);
    let model = load(config, backend, source, options.kv, CANDLE_CHUNK, progress)
        .map_err(|error| format!("The GPU could not take the model: {error}"))?;
    Ok((model, gpu.kind, gpu.name))
}

fn load<B>(
    config: &Config,
    backend: B,
    source: &dyn WeightSource,
    kv: KvType,
    chunk: usize,
    progress: &mut dyn FnMut(f32),
) -> Result<Box<dyn Evaluate>, OpenError>
where
    B: Backend<Matrix: Send, Norm: Send, Rows: Send, Positions: Send, KvLayer: Send>
        + Send
        + 'static,
{
    let weights = Weights::load(&backend, source, config, progress)?;
    Ok(Box::new(Model::new(
        config.clone(),
        backend,
        weights,
        kv,
        chunk,
    )?))
}

/// Tokens per pass on a GPU.
const GPU_CHUNK: usize = 512;
const CANDLE_CHUNK: usize = 512;

/// Tokens per pass on the CPU: enough to make good use of every weight read, yet so few that a block takes no
/// longer than Stop may. The same for a model everywhere that a level is in use, so that answers do not depend on
/// the machine's speed.
fn cpu_chunk(config: &Config, level: CpuLevel) -> usize {
    let products_per_block: usize = match level {
        CpuLevel::AvxVnni | CpuLevel::Avx512 | CpuLevel::Amx => 24_000_000_000,
        _ => 12_000_000_000,
    };
    let block = config.products_per_token() as usize / config.layers;
    let fits = (products_per_block / block).clamp(32, 512);
    1 << fits.ilog2()
}
