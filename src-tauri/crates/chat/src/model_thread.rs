//! The thread that owns the model: one job at a time, in the order in which the actor sends them.
//!
//! Between jobs it does idle work: it prefills a draft at once, and after a while makes titles and saves KV caches. The
//! actor interrupts that when it submits a job; a title, and a draft that continues the one being prefilled, wait for it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use inference::{Event, Part, Signals, StopReason};
use store::ChatId;

use crate::failure::{Failure, FailureCode};
use crate::fit::{self, Limits, TurnRequest};
use crate::job::{GeneratedAnswer, Job, Report};
use crate::model_host::{ModelHost, ModelInfo};
use crate::reading::{Reading, ReadingRate};
use crate::view::AnswerStats;

/// Time limit for saving caches before a model is closed.
const END_WITHIN: Duration = Duration::from_millis(500);

/// Runs until the actor drops the sender of `jobs`. `interrupt` is set whenever the actor sends a job: idle work then
/// ends.
pub(crate) fn run(
    mut host: Box<dyn ModelHost>,
    jobs: &Receiver<Job>,
    interrupt: &AtomicBool,
    idle_after: Duration,
    report: &dyn Fn(Report),
) {
    let mut idle = IdleWork {
        after: idle_after,
        ahead: None,
        title: None,
        unsaved: false,
    };
    let mut rate = ReadingRate::default();
    while let Some(job) = idle.next_job(host.as_mut(), jobs, interrupt, report) {
        match job {
            Job::Open {
                choice,
                options,
                asked,
            } => {
                idle.end(host.as_mut());
                rate = ReadingRate::default();
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
                    counter: catch_panic(FailureCode::Other, || Ok(host.counter()))
                        .0
                        .ok()
                        .flatten(),
                });
            }
            Job::Close => {
                idle.end(host.as_mut());
                close(host.as_mut());
            }
            Job::Answer {
                chat,
                request,
                cancel,
                answer_now,
            } => {
                // The draft is older: it is sent or discarded by now.
                idle.ahead = None;
                idle.title = None;
                let signals = Signals {
                    cancel: &cancel,
                    answer_now: &answer_now,
                };
                let answer = || answer(host.as_mut(), chat, &request, signals, &mut rate, report);
                let (result, panicked) = catch_panic(FailureCode::Other, answer);
                let open = host.info().filter(|_| !panicked).map(named).map(Box::new);
                report(Report::Ended {
                    result,
                    panicked,
                    open,
                });
                idle.unsaved = !panicked;
            }
            Job::ReadAhead { chat, request } => idle.ahead = Some((chat, request)),
            Job::Title { chat, request } => idle.title = Some((chat, request)),
            Job::MakeRoom => log_panic(|| host.make_room()),
            Job::Relabel { from, to } => log_panic(|| host.relabel(from, to)),
            Job::Forget(chats) => {
                idle.ahead = idle.ahead.filter(|(of, _)| !chats.contains(of));
                idle.title = idle.title.filter(|(of, _)| !chats.contains(of));
                log_panic(|| host.forget(&chats));
            }
            // After a panic the rest is erased the next time.
            Job::RetainChats(chats) => log_panic(|| host.retain_chats(&chats)),
        }
    }
    idle.end(host.as_mut());
}

/// Work of the host while there is no job.
struct IdleWork {
    /// Idle time before it begins; prefilling a draft does not wait.
    after: Duration,
    ahead: Option<(ChatId, TurnRequest)>,
    /// A request for a title.
    title: Option<(ChatId, TurnRequest)>,
    /// True if the host may have caches to save.
    unsaved: bool,
}

