//! `goldcrest bench`: speed of a model on this machine.

mod reopening;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use chat::{KvType, ModelChoice, ModelOptions};

use ::bench::{BenchParams, BenchReport, GpuReport, Synthetic, synthetic};

use super::args::{BenchArgs, ModelArgs};
use super::load::{self, LoadedModel};
use super::output::{self, CliError};
use crate::visible::on_one_line;

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
    if !args.reopen.is_empty() {
        return reopen(args);
    }
    if !args.parallel.is_empty() {
        return parallel(args, &params);
    }
    let report = open(args)?
        .run(|engine| ::bench::run(engine, &params))
        .map_err(|error| CliError::message(error.to_string()))?;
    if args.json {
        return output::json(&report);
    }
    let mut out = output::stdout();
    write(&mut out, &report)?;
    Ok(out.flush()?)
}

fn reopen(args: &BenchArgs) -> Result<(), CliError> {
    let options = ModelOptions {
        device: "cpu".to_owned(),
        threads: args.place.threads.map(u32::from),
        context_length: args.place.context,
        kv_type: args.place.kv.unwrap_or(KvType::F16),
    };
    let model = ModelChoice::File(load::file(args.model.as_deref())?);
    let mut chats = Vec::new();
    for &tokens in &args.reopen {
        chats.push(reopening::measure(&model, &options, tokens)?);
    }
    if args.json {
        return output::json(&chats);
    }
    let mut out = output::stdout();
    for it in &chats {
        writeln!(
            out,
            "{} tokens: first token after {:.2} s cold, {:.2} s reopened; opening took {:.2} s for {} tokens ({:.1} MB on the disk)",
            it.prompt,
            it.cold_s,
            it.reopened_s,
            it.restore_s,
            it.restored,
            it.disk_bytes as f64 / 1e6,
        )?;
    }
    Ok(out.flush()?)
}

fn parallel(args: &BenchArgs, params: &BenchParams) -> Result<(), CliError> {
    let answers: Vec<usize> = args
        .parallel
        .iter()
        .map(|n| usize::from(*n).max(1))
        .collect();
    let measured = open(args)?.run(|engine| ::bench::parallel(engine, params, &answers));
    let (reports, beside) = measured.map_err(|error| CliError::message(error.to_string()))?;
    if args.json {
        return output::json(&serde_json::json!({"parallel": reports, "beside": beside}));
    }
    let mut out = output::stdout();
    let one = reports.iter().find(|it| it.answers == 1).map(|it| it.tok_s);
    for it in &reports {
        write!(out, "{} at once: {:.1} tokens/s", it.answers, it.tok_s)?;
        match one {
            Some(one) if it.answers > 1 => writeln!(out, ", {:.2} times one", it.tok_s / one)?,
            _ => writeln!(out)?,
        }
    }
    writeln!(
        out,
        "an answer while a prompt of {} tokens is read: {:.1} tokens/s of {:.1}; the prompt {:.1} tokens/s",
        beside.prompt, beside.beside_tok_s, beside.alone_tok_s, beside.read_tok_s
    )?;
    Ok(out.flush()?)
}

fn open(args: &BenchArgs) -> Result<LoadedModel, CliError> {
    let Some(shape) = &args.synthetic else {
        return load::open(&ModelArgs {
            model: args.model.clone(),
            place: args.place.clone(),
        });
    };
    let file = synthetic(shape, args.seed).map_err(|error| CliError::message(error.to_string()))?;
    let options = load::load_options(&args.place)?;
    let request = load::requested(&args.place)?;
    load::open_unchecked(&file, &request, !args.without_matrices, &options)
        .map_err(|error| CliError::message(error.to_string()))
}

/// Writes the model of random weights to a file, for programs that do not know such models.
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

