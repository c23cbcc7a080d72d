//! `goldcrest devices`: the devices that can run a model.

use std::io::{self, Write};

use ::devices::{DeviceRequest, Verdict, matrices};
use engine::{LoadOptions, ModelFile, ModelHeader, Placement};
use figures::{count, tokens};
use serde::Serialize;

use super::args::DevicesArgs;
use super::load;
use super::output::{self, CliError};
use crate::visible::on_one_line;

/// Output of `--json`.
#[derive(Serialize)]
struct DeviceList {
    /// Default device of the model.
    automatic: String,
    reason: String,
    context_tokens: usize,
    memory_bytes: u64,
    fits_memory: bool,
    gpus: Vec<Verdict>,
}

pub fn run(args: &DevicesArgs) -> Result<(), CliError> {
    let path = load::file(args.model.as_deref())?;
    let file = ModelFile::open(&path).map_err(|error| CliError::file(&path, error))?;
    let threads = load::threads(args.threads)?;
    let options = LoadOptions {
        threads,
        context: load::context(args.context)?,
        ..LoadOptions::default()
    };
    let header = ModelHeader::open(&path).map_err(|error| CliError::file(&path, error))?;
    let available = engine::process::available();
    let memory = header.footprint.memory(&options, available);
    let machine = load::devices()
        .ok_or_else(|| CliError::message("there is no folder for the GPU check cache"))?;
    let verdicts = machine
        .verdicts(&file, threads, args.check, &mut load::tell_of_check)
        .map_err(|fault| CliError::message(format!("GPUs cannot be listed: {fault}")))?;
    let on_check = &mut load::tell_of_check;
    let choice = machine.choose(&DeviceRequest::Auto, &file, threads, on_check);
    let devices = DeviceList {
        automatic: match choice.placement {
            Placement::Cpu => "cpu".to_owned(),
            Placement::Gpu(gpu) => DeviceRequest::Gpu(gpu.id).to_string(),
        },
        reason: choice.reason.to_string(),
        context_tokens: memory.tokens,
        memory_bytes: memory.bytes,
        fits_memory: memory.fits,
        gpus: verdicts,
    };
    if args.json {
        return output::json(&devices);
    }
    let mut out = output::stdout();
    write(&mut out, &devices)?;
    Ok(out.flush()?)
}

fn write(out: &mut impl Write, it: &DeviceList) -> io::Result<()> {
    writeln!(out, "automatic: {}. {}.", it.automatic, it.reason)?;
    let megabytes = usize::try_from(it.memory_bytes >> 20).unwrap_or(usize::MAX);
    let (megabytes, context) = (count(megabytes), tokens(it.context_tokens));
    let fits = if it.fits_memory {
        "fits"
    } else {
        "does not fit in the free memory"
    };
    writeln!(
        out,
        "{megabytes} MiB of memory with a context of {context}: {fits}"
    )?;
    for verdict in &it.gpus {
        let gpu = &verdict.gpu;
        writeln!(
            out,
            "\ngpu:{}\n  {}, {}, {} {}",
            gpu.id,
            on_one_line(&gpu.name),
            gpu.kind,
            gpu.api,
            on_one_line(&gpu.driver)
        )?;
        let sentence = if verdict.is_usable() {
            ""
        } else {
            "not used: "
        };
        writeln!(out, "  {sentence}{}", verdict.reason())?;
        if let Some(last_load) = &verdict.last_load {
            writeln!(out, "  when last loaded: {last_load}")?;
        }
        if let Some(words) = verdict.check.as_ref().and_then(matrices) {
            writeln!(out, "  cooperative matrices: {words}")?;
        }
        if let Some(report) = &verdict.report {
            writeln!(out, "{report}")?;
        }
    }
    if it.gpus.is_empty() {
        writeln!(out, "no Vulkan or Metal driver found a GPU")?;
    }
    Ok(())
}
