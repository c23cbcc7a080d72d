//! How fast a loaded model is, measured in llama-bench's manner.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;

use crate::engine::Engine;
use crate::generate::{GenerateError, rate};
use crate::memory;
use crate::random::Random;

/// What to measure.
#[derive(Clone, Debug)]
pub struct BenchParams {
    /// Tokens of the prompt that is read; 0 leaves reading out.
    pub prompt: usize,
    /// Tokens that are generated; 0 leaves generating out.
    pub generate: usize,
    /// Tokens that are in the cache before either.
    pub depth: usize,
    /// How often each is measured; the median counts.
    pub repeats: usize,
}

impl Default for BenchParams {
    fn default() -> Self {
        BenchParams {
            prompt: 512,
            generate: 128,
            depth: 0,
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
    /// The most memory that the process held, measurement of the bandwidth excluded.
    pub peak_rss_bytes: Option<u64>,
    /// Memory of the KV cache at the end.
    pub kv_bytes: usize,
    /// Time from opening the file to ready; for a synthetic model making its weights counts too.
    pub load_s: f64,
    /// `cpu`, `cuda` or `metal`.
    pub device: &'static str,
    /// The device for people.
    pub device_name: String,
    /// The CPU's instruction set level.
    pub cpu_level: &'static str,
    /// CPU threads.
    pub threads: usize,
}

impl Engine {
    /// Measures reading and generating of arbitrary tokens. The cache is empty afterwards.
    ///
    /// # Errors
    /// When depth, prompt and generated tokens do not fit into the context, or the device fails.
    pub fn bench(&mut self, params: &BenchParams) -> Result<BenchReport, GenerateError> {
        let longest = params.depth + params.prompt.max(params.generate);
        let context = self.summary().context_length;
        if longest > context {
            return Err(GenerateError::TooLong {
                prompt: longest,
                context,
            });
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
        let kv_bytes = self.kv_bytes();
        self.session().truncate(0);
        let peak_rss_bytes = memory::peak_resident();
        let (summary, device) = (self.summary(), self.device());
        let bandwidth = kernels::read_bandwidth(device.threads);
        let bytes_per_token = self.bytes_per_token;
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
            bandwidth_used: decode_tok_s.map(|rate| rate * bytes_per_token as f64 / bandwidth),
            peak_rss_bytes,
            kv_bytes,
            load_s: self.load_s,
            device: device.kind.name(),
            device_name: device.name.clone(),
            cpu_level: device.cpu_level.name(),
            threads: device.threads,
        })
    }

    fn arbitrary_tokens(&self, count: usize) -> Vec<u32> {
        let (vocab, mut random) = (self.config().vocab as u64, Random::new(1));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "vocabularies are counted in u32"
        )]
        (0..count.max(1))
            .map(|_| (random.bits() % vocab) as u32)
            .collect()
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
            .session()
            .read(prompt, &AtomicBool::new(false), &mut |_| {})?;
        Ok(started.elapsed().as_secs_f64())
    }

    /// Seconds to generate `count` tokens behind `depth`, sampling left out.
    fn generating(
        &mut self,
        tokens: &[u32],
        depth: usize,
        count: usize,
    ) -> Result<f64, GenerateError> {
        self.fill(&tokens[..depth])?;
        let started = Instant::now();
        for &id in &tokens[depth..depth + count] {
            let _complete = self.session().step(id, &[], &AtomicBool::new(false))?;
        }
        Ok(started.elapsed().as_secs_f64())
    }

    /// Leaves exactly `tokens` in the cache; what is there already is kept.
    fn fill(&mut self, tokens: &[u32]) -> Result<(), GenerateError> {
        self.session().truncate(tokens.len());
        if self.session().tokens().len() < tokens.len() {
            let _complete = self
                .session()
                .read(tokens, &AtomicBool::new(false), &mut |_| {})?;
        }
        Ok(())
    }
}

fn median(
    repeats: usize,
    mut once: impl FnMut() -> Result<f64, GenerateError>,
) -> Result<f64, GenerateError> {
    let mut seconds = (0..repeats)
        .map(|_| once())
        .collect::<Result<Vec<_>, _>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}
