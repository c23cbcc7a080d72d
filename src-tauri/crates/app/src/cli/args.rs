//! The flags of the subcommands.

use std::path::PathBuf;
use std::str::FromStr;

use ::devices::{DeviceRequest, UnknownDevice};
use ::quantize::FileType;
use clap::{Args, ValueEnum};
use engine::{
    KvType, MAX_TOKENS, MIN_P, Parameter, REPEAT_PENALTY, SEED, TEMPERATURE, THINKING_BUDGET,
    TOP_K, TOP_P,
};

use host::environment::ChatFlags;

/// Flags that choose the model and its device.
#[derive(Debug, Clone, Default, Args)]
pub struct ModelArgs {
    /// GGUF file [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]
    #[arg(long, short, value_name = "FILE")]
    pub model: Option<PathBuf>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Flags of the window that take precedence over its settings. A window that is open already stays as it is.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct WindowArgs {
    /// CPU threads [default: GOLDCREST_THREADS, else the setting]
    #[arg(long, short, value_name = "N", value_parser = threads)]
    pub threads: Option<u16>,
    /// Context length in tokens [default: GOLDCREST_CONTEXT, else the setting]
    #[arg(long, short, value_name = "TOKENS", value_parser = context)]
    pub context: Option<u32>,
}

impl WindowArgs {
    /// The flags for the window.
    pub fn flags(self) -> ChatFlags {
        ChatFlags {
            device: None,
            threads: self.threads.map(u32::from),
            context: self.context,
        }
    }
}

/// The device, threads, context and KV cache of a model.
#[derive(Debug, Clone, Default, Args)]
pub struct PlaceArgs {
    /// auto, cpu, gpu, gpu:ID, or for `ask` also reference (candle) [default: GOLDCREST_DEVICE, else auto]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<DeviceArg>,
    /// CPU threads [default: GOLDCREST_THREADS, else physical cores]
    #[arg(long, short, value_name = "N", value_parser = threads)]
    pub threads: Option<u16>,
    /// Context length in tokens; YaRN extends it beyond the trained length [default: GOLDCREST_CONTEXT, else as trained, in
    /// at most half of the free memory]
    #[arg(long, short, value_name = "TOKENS", value_parser = context)]
    pub context: Option<u32>,
    /// KV cache: f16, or q8_0 for half the memory [default: f16]
    #[arg(long, value_name = "TYPE", value_parser = kv_type)]
    pub kv: Option<KvType>,
}

impl PlaceArgs {
    /// The flags for a chat.
    pub fn flags(&self) -> ChatFlags {
        ChatFlags {
            device: match &self.device {
                Some(DeviceArg::Engine(device)) => Some(device.clone()),
                Some(DeviceArg::Reference) | None => None,
            },
            threads: self.threads.map(u32::from),
            context: self.context,
        }
    }
}

/// A value of `--device`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceArg {
    /// A device of the engine.
    Engine(DeviceRequest),
    /// candle on the CPU, in the engine's place.
    Reference,
}

impl FromStr for DeviceArg {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        match text {
            "reference" => Ok(Self::Reference),
            device => device.parse().map(Self::Engine),
        }
    }
}

/// Flags of an answer.
#[derive(Debug, Clone, Default, Args)]
pub struct AnswerArgs {
    /// Instructions, thinking and sampling of a preset; other flags take precedence
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Answer at once, without thinking first
    #[arg(long)]
    pub no_think: bool,
    /// Instructions that replace the default ones
    #[arg(long, short, value_name = "TEXT")]
    pub system: Option<String>,
    #[arg(long = MAX_TOKENS.flag, help = help(MAX_TOKENS), value_name = "N", value_parser = value::<u32>(MAX_TOKENS))]
    pub max_tokens: Option<u32>,
    #[arg(
        long = THINKING_BUDGET.flag,
        help = help(THINKING_BUDGET),
        value_name = "N",
        value_parser = value::<u32>(THINKING_BUDGET)
    )]
    pub thinking_budget: Option<u32>,
    #[arg(long = TEMPERATURE.flag, help = help(TEMPERATURE), value_name = "T", value_parser = value::<f32>(TEMPERATURE))]
    pub temperature: Option<f32>,
    #[arg(long = TOP_P.flag, help = help(TOP_P), value_name = "P", value_parser = value::<f32>(TOP_P))]
    pub top_p: Option<f32>,
    #[arg(long = TOP_K.flag, help = help(TOP_K), value_name = "K", value_parser = value::<u32>(TOP_K))]
    pub top_k: Option<u32>,
    #[arg(long = MIN_P.flag, help = help(MIN_P), value_name = "M", value_parser = value::<f32>(MIN_P))]
    pub min_p: Option<f32>,
    #[arg(
        long = REPEAT_PENALTY.flag,
        help = help(REPEAT_PENALTY),
        value_name = "R",
        value_parser = value::<f32>(REPEAT_PENALTY)
    )]
    pub repeat_penalty: Option<f32>,
    #[arg(long = SEED.flag, help = help(SEED), value_name = "N", value_parser = value::<u64>(SEED))]
    pub seed: Option<u64>,
    /// Turn off speculative decoding (same answers, slower where they repeat the context)
    #[arg(long)]
    pub no_lookup: bool,
}

