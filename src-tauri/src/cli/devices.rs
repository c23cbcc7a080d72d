//! `goldcrest devices`: what there is to run a model on.

use std::io::{self, Write};

use engine::DeviceRequest;
use serde::Serialize;

use super::{CliError, DevicesArgs, load, output};
use crate::gpus::{self, Verdict};

/// What `--json` prints.
#[derive(Serialize)]
struct Devices {
    /// Where the model would run when nothing is asked for.
    automatic: String,
    reason: String,
    gpus: Vec<Verdict>,
}

pub fn run(args: &DevicesArgs) -> Result<(), CliError> {
    let file = load::file(args.model.as_deref())?;
    let threads = args.threads.map(usize::from);
    let machine = load::gpus().ok_or_else(|| CliError::message("no folder to remember GPUs in"))?;
    let verdicts = machine
        .verdicts(&file, threads, args.check, &mut load::tell_of_check)
        .map_err(|reason| CliError::message(format!("looking for GPUs, {reason}")))?;
    let decision = machine.decide(
        DeviceRequest::Auto,
        &file,
        threads,
        &mut load::tell_of_check,
    );
    let devices = Devices {
        automatic: match &decision.device {
            DeviceRequest::Auto => "cpu".to_owned(),
            device => device.to_string(),
        },
        reason: decision.because.unwrap_or_default(),
        gpus: verdicts,
    };
    if args.json {
        return output::json(&devices);
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out, &devices)?;
    Ok(out.flush()?)
}

fn write(out: &mut impl Write, it: &Devices) -> io::Result<()> {
    writeln!(out, "automatic: {}. {}.", it.automatic, it.reason)?;
    for verdict in &it.gpus {
        let gpu = &verdict.gpu;
        writeln!(
            out,
            "\ngpu:{}\n  {}, {}, {} {}",
            gpu.id, gpu.name, gpu.kind, gpu.api, gpu.driver
        )?;
        let sentence = if verdict.usable { "" } else { "not used: " };
        writeln!(out, "  {sentence}{}", verdict.reason)?;
        if let Some(without) = &verdict.without {
            writeln!(out, "  when last loaded: {without}")?;
        }
        if let Some(words) = verdict.check.as_ref().and_then(gpus::matrices) {
            writeln!(out, "  cooperative matrices: {words}")?;
        }
        if let Some(report) = &verdict.report {
            writeln!(out, "{report}")?;
        }
    }
    if it.gpus.is_empty() {
        writeln!(out, "no Vulkan or Metal driver shows a GPU")?;
    }
    Ok(())
}
