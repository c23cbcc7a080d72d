//! The thread that owns the model: one job at a time, in the order in which the desk sends them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use crate::failure::{Failure, FailureCode};
use crate::fit::{self, Limits, Unfitted};
use crate::job::{Job, Report};
use crate::model_host::{Finish, Generate, ModelInfo, Piece};

/// Runs until the desk lets go of `jobs`.
pub(crate) fn run(mut generate: Box<dyn Generate>, jobs: &Receiver<Job>, report: &dyn Fn(Report)) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Open {
                choice,
                options,
                asked,
            } => {
                let open = || {
                    if let Some(refusal) = generate.refusal(&choice).filter(|_| !asked) {
                        return Err(refusal);
                    }
                    generate.open(&choice, &options, &mut |progress| {
                        report(Report::Progress(progress))
                    })
                };
                let result = unless_it_panics(FailureCode::BadModel, open).0;
                let open =
                    unless_it_panics(FailureCode::BadModel, || Ok(generate.info().map(named))).0;
                report(Report::Opened {
                    result: result.map(drop),
                    open: open.ok().flatten().map(Box::new),
                });
            }
            Job::Answer { unfitted, cancel } => {
                let answer = || answer(generate.as_mut(), unfitted, &cancel, report);
                let (result, panicked) = unless_it_panics(FailureCode::Generation, answer);
                let open = generate
                    .info()
                    .filter(|_| !panicked)
                    .map(named)
                    .map(Box::new);
                report(Report::Ended {
                    result,
                    panicked,
                    open,
                });
            }
        }
    }
}

fn answer(
    generate: &mut dyn Generate,
    unfitted: Unfitted,
    cancel: &AtomicBool,
    report: &dyn Fn(Report),
) -> Result<Finish, Failure> {
    let Some(limits) = generate.info().map(Limits::of) else {
        return Err(Failure::new(FailureCode::NoModel, "No model is open."));
    };
    let (turn, fitted) = fit::fit(unfitted, limits, &mut |turn| generate.count(turn, cancel))?;
    report(Report::Fitted(fitted));
    let finish = generate.generate(&turn, cancel, &mut |piece| match piece {
        Piece::Reading { done, total, .. } => report(Report::Reading { done, total }),
        Piece::Token { id, text, part } => report(Report::Token {
            id,
            text: text.to_owned(),
            part,
            at: Instant::now(),
        }),
    })?;
    Ok(Finish {
        stats: finish.stats.with_names_cut(),
        ..finish
    })
}

fn named(info: &ModelInfo) -> ModelInfo {
    info.clone().with_names_cut()
}

/// A panic becomes a failure, so that the thread lives on. Returns whether there was one.
fn unless_it_panics<T>(
    code: FailureCode,
    act: impl FnOnce() -> Result<T, Failure>,
) -> (Result<T, Failure>, bool) {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => (result, false),
        Err(panic) => {
            let cause = cause(panic.as_ref());
            tracing::error!(cause, "the model panicked");
            (
                Err(Failure::new(
                    code,
                    format!("The model failed unexpectedly: {cause}"),
                )),
                true,
            )
        }
    }
}

pub(crate) fn cause(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown cause")
}
