//! Context lengths to choose from, and the memory that each takes.

use std::path::Path;

use kernels::KvType;

use crate::context::{Context, context_bytes_per_token, fixed_bytes, kv_bytes_per_token, longest};
use crate::gguf::Gguf;
use crate::machine;
use crate::model::config::Config;
use crate::model::weights;
use crate::open_error::OpenError;
use crate::options::LoadOptions;
use crate::process;

/// The lengths to choose from, in tokens.
const LENGTHS: [usize; 7] = [2048, 4096, 8192, 16384, 32768, 65536, 131_072];

/// A context length and its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextCost {
    /// The length in tokens.
    pub tokens: usize,
    /// Memory of a full KV cache in f16, in bytes.
    pub kv_f16_bytes: u64,
    /// Memory of a full KV cache in q8_0, in bytes.
    pub kv_q8_bytes: u64,
    /// True if the length exceeds the trained one, so that YaRN is applied.
    pub stretched: bool,
    /// True if it fits in the free memory with the weights and a KV cache in f16.
    pub fits_f16: bool,
    /// Same as `fits_f16` for a cache in q8_0.
    pub fits_q8: bool,
}

/// The lengths to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextCosts {
    /// Ascending, up to the longest that the model supports; includes the requested one.
    pub lengths: Vec<ContextCost>,
    /// The length that is used without a request, with a KV cache in f16.
    pub automatic_f16: ContextCost,
    /// Same as `automatic_f16` for a cache in q8_0.
    pub automatic_q8: ContextCost,
}

/// Returns the costs of the context lengths of the model at `path`, of which only the header is read. Memory that this
/// process holds counts as free, because the open model is closed before this one is opened.
///
/// # Errors
/// Fails if the file is not a supported model.
pub fn context_costs(path: &Path, options: &LoadOptions) -> Result<ContextCosts, OpenError> {
    let gguf = Gguf::open(path)?;
    let config = Config::from_gguf(&gguf)?;
    let weights_bytes = weights::packed_bytes(&gguf, &config);
    let available = process::available_after_closing(0);
    Ok(costs(&config, weights_bytes, options, available))
}