#[derive(Debug, Args)]
pub struct AskArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// Have the model answer questions about Goldcrest, too
    #[arg(long)]
    pub no_guide: bool,
    /// Tools that the model may call without asking, such as calculator,date_time; see goldcrest tools list
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tools: Vec<String>,
    /// Answer with JSON of the JSON Schema in this file
    #[arg(long, value_name = "FILE", conflicts_with = "tools")]
    pub schema: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
    /// Question; `-` reads it from stdin
    pub prompt: String,
}

#[derive(Debug, Clone, Default, Args)]
pub struct ChatArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub answer: AnswerArgs,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Port to listen on; 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = crate::local_api::PORT)]
    pub port: u16,
    /// Key of the clients; safer in the variable, since other users see arguments [default: GOLDCREST_API_KEY, else a new
    /// one]
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Web page that may use it, such as http://localhost:3000; can be repeated
    #[arg(long = "origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
    /// Print address and key as one line of JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "goldcrest export <--all|--chat <ID>[,<ID>...]> [--format <FORMAT>] [--without-thinking] <OUT>"
)]
pub struct ExportArgs {
    /// All chats
    #[arg(long, required_unless_present = "chats", conflicts_with = "chats")]
    pub all: bool,
    /// Chats with these ids, separated by commas; `goldcrest chats` lists them
    #[arg(long = "chat", value_name = "ID", value_delimiter = ',')]
    pub chats: Vec<u32>,
    /// jsonl holds everything and can be imported; markdown and html hold the shown versions [default: by the name of OUT]
    #[arg(long, value_enum)]
    pub format: Option<ExportFormat>,
    /// Leave out thinking in markdown and html
    #[arg(long)]
    pub without_thinking: bool,
    /// File to write, or to overwrite; `-` writes to stdout
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
}

/// A value of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    Jsonl,
    Markdown,
    Html,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// JSONL of Goldcrest; .zip or conversations.json of ChatGPT or Claude; a folder of Jan or LM Studio
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ChatsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct GuideArgs {
    /// Id of a topic, or words to find it by; without them, all topics are listed
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// GGUF file
    pub file: PathBuf,
    /// Context length in tokens for the memory estimate
    #[arg(long, value_name = "TOKENS", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub context: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct TokenizeArgs {
    /// GGUF file [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]
    #[arg(long, short, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Treat special tokens such as `<|im_start|>` as plain text
    #[arg(long)]
    pub no_special: bool,
    /// Read texts from a file, one per line; `-` reads stdin
    #[arg(long, short, value_name = "FILE", conflicts_with = "texts")]
    pub file: Option<PathBuf>,
    /// Texts in the file end in a null byte, so they may have several lines
    #[arg(long, short = '0', requires = "file", conflicts_with = "texts")]
    pub null: bool,
    /// Print a JSON object with the text and its ids
    #[arg(long)]
    pub json: bool,
    /// Texts
    #[arg(value_name = "TEXT", required_unless_present = "file")]
    pub texts: Vec<String>,
}

#[derive(Debug, Args)]
pub struct RenderArgs {
    /// GGUF file whose template is used [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]
    #[arg(long, short, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// JSON with the template's variables under `context`, and `today` as YYYY-MM-DD
    #[arg(long, value_name = "FILE")]
    pub messages: PathBuf,
}

