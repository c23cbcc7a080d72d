//! The public interface of the engine: one loaded model with one sequence.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use inference::{Conversation, Event, Finished, GenerateParams, KvType, Prompt};

use crate::context::{Context, kv_bytes_per_token};
use crate::model::config::Config;
use crate::model::evaluate::Pass;
use crate::model::external::{ExternalModel, LogitsSource};
use crate::model::weights;
use crate::model_file::ModelFile;
use crate::open_error::OpenError;
use crate::options::LoadOptions;
use crate::placement::{ActiveDevice, Placed, place};
use crate::run::generate::{GenerateError, Generator};
use crate::run::session::Session;
use crate::summary::ModelSummary;
use crate::text::prompt::{PromptError, encode_prompt};
use crate::text::template::{ChatTemplate, TemplateSandbox};
use crate::text::tokenizer::Tokenizer;

/// A loaded model with the KV cache of one sequence. It belongs to one thread.
pub struct Engine {
    file: ModelFile,
    /// The configuration for the context in use, with YaRN where it needs it.
    config: Config,
    session: Session,
    template: ChatTemplate,
    summary: ModelSummary,
    device: ActiveDevice,
    /// Storage type of keys and values.
    kv: KvType,
    load_s: f64,
}

impl Engine {
    /// Reads the file at `path` and loads the model; `progress` is called with the fraction that is done.
    ///
    /// # Errors
    /// When the file is not a supported model, or the device is out of memory.
    pub fn open(
        path: &Path,
        options: &LoadOptions,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Engine, OpenError> {
        Engine::load(&ModelFile::open(path)?, options, progress)
    }

    /// Loads the model of a file that is already read.
    ///
    /// # Errors
    /// When a weight cannot be read, or the device is out of memory.
    pub fn load(
        file: &ModelFile,
        options: &LoadOptions,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Engine, OpenError> {
        let started = Instant::now();
        let template =
            ChatTemplate::of_file(file.chat_template.as_deref(), options.sandbox.clone());
        let wanted = Context::new(&file.config, &*file.weights, options)?;
        let config = file.config.for_context(wanted.tokens);
        let Placed {
            session,
            device,
            context,
            kv,
        } = place(&config, &file.weights, options, wanted.tokens, progress)?;
        let mut summary = file.summary.clone();
        summary.set_template(&template);
        summary.context_length = context;
        summary.context_note = wanted.note;
        // A requested length may exceed what the GPU allows by default: layers move to the CPU for it.
        summary.context_can_grow = wanted.can_grow || context < wanted.tokens;
        let load_s = file.read_s + started.elapsed().as_secs_f64();
        tracing::info!(
            name = summary.name,
            quantisation = summary.quantisation,
            context = summary.context_length,
            device = device.name,
            load_s,
            "model loaded"
        );
        Ok(Engine {
            file: file.clone(),
            config,
            session,
            template,
            summary,
            device,
            kv,
            load_s,
        })
    }

    /// The model of a file that is already read, with logits of `source` for at most `context` tokens: the engine
    /// loads no weights. `device` describes the device of the source.
    pub fn with_source(
        file: &ModelFile,
        source: Box<dyn LogitsSource>,
        context: usize,
        device: ActiveDevice,
        sandbox: Option<Arc<dyn TemplateSandbox>>,
    ) -> Engine {
        let template = ChatTemplate::of_file(file.chat_template.as_deref(), sandbox);
        let mut summary = file.summary.clone();
        summary.set_template(&template);
        summary.context_length = context.min(file.config.context);
        let model = ExternalModel::new(source, file.config.shape.vocab);
        Engine {
            file: file.clone(),
            config: file.config.clone(),
            session: Session::new(Box::new(model)),
            template,
            summary,
            device,
            kv: KvType::F32,
            load_s: file.read_s,
        }
    }

    /// The file of the model.
    pub fn file(&self) -> &ModelFile {
        &self.file
    }

    /// Seconds of reading the header and loading the model.
    pub fn load_s(&self) -> f64 {
        self.load_s
    }

    /// Bytes of weights that every generated token reads.
    pub fn bytes_per_token(&self) -> u64 {
        weights::bytes_per_token(&*self.file.weights, &self.config)
    }

    /// Facts about the model.
    pub fn summary(&self) -> &ModelSummary {
        &self.summary
    }

    /// The model's dimensions.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The device that it runs on.
    pub fn device(&self) -> &ActiveDevice {
        &self.device
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.file.tokenizer
    }

    /// The model's chat template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// Sets the sandbox of an unknown chat template; without one, the built-in template replaces it.
    pub fn set_sandbox(&mut self, sandbox: Option<Arc<dyn TemplateSandbox>>) {
        self.template = ChatTemplate::of_file(self.file.chat_template.as_deref(), sandbox);
        self.summary.set_template(&self.template);
    }

    /// The prompt of `conversation`.
    ///
    /// # Errors
    /// When it is empty, or the template rejects it.
    pub fn prompt(&self, conversation: &Conversation) -> Result<Prompt, PromptError> {
        self.prompt_unless(conversation, &AtomicBool::new(false))
    }

    /// As [`Engine::prompt`], polling `cancel` while text is encoded.
    ///
    /// # Errors
    /// As [`Engine::prompt`], and when cancelled.
    pub fn prompt_unless(
        &self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, PromptError> {
        encode_prompt(conversation, &self.template, &self.file.tokenizer, cancel)
    }

    /// Memory of the KV cache now, in bytes.
    pub fn kv_bytes(&self) -> usize {
        self.session.kv_bytes()
    }

    /// Storage type of keys and values.
    pub fn kv_type(&self) -> KvType {
        self.kv
    }

    /// Memory of the KV cache with a full context, in bytes.
    pub fn full_kv_bytes(&self) -> u64 {
        kv_bytes_per_token(&self.config, self.kv) * self.summary.context_length as u64
    }

    /// Generates after `prompt` until the turn ends. The common prefix of `prompt` and the cached sequence is not
    /// evaluated again. `cancel` is polled several times per layer, also during prefill.
    ///
    /// # Errors
    /// When the prompt is empty or fills the context, or the device fails.
    pub fn generate(
        &mut self,
        prompt: &Prompt,
        params: &GenerateParams,
        cancel: &AtomicBool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Finished, GenerateError> {
        let Engine {
            file,
            session,
            summary,
            device,
            ..
        } = self;
        let finished = Generator {
            session,
            tokenizer: &file.tokenizer,
            context: summary.context_length,
        }
        .run(prompt, params, cancel, on_event);
        if let Some(reason) = session.failure() {
            *device = ActiveDevice {
                failure: Some(reason.to_owned()),
                ..ActiveDevice::cpu(device.cpu_level, device.threads)
            };
        }
        finished
    }

    /// Logits `[vocab]` after the last of `tokens`, or after each of them, from an empty cache.
    ///
    /// # Errors
    /// When there are no tokens, more than the context holds, one that is not in the vocabulary, or the device fails.
    pub fn logits(&mut self, tokens: &[u32], all: bool) -> Result<Vec<Vec<f32>>, GenerateError> {
        self.check_tokens(tokens)?;
        if all {
            return Ok(self.session.all_logits(tokens)?);
        }
        self.session.truncate(0);
        let _complete = self
            .session
            .read(tokens, &AtomicBool::new(false), &mut |_| {})?;
        Ok(vec![self.session.logits(0).to_vec()])
    }

    /// Logits `[vocab]` after every one of `tokens`, read from an empty cache: the first `prefill` of them in passes of
    /// many, as a prompt is read, and the others one by one, as an answer is written. `each` takes them in order. False
    /// when cancelled.
    ///
    /// # Errors
    /// As [`Engine::logits`].
    pub fn each_logits(
        &mut self,
        tokens: &[u32],
        prefill: usize,
        cancel: &AtomicBool,
        each: &mut dyn FnMut(&[f32]),
    ) -> Result<bool, GenerateError> {
        self.check_tokens(tokens)?;
        let pass = self.session.each_logits(tokens, prefill, cancel, each)?;
        Ok(pass == Pass::Complete)
    }

    /// Whether these can be read from an empty cache.
    fn check_tokens(&self, tokens: &[u32]) -> Result<(), GenerateError> {
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
        let vocabulary = self.file.tokenizer.vocabulary_size();
        if let Some(&id) = tokens.iter().find(|&&id| id as usize >= vocabulary) {
            return Err(GenerateError::UnknownToken { id, vocabulary });
        }
        Ok(())
    }

    /// The sequence, for measurements that run passes directly.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }
}