impl IdleWork {
    /// Returns the next job; `None` if there are no more.
    fn next_job(
        &mut self,
        host: &mut dyn ModelHost,
        jobs: &Receiver<Job>,
        interrupt: &AtomicBool,
        report: &dyn Fn(Report),
    ) -> Option<Job> {
        loop {
            if self.ahead.is_none() {
                if !self.unsaved && self.title.is_none() {
                    return jobs.recv().ok();
                }
                match jobs.recv_timeout(self.after) {
                    Ok(job) => return Some(job),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            }
            while self.ahead.is_some() || self.title.is_some() || self.unsaved {
                // In this order, since any later job sets it again.
                interrupt.store(false, Ordering::SeqCst);
                match jobs.try_recv() {
                    Ok(job) => return Some(job),
                    Err(TryRecvError::Empty) => self.step(host, interrupt, report),
                    Err(TryRecvError::Disconnected) => return None,
                }
            }
        }
    }

    /// Saves caches before the model is closed, within a time limit.
    fn end(&mut self, host: &mut dyn ModelHost) {
        (self.ahead, self.title) = (None, None);
        let deadline = Instant::now() + END_WITHIN;
        while self.unsaved && Instant::now() < deadline {
            let more = catch_panic(FailureCode::Other, || Ok(host.save_caches())).0;
            self.unsaved = more.unwrap_or(false);
        }
    }

    fn step(&mut self, host: &mut dyn ModelHost, cancel: &AtomicBool, report: &dyn Fn(Report)) {
        let ahead = self.ahead.take();
        let title = self.title.take_if(|_| ahead.is_none());
        let step = || match (&ahead, &title) {
            (Some((chat, request)), _) => {
                read_ahead(host, *chat, request, cancel)?;
                Ok(true)
            }
            (None, Some((chat, request))) => {
                if let Some(title) = make_title(host, request, cancel)? {
                    report(Report::Titled { chat: *chat, title });
                }
                Ok(true)
            }
            (None, None) => Ok(host.save_caches()),
        };
        // Nobody waits for it, and failed work is repeated when it is needed.
        let (step, panicked) = catch_panic(FailureCode::Other, step);
        if panicked {
            // An answer that is already requested must not use a cache of other tokens.
            close(host);
            report(Report::IdleWorkPanicked);
        } else if cancel.load(Ordering::SeqCst) {
            // Restored, unless the job ends or replaces it.
            self.ahead = ahead;
            self.title = self.title.take().or(title);
        }
        // After another failure there still is what was to be saved.
        self.unsaved = step
            .inspect_err(|failure| tracing::debug!(code = failure.code.name(), "idle work failed"))
            .unwrap_or(!panicked);
    }
}

/// Prefills an unsent message, up to the point where the answer's prompt would continue.
fn read_ahead(
    host: &mut dyn ModelHost,
    chat: ChatId,
    request: &TurnRequest,
    cancel: &AtomicBool,
) -> Result<(), Failure> {
    if let Some(limits) = host.info().map(Limits::of) {
        let make = &mut |conversation: &_| host.prompt(conversation, cancel);
        let (prompt, _) = fit::fit(request, limits, make)?;
        host.resume(chat, &prompt, cancel, &mut |_| {});
        host.read_ahead(chat, &prompt, cancel);
    }
    Ok(())
}

/// Generates a title outside the chat. `None` if it was cancelled, or the model now holds another chat.
fn make_title(
    host: &mut dyn ModelHost,
    request: &TurnRequest,
    cancel: &AtomicBool,
) -> Result<Option<String>, Failure> {
    let prompt = host.prompt(&request.conversation, cancel)?;
    let mut title = String::new();
    let finished = host.generate_aside(&prompt, &request.params, cancel, &mut |event| {
        if let Event::Token {
            piece,
            part: Part::Answer,
            ..
        } = event
        {
            title.push_str(piece);
        }
    })?;
    let is_whole = finished.is_some_and(|finished| finished.reason != StopReason::Cancelled);
    Ok(is_whole.then_some(title))
}

fn close(host: &mut dyn ModelHost) {
    // After a panic of a driver the model is gone in any case.
    log_panic(|| host.close());
}

fn answer(
    host: &mut dyn ModelHost,
    chat: ChatId,
    request: &TurnRequest,
    signals: Signals<'_>,
    rate: &mut ReadingRate,
    report: &dyn Fn(Report),
) -> Result<GeneratedAnswer, Failure> {
    let Some(limits) = host.info().map(Limits::of) else {
        return Err(Failure::new(FailureCode::Other, "No model is open."));
    };
    let cancel = signals.cancel;
    let (prompt, truncation) = fit::fit(request, limits, &mut |conversation| {
        host.prompt(conversation, cancel)
    })?;
    report(Report::Truncated(truncation));
    let total = prompt.ids.len();
    host.resume(chat, &prompt, cancel, &mut |done| {
        report(Report::Reading(Reading {
            done,
            total,
            cached: done,
            left: None,
        }));
    });
    rate.restart();
    let finished = host.generate(
        &prompt,
        &request.params,
        signals,
        &mut |event| match event {
            Event::Prefill {
                done,
                total,
                cached,
            } => report(Report::Reading(rate.progress(
                Instant::now(),
                done,
                total,
                cached,
            ))),
            Event::Token { id, piece, part } => report(Report::Token {
                id,
                text: piece.to_owned(),
                part,
                at: Instant::now(),
            }),
        },
    )?;
    Ok(GeneratedAnswer {
        reason: finished.reason,
        stats: AnswerStats::new(finished.stats, host.info()),
    })
}

fn named(info: &ModelInfo) -> ModelInfo {
    info.clone().with_names_cut()
}

/// Turns a panic into a failure, so that the thread survives. Returns whether there was one.
pub(crate) fn catch_panic<T>(
    code: FailureCode,
    act: impl FnOnce() -> Result<T, Failure>,
) -> (Result<T, Failure>, bool) {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => (result, false),
        Err(panic) => {
            let cause = cause(panic.as_ref());
            // The panic hook logs it, without the text that a panic may quote.
            tracing::error!("the model panicked");
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

fn log_panic(act: impl FnOnce()) {
    let _ = catch_panic(FailureCode::Other, || {
        act();
        Ok(())
    });
}

fn cause(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown cause")
}