#[derive(Debug, Args)]
pub struct LogitsArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Token ids, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',', required = true)]
    pub tokens: Vec<u32>,
    /// Print logits of every position, not only the last
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// GGUF file [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]
    #[arg(long, short, value_name = "FILE", conflicts_with = "synthetic")]
    pub model: Option<PathBuf>,
    /// Use random weights in a known shape, for example smollm3-3b-q4_k_m
    #[arg(long, value_name = "SHAPE")]
    pub synthetic: Option<String>,
    /// Seed of the random weights
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Do not use the GPU's cooperative matrices
    #[arg(long, requires = "synthetic")]
    pub without_matrices: bool,
    /// Prompt tokens to process
    #[arg(long, short, value_name = "N", default_value_t = 512)]
    pub prompt: u32,
    /// Tokens to generate
    #[arg(long, short = 'n', value_name = "N", default_value_t = 128)]
    pub generate: u32,
    /// Tokens in the KV cache before the measurement
    #[arg(long, short, value_name = "TOKENS", default_value_t = 0)]
    pub depth: u32,
    /// Time a follow-up question in a chat of this many tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    pub chat: u32,
    /// Time only the first token of chats with these lengths in tokens after a restart, on the CPU
    #[arg(
        long,
        value_name = "TOKENS",
        value_delimiter = ',',
        conflicts_with = "synthetic"
    )]
    pub reopen: Vec<u32>,
    /// Measure only these numbers of answers at once, and a prompt that is read beside an answer
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        conflicts_with = "reopen"
    )]
    pub parallel: Vec<u8>,
    /// Measure speculative decoding on texts that repeat the context and texts that do not
    #[arg(long)]
    pub lookup: bool,
    /// Number of measurements; the medians are shown
    #[arg(long, short, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub repeats: u16,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the model of random weights to a file and measure nothing
    #[arg(
        long,
        value_name = "FILE",
        requires = "synthetic",
        conflicts_with = "json",
        hide = true
    )]
    pub write: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FetchArgs {
    /// SmolLM3-3B (Q4_K_M), SmolLM3-3B:Q8_0, the name of a known file, or the address of a GGUF file
    #[arg(value_name = "NAME|URL")]
    pub model: String,
    /// Put the file into this folder instead of Hugging Face's cache
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// SHA-256 of the file; needed if its server does not publish one
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct QuantizeArgs {
    /// GGUF file in F32, F16 or BF16, or a Hugging Face folder with config.json, tokenizer.json and *.safetensors
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// GGUF file to write
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// Q4_K_M, Q5_K_M, Q6_K, Q8_0 or F16
    #[arg(value_name = "TYPE")]
    pub file_type: FileType,
    /// Overwrite OUT if it exists
    #[arg(long)]
    pub force: bool,
    /// CPU threads [default: logical cores]
    #[arg(long, short, value_name = "N", value_parser = threads)]
    pub threads: Option<u16>,
    /// Print one JSON object, with the type and the relative error of each tensor
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// GGUF file
    pub file: PathBuf,
    /// Tokens of the text to evaluate [default: 256; 96 for models with more than a billion parameters]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..))]
    pub tokens: Option<u16>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print a line of JSON for each step, for the window
    #[arg(long, hide = true, conflicts_with = "json")]
    pub steps: bool,
}

#[derive(Debug, Args)]
pub struct PackageFilesArgs {
    pub folder: PathBuf,
}

#[derive(Debug, Args)]
pub struct ReferenceLogitsArgs {
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct DevicesArgs {
    /// GGUF file to run [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]
    #[arg(long, short, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// CPU threads that a GPU has to outperform [default: GOLDCREST_THREADS, else physical cores]
    #[arg(long, short, value_name = "N", value_parser = threads)]
    pub threads: Option<u16>,
    /// Context length for the memory shown [default: GOLDCREST_CONTEXT, else as trained, in at most half of the free memory]
    #[arg(long, short, value_name = "TOKENS", value_parser = context)]
    pub context: Option<u32>,
    /// Clear the GPU check cache, then check and measure the GPUs again
    #[arg(long)]
    pub check: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Without a model the devices are listed.
#[derive(Debug, Args)]
pub struct GpuCheckArgs {
    #[arg(long)]
    pub device: Option<String>,
    #[arg(long)]
    pub model: Option<PathBuf>,
    #[arg(long)]
    pub bundled_model: Option<PathBuf>,
    #[arg(long)]
    pub threads: Option<usize>,
    /// Do not use cooperative matrices.
    #[arg(long)]
    pub without_matrices: bool,
}

fn kv_type(text: &str) -> Result<KvType, String> {
    match text {
        "f16" => Ok(KvType::F16),
        "q8_0" => Ok(KvType::Q8_0),
        _ => Err("must be f16 or q8_0".to_owned()),
    }
}

fn threads(text: &str) -> Result<u16, String> {
    let most = ::chat::max_threads();
    let threads = text.parse().ok();
    threads
        .filter(|&threads| threads >= 1 && u32::from(threads) <= most)
        .ok_or_else(|| format!("must be a number from 1 to {most}, twice the logical cores"))
}

fn context(text: &str) -> Result<u32, String> {
    let lengths = ::chat::CONTEXT_LENGTHS;
    let length = text.parse().ok().filter(|length| lengths.contains(length));
    length.ok_or_else(|| {
        let [least, most] = [lengths.start(), lengths.end()];
        format!("must be a number of tokens from {least} to {most}")
    })
}

/// Name, range and default of a parameter, and what it does.
fn help(parameter: Parameter) -> String {
    let Parameter { name, hint, .. } = parameter;
    let default = match parameter.default {
        Some(value) => format!(" [default: as the model's file says, else {value}]"),
        None => String::new(),
    };
    format!("{name}: {}. {hint}{default}", parameter.range())
}

/// Reads a value that the parameter allows.
fn value<T: FromStr + 'static>(
    parameter: Parameter,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let allowed = text.parse().is_ok_and(|value| parameter.allows(value));
        let value = text.parse().ok().filter(|_| allowed);
        value.ok_or_else(|| format!("must be {}", parameter.range()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kv_type_is_read_as_ggml_writes_it() {
        assert!(matches!(kv_type("f16"), Ok(KvType::F16)));
        assert!(matches!(kv_type("q8_0"), Ok(KvType::Q8_0)));
        assert!(kv_type("q4_0").is_err());
    }
}
