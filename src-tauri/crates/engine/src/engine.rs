//! The public interface of the engine: one loaded model with its sequences.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use inference::{
    Conversation, Event, Finished, GenerateParams, KvType, ModelRequest, Prompt, Signals,
};

use crate::context::{Context, kv_bytes_per_token};
use crate::model::config::Config;
use crate::model::content::HashedWeights;
use crate::model::evaluate::Pass;
use crate::model::external::{ExternalModel, LogitsSource};
use crate::model::weights::{self, WeightSource};
use crate::model_file::ModelFile;
use crate::open_error::OpenError;
use crate::options::LoadOptions;
use crate::placement::{ActiveDevice, Placed, place};
use crate::process;
use crate::run::error::GenerateError;
use crate::run::generate;
use crate::run::scheduler::{OnEvent, RequestEnd, Scheduler, StepOptions};
use crate::run::sequence::Sequence;
use crate::run::session::Session;
use crate::summary::ModelSummary;
use crate::text::prompt::{PromptEncoder, PromptError};
use crate::text::template::ChatTemplate;
use crate::text::tokenizer::Tokenizer;

/// Part of [`Engine::kv_identity`]: raised by a change of kernels or forward pass that changes values of the KV cache by
/// more than rounding.
const KV_REVISION: u32 = 1;

/// A loaded model with the KV caches of its sequences. It belongs to one thread.
pub struct Engine {
    file: ModelFile,
    /// The configuration for the context in use, with YaRN where it needs it.
    config: Config,
    scheduler: Scheduler,
    summary: ModelSummary,
    device: ActiveDevice,
    /// Storage type of keys and values.
    kv: KvType,
    /// True if all arithmetic is in f32.
    exact: bool,
    /// Hash of the loaded weights; `None` if not all of them were read.
    content: Option<String>,
    load_s: f64,
}

