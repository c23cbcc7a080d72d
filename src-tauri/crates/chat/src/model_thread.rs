//! The thread that owns the model: one job at a time, in the order in which the actor sends them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use inference::Event;

use crate::failure::{Failure, FailureCode};
use crate::fit::{self, Limits, TurnRequest};
use crate::job::{GeneratedAnswer, Job, Report};
use crate::model_host::{ModelHost, ModelInfo};
use crate::view::AnswerStats;

/// Runs until the actor lets go of `jobs`.
pub(crate) fn run(mut host: Box<dyn ModelHost>, jobs: &Receiver<Job>, report: &dyn Fn(Report)) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Open {
                choice,
                options,
                asked,
            } => {
                let open = || {
                    if let Some(refusal) = host.refusal(&choice).filter(|_| !asked) {
                        return Err(refusal);
                    }
                    host.open(&choice, &options, &mut |progress| {
                        report(Report::Progress(progress))
                    })
                };
                let result = catch_panic(FailureCode::BadModel, open).0;
                let open = catch_panic(FailureCode::BadModel, || Ok(host.info().map(named))).0;
                report(Report::Opened {
                    result: result.map(drop),
                    open: open.ok().flatten().map(Box::new),
                });
            }
            Job::Answer { request, cancel } => {
                let answer = || answer(host.as_mut(), &request, &cancel, report);
                let (result, panicked) = catch_panic(FailureCode::Other, answer);
                let open = host.info().filter(|_| !panicked).map(named).map(Box::new);
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
    host: &mut dyn ModelHost,
    request: &TurnRequest,
    cancel: &AtomicBool,
    report: &dyn Fn(Report),
) -> Result<GeneratedAnswer, Failure> {
    let Some(limits) = host.info().map(Limits::of) else {
        return Err(Failure::new(FailureCode::Other, "No model is open."));
    };
    let (prompt, truncation) = fit::fit(request, limits, &mut |conversation| {
        host.prompt(conversation, cancel)
    })?;
    report(Report::Truncated(truncation));
    let finished = host.generate(&prompt, &request.params, cancel, &mut |event| match event {
        Event::Prefill { done, total, .. } => report(Report::Reading { done, total }),
        Event::Token { id, piece, part } => report(Report::Token {
            id,
            text: piece.to_owned(),
            part,
            at: Instant::now(),
        }),
    })?;
    Ok(GeneratedAnswer {
        reason: finished.reason,
        stats: AnswerStats::new(finished.stats, host.info()),
    })
}

fn named(info: &ModelInfo) -> ModelInfo {
    info.clone().with_names_cut()
}

/// A panic becomes a failure, so that the thread lives on. Returns whether there was one.
fn catch_panic<T>(
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
