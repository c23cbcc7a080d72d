//! How fast a loaded model is, measured in llama-bench's manner; and models of random weights to measure.

mod instrument;
mod on_gpu;
mod repeats;
#[cfg(test)]
#[path = "../../skipped.rs"]
mod skipped;
mod synthetic;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use engine::run::generate::rate;
use engine::run::random::Random;
use engine::run::sampler::Sampler;
use engine::{CpuLevel, Engine, GenerateError, PromptError, process};
use inference::{Conversation, GenerateParams, Role, Sampling, Turn};
use serde::Serialize;

use instrument::{Instrument, median, median_of};
pub use on_gpu::{GpuReport, KernelReport};
pub use repeats::LookupReport;
pub use synthetic::{Synthetic, SyntheticError, UnknownShape, synthetic};

/// What to measure.
#[derive(Clone, Debug)]
pub struct BenchParams {
    /// Tokens of the prompt that is read; 0 leaves reading out.
    pub prompt: usize,
    /// Tokens that are generated; 0 leaves generating out.
    pub generate: usize,
    /// Tokens that are in the cache before either.
    pub depth: usize,
    /// Tokens of the chat that a follow-up is asked in; 0 leaves it out.
    pub chat: usize,
    /// Whether to measure drafts from the context.
    pub lookup: bool,
    /// How often each is measured; the median counts.
    pub repeats: usize,
}

impl Default for BenchParams {
    fn default() -> Self {
        BenchParams {
            prompt: 512,
            generate: 128,
            depth: 0,
            chat: 0,
            lookup: false,
            repeats: 3,
        }
    }
}

/// What was measured. Rates in tokens per second, `None` for what was left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchReport {
    /// The model's name.
    pub model: String,
    /// How most of its weights are stored.
    pub quantisation: String,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens generated.
    pub generate: usize,
    /// Tokens in the cache before.
    pub depth: usize,
    /// Median rate of reading.
    pub prefill_tok_s: Option<f64>,
    /// Median rate of generating.
    pub decode_tok_s: Option<f64>,
    /// What this machine reads from memory in this process with as many threads, in 10⁹ bytes per second.
    pub read_bandwidth_gb_s: f64,
    /// Bytes of weights that each generated token reads.
    pub bytes_per_token: u64,
    /// Rate of generating times these bytes, over the bandwidth: 1 is the wall.
    pub bandwidth_used: Option<f64>,
    /// Products of small integers that this CPU adds up at this level with as many threads, in 10¹² per second.
    pub integer_tmac_s: f64,
    /// Products that each token of a prompt takes in the blocks' matrices.
    pub products_per_token: u64,
    /// Rate of reading times these products, over that of the CPU: 1 is the roof.
    pub integer_used: Option<f64>,
    /// Median time to choose a token among [`VOCABULARY`] with the default chain, in milliseconds.
    pub sampling_ms: f64,
    /// What a token costs on a GPU, by kernel.
    pub gpu: Option<GpuReport>,
    /// The follow-up, if it was asked for.
    pub follow_up: Option<FollowUp>,
    /// Drafts from the context, if they were asked for.
    pub lookup: Vec<LookupReport>,
    /// The part of one core that the loaded model takes while nothing is asked of it.
    pub idle_cpu: Option<f64>,
    /// The most memory that the process held, the measurement of the machine itself excluded.
    pub peak_rss_bytes: Option<u64>,
    /// Memory of the KV cache at the end.
    pub kv_bytes: usize,
    /// How keys and values are kept.
    pub kv_type: &'static str,
    /// Time from opening the file to ready; for a synthetic model making its weights counts too.
    pub load_s: f64,
    /// `cpu` or `gpu`.
    pub device: &'static str,
    /// The device for people.
    pub device_name: String,
    /// The CPU's instruction set level.
    pub cpu_level: &'static str,
    /// All levels of this machine, as `GOLDCREST_CPU` takes them, lowest first.
    pub cpu_levels: Vec<&'static str>,
    /// CPU threads.
    pub threads: usize,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The tokens do not fit, or the device failed.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The model's template refuses a plain chat.
    #[error(transparent)]
    Prompt(#[from] PromptError),
}

