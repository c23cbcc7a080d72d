//! The command line: `goldcrest` alone opens the window, a subcommand works in the terminal.

mod answer;
mod args;
mod ask;
mod bench;
mod chat;
mod chats;
mod devices;
mod export;
mod fetch;
mod folders;
mod gpu_check;
mod guide;
mod import;
mod input;
mod inspect;
mod interrupt;
mod load;
mod logits;
mod mcp;
mod models;
mod output;
mod package_files;
mod progress;
mod quantize;
mod render;
mod serve;
mod suggestion;
mod text;
mod tokenize;
mod tools;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::visible::on_one_line;
use crate::{reference_process, worker};
use ::models::is_gguf;
use ::tools::serve;
use args::{
    AskArgs, BenchArgs, ChatArgs, ChatsArgs, DevicesArgs, ExportArgs, FetchArgs, GpuCheckArgs,
    GuideArgs, ImportArgs, InspectArgs, LogitsArgs, ModelsArgs, PackageFilesArgs, QuantizeArgs,
    ReferenceLogitsArgs, RenderArgs, ServeArgs, TokenizeArgs, VerifyArgs, WindowArgs,
};
use mcp::McpArgs;
use output::CliError;
use tools::ToolsArgs;

/// A private, offline chat with SmolLM3 on your own machine.
///
/// Opens the window, unless a command is given.
#[derive(Debug, Parser)]
#[command(
    name = "goldcrest",
    version,
    after_help = environment(),
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// GGUF file to open in the window; of several, the first
    #[arg(value_name = "FILE", value_parser = PathBufValueParser::new().try_map(given_file))]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub window: WindowArgs,
}

/// The variables that are obeyed, each with what it takes.
pub const ENVIRONMENT: [(&str, &str); 14] = [
    (
        "GOLDCREST_DATA_DIR",
        "where chats, settings and logs are kept",
    ),
    ("GOLDCREST_MODEL", "GGUF file to open"),
    (
        "GOLDCREST_BUNDLED_MODEL",
        "file in place of the small model that comes with Goldcrest",
    ),
    ("GOLDCREST_DEVICE", "auto, cpu, gpu or gpu:ID"),
    ("GOLDCREST_THREADS", "CPU threads"),
    ("GOLDCREST_CONTEXT", "context length in tokens"),
    (
        "GOLDCREST_CPU",
        "scalar, avx2, avxvnni, avx512 or amx; on Arm scalar, neon, dotprod or i8mm",
    ),
    ("GOLDCREST_API_KEY", "key of the local API of serve"),
    (
        "GOLDCREST_ALLOW_SOFTWARE_GPU",
        "1 lets software Vulkan count as a GPU",
    ),
    (
        "HF_HUB_CACHE",
        "where fetch puts files; HF_HOME and XDG_CACHE_HOME set it too",
    ),
    ("HF_ENDPOINT", "mirror that fetch uses instead of the hub"),
    ("HF_TOKEN", "your token; fetch sends it to the hub only"),
    (
        "HTTPS_PROXY",
        "proxy for fetch; ALL_PROXY and NO_PROXY work too",
    ),
    (
        "RUST_LOG",
        "prints the log on stderr, for example RUST_LOG=info",
    ),
];

fn environment() -> String {
    let line = |(name, takes): &(&str, &str)| format!("\n  {name:<30}{takes}");
    let lines: String = ENVIRONMENT.iter().map(line).collect();
    format!("Environment:{lines}")
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask one question; prints the answer on stdout, the thinking on stderr
    ///
    /// Exits with 3 if the model stopped after thinking and wrote no answer.
    Ask(AskArgs),
    /// Chat in the terminal
    Chat(ChatArgs),
    /// Serve the local API without a window, in OpenAI's form, for editors and scripts
    ///
    /// Prints the address and the key. Programs on this computer can use it until Ctrl+C.
    Serve(ServeArgs),
    /// List the chats: id, last day, messages, title
    Chats(ChatsArgs),
    /// Write chats to a file
    ///
    /// The file gets its name once it is complete. The app may be open.
    Export(ExportArgs),
    /// Import chats that Goldcrest or another program exported
    ///
    /// Parts that cannot be read are left out and named, and chats that you have are skipped. Exits with 1 if nothing was
    /// imported. Close the app first, or import in its window.
    Import(ImportArgs),
    /// Explain how to use Goldcrest: list the topics, or print one
    ///
    /// A topic is found by its id, or by words: goldcrest guide how do I stop an answer.
    Guide(GuideArgs),
    /// Show what is in a GGUF file and the memory that it needs
    Inspect(InspectArgs),
    /// List known models and the model files on this computer, with memory and speed
    Models(ModelsArgs),
    /// Print the token ids of each text as a line of JSON
    Tokenize(TokenizeArgs),
    /// List the tools that a model can call, or call one
    Tools(ToolsArgs),
    /// Print the exact prompt that a model's chat template renders
    Render(RenderArgs),
    /// Print logits as JSON rows
    Logits(LogitsArgs),
    /// Measure prefill and decode speed
    Bench(BenchArgs),
    /// Convert a model in floats to a quantised GGUF file
    Quantize(QuantizeArgs),
    /// Compare Goldcrest's results on this machine with candle, an independent implementation
    ///
    /// Evaluates a fixed text with candle, with Goldcrest on the device that it would use, and with Goldcrest in exact
    /// arithmetic. Exits with 0 if they agree, 1 if they do not, and 2 if they cannot be compared. Damaged weights that are
    /// finite numbers show only as a high perplexity.
    Verify(VerifyArgs),
    /// Download a model to Hugging Face's cache and verify it
    ///
    /// Run the same command again to resume an interrupted download. Exits with 0 only if the file is complete and its
    /// SHA-256 is right. A separate program, goldcrest-fetch, makes the connection.
    Fetch(FetchArgs),
    /// List or call the tools of MCP servers, which are programs on this computer
    Mcp(McpArgs),
    /// List the devices that a model can run on, and why each would be used or not
    Devices(DevicesArgs),
    /// Checks GPUs for the app, in a process that may crash
    #[command(hide = true)]
    GpuCheck(GpuCheckArgs),
    /// Computes with candle for the app, in a process that may crash
    #[command(hide = true)]
    ReferenceLogits(ReferenceLogitsArgs),
    /// Writes man pages and shell completions, for a package
    #[command(hide = true)]
    PackageFiles(PackageFilesArgs),
    /// Parses untrusted files and chats for the app, in a process that may crash
    #[command(hide = true)]
    Worker,
    /// Calculates and runs Python for the app, in a process that may crash
    #[command(hide = true)]
    ToolProcess,
}