fn write_kernels(out: &mut impl Write, gpu: &GpuReport) -> io::Result<()> {
    write!(out, "  {} dispatches per token", gpu.dispatches)?;
    match gpu.kernels_ms {
        Some(kernels) => write!(out, ", {kernels:.2} ms on the GPU")?,
        None => write!(out, " (no times: the GPU has no timestamps)")?,
    }
    if let Some(host) = gpu.host_ms {
        write!(out, ", {host:.2} ms on the CPU")?;
    }
    writeln!(out)?;
    if let Some(rate) = gpu.read_bandwidth_gb_s {
        writeln!(
            out,
            "  GPU memory {rate:.1} GB/s read bandwidth; the kernels' share of it:"
        )?;
    }
    for kernel in &gpu.kernels {
        let (count, megabytes) = (kernel.count, kernel.bytes as f64 / 1e6);
        write!(out, "    {:<9}{count:>4} × ", kernel.what)?;
        if let Some(each) = kernel.each_us {
            write!(out, "{each:>9.1} µs")?;
        }
        write!(out, " {megabytes:>9.2} MB")?;
        if let Some(rate) = kernel.gb_s.filter(|_| kernel.bytes > 0) {
            write!(out, " {rate:>7.1} GB/s")?;
            if let Some(share) = kernel.bandwidth_used {
                write!(out, " {:>4.0} %", share * 100.0)?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write(out: &mut impl Write, it: &BenchReport) -> io::Result<()> {
    writeln!(
        out,
        "{}, {}, on {}",
        on_one_line(&it.model),
        it.quantisation,
        it.device_name
    )?;
    if let Some(rate) = it.prefill_tok_s {
        writeln!(
            out,
            "  prefill {:>10.1} tokens/s ({} tokens after {})",
            rate, it.prompt, it.depth
        )?;
    }
    if let Some(rate) = it.decode_tok_s {
        writeln!(
            out,
            "  decode  {:>10.1} tokens/s ({} tokens after {})",
            rate, it.generate, it.depth
        )?;
    }
    writeln!(
        out,
        "  memory  {:>10.1} GB/s read bandwidth; {:.1} MB read per token",
        it.read_bandwidth_gb_s,
        it.bytes_per_token as f64 / 1e6
    )?;
    if let Some(share) = it.bandwidth_used {
        writeln!(
            out,
            "  decode uses {:.0} % of that bandwidth",
            share * 100.0
        )?;
    }
    writeln!(
        out,
        "  products {:>9.3} · 10¹² integer MAC/s at this level; {:.2} · 10⁹ per prompt token",
        it.integer_tmac_s,
        it.products_per_token as f64 / 1e9
    )?;
    if let Some(share) = it.integer_used {
        writeln!(out, "  prefill uses {:.0} % of that", share * 100.0)?;
    }
    if let Some(gpu) = &it.gpu {
        write_kernels(out, gpu)?;
    }
    if let Some(bytes) = it.peak_rss_bytes {
        writeln!(out, "  peak    {:>10.1} MB resident", bytes as f64 / 1e6)?;
    }
    writeln!(
        out,
        "  sampling {:>9.2} ms per token, vocabulary of 128,256",
        it.sampling_ms
    )?;
    writeln!(
        out,
        "  form    {:>10.2} ms per token of JSON, {:.2} at most; {:.0} ms once per model, {:.1} once per request",
        it.form.mask_ms, it.form.longest_mask_ms, it.form.trie_ms, it.form.compile_ms
    )?;
    if let Some(follow_up) = &it.follow_up {
        writeln!(
            out,
            "  first token of a follow-up question after {:.2} s ({} of {} tokens cached)",
            follow_up.first_token_s, follow_up.cached, follow_up.prompt
        )?;
    }
    for text in &it.lookup {
        writeln!(
            out,
            "  {:<8}{:>9.1} tokens/s speculative, {:.1} without: {:.2} times ({} of {} drafted tokens accepted)",
            text.text, text.lookup_tok_s, text.plain_tok_s, text.ratio, text.accepted, text.drafted
        )?;
    }
    if let Some(idle) = it.idle_cpu {
        writeln!(out, "  idle    {:>10.1} % of a core", idle * 100.0)?;
    }
    writeln!(out, "  loaded in {:.2} s", it.load_s)
}

#[cfg(test)]
mod tests {
    use ::bench::KernelReport;

    use super::*;

    #[test]
    fn a_gpus_kernels_are_written_with_their_times_where_it_measures_them() {
        let written = |timed: bool| {
            let kernel = |what, count, bytes| KernelReport {
                what,
                count,
                bytes,
                each_us: timed.then_some(20.0),
                gb_s: timed.then_some(640.0),
                bandwidth_used: timed.then_some(0.5),
            };
            let report = GpuReport {
                kernels: vec![kernel("down", 36, 460_800_000), kernel("sample", 1, 0)],
                dispatches: 37,
                read_bandwidth_gb_s: timed.then_some(1280.0),
                kernels_ms: timed.then_some(0.74),
                host_ms: Some(0.25),
            };
            let mut out = Vec::new();
            write_kernels(&mut out, &report).expect("it is memory");
            String::from_utf8(out).expect("it is text")
        };
        let timed = written(true);
        assert!(timed.contains("37 dispatches per token, 0.74 ms on the GPU, 0.25 ms on the CPU"));
        let lines: Vec<Vec<&str>> = timed
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[2].join(" "),
            "down 36 × 20.0 µs 460.80 MB 640.0 GB/s 50 %"
        );
        assert_eq!(lines[3].join(" "), "sample 1 × 20.0 µs 0.00 MB");
        let untimed = written(false);
        assert!(untimed.contains("no times"), "{untimed}");
        assert!(!untimed.contains("µs"), "{untimed}");
    }
}
