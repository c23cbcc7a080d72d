//! Speed of a loaded model, measured as llama-bench does, and synthetic models of random weights.

mod form;
mod instrument;
mod on_gpu;
mod parallel;
mod repeats;
pub mod repetitive_texts;
mod synthetic;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use engine::run::answer::rate;
use engine::run::random::Random;
use engine::run::sampler::Sampler;
use engine::run::sequence::Sequence;
use engine::{CpuLevel, Engine, GenerateError, PromptError, process};
use inference::{Conversation, GenerateParams, Role, Sampling, Signals, Turn};
use serde::Serialize;

pub use form::FormReport;
use form::VOCABULARY;
use instrument::{Instrument, median, median_of};
pub use on_gpu::{GpuReport, KernelReport};
pub use parallel::{BesideReport, ParallelReport, parallel};
pub use repeats::SpeculativeReport;
pub use synthetic::{Synthetic, SyntheticError, UnknownShape, synthetic};

/// Parameters of a measurement.
#[derive(Clone, Debug)]
pub struct BenchParams {
    /// Tokens of the prompt; 0 skips prefill.
    pub prompt: usize,
    /// Tokens that are generated; 0 skips decoding.
    pub generate: usize,
    /// Tokens in the cache before prefill and decoding.
    pub depth: usize,
    /// Tokens of the chat before a follow-up; 0 skips it.
    pub chat: usize,
    /// True to measure speculative decoding by prompt lookup.
    pub lookup: bool,
    /// Runs of each measurement; the median counts.
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

/// Results of a measurement. Rates in tokens per second; `None` for what was skipped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchReport {
    /// The model's name.
    pub model: String,
    /// Storage type of most of its weights.
    pub quantisation: String,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens generated.
    pub generate: usize,
    /// Tokens in the cache before.
    pub depth: usize,
    /// Median prefill rate.
    pub prefill_tok_s: Option<f64>,
    /// Median decoding rate.
    pub decode_tok_s: Option<f64>,
    /// Memory read bandwidth of this process with the same threads, in 10⁹ bytes per second.
    pub read_bandwidth_gb_s: f64,
    /// Bytes of weights that each generated token reads.
    pub bytes_per_token: u64,
    /// Decoding rate times these bytes, over the bandwidth; at most 1.
    pub bandwidth_used: Option<f64>,
    /// 8-bit multiply-accumulates of this CPU at this level with the same threads, in 10¹² per second.
    pub integer_tmac_s: f64,
    /// Multiply-accumulates per prompt token in the matrices of the layers.
    pub products_per_token: u64,
    /// Prefill rate times these products, over the integer rate of the CPU; at most 1.
    pub integer_used: Option<f64>,
    /// Median time to sample a token from [`VOCABULARY`] logits with the default chain, in milliseconds.
    pub sampling_ms: f64,
    /// Cost of holding an answer to a form, with as many tokens.
    pub form: FormReport,
    /// Cost of a token on a GPU, by kernel.
    pub gpu: Option<GpuReport>,
    /// The follow-up, if measured.
    pub follow_up: Option<FollowUp>,
    /// Speculative decoding, if measured.
    pub lookup: Vec<SpeculativeReport>,
    /// Share of one core that the process uses while idle.
    pub idle_cpu: Option<f64>,
    /// Peak resident memory in bytes, before the bandwidth of the machine is measured.
    pub peak_rss_bytes: Option<u64>,
    /// Memory of the KV cache at the end, in bytes.
    pub kv_bytes: usize,
    /// Storage type of keys and values.
    pub kv_type: &'static str,
    /// Seconds from opening the file to ready; for a synthetic model with the generation of its weights.
    pub load_s: f64,
    /// `cpu` or `gpu`.
    pub device: &'static str,
    /// Display name of the device.
    pub device_name: String,
    /// The CPU's instruction set level.
    pub cpu_level: &'static str,
    /// All levels of this machine as keywords of `GOLDCREST_CPU`, lowest first.
    pub cpu_levels: Vec<&'static str>,
    /// CPU threads.
    pub threads: usize,
}

/// Error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The tokens do not fit, or the device failed.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The model's template refuses a plain chat.
    #[error(transparent)]
    Prompt(#[from] PromptError),
}

/// A question in a cached chat, from Enter to the first token.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FollowUp {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Prompt tokens found in the cache.
    pub cached: usize,
    /// Time to first token in seconds: rendering, encoding and prefill of the prompt, and sampling.
    pub first_token_s: f64,
}

