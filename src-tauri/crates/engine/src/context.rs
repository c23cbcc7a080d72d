//! The length of the context: the requested one, limited by model and memory, with a note on any difference.

use figures::{count, tokens};
use kernels::{Cpu, KvLayer, KvType};

use crate::machine::threads;
use crate::model::config::Config;
use crate::model::forward::MAX_CPU_CHUNK;
use crate::model::weights::{self, WeightSource};
use crate::open_error::OpenError;
use crate::options::LoadOptions;
use crate::process;

/// Memory beyond the estimate: the tokenizer, and a margin.
const OVERHEAD: u64 = 256 << 20;
/// The shortest useful context.
const MIN_CONTEXT: usize = 1024;
/// Lower bound of the default context, if it fits: a shorter one hardly holds a question and an answer with its
/// reasoning.
const MIN_DEFAULT: usize = 4096;
/// A default length that memory limits is a multiple of this.
const DEFAULT_STEP: usize = 1024;

/// The length of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Length in tokens.
    pub tokens: usize,
    /// A note for the user on that length.
    pub note: Option<String>,
    /// True if a longer one is possible on request.
    pub can_grow: bool,
}

impl Context {
    /// Returns the requested length, limited by model and memory. Without a request, the trained length, limited so
    /// that the KV cache takes at most half of the memory that the weights leave free: other programs need some, too.
    ///
    /// # Errors
    /// Fails if not even a short context fits in memory.
    pub fn new(
        config: &Config,
        source: &dyn WeightSource,
        options: &LoadOptions,
    ) -> Result<Context, OpenError> {
        let threads = threads(options.threads);
        let weights_bytes = weights::packed_bytes(source, config);
        Context::of_weights(
            config,
            weights_bytes,
            options,
            threads,
            process::available(),
        )
    }

    /// Returns the shortest length that a model is opened with.
    pub(crate) fn least(config: &Config, options: &LoadOptions) -> usize {
        let asked = options.context.unwrap_or(config.context).max(1);
        asked.min(longest(config, options)).min(MIN_CONTEXT)
    }

    /// Returns the context of a model whose weights take `weights_bytes`, with `available` bytes free; see
    /// [`Context::new`].
    pub(crate) fn of_weights(
        config: &Config,
        weights_bytes: u64,
        options: &LoadOptions,
        threads: usize,
        available: Option<u64>,
    ) -> Result<Context, OpenError> {
        let requested = options.context.unwrap_or(config.context).max(1);
        let longest = requested.min(longest(config, options));
        let Some(available) = available else {
            return Ok(Context::with_note(config, options, longest, None));
        };
        let per_token = context_bytes_per_token(config, options.kv);
        let fixed = fixed_bytes(config, weights_bytes, threads);
        let needed =
            |context: usize| fixed.saturating_add(per_token.saturating_mul(context as u64));
        let least = Context::least(config, options);
        if needed(least) > available {
            return Err(OpenError::Memory {
                needed: needed(least),
                available,
            });
        }
        let tokens_in = |bytes: u64| usize::try_from(bytes / per_token).unwrap_or(usize::MAX);
        let room = tokens_in(available - fixed);
        let limit = match options.context {
            Some(_) => room,
            None => {
                let half = tokens_in((available - fixed) / 2) / DEFAULT_STEP * DEFAULT_STEP;
                half.max(MIN_DEFAULT).min(room)
            }
        };
        Ok(Context::with_note(
            config,
            options,
            longest.min(limit),
            Some(room),
        ))
    }

    /// Returns a context of this length, with a note if it differs from the requested one.
    fn with_note(
        config: &Config,
        options: &LoadOptions,
        length: usize,
        room: Option<usize>,
    ) -> Context {
        let trained = config.without_window.unwrap_or(config.context);
        let cut = |because: &str| {
            let used = count(length);
            match options.context {
                Some(requested) => {
                    format!(
                        "{} were requested, but {used} are used: {because}",
                        tokens(requested)
                    )
                }
                None => {
                    let trained = tokens(trained);
                    format!("The model was trained for {trained}, but {used} are used: {because}")
                }
            }
        };
        let requested = options.context.unwrap_or(trained).max(1);
        let cut = if length >= requested {
            None
        } else if room.is_some_and(|room| room <= length) {
            Some(cut("more do not fit in the free memory."))
        } else if options.context.is_none() && length < config.context {
            Some(cut("more would take over half of the free memory."))
        } else if config.without_window.is_some() {
            Some(cut(
                "the attention of this model reaches no further back (sliding window).",
            ))
        } else if config.needs_yarn(length) {
            Some(cut(
                "the model supports no more, which is already longer than it was trained for.",
            ))
        } else {
            Some(cut("the model supports no more."))
        };
        let extended = config.needs_yarn(length).then(|| {
            let trained = tokens(trained);
            format!(
                "With more than the {trained} that the model was trained for, answers in short chats may be slightly worse."
            )
        });
        let note = [cut, extended].into_iter().flatten().collect::<Vec<_>>();
        Context {
            tokens: length,
            note: (!note.is_empty()).then(|| note.join(" ")),
            can_grow: length < longest(config, options).min(room.unwrap_or(usize::MAX)),
        }
    }
}

