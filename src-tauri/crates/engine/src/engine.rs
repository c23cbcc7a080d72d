//! The engine as its owner sees it: one loaded model with one sequence.

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
    /// The dimensions, with the positions stretched for the context in use.
    config: Config,
    session: Session,
    template: ChatTemplate,
    summary: ModelSummary,
    device: ActiveDevice,
    /// How keys and values are kept.
    kv: KvType,
    load_s: f64,
}

impl Engine {
    /// Reads the file at `path` and loads the model; `progress` is called with the part that is done, from 0 to 1.
    ///
    /// # Errors
    /// When the file is not a model that this engine runs, or the device has no room for it.
    pub fn open(
        path: &Path,
        options: &LoadOptions,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Engine, OpenError> {
        Engine::load(&ModelFile::open(path)?, options, progress)
    }

    /// Loads the model of a file that was read before.
    ///
    /// # Errors
    /// When a weight cannot be read, or the device has no room for the model.
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
        // Where the device has cut it, one that was asked for would get more: layers move to the CPU for it.
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

    /// The model of a file that was read before, whose logits `source` computes for at most `context` tokens: the engine
    /// loads no weights. `device` says where the source runs.
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
        let model = ExternalModel::new(source, file.config.vocab);
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

    /// The file that it was loaded from.
    pub fn file(&self) -> &ModelFile {
        &self.file
    }

    /// Seconds that reading the file's header and loading the model took.
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

    /// Where it runs.
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

    /// Has the file's chat template run in `sandbox` from now on if its text is unknown, or the built-in one in its place.
    pub fn set_sandbox(&mut self, sandbox: Option<Arc<dyn TemplateSandbox>>) {
        self.template = ChatTemplate::of_file(self.file.chat_template.as_deref(), sandbox);
        self.summary.set_template(&self.template);
    }

    /// What the model reads to go on with `conversation`.
    ///
    /// # Errors
    /// When it is empty, or the model's template refuses it.
    pub fn prompt(&self, conversation: &Conversation) -> Result<Prompt, PromptError> {
        self.prompt_unless(conversation, &AtomicBool::new(false))
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
        encode_prompt(conversation, &self.template, &self.file.tokenizer, cancel)
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

    /// Logits `[vocab]` after the last of `tokens`, or after every one of them, read from an empty cache.
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
    /// where `cancel` ended that.
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

    /// The sequence, for measurements that run passes by themselves.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }
}