/// Measures prefill and decoding of arbitrary tokens.
///
/// # Errors
/// Fails if depth, prompt and generated tokens do not fit into the context, or the device fails.
pub fn run(engine: &mut Engine, params: &BenchParams) -> Result<BenchReport, BenchError> {
    Instrument::new(engine).run(params)
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
        // Warm-up: buffers grow and the CPU leaves its idle states.
        self.prefill_seconds(&tokens, 0, longest.min(64))?;
        let prefill_tok_s = match params.prompt {
            0 => None,
            prompt => {
                let once = || self.prefill_seconds(&tokens, params.depth, prompt);
                Some(rate(prompt, median(repeats, once)?))
            }
        };
        let decode_tok_s = match params.generate {
            0 => None,
            generate => {
                let once = || self.decode_seconds(&tokens, params.depth, generate);
                Some(rate(generate, median(repeats, once)?))
            }
        };
        let kv_bytes = self.sequence.bytes();
        let gpu = self.gpu_report(&tokens, params.depth)?;
        self.sequence = Sequence::default();
        let follow_up = match params.chat {
            0 => None,
            chat => Some(self.follow_up(chat)?),
        };
        let lookup = if params.lookup {
            self.speculative_reports(repeats)?
        } else {
            Vec::new()
        };
        let idle_cpu = idle_cpu();
        let peak_rss_bytes = process::peak_resident();
        let (summary, device) = (self.engine.summary(), self.engine.device());
        let bandwidth = kernels::read_bandwidth(device.threads);
        let integers = kernels::integer_rate(device.threads, device.cpu_level);
        let (bytes_per_token, products_per_token) = (
            self.engine.bytes_per_token(),
            self.engine.config().products_per_token(),
        );
        let on_cpu = |share: Option<f64>| share.filter(|_| !device.on_gpu);
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
            bandwidth_used: on_cpu(
                decode_tok_s.map(|rate| rate * bytes_per_token as f64 / bandwidth),
            ),
            integer_tmac_s: integers / 1e12,
            products_per_token,
            integer_used: on_cpu(
                prefill_tok_s.map(|rate| rate * products_per_token as f64 / integers),
            ),
            sampling_ms: 1e3 * sampling_seconds(),
            form: form::form_report()?,
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

    /// Measures a follow-up in a chat of about `tokens` tokens.
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
            tools: std::sync::Arc::default(),
            today: jiff::civil::Date::constant(2026, 3, 5),
        };
        let never = Signals::default();
        let params = GenerateParams {
            max_tokens: Some(1),
            ..GenerateParams::default()
        };
        let before = self.engine.prompt(&conversation)?;
        self.fill(&before.ids)?;
        // Short, since the vocabulary of a synthetic model has a token per byte; a trained one has a token per word.
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

    /// Measures the seconds of prefill of `count` tokens after `depth` others.
    fn prefill_seconds(
        &mut self,
        tokens: &[u32],
        depth: usize,
        count: usize,
    ) -> Result<f64, GenerateError> {
        self.fill(&tokens[..depth])?;
        let started = Instant::now();
        let prompt = &tokens[..(depth + count).max(1)];
        self.prefill(prompt)?;
        Ok(started.elapsed().as_secs_f64())
    }

    /// Measures the seconds to decode `count` tokens after `depth` others. A device with a sampler samples; elsewhere
    /// sampling is not measured.
    fn decode_seconds(
        &mut self,
        tokens: &[u32],
        depth: usize,
        count: usize,
    ) -> Result<f64, GenerateError> {
        self.fill(&tokens[..depth])?;
        let greedy = Sampling {
            temperature: 0.0,
            ..Sampling::default()
        };
        let mut sampler =
            Sampler::new(greedy, 1).with_suppressed(self.engine.tokenizer().suppressed());
        if self.samples_on_device(&sampler)? {
            let started = Instant::now();
            self.decode_on_device(tokens[depth], count, &mut sampler)?;
            return Ok(started.elapsed().as_secs_f64());
        }
        let (session, never) = (self.engine.session(), AtomicBool::new(false));
        let started = Instant::now();
        for &id in &tokens[depth..depth + count] {
            let _complete = session.step(&mut self.sequence, id, &[], &never)?;
        }
        Ok(started.elapsed().as_secs_f64())
    }
}

/// Measures the seconds to sample a token, from logits roughly as peaked as a trained model's.
fn sampling_seconds() -> f64 {
    let mut random = Random::new(1);
    let mut logit = || 8.0 * (0..4).map(|_| random.uniform() as f32).sum::<f32>();
    let mut logits: Vec<f32> = (0..VOCABULARY).map(|_| logit()).collect();
    let mut sampler = Sampler::new(Sampling::default(), 1);
    let once = || {
        let started = Instant::now();
        std::hint::black_box(sampler.sample(&mut logits, &[]));
        started.elapsed().as_secs_f64()
    };
    median_of(std::iter::repeat_with(once).take(101).collect())
}

/// Measures the share of a core that this process uses while it waits.
fn idle_cpu() -> Option<f64> {
    // Threads spin for a moment after work.
    std::thread::sleep(Duration::from_millis(300));
    let (before, started) = (process::cpu_time()?, Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let spent = process::cpu_time()?.saturating_sub(before);
    Some(spent.as_secs_f64() / started.elapsed().as_secs_f64())
}