/// Returns the longest context that the model supports.
pub(crate) fn longest(config: &Config, options: &LoadOptions) -> usize {
    if options.allow_yarn {
        config.longest_context()
    } else {
        config.context
    }
}

/// Bytes that a model takes at any length of context. The longest pass of any CPU level counts: the level is not known
/// yet.
pub(crate) fn fixed_bytes(config: &Config, weights_bytes: u64, threads: usize) -> u64 {
    weights_bytes
        .saturating_add(scratch_bytes(config, MAX_CPU_CHUNK, threads))
        .saturating_add(OVERHEAD)
}

/// Bytes that each token of context takes beside [`fixed_bytes`].
pub(crate) fn context_bytes_per_token(config: &Config, kv: KvType) -> u64 {
    kv_bytes_per_token(config, kv).saturating_add(attention_bytes_per_token(config))
}

/// Bytes of one token in the cache.
pub fn kv_bytes_per_token(config: &Config, kv: KvType) -> u64 {
    /// A multiple of the blocks of positions by which storage grows.
    const POSITIONS: usize = 4096;
    let layer = KvLayer::bytes_for(kv, config.shape.kv_heads, config.shape.head_dim, POSITIONS);
    (config.shape.layers as u64).saturating_mul(layer) / POSITIONS as u64
}

/// Bytes per token of context of attention over few queries, beside the cache: a partial result for every KV split.
fn attention_bytes_per_token(config: &Config) -> u64 {
    let record = 4 * (config.shape.head_dim + 2) as u64;
    (Cpu::BATCH_INVARIANT_MAX as u64 * config.shape.heads as u64 * record)
        .div_ceil(Cpu::KV_SPLIT as u64)
}