fn costs(
    config: &Config,
    weights_bytes: u64,
    options: &LoadOptions,
    available: Option<u64>,
) -> ContextCosts {
    let threads = machine::threads(options.threads);
    let fixed = fixed_bytes(config, weights_bytes, threads);
    let fits = |kv, tokens: usize| {
        let per_token = context_bytes_per_token(config, kv);
        let needed = fixed.saturating_add(per_token.saturating_mul(tokens as u64));
        available.is_none_or(|available| needed <= available)
    };
    let kv_bytes = |kv, tokens| kv_bytes_per_token(config, kv).saturating_mul(tokens as u64);
    let cost = |tokens| ContextCost {
        tokens,
        kv_f16_bytes: kv_bytes(KvType::F16, tokens),
        kv_q8_bytes: kv_bytes(KvType::Q8_0, tokens),
        stretched: config.needs_yarn(tokens),
        fits_f16: fits(KvType::F16, tokens),
        fits_q8: fits(KvType::Q8_0, tokens),
    };
    let automatic = |kv| {
        let options = LoadOptions {
            context: None,
            kv,
            ..options.clone()
        };
        let context = Context::of_weights(config, weights_bytes, &options, threads, available);
        cost(context.map_or_else(
            |_| Context::least(config, &options),
            |context| context.tokens,
        ))
    };
    let longest = longest(config, options);
    let lengths = LENGTHS.into_iter().chain(options.context);
    let mut lengths: Vec<_> = lengths.map(|length| length.min(longest)).collect();
    lengths.sort_unstable();
    lengths.dedup();
    ContextCosts {
        lengths: lengths.into_iter().map(cost).collect(),
        automatic_f16: automatic(KvType::F16),
        automatic_q8: automatic(KvType::Q8_0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rope::Scaling;

    /// Size of the file in Q4_K_M.
    const WEIGHTS: u64 = 1_915_305_312;

    fn costs_of(config: &Config, options: &LoadOptions, available: u64) -> Vec<ContextCost> {
        costs(config, WEIGHTS, options, Some(available)).lengths
    }

    #[test]
    fn smollm3_goes_from_2_048_to_131_072_tokens_the_last_by_yarn() {
        let costs = costs_of(&Config::smollm3_3b(), &LoadOptions::default(), u64::MAX);
        let lengths: Vec<_> = costs.iter().map(|cost| cost.tokens).collect();
        assert_eq!(lengths, LENGTHS);
        for cost in &costs {
            // 36 layers of 2 × 4 × 128 values: 72 KiB a token in f16, and 34 bytes for 32 values in q8_0.
            assert_eq!(cost.kv_f16_bytes, cost.tokens as u64 * 72 * 1024);
            assert_eq!(cost.kv_q8_bytes, cost.tokens as u64 * 36 * 1024 * 34 / 32);
            assert_eq!(cost.stretched, cost.tokens > 65536);
            assert!(cost.fits_f16 && cost.fits_q8);
        }
        let longest = Config::smollm3_3b().for_context(131_072);
        let Scaling::Yarn(yarn) = longest.rope.scaling else {
            panic!("no YaRN");
        };
        assert_eq!((yarn.factor, yarn.original_context), (2.0, 65536));
        assert_eq!(
            Config::smollm3_3b().for_context(65536),
            Config::smollm3_3b()
        );
    }

    #[test]
    fn what_fits_depends_on_the_free_memory_and_the_kv_type() {
        let fitting = |kv, available| {
            let costs = costs_of(&Config::smollm3_3b(), &LoadOptions::default(), available);
            let fits = |cost: &&ContextCost| match kv {
                KvType::Q8_0 => cost.fits_q8,
                _ => cost.fits_f16,
            };
            costs.iter().rfind(fits).map(|cost| cost.tokens)
        };
        assert_eq!(fitting(KvType::F16, 0), None);
        // Beside the weights, scratch and a margin take some 0.5 GiB; 32,768 tokens take 2.25 GiB in f16, 65,536 take 2.39 in
        // q8_0.
        assert_eq!(fitting(KvType::F16, 5 << 30), Some(32768));
        assert_eq!(fitting(KvType::Q8_0, 5 << 30), Some(65536));
    }

    #[test]
    fn a_length_of_the_users_own_and_the_automatic_one_have_their_memory_too() {
        let config = Config::smollm3_3b();
        let options = LoadOptions {
            context: Some(20_000),
            kv: KvType::Q8_0,
            ..LoadOptions::default()
        };
        let costs = costs(&config, WEIGHTS, &options, Some(5 << 30));
        let own = costs.lengths.iter().find(|cost| cost.tokens == 20_000);
        assert_eq!(own.map(|cost| cost.kv_f16_bytes), Some(20_000 * 72 * 1024));
        assert!(costs.lengths.is_sorted_by_key(|cost| cost.tokens));
        // The length that opening chooses without a request.
        for (cost, kv) in [
            (costs.automatic_f16, KvType::F16),
            (costs.automatic_q8, KvType::Q8_0),
        ] {
            let options = LoadOptions {
                context: None,
                kv,
                ..options.clone()
            };
            let threads = machine::threads(None);
            let context = Context::of_weights(&config, WEIGHTS, &options, threads, Some(5 << 30));
            assert_eq!(cost.tokens, context.expect("it fits").tokens);
            assert!(cost.fits_f16 || kv == KvType::Q8_0);
        }
        assert!(costs.automatic_q8.tokens > costs.automatic_f16.tokens);
    }

    #[test]
    fn a_length_that_the_model_does_not_support_is_not_offered() {
        let mut small = Config::smollm3_3b();
        small.context = 3000;
        let lengths = |options: &LoadOptions| {
            let costs = costs_of(&small, options, u64::MAX);
            let lengths: Vec<_> = costs
                .iter()
                .map(|cost| (cost.tokens, cost.stretched))
                .collect();
            lengths
        };
        let stretched = LoadOptions::default();
        assert_eq!(
            lengths(&stretched),
            [(2048, false), (4096, true), (6000, true)]
        );
        let plain = LoadOptions {
            allow_yarn: false,
            ..stretched
        };
        assert_eq!(lengths(&plain), [(2048, false), (3000, false)]);
        small.context = 1000;
        let costs = costs_of(&small, &plain, u64::MAX);
        assert_eq!(costs.iter().map(|it| it.tokens).collect::<Vec<_>>(), [1000]);
    }
}
