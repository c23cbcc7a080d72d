//! `goldcrest bench`: how fast a model runs here.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use engine::{BenchParams, BenchReport, Engine, Synthetic};

use super::{BenchArgs, CliError, ModelArgs, load, output};

pub fn run(args: &BenchArgs) -> Result<(), CliError> {
    if let (Some(shape), Some(file)) = (&args.synthetic, &args.write) {
        return write_model(shape, args.seed, file);
    }
    let params = BenchParams {
        prompt: args.prompt as usize,
        generate: args.generate as usize,
        depth: args.depth as usize,
        chat: args.chat as usize,
        lookup: args.lookup,
        repeats: usize::from(args.repeats),
    };
    let report = open(args)?
        .bench(&params)
        .map_err(|error| CliError::message(error.to_string()))?;
    if args.json {
        return output::json(&report);
    }
    let mut out = io::stdout().lock();
    write(&mut out, &report)?;
    Ok(out.flush()?)
}

fn open(args: &BenchArgs) -> Result<Engine, CliError> {
    match &args.synthetic {
        Some(shape) => Engine::synthetic(shape, args.seed, &load::load_options(&args.place)?)
            .map_err(|error| CliError::message(error.to_string())),
        None => load::open(&ModelArgs {
            model: args.model.clone(),
            place: args.place.clone(),
        }),
    }
}

/// The model of random weights as a file, for programs that know no such models.
fn write_model(shape: &str, seed: u64, file: &Path) -> Result<(), CliError> {
    let model =
        Synthetic::new(shape, seed).map_err(|error| CliError::message(error.to_string()))?;
    let write = || {
        let mut out = io::BufWriter::new(File::create(file)?);
        model.write(&mut out)?;
        out.flush()
    };
    write().map_err(|error| CliError::file(file, error))
}

fn write(out: &mut impl Write, it: &BenchReport) -> io::Result<()> {
    writeln!(
        out,
        "{}, {}, on {}",
        it.model, it.quantisation, it.device_name
    )?;
    if let Some(rate) = it.prefill_tok_s {
        writeln!(
            out,
            "  reading {:>10.1} tokens/s ({} tokens behind {})",
            rate, it.prompt, it.depth
        )?;
    }
    if let Some(rate) = it.decode_tok_s {
        writeln!(
            out,
            "  writing {:>10.1} tokens/s ({} tokens behind {})",
            rate, it.generate, it.depth
        )?;
    }
    writeln!(
        out,
        "  memory  {:>10.1} GB/s read by this machine; a token reads {:.1} MB",
        it.read_bandwidth_gb_s,
        it.bytes_per_token as f64 / 1e6
    )?;
    if let Some(share) = it.bandwidth_used {
        writeln!(
            out,
            "  writing uses {:.0} % of that bandwidth",
            share * 100.0
        )?;
    }
    writeln!(
        out,
        "  products {:>9.3} · 10¹² integers/s at this level; a prompt's token takes {:.2} · 10⁹",
        it.integer_tmac_s,
        it.products_per_token as f64 / 1e9
    )?;
    if let Some(share) = it.integer_used {
        writeln!(out, "  reading uses {:.0} % of that", share * 100.0)?;
    }
    if let Some(bytes) = it.peak_rss_bytes {
        writeln!(out, "  peak    {:>10.1} MB resident", bytes as f64 / 1e6)?;
    }
    writeln!(
        out,
        "  sampling {:>9.2} ms a token, among 128,256",
        it.sampling_ms
    )?;
    if let Some(follow_up) = &it.follow_up {
        writeln!(
            out,
            "  a follow-up begins after {:.2} s ({} of {} tokens were in the cache)",
            follow_up.first_token_s, follow_up.cached, follow_up.prompt
        )?;
    }
    for text in &it.lookup {
        writeln!(
            out,
            "  {:<8}{:>9.1} tokens/s with guesses, {:.1} without: {:.2} times ({} of {} right)",
            text.text, text.lookup_tok_s, text.plain_tok_s, text.ratio, text.accepted, text.drafted
        )?;
    }
    if let Some(idle) = it.idle_cpu {
        writeln!(out, "  idle    {:>10.1} % of a core", idle * 100.0)?;
    }
    writeln!(out, "  loaded in {:.2} s", it.load_s)
}