/// Upper bound on the scratch of passes of `chunk` tokens, in bytes, beside weights and cache.
fn scratch_bytes(config: &Config, chunk: usize, threads: usize) -> u64 {
    const FLOAT: u64 = 4;
    let [e, h, k, f] = [
        config.shape.embedding,
        config.shape.q_width(),
        config.shape.kv_width(),
        config.shape.feed_forward,
    ]
    .map(|width| width as u64);
    let rows = 2 * (e + h + k) * FLOAT;
    // The two halves of a feed-forward layer as floats, and the second as tiles.
    let feed_forward = 2 * f * FLOAT + 2 * f;
    // Activations in 8 bits with their scales, in both grains, and as tiles.
    let rounded = 6 * e.max(h).max(f);
    // A partial result for every query of every work item of attention, of which each thread has a few.
    let (head, block) = (
        config.shape.head_dim.next_multiple_of(16) as u64,
        128 * (h / k),
    );
    let queries = 4 * threads as u64 * block + (chunk * config.shape.heads) as u64;
    let partial = queries * (head + 2) * FLOAT;
    // For a thread's own item: queries and sums as floats, queries as two times 16 bits, and scores for 64 positions
    // with their weights.
    let pieces = threads as u64 * block * (3 * head * FLOAT + 64 * 6 + 16);
    let attention = partial + pieces;
    let logits = 2 * config.shape.vocab as u64 * FLOAT;
    (rows + feed_forward + rounded) * chunk as u64 + attention + logits
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::gguf::{BlockType, Gguf};
    use crate::model::weights::Tensor;

    fn tiny() -> (Gguf, Config) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
        let gguf = Gguf::open(&path).expect("the fixture is committed");
        let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
        (gguf, config)
    }

    /// The context with `available` bytes of free memory.
    fn with(available: u64, context: Option<usize>) -> Result<Context, OpenError> {
        let (gguf, config) = tiny();
        let options = LoadOptions {
            context,
            ..LoadOptions::default()
        };
        let weights_bytes = weights::packed_bytes(&gguf, &config);
        Context::of_weights(&config, weights_bytes, &options, 2, Some(available))
    }

    /// Bytes of the model with a context of `tokens`.
    fn taken(tokens: u64) -> u64 {
        let Err(OpenError::Memory { needed, .. }) = with(0, None) else {
            panic!("nothing fits in no memory");
        };
        let (_, config) = tiny();
        let per_token =
            kv_bytes_per_token(&config, KvType::F16) + attention_bytes_per_token(&config);
        needed - per_token * MIN_CONTEXT as u64 + per_token * tokens
    }

    #[test]
    fn a_context_that_does_not_fit_is_reduced_with_a_note() {
        let whole = with(taken(4096), None).expect("it fits");
        assert_eq!((whole.tokens, whole.note), (4096, None));
        let cut = with(taken(3000), None).expect("it fits");
        assert_eq!(cut.tokens, 3000);
        let note = cut.note.expect("it is cut");
        assert!(
            note.contains("trained for 4,096 tokens, but 3,000 are used: more do not fit"),
            "{note}"
        );
        let cut = with(taken(3000), Some(4000)).expect("it fits");
        assert_eq!(cut.tokens, 3000);
        let note = cut.note.expect("it is cut");
        assert!(
            note.contains("4,000 tokens were requested, but 3,000 are used: more do not fit"),
            "{note}"
        );
        // Extended by YaRN, but less than requested.
        let cut = with(taken(6000), Some(8192)).expect("it fits");
        assert_eq!(cut.tokens, 6000);
        let note = cut.note.expect("it is cut");
        assert!(
            note.contains("6,000 are used") && note.contains("slightly worse"),
            "{note}"
        );
        // Below the trained length YaRN is not used.
        let cut = with(taken(2000), Some(8192)).expect("it fits");
        let note = cut.note.expect("it is cut");
        assert!(
            cut.tokens == 2000 && !note.contains("slightly worse"),
            "{note}"
        );
        let grows = |available, context| with(available, context).map(|it| it.can_grow);
        assert_eq!(grows(taken(9000), None).ok(), Some(true), "by YaRN");
        assert_eq!(grows(taken(3000), None).ok(), Some(false), "no memory");
        assert_eq!(grows(taken(3000), Some(2000)).ok(), Some(true));
        assert_eq!(
            grows(taken(9000), Some(8192)).ok(),
            Some(false),
            "the longest"
        );
        assert!(with(taken(1024) - 1, None).is_err());
        assert!(with(taken(1024) - 1, Some(8192)).is_err());
        assert!(with(taken(300), Some(300)).is_ok());
        let (gguf, config) = tiny();
        let weights = weights::packed_bytes(&gguf, &config);
        assert!(taken(0) > weights + OVERHEAD, "with a margin");
    }

    #[test]
    fn without_a_request_half_of_the_memory_beside_the_weights_stays_free() {
        let (gguf, mut config) = tiny();
        config.context = 65536;
        let within = |available, context| {
            let options = LoadOptions {
                context,
                ..LoadOptions::default()
            };
            let weights_bytes = weights::packed_bytes(&gguf, &config);
            Context::of_weights(&config, weights_bytes, &options, 2, Some(available))
                .expect("it fits")
        };
        let half = within(taken(40_000), None);
        assert_eq!((half.tokens, half.can_grow), (19_456, true), "19 × 1,024");
        assert_eq!(
            half.note.as_deref(),
            Some(
                "The model was trained for 65,536 tokens, but 19,456 are used: more would take over half of the free memory."
            )
        );
        assert_eq!(within(taken(40_000), Some(40_000)).tokens, 40_000);
        // With little memory the shortest useful context comes first, if there is room for it.
        assert_eq!(within(taken(6000), None).tokens, MIN_DEFAULT);
        assert_eq!(within(taken(3000), None).tokens, 3000);
        let whole = within(taken(131_072), None);
        assert_eq!((whole.tokens, whole.note), (65536, None));
    }

    /// A file, possibly sparse, whose matrices need more memory than any machine has.
    struct Endless;

    impl WeightSource for Endless {
        fn shape(&self, _: &str) -> Option<(BlockType, usize, usize)> {
            Some((BlockType::F32, 2, 1 << 60))
        }

        fn tensor(&self, _: &str) -> Option<Tensor<'_>> {
            None
        }
    }

    #[test]
    fn the_memory_estimate_saturates() {
        let (_, config) = tiny();
        let options = LoadOptions::default();
        let weights_bytes = weights::packed_bytes(&Endless, &config);
        let available = Some(u64::MAX - 1);
        let context = Context::of_weights(&config, weights_bytes, &options, 2, available);
        let Err(OpenError::Memory { needed, .. }) = context else {
            panic!("{context:?}");
        };
        assert_eq!(needed, u64::MAX);
    }

    #[test]
    fn the_memory_estimate_includes_scratch_and_padding() {
        let (gguf, config) = tiny();
        let stored = weights::stored_bytes(&gguf, &config);
        let packed = weights::packed_bytes(&gguf, &config);
        // 525 rows of the vocabulary are packed as 528.
        assert!(packed > stored && packed < stored + stored / 50);
        let mut wide = config.clone();
        wide.shape.feed_forward = 1 << 17;
        let scratch = |config| scratch_bytes(config, 512, 2);
        assert!(scratch(&wide) - scratch(&config) > 512 * ((1 << 17) - 512) * 10);
        // Each thread has a work item of attention, of 128 queries for each of the heads that share a key head.
        let mut shared = config.clone();
        (shared.shape.heads, shared.shape.kv_heads) = (1024, 1);
        shared.shape.head_dim = 32;
        let of_a_thread = 128 * 1024 * (4 * 34 * 4 + 3 * 32 * 4 + 64 * 6);
        let more = scratch_bytes(&shared, 512, 4) - scratch_bytes(&shared, 512, 2);
        assert!(more >= 2 * of_a_thread, "{more} bytes for two threads");
        // Values are padded to whole vectors, and scales are counted.
        let mut odd = config.with_layers(1);
        (odd.shape.head_dim, odd.shape.kv_heads) = (20, 2);
        assert_eq!(kv_bytes_per_token(&odd, KvType::F16), 2 * 2 * (20 + 32));
        assert_eq!(kv_bytes_per_token(&odd, KvType::Q8_0), 2 * (20 + 32 + 4));
    }
}
