//! The header of a model file: facts about the model, and the memory of running it. No weight is read.

use std::path::Path;

use crate::context::{Context, context_bytes_per_token, fixed_bytes};
use crate::gguf::{Gguf, GgufError, quote};
use crate::machine::threads;
use crate::model::config::Config;
use crate::model::weights;
use crate::open_error::OpenError;
use crate::options::LoadOptions;
use crate::summary;

/// Facts from the header of a model file.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelHeader {
    /// `general.name`, else the file's name.
    pub name: String,
    /// The quantisation mix, such as `Q4_K_M`.
    pub quantisation: String,
    /// `general.license`, as the file states it.
    pub licence: Option<String>,
    /// Address of the page that the file names as its source.
    pub source: Option<String>,
    /// Number of weights.
    pub parameters: u64,
    /// The memory that the model takes.
    pub footprint: Footprint,
}

/// Name and quantisation of a file of any architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLabel {
    /// `general.name`, else the file's name.
    pub name: String,
    /// The quantisation mix, such as `Q4_K_M`.
    pub quantisation: String,
}

impl FileLabel {
    /// Reads the label of the file at `path`.
    ///
    /// # Errors
    /// Fails if it is not a readable GGUF file.
    pub fn open(path: &Path) -> Result<FileLabel, GgufError> {
        let gguf = Gguf::open(path)?;
        Ok(FileLabel {
            name: summary::name(&gguf),
            quantisation: summary::quantisation(&gguf),
        })
    }
}

impl ModelHeader {
    /// Reads the header of the file at `path` and checks that every tensor is there. Its tokenizer and its chat
    /// template are not checked.
    ///
    /// # Errors
    /// The first problem.
    pub fn open(path: &Path) -> Result<ModelHeader, OpenError> {
        let gguf = Gguf::open(path)?;
        let config = Config::from_gguf(&gguf)?;
        weights::check(&gguf, &config)?;
        Ok(ModelHeader {
            name: summary::name(&gguf),
            quantisation: summary::quantisation(&gguf),
            licence: short(&gguf, "general.license"),
            source: SOURCES.iter().find_map(|key| page(&gguf, key)),
            parameters: (gguf.tensors().iter())
                .map(|tensor| tensor.cols() as u64 * tensor.rows() as u64)
                .sum(),
            footprint: Footprint {
                weights_bytes: weights::packed_bytes(&gguf, &config),
                bytes_per_token: weights::bytes_per_token(&gguf, &config),
                config,
            },
        })
    }
}

/// The memory that a model takes, and the bytes of weights that a generated token reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Footprint {
    config: Config,
    weights_bytes: u64,
    /// Bytes of weights that every generated token reads.
    pub bytes_per_token: u64,
}

/// The memory of a model at one length of context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextMemory {
    /// Length of the context, in tokens.
    pub tokens: usize,
    /// Memory of weights, KV cache and scratch, in bytes.
    pub bytes: u64,
    /// True if that much memory is free.
    pub fits: bool,
}

impl Footprint {
    /// Returns the footprint of a published model in a file of `file_bytes`, without the file; `None` if its dimensions
    /// are not known here. The heads of these models are tied to their embedding tables, so a token reads all weights.
    pub fn of_published(name: &str, file_bytes: u64) -> Option<Footprint> {
        Some(Footprint {
            config: Config::published(name)?,
            weights_bytes: file_bytes,
            bytes_per_token: file_bytes,
        })
    }

    /// Returns the memory at the context that the model would be opened with, given `available` bytes; `None` for no
    /// limit. If not even a short context fits, the memory of a short one.
    pub fn memory(&self, options: &LoadOptions, available: Option<u64>) -> ContextMemory {
        let threads = threads(options.threads);
        let context = Context::of_weights(
            &self.config,
            self.weights_bytes,
            options,
            threads,
            available,
        );
        let (tokens, fits) = match context {
            Ok(Context { tokens, .. }) => (tokens, true),
            Err(_) => (Context::least(&self.config, options), false),
        };
        ContextMemory {
            tokens,
            bytes: self.bytes_at(tokens, options),
            fits,
        }
    }