impl Engine {
    /// Reads the file at `path` and loads the model; `progress` is called with the fraction that is done.
    ///
    /// # Errors
    /// Fails if the file is not a supported model, or the device is out of memory.
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
    /// Fails if a weight cannot be read, or the device is out of memory.
    pub fn load(
        file: &ModelFile,
        options: &LoadOptions,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Engine, OpenError> {
        let started = Instant::now();
        let wanted = Context::new(&file.config, &*file.weights, options)?;
        let config = file.config.for_context(wanted.tokens);
        let hashed = Arc::new(HashedWeights::new(Arc::clone(&file.weights)));
        let weights: Arc<dyn WeightSource + Send + Sync> = Arc::clone(&hashed) as _;
        let Placed {
            mut session,
            device,
            context,
            kv,
        } = place(&config, &weights, options, wanted.tokens, progress)?;
        let content = hashed.content(&config);
        let full = kv_bytes_per_token(&config, kv).saturating_mul(context as u64);
        session.set_spare_memory(Box::new(move |used, parked| {
            let available = process::available().unwrap_or(0);
            spare_memory(available, full.saturating_sub(used), parked)
        }));
        let mut summary = file.summary.clone();
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
        let mut scheduler = Scheduler::new(session, Arc::clone(&file.tokenizer), context);
        set_calls(&mut scheduler, &file.template);
        let per_token = kv_bytes_per_token(&config, kv);
        scheduler.set_memory_check(Box::new(move |tokens| {
            let needed = per_token.saturating_mul(tokens as u64);
            process::available().is_none_or(|free| needed <= free)
        }));
        Ok(Engine {
            file: file.clone(),
            config,
            scheduler,
            summary,
            device,
            kv,
            exact: options.exact,
            content,
            load_s,
        })
    }

    /// Wraps a file that is already read around `source`, which computes the logits for at most `context` tokens: the
    /// engine loads no weights. `device` describes the device of the source.
    pub fn with_source(
        file: &ModelFile,
        source: Box<dyn LogitsSource>,
        context: usize,
        device: ActiveDevice,
    ) -> Engine {
        let mut summary = file.summary.clone();
        summary.context_length = context.min(file.config.context);
        let model = ExternalModel::new(source, file.config.shape.vocab);
        let mut scheduler = Scheduler::new(
            Session::new(Box::new(model)),
            Arc::clone(&file.tokenizer),
            summary.context_length,
        );
        set_calls(&mut scheduler, &file.template);
        Engine {
            file: file.clone(),
            config: file.config.clone(),
            scheduler,
            summary,
            device,
            kv: KvType::F32,
            exact: false,
            content: None,
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
        &self.file.template
    }

    /// Encodes the prompt of `conversation`.
    ///
    /// # Errors
    /// Fails if it is empty, or the template rejects it.
    pub fn prompt(&self, conversation: &Conversation) -> Result<Prompt, PromptError> {
        self.prompt_cancellable(conversation, &AtomicBool::new(false))
    }

    /// Encodes a prompt like [`Engine::prompt`], polling `cancel` while text is encoded.
    ///
    /// # Errors
    /// Same as [`Engine::prompt`]; also fails if cancelled.
    pub fn prompt_cancellable(
        &self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, PromptError> {
        self.file.prompts.prompt(conversation, cancel)
    }

    /// The encoder of [`Engine::prompt`], for any thread.
    pub fn prompt_encoder(&self) -> Arc<PromptEncoder> {
        Arc::clone(&self.file.prompts)
    }

    /// Storage type of keys and values.
    pub fn kv_type(&self) -> KvType {
        self.kv
    }

    /// Memory of the KV cache with a full context, in bytes.
    pub fn full_kv_bytes(&self) -> u64 {
        kv_bytes_per_token(&self.config, self.kv) * self.summary.context_length as u64
    }

    /// Generates after `prompt` until the turn ends. The common prefix of `prompt` and a cached sequence is not evaluated
    /// again. The flags of `signals` are polled several times per layer, also during prefill. No submitted request may be
    /// active.
    ///
    /// # Errors
    /// Fails if the prompt is empty or fills the context, or the device fails.
    pub fn generate(
        &mut self,
        prompt: &Prompt,
        params: &GenerateParams,
        signals: &Signals,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Finished, GenerateError> {
        let finished = generate::generate(&mut self.scheduler, prompt, params, signals, on_event);
        self.note_failover();
        finished
    }

    /// Submits a request, which [`Engine::step`] runs.
    ///
    /// # Errors
    /// Fails if the prompt is empty or fills the context.
    pub fn submit(&mut self, request: ModelRequest) -> Result<(), GenerateError> {
        self.scheduler.submit(request)
    }

    /// Runs one pass over what the submitted requests need next. Returns the requests that ended.
    pub fn step(
        &mut self,
        step: &mut StepOptions<'_>,
        on_event: &mut OnEvent<'_>,
    ) -> Vec<RequestEnd> {
        let ended = self.scheduler.step(step, on_event);
        self.note_failover();
        ended
    }

    /// Returns true if a submitted request has not ended.
    pub fn is_busy(&self) -> bool {
        self.scheduler.is_busy()
    }

    /// Drops the sequences in memory of conversations that `keeps` refuses.
    pub fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        self.scheduler.retain(keeps);
    }

    /// Moves the sequences in memory of the conversation `from` to the conversation `to`.
    pub fn relabel(&mut self, from: u64, to: u64) {
        self.scheduler.relabel(from, to);
    }

    fn note_failover(&mut self) {
        if let Some(reason) = self.scheduler.session.failure()
            && self.device.failure.is_none()
        {
            self.device = ActiveDevice {
                failure: Some(reason.to_owned()),
                ..ActiveDevice::cpu(self.device.cpu_level, self.device.threads)
            };
        }
    }

    /// Logits `[vocab]` after the last of `tokens`, or after each of them.
    ///
    /// # Errors
    /// Fails if there are no tokens, too many for the context, or one outside of the vocabulary, or if the device
    /// fails.
    pub fn logits(&mut self, tokens: &[u32], all: bool) -> Result<Vec<Vec<f32>>, GenerateError> {
        self.check_tokens(tokens)?;
        if all {
            return Ok(self.scheduler.session.all_logits(tokens)?);
        }
        let session = &mut self.scheduler.session;
        let (mut sequence, never) = (Sequence::default(), AtomicBool::new(false));
        let _complete = session.prefill(&mut sequence, tokens, &never, &mut |_| {})?;
        Ok(vec![session.logits(0).to_vec()])
    }

    /// Passes the logits `[vocab]` after each of `tokens`, in order, to `each`. The first
    /// `prefill` tokens are read in passes of many, like a prompt, and the others one by one, like an answer. False
    /// when cancelled.
    ///
    /// # Errors
    /// Same as [`Engine::logits`].
    pub fn each_logits(
        &mut self,
        tokens: &[u32],
        prefill: usize,
        cancel: &AtomicBool,
        each: &mut dyn FnMut(&[f32]),
    ) -> Result<bool, GenerateError> {
        self.check_tokens(tokens)?;
        let pass = self
            .scheduler
            .session
            .each_logits(tokens, prefill, cancel, each)?;
        Ok(pass == Pass::Complete)
    }

    /// Checks that a sequence can have these tokens.
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

    /// Returns a text that identifies the values of the KV cache, the tokens aside: every byte of the loaded weights,
    /// the header, the rotary embedding for this context, the storage type, and how the CPU computes. `None` if blocks
    /// of the cache cannot be stored: on a GPU, which has it in its own memory.
    pub fn kv_identity(&self) -> Option<String> {
        let block = self.scheduler.session.block()?;
        let content = self.content.as_ref()?;
        Some(format!(
            "goldcrest {} {KV_REVISION} {} {content} {} {:?} {:?} {} {} threads exact {} block {block}",
            env!("CARGO_PKG_VERSION"),
            self.summary.fingerprint,
            self.kv.name(),
            self.config.shape,
            self.config.rope,
            self.device.cpu_level.name(),
            self.device.threads,
            self.exact,
        ))
    }

    /// The tokens of the sequences in memory.
    pub fn sequences(&self) -> impl Iterator<Item = &[u32]> {
        self.scheduler.sequences()
    }

    /// The model and the parked sequences.
    pub fn session(&mut self) -> &mut Session {
        &mut self.scheduler.session
    }
}

/// Sets the format of calls.
fn set_calls(scheduler: &mut Scheduler, template: &ChatTemplate) {
    if template.can_call_tools() {
        let runs_code = template.listing_tools().capabilities().code;
        let format = &template.protocol().calls;
        scheduler.grammars.set_calls(format, runs_code);
    }
}

/// Memory budget in bytes of the parked sequences, which take `parked` now: half of the memory that is left when the
/// sequence in use has grown by `growth`, and at most 4 GiB.
fn spare_memory(available: u64, growth: u64, parked: u64) -> u64 {
    const MOST: u64 = 4 << 30;
    let left = available.saturating_add(parked).saturating_sub(growth);
    (left / 2).min(MOST)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn identity(path: &Path, options: &LoadOptions) -> String {
        let engine = Engine::open(path, options, &mut |_| {}).expect("a good file");
        engine.kv_identity().expect("on the CPU")
    }

    fn fixture() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf")
    }

    #[test]
    fn a_kv_cache_of_other_bits_has_another_identity() {
        let usual = LoadOptions {
            threads: Some(1),
            ..LoadOptions::default()
        };
        let ours = identity(&fixture(), &usual);
        assert_eq!(identity(&fixture(), &usual), ours);
        let shorter = LoadOptions {
            context: Some(512),
            ..usual.clone()
        };
        assert_eq!(identity(&fixture(), &shorter), ours, "the same embedding");
        let others = [
            LoadOptions {
                context: Some(8192),
                ..usual.clone()
            },
            LoadOptions {
                kv: KvType::Q8_0,
                ..usual.clone()
            },
            LoadOptions {
                threads: Some(2),
                ..usual.clone()
            },
            LoadOptions {
                exact: true,
                ..usual.clone()
            },
            LoadOptions {
                cpu_level: Some(kernels::CpuLevel::Scalar),
                ..usual.clone()
            },
        ];
        for options in others {
            assert_ne!(identity(&fixture(), &options), ours, "{options:?}");
        }
    }

    #[test]
    fn one_bit_of_the_weights_is_another_identity_and_another_time_is_not() {
        let tiny = testing::tiny_model();
        let options = LoadOptions {
            threads: Some(2),
            ..LoadOptions::default()
        };
        let ours = identity(&tiny, &options);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("copy.gguf");
        let bytes = std::fs::read(&tiny).expect("read");
        let changed = std::fs::metadata(&tiny).expect("there").modified();
        let changed = changed.expect("a time");
        let write = |bytes: &[u8], at| {
            std::fs::write(&path, bytes).expect("written");
            let file = std::fs::File::options().append(true).open(&path);
            file.expect("opened").set_modified(at).expect("set");
        };
        // In the middle of tensors; size and time stay.
        for tenth in 6..10 {
            let mut other = bytes.clone();
            let at = other.len() * tenth / 10;
            other[at] ^= 1;
            write(&other, changed);
            assert_ne!(identity(&path, &options), ours, "byte {at}");
        }
        write(&bytes, std::time::SystemTime::now());
        assert_eq!(identity(&path, &options), ours, "copied");
    }

    #[test]
    fn a_file_of_the_same_header_with_other_weights_has_another_identity() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("other.gguf");
        let mut bytes = std::fs::read(fixture()).expect("read");
        let last = bytes.len() - 100;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        let changed = std::fs::metadata(fixture()).expect("there").modified();
        let file = std::fs::File::options().append(true).open(&path);
        let file = file.expect("opened");
        file.set_modified(changed.expect("a time")).expect("set");
        let [ours, theirs] = [fixture(), path].map(|path| ModelFile::open(&path).expect("good"));
        assert_eq!(ours.summary().fingerprint, theirs.summary().fingerprint);
        assert_ne!(ours.content_hash(), theirs.content_hash());
    }

    #[test]
    fn parked_sequences_leave_room_for_the_one_in_use_to_grow() {
        const GIB: u64 = 1 << 30;
        assert_eq!(spare_memory(5 * GIB, 3 * GIB, 0), GIB);
        assert_eq!(spare_memory(4 * GIB, 3 * GIB, GIB), GIB, "what they have");
        assert_eq!(spare_memory(2 * GIB, 3 * GIB, 0), 0);
        assert_eq!(spare_memory(100 * GIB, 0, 0), 4 * GIB);
    }
}