/// A question in a chat that the cache holds, from Enter to the first token.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FollowUp {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Of these, tokens that were in the cache.
    pub cached: usize,
    /// Seconds to the first token; the prompt is rendered, encoded and read in them, and the token chosen.
    pub first_token_s: f64,
}

/// SmolLM3's vocabulary.
const VOCABULARY: usize = 128_256;

/// Measures prefill and decoding of arbitrary tokens. The cache is empty afterwards.
///
/// # Errors
/// When depth, prompt and generated tokens do not fit into the context, or the device fails.
pub fn run(engine: &mut Engine, params: &BenchParams) -> Result<BenchReport, BenchError> {
    Instrument { engine }.run(params)
}

impl Instrument<'_> {
    fn run(&mut self, params: &BenchParams) -> Result<BenchReport, BenchError> {
        let longest = params.depth + params.prompt.max(params.generate);
        let context = self.engine.summary().context_length;
        if longest > context {
            let prompt = longest;
            return Err(GenerateError::TooLong { prompt, context }.into());
        }
        let tokens = self.arbitrary_tokens(longest);
        let repeats = params.repeats.max(1);
        // Read once unmeasured: buffers grow and the processor wakes.
        self.reading(&tokens, 0, longest.min(64))?;
        let prefill_tok_s = match params.prompt {
            0 => None,
            prompt => {
                let once = || self.reading(&tokens, params.depth, prompt);
                Some(rate(prompt, median(repeats, once)?))
            }
        };
        let decode_tok_s = match params.generate {
            0 => None,
            generate => {
                let once = || self.generating(&tokens, params.depth, generate);
                Some(rate(generate, median(repeats, once)?))
            }
        };
        let kv_bytes = self.engine.kv_bytes();
        let gpu = self.gpu_report(&tokens, params.depth)?;
        let follow_up = match params.chat {
            0 => None,
            chat => Some(self.follow_up(chat)?),
        };
        let lookup = if params.lookup {
            self.lookup_reports(repeats)?
        } else {
            Vec::new()
        };
        self.engine.session().truncate(0);
        let idle_cpu = idle_cpu();
        let peak_rss_bytes = process::peak_resident();
        let (summary, device) = (self.engine.summary(), self.engine.device());
        let bandwidth = kernels::read_bandwidth(device.threads);
        let integers = kernels::integer_rate(device.threads, device.cpu_level);
        let (bytes_per_token, products_per_token) = (
            self.engine.bytes_per_token(),
            self.engine.config().products_per_token(),
        );
        let of_the_cpu = |share: Option<f64>| share.filter(|_| !device.on_gpu);
        Ok(BenchReport {
            model: summary.name.clone(),
            quantisation: summary.quantisation.clone(),
            prompt: params.prompt,
            generate: params.generate,
            depth: params.depth,
            prefill_tok_s,
            decode_tok_s,
            read_bandwidth_gb_s: bandwidth / 1e9,
            bytes_per_token,
            bandwidth_used: of_the_cpu(
                decode_tok_s.map(|rate| rate * bytes_per_token as f64 / bandwidth),
            ),
            integer_tmac_s: integers / 1e12,
            products_per_token,
            integer_used: of_the_cpu(
                prefill_tok_s.map(|rate| rate * products_per_token as f64 / integers),
            ),
            sampling_ms: 1e3 * sampling_seconds(),
            gpu,
            follow_up,
            lookup,
            idle_cpu,
            peak_rss_bytes,
            kv_bytes,
            kv_type: self.engine.kv_type().name(),
            load_s: self.engine.load_s(),
            device: if device.on_gpu { "gpu" } else { "cpu" },
            device_name: device.name.clone(),
            cpu_level: device.cpu_level.name(),
            cpu_levels: CpuLevel::available()
                .into_iter()
                .map(CpuLevel::keyword)
                .collect(),
            threads: device.threads,
        })
    }

    /// A follow-up in a chat of about `tokens` tokens.
    fn follow_up(&mut self, tokens: usize) -> Result<FollowUp, BenchError> {
        let question = |text: &str| Turn::new(Role::User, text);
        let answer = Turn {
            ids: Some(self.arbitrary_tokens(tokens)),
            ..Turn::new(Role::Assistant, "")
        };
        let mut conversation = Conversation {
            messages: vec![question("What is there to know about goldcrests?"), answer],
            instructions: None,
            thinking: false,
            today: jiff::civil::Date::constant(2026, 3, 5),
            tools: Vec::new(),
        };
        let never = AtomicBool::new(false);
        let params = GenerateParams {
            max_tokens: Some(1),
            ..GenerateParams::default()
        };
        let before = self.engine.prompt(&conversation)?;
        self.fill(&before.ids)?;
        // Short: a vocabulary made for a benchmark has a token for each of its letters, ordinary ones for each word.
        let text = "Which of them matters most, and why?";
        conversation.messages.push(question(text));
        let started = Instant::now();
        let prompt = self.engine.prompt(&conversation)?;
        let finished = self
            .engine
            .generate(&prompt, &params, &never, &mut |_| {})?;
        Ok(FollowUp {
            prompt: finished.stats.prompt_tokens,
            cached: finished.stats.cached_tokens,
            first_token_s: started.elapsed().as_secs_f64(),
        })
    }

    /// Seconds to read `count` tokens behind `depth`.
    fn reading(
        &mut self,
        tokens: &[u32],
        depth: usize,
        count: usize,
    ) -> Result<f64, GenerateError> {
        self.fill(&tokens[..depth])?;
        let started = Instant::now();
        let prompt = &tokens[..(depth + count).max(1)];
        let _complete = self
            .engine
            .session()
            .read(prompt, &AtomicBool::new(false), &mut |_| {})?;
        Ok(started.elapsed().as_secs_f64())
    }

    /// Seconds to generate `count` tokens behind `depth`. A device that chooses tokens itself does; elsewhere sampling
    /// is left out.
    fn generating(
        &mut self,
        tokens: &[u32],
        depth: usize,
        count: usize,
    ) -> Result<f64, GenerateError> {
        self.fill(&tokens[..depth])?;
        let likeliest = Sampling {
            temperature: 0.0,
            ..Sampling::default()
        };
        let mut sampler =
            Sampler::new(likeliest, 1).suppressing(self.engine.tokenizer().suppressed());
        if self.engine.session().samples_on_device(&sampler)? {
            let mut id = tokens[depth];
            let started = Instant::now();
            for left in (0..count).rev() {
                id = self
                    .engine
                    .session()
                    .step_on_device(id, &mut sampler, left > 0)?;
            }
            return Ok(started.elapsed().as_secs_f64());
        }
        let started = Instant::now();
        for &id in &tokens[depth..depth + count] {
            let _complete = self
                .engine
                .session()
                .step(id, &[], &AtomicBool::new(false))?;
        }
        Ok(started.elapsed().as_secs_f64())
    }
}

/// Seconds to choose a token, from logits roughly as peaked as a trained model's.
fn sampling_seconds() -> f64 {
    let mut random = Random::new(1);
    let mut logit = || 8.0 * (0..4).map(|_| random.unit() as f32).sum::<f32>();
    let mut logits: Vec<f32> = (0..VOCABULARY).map(|_| logit()).collect();
    let mut sampler = Sampler::new(Sampling::default(), 1);
    let once = || {
        let started = Instant::now();
        std::hint::black_box(sampler.sample(&mut logits, &[]));
        started.elapsed().as_secs_f64()
    };
    median_of(std::iter::repeat_with(once).take(101).collect())
}

/// The part of a core that this process takes while it waits.
fn idle_cpu() -> Option<f64> {
    // Threads that have just worked stay awake for a moment.
    std::thread::sleep(Duration::from_millis(300));
    let (before, started) = (process::cpu_time()?, Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let spent = process::cpu_time()?.saturating_sub(before);
    Some(spent.as_secs_f64() / started.elapsed().as_secs_f64())
}