/// Reads the command line. A command that was mistyped is named before the flags behind it, which a file does not take.
pub fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        // It quotes what was typed as it is.
        let typed = std::env::args_os();
        let typed = typed.map(|arg| on_one_line(&arg.to_string_lossy()).into_owned());
        let error = Cli::try_parse_from(typed).err().unwrap_or(error);
        let mut command = Cli::command();
        let first = std::env::args_os().nth(1).unwrap_or_default();
        let is_flag = first.as_encoded_bytes().starts_with(b"-");
        if error.kind() != ErrorKind::UnknownArgument
            || is_flag
            || command.find_subcommand(&first).is_some()
        {
            error.exit()
        }
        match given_file(PathBuf::from(&first)) {
            Ok(_) => error.exit(),
            Err(reason) => {
                let first = on_one_line(&first.to_string_lossy()).into_owned();
                command
                    .error(ErrorKind::InvalidValue, format!("`{first}`: {reason}"))
                    .exit()
            }
        }
    })
}

/// The path from wherever the app runs: a second start hands it to the first. What is neither a file nor called like a
/// model is a command that was mistyped.
fn given_file(typed: PathBuf) -> Result<PathBuf, String> {
    let file = std::path::absolute(&typed).map_err(|error| error.to_string())?;
    if is_gguf(&file) || file.exists() {
        return Ok(file);
    }
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let likely = suggestion::likely(&typed.to_string_lossy(), shown.map(|it| it.get_name()));
    let suggestion = likely.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    Err(format!(
        "there is no such command, and no such file{suggestion}"
    ))
}

/// Runs a subcommand and says how it went.
pub fn run(command: Command) -> ExitCode {
    let result = match command {
        Command::Ask(args) => ask::run(args),
        Command::Chat(args) => chat::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Chats(args) => chats::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Guide(args) => guide::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Models(args) => models::run(&args),
        Command::Tokenize(args) => tokenize::run(&args),
        Command::Tools(args) => tools::run(args),
        Command::Render(args) => render::run(&args),
        Command::Logits(args) => logits::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Quantize(args) => quantize::run(&args),
        Command::Verify(args) => return verify::run(&args),
        Command::Fetch(args) => fetch::run(&args),
        Command::Mcp(args) => mcp::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::GpuCheck(args) => gpu_check::run(args),
        Command::PackageFiles(args) => package_files::run(&args, &Cli::command(), &ENVIRONMENT),
        Command::ReferenceLogits(args) => reference_process::serve(&args.file)
            .map_err(|error| CliError::message(error.to_string())),
        Command::Worker => worker::serve().map_err(CliError::Output),
        Command::ToolProcess => serve().map_err(CliError::Output),
    };
    output::exit_code(result)
}

/// The terminal conversation, for a machine without a display.
pub fn converse(model: Option<PathBuf>) -> ExitCode {
    let mut args = ChatArgs::default();
    args.model.model = model;
    output::exit_code(chat::run(&args))
}

#[cfg(test)]
mod tests {
    use engine::PARAMETERS;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_have_the_ranges_of_the_table() {
        for parameter in PARAMETERS {
            let takes = |value: f64| {
                let flag = format!("--{}={value}", parameter.flag);
                Cli::try_parse_from(["goldcrest", "ask", &flag, "Hi"])
            };
            for bound in [parameter.min, parameter.max] {
                assert!(takes(bound).is_ok(), "{}: {bound}", parameter.flag);
            }
            for beyond in [parameter.min - 0.1, parameter.max + 1.0, f64::NAN] {
                let refused = takes(beyond).expect_err(parameter.flag).to_string();
                assert!(refused.contains(&parameter.range()), "{refused}");
            }
        }
        let command = Cli::command();
        let ask = command.find_subcommand("ask").expect("a subcommand");
        for parameter in PARAMETERS {
            let mut flags = ask.get_arguments();
            let flag = flags.find(|it| it.get_long() == Some(parameter.flag));
            let help = flag.and_then(|it| it.get_help()).expect("help").to_string();
            assert!(help.contains(parameter.hint), "{help}");
        }
    }
}
