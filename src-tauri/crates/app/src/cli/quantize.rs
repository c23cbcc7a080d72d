//! `goldcrest quantize`: a model in floats to a quantised GGUF file.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ::quantize::{QuantizeError, QuantizeReport, QuantizeRequest, QuantizeStep};

use super::args::QuantizeArgs;
use super::interrupt::Interrupt;
use super::output::{self, CliError};
use super::progress::ProgressLine;

pub fn run(args: &QuantizeArgs) -> Result<(), CliError> {
    let request = QuantizeRequest {
        input: args.input.clone(),
        output: args.output.clone(),
        file_type: args.file_type,
        overwrite: args.force,
        threads: args.threads.map(usize::from),
    };
    let mut bar = ProgressLine::new();
    let (report, _) = Interrupt::listen().during(|cancel| {
        let mut show = |step, done, total| bar.show(label(step), done, total);
        ::quantize::quantize(&request, &mut show, cancel)
    });
    bar.clear();
    let report = report.map_err(|error| match error {
        QuantizeError::Cancelled => CliError::Interrupted,
        error => CliError::message(error.to_string()),
    })?;
    if args.json {
        return output::json(&report);
    }
    let mut out = output::stdout();
    write(&mut out, &report)?;
    Ok(out.flush()?)
}

fn label(step: QuantizeStep) -> &'static str {
    match step {
        QuantizeStep::Write => "Quantising",
        QuantizeStep::Verify => "Verifying",
    }
}

/// Tensors and bytes of each type, then the file as a whole.
fn write(out: &mut impl Write, it: &QuantizeReport) -> io::Result<()> {
    let mut types: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for tensor in &it.tensors {
        let total = types.entry(tensor.ty).or_default();
        *total = (total.0 + 1, total.1 + tensor.bytes);
    }
    for (name, (tensors, bytes)) in types {
        writeln!(
            out,
            "  {name:<5} {tensors:>5} tensors {:>10.1} MB",
            megabytes(bytes)
        )?;
    }
    writeln!(
        out,
        "{}: {:.1} MB from {:.1} MB, {:.2} bits per weight, relative error {:.5}, {:.0} s",
        it.file_type,
        megabytes(it.output_bytes),
        megabytes(it.input_bytes),
        it.bits_per_weight,
        it.relative_error,
        it.seconds
    )
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