    /// The memory of weights, KV cache and scratch with a context of `tokens`, in bytes.
    pub fn bytes_at(&self, tokens: usize, options: &LoadOptions) -> u64 {
        let cache = context_bytes_per_token(&self.config, options.kv);
        fixed_bytes(&self.config, self.weights_bytes, threads(options.threads))
            .saturating_add(cache.saturating_mul(tokens as u64))
    }
}

/// Keys that may hold the address of the page that a file comes from.
const SOURCES: [&str; 4] = [
    "general.repo_url",
    "general.source.repo_url",
    "general.url",
    "general.source.url",
];

/// A text of the header that is short enough for a line.
fn short(gguf: &Gguf, key: &str) -> Option<String> {
    let text = gguf.str(key)?.trim();
    let is_line = !text.is_empty() && quote(text) == text;
    is_line.then(|| text.to_owned())
}

fn page(gguf: &Gguf, key: &str) -> Option<String> {
    short(gguf, key).filter(|address| address.starts_with("https://"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::KvType;

    fn fixture() -> ModelHeader {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
        ModelHeader::open(&path).expect("the fixture is committed")
    }

    #[test]
    fn a_header_has_the_memory_that_opening_decides_by() {
        let header = fixture();
        let options = LoadOptions::default();
        let all = header.footprint.memory(&options, None);
        assert!(all.fits);
        let same = header.footprint.memory(&options, Some(all.bytes));
        assert_eq!(same, all, "as much as it needs is enough");
        let less = header.footprint.memory(&options, Some(all.bytes - 1));
        assert!(less.tokens < all.tokens && less.bytes < all.bytes && less.fits);
        let none = header.footprint.memory(&options, Some(0));
        assert!(!none.fits && none.bytes > 0, "{none:?}");
    }

    #[test]
    fn the_forecast_of_smollm3_3b_has_its_published_cache_of_72_kib_a_token() {
        let of_context = |context, kv| {
            let options = LoadOptions {
                context: Some(context),
                kv,
                threads: Some(2),
                ..LoadOptions::default()
            };
            Footprint::of_published("SmolLM3-3B", 1_915_305_312)
                .expect("published")
                .memory(&options, None)
                .bytes
        };
        let tokens = 1 << 14;
        let grown = of_context(2 * tokens, KvType::F16) - of_context(tokens, KvType::F16);
        let per_token = grown as f64 / tokens as f64 / 1024.0;
        // Beside keys and values there are partial results of attention.
        assert!((72.0..76.0).contains(&per_token), "{per_token} KiB");
        assert!(of_context(tokens, KvType::Q8_0) < of_context(tokens, KvType::F16));
        assert!(of_context(1024, KvType::F16) > 1_915_305_312);
    }

    #[test]
    fn a_file_names_its_licence_and_its_page_in_a_line_each() {
        use crate::gguf::write::{Field, header};
        let read = |key: &'static str, text: &str| {
            let bytes = header([(key, Field::String(text.into()))], &[]);
            let gguf = Gguf::from_bytes(bytes).expect("a header");
            (short(&gguf, key), page(&gguf, key))
        };
        let licence = read("general.license", " apache-2.0 ");
        assert_eq!(licence, (Some("apache-2.0".into()), None));
        let page = "https://huggingface.co/me/it";
        assert_eq!(read("general.url", page).1.as_deref(), Some(page));
        for bad in ["", "two\nlines", &"a".repeat(201), "file:///etc/passwd"] {
            assert_eq!(read("general.url", bad).1, None, "{bad}");
        }
        let header = fixture();
        assert_eq!((header.licence, header.source), (None, None));
    }

    #[test]
    fn a_model_of_another_kind_is_an_error_and_not_a_header() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer.gguf");
        assert!(ModelHeader::open(&path).is_err());
    }
}
