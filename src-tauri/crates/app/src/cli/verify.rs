//! `goldcrest verify`: Goldcrest and candle on the same model, compared.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use engine::LoadOptions;
use figures::tokens;
use reference::Distance;

use super::args::VerifyArgs;
use super::interrupt::Interrupt;
use super::load;
use super::output::{self, CliError};
use super::progress::ProgressLine;
use crate::model_check::{CheckDistance, CheckLine, CheckReport, ModelCheckStep};
use crate::verify::{Parting, Subject, VerifyReport, VerifyStage, percent};
use crate::visible::on_one_line;

/// Exit codes: the results disagree, or cannot be compared.
const DISAGREE: u8 = 1;
const FAILED: u8 = 2;

/// Maximum positions that are listed at which the two differ.
const MOST_PARTINGS: usize = 8;

pub fn run(args: &VerifyArgs) -> ExitCode {
    let interrupt = Interrupt::listen();
    if args.steps {
        // The window reads the steps: without it nobody waits for the rest.
        Interrupt::exit_with_parent();
    }
    let (found, interrupted) = interrupt.during(|cancel| verify(args, cancel));
    let result = match found {
        Ok(Some(report)) => match print(args, &report) {
            Ok(()) if !report.agrees() => return ExitCode::from(DISAGREE),
            printed => printed,
        },
        // Ctrl+C in a terminal ends the child, too, which then seems to have failed.
        Err(_) if interrupted => Err(CliError::Interrupted),
        Ok(None) => Err(CliError::Interrupted),
        Err(error) => Err(error),
    };
    output::exit_code_or(ExitCode::from(FAILED), result)
}

/// Compares with one model in memory at a time; `None` if `cancel` was set.
fn verify(args: &VerifyArgs, cancel: &AtomicBool) -> Result<Option<VerifyReport>, CliError> {
    let file = &args.file;
    let request = load::requested(&args.place)?;
    let options = LoadOptions {
        // candle and the exact computation do not support YaRN.
        allow_yarn: false,
        ..load::load_options(&args.place)?
    };
    let subject = Subject::open(file, args.tokens.map(usize::from));
    let subject = subject.map_err(|error| CliError::file(file, error))?;
    let total = subject.tokens.len() as u64;
    let mut bar = ProgressLine::new();
    bar.begin("Loading the model with candle");
    let progress = &mut |stage| {
        let (what, step, done) = match stage {
            VerifyStage::Candle(done) => ("Reading with candle", ModelCheckStep::Candle, done),
            VerifyStage::Exact(done) => {
                ("Reading in exact arithmetic", ModelCheckStep::Exact, done)
            }
            VerifyStage::Engine(done) => {
                ("Reading as Goldcrest runs", ModelCheckStep::Engine, done)
            }
        };
        if args.steps {
            print_step(step, done as u64, total);
        } else {
            bar.show(what, done as u64, total);
        }
    };
    let threads = options.threads;
    let candle = subject.candle(file, threads, cancel, progress);
    let Some(candle) = candle.map_err(|error| CliError::file(file, error))? else {
        return Ok(None);
    };
    let exact = subject.exact(threads, cancel, progress);
    let Some(exact) = exact.map_err(|error| CliError::file(file, error))? else {
        return Ok(None);
    };
    let model = load::open_file(load::devices(), &subject.file, &request, &options);
    let mut model = model.map_err(|error| CliError::file(file, error))?;
    let compared = model.run(|engine| subject.compare(engine, &candle, &exact, cancel, progress));
    bar.clear();
    let compared = compared.map_err(|error| CliError::file(file, error))?;
    Ok(compared
        .map(|comparison| subject.report(model.engine(), model.device_reason(), &comparison)))
}

/// Prints a step for the window; if that is gone, this process ends at the end of its stdin.
fn print_step(step: ModelCheckStep, done: u64, total: u64) {
    let count = |tokens| u32::try_from(tokens).unwrap_or(u32::MAX);
    let _ = output::json(&CheckLine::Step {
        step,
        done: count(done),
        total: count(total),
    });
}

/// Converts the report for the window.
fn check_report(report: &VerifyReport) -> CheckReport {
    let distance = |distance: Distance| {
        let finite = |value: f64| value.is_finite().then_some(value);
        CheckDistance {
            relative_error: finite(distance.relative_error),
            mean_kl: finite(distance.mean_kl),
            top1: finite(distance.top1),
        }
    };
    CheckReport {
        verdict: report.verdict,
        device_name: report.device_name.clone(),
        tokens: u32::try_from(report.tokens).unwrap_or(u32::MAX),
        engine: distance(report.engine),
        candle: distance(report.candle),
    }
}

fn print(args: &VerifyArgs, report: &VerifyReport) -> Result<(), CliError> {
    if args.steps {
        return output::json(&CheckLine::Report(check_report(report)));
    }
    if args.json {
        return output::json(report);
    }
    let mut out = output::stdout();
    write(&mut out, report)?;
    Ok(out.flush()?)
}

fn write(out: &mut impl Write, it: &VerifyReport) -> io::Result<()> {
    writeln!(
        out,
        "{}, {}, on {}",
        on_one_line(&it.model),
        it.quantisation,
        it.device_name
    )?;
    writeln!(
        out,
        "  {} of a fixed text, of perplexity {:.2} by the exact result\n",
        tokens(it.tokens),
        it.perplexity
    )?;
    writeln!(
        out,
        "  {:<26}{:>14}{:>12}{:>24}",
        "", "relative error", "mean KL", "same likeliest token"
    )?;
    for (name, distance) in [
        ("Goldcrest from the exact", it.engine),
        ("candle from the exact", it.candle),
        ("Goldcrest from candle", it.between),
    ] {
        write_distance(out, name, distance)?;
    }
    writeln!(out)?;
    if !it.partings.is_empty() {
        let count = it.partings.len();
        let positions = if count == 1 { "token" } else { "tokens" };
        writeln!(out, "  They differ after {count} {positions}:")?;
    }
    for parting in it.partings.iter().take(MOST_PARTINGS) {
        write_parting(out, parting)?;
    }
    if it.partings.len() > MOST_PARTINGS {
        writeln!(out, "    … (--json has them all)")?;
    }
    if !it.partings.is_empty() {
        writeln!(out)?;
    }
    writeln!(out, "{}", it.sentence)
}

fn write_distance(out: &mut impl Write, name: &str, distance: Distance) -> io::Result<()> {
    writeln!(
        out,
        "  {name:<26}{:>14}{:>12.5}{:>24}",
        percent(distance.relative_error),
        distance.mean_kl,
        percent(distance.top1)
    )
}

fn write_parting(out: &mut impl Write, parting: &Parting) -> io::Result<()> {
    let Parting {
        position,
        after,
        engine,
        candle,
    } = parting;
    writeln!(
        out,
        "    {position:>3} {after:?}: Goldcrest {:?} {} (exact {}), candle {:?} {} (exact {})",
        engine.text,
        percent(engine.probability),
        percent(engine.exact_probability),
        candle.text,
        percent(candle.probability),
        percent(candle.exact_probability)
    )
}
