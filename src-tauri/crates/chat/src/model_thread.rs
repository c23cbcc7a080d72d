//! The thread that owns the model. Between two jobs of the actor it runs the requests that it has submitted to the host.
//!
//! Answers are written together. While there are none, a draft is prefilled at once, and after an idle time titles are
//! made and KV caches saved. A job that the actor submits ends such work, and the pass of several answers, but no two passes
//! in a row. A title, a draft that continues the one being prefilled, and a request of another program beside others wait for
//! the end of the pass.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use inference::{
    Event, Finished, GenerateParams, ModelRequest, Priority, Prompt, RequestId, Signals,
    StopReason, TokenKind,
};
use store::ChatId;

use crate::api::{API, ApiJob, ApiOutput};
use crate::failure::{Failure, FailureCode};
use crate::fit::{self, Limits, Truncation, TurnRequest};
use crate::job::{AnswerRun, GeneratedAnswer, Job, Report};
use crate::model_host::{ModelChoice, ModelHost, ModelInfo, ModelOptions};
use crate::panics::{catch_panic, log_panic, without_panic};
use crate::reading::ReadingRate;
use crate::view::AnswerStats;

/// Time limit for saving caches before a model is closed.
const END_WITHIN: Duration = Duration::from_millis(500);

pub(crate) struct ModelThread<'a> {
    host: Box<dyn ModelHost>,
    /// Idle time before titles are made and caches are saved.
    idle_after: Duration,
    report: &'a dyn Fn(Report),
    requests: BTreeMap<RequestId, SubmittedRequest>,
    /// Requests of other programs whose prompts are not encoded yet.
    programs: VecDeque<ApiJob>,
    last_id: u64,
    /// Prefill rate of the last prompt.
    rate: ReadingRate,
    /// A draft whose prefill has not begun.
    ahead: Option<(ChatId, TurnRequest)>,
    /// Titles whose requests wait for idle time.
    titles: VecDeque<(ChatId, TurnRequest)>,
    /// True if the host may have caches to save.
    unsaved: bool,
}

/// A request that the host runs.
struct SubmittedRequest {
    chat: ChatId,
    signals: Signals,
    output: RequestOutput,
}

/// Receiver of a request's events.
enum RequestOutput {
    Answer {
        run: AnswerRun,
        rate: ReadingRate,
    },
    /// A draft, which has no output.
    ReadAhead,
    Title(String),
    Api(ApiOutput),
}

impl<'a> ModelThread<'a> {
    pub fn new(
        host: Box<dyn ModelHost>,
        idle_after: Duration,
        report: &'a dyn Fn(Report),
    ) -> ModelThread<'a> {
        ModelThread {
            host,
            idle_after,
            report,
            requests: BTreeMap::new(),
            programs: VecDeque::new(),
            last_id: 0,
            rate: ReadingRate::default(),
            ahead: None,
            titles: VecDeque::new(),
            unsaved: false,
        }
    }

    /// Runs until the actor drops the sender of `jobs`. `preempt` is set whenever the actor submits a job.
    pub fn run(mut self, jobs: &Receiver<Job>, preempt: &AtomicBool) {
        while let Some(job) = self.next_job(jobs, preempt) {
            self.begin(job);
        }
        self.end();
    }

    /// Returns the next job, and works until there is one; `None` if there are no more.
    fn next_job(&mut self, jobs: &Receiver<Job>, preempt: &AtomicBool) -> Option<Job> {
        let mut is_idle = false;
        loop {
            let is_busy = !(self.requests.is_empty() && self.programs.is_empty());
            if !is_busy && self.ahead.is_none() && !is_idle {
                if self.titles.is_empty() && !self.unsaved {
                    return jobs.recv().ok();
                }
                match jobs.recv_timeout(self.idle_after) {
                    Ok(job) => return Some(job),
                    Err(RecvTimeoutError::Timeout) => is_idle = true,
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            }
            // In this order, since any later job sets it again.
            preempt.store(false, Ordering::SeqCst);
            match jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            self.drop_cancelled_programs();
            // One between two steps: to encode its prompt takes time.
            if let Some(job) = self.programs.pop_front() {
                self.answer_program(job);
                is_idle = false;
            }
            if !self.is_answering()
                && let Some(ahead) = self.ahead.take()
            {
                self.read_ahead(ahead, preempt);
                is_idle = true;
            } else if !self.requests.is_empty() {
                self.step(preempt);
            } else if let Some(title) = self.titles.pop_front() {
                self.make_title(title, preempt);
            } else if self.unsaved {
                self.save_caches();
            } else {
                is_idle = false;
            }
        }
    }

    fn begin(&mut self, job: Job) {
        match job {
            Job::Open {
                choice,
                options,
                asked,
            } => self.open(&choice, &options, asked),
            Job::Close => {
                self.end();
                self.close();
            }
            Job::Answer {
                chat,
                run,
                request,
                signals,
            } => {
                // The draft is older: it is sent or discarded by now.
                self.drop_ahead();
                if let Err((failure, panicked)) = self.answer(chat, run, &request, signals) {
                    self.report_end(run, Err(failure.clone()), panicked);
                    if panicked {
                        self.fail(&failure);
                    }
                }
            }
            Job::Api(job) => self.programs.push_back(job),
            Job::ReadAhead { chat, request } => {
                self.drop_ahead();
                self.ahead = Some((chat, request));
            }
            Job::Title { chat, request } => {
                self.titles.retain(|(of, _)| *of != chat);
                self.titles.push_back((chat, request));
            }
            Job::MakeRoom => log_panic(|| self.host.make_room()),
            Job::Relabel { from, to } => log_panic(|| self.host.relabel(from, to)),
            Job::Forget(chats) => {
                self.ahead.take_if(|(of, _)| chats.contains(of));
                self.titles.retain(|(of, _)| !chats.contains(of));
                self.cancel(|it| !it.is_answer() && chats.contains(&it.chat));
                log_panic(|| self.host.forget(&chats));
            }
            // After a panic the rest is erased the next time.
            Job::RetainChats(chats) => log_panic(|| self.host.retain_chats(&chats)),
        }
    }

    fn open(&mut self, choice: &ModelChoice, options: &ModelOptions, asked: bool) {
        self.end();
        self.rate = ReadingRate::default();
        let (host, report) = (&mut self.host, self.report);
        let open = || {
            if let Some(refusal) = host.refusal(choice).filter(|_| !asked) {
                return Err(refusal);
            }
            host.open(choice, options, &mut |progress| {
                report(Report::Progress(progress));
            })
        };
        let result = catch_panic(FailureCode::BadModel, open).0;
        let open = catch_panic(FailureCode::BadModel, || Ok(host.info().map(named))).0;
        let counter = catch_panic(FailureCode::Other, || Ok(host.counter())).0;
        report(Report::Opened {
            result: result.map(drop),
            open: open.ok().flatten().map(Box::new),
            counter: counter.ok().flatten(),
        });
    }

    /// Submits the request of an answer. On an error, returns true if the host panicked.
    fn answer(
        &mut self,
        chat: ChatId,
        run: AnswerRun,
        request: &TurnRequest,
        signals: Signals,
    ) -> Result<(), (Failure, bool)> {
        let fitted = self.fit(request, &signals.cancel);
        let (prompt, truncation) = fitted?;
        (self.report)(Report::Truncated(run, truncation));
        let output = RequestOutput::Answer {
            run,
            rate: self.rate.restarted(),
        };
        self.submit(chat, prompt, &request.params, signals, output)
    }

    /// Drops the cancelled requests of other programs, for which nobody waits.
    fn drop_cancelled_programs(&mut self) {
        let waiting = self.programs.len();
        self.programs.retain(|job| !job.is_cancelled());
        if self.programs.len() < waiting {
            (self.report)(Report::ApiEnded);
        }
    }

    /// Submits the request of another program.
    fn answer_program(&mut self, job: ApiJob) {
        let (request, output) = job.into_parts();
        let host = &mut self.host;
        let prepared = without_panic(|| {
            let Some(info) = host.info().map(named) else {
                return Err(Failure::new(FailureCode::NoModel, "No model is open."));
            };
            request.check(&info, host.counter().as_deref())?;
            let prompt = request.prompt(host.as_mut(), &info)?;
            Ok((prompt, request.params(&info)))
        });
        let submitted = match prepared {
            Ok((prompt, params)) => {
                let signals = request.signals.clone();
                self.submit(API, prompt, &params, signals, RequestOutput::Api(output))
            }
            Err(failed) => {
                output.end(Err(failed.0.clone()));
                Err(failed)
            }
        };
        if let Err((failure, panicked)) = submitted {
            (self.report)(Report::ApiEnded);
            if panicked {
                self.fail(&failure);
            }
        }
    }

    /// Submits the prefill of a draft, up to the point where the answer's prompt would continue.
    fn read_ahead(&mut self, (chat, request): (ChatId, TurnRequest), preempt: &AtomicBool) {
        let submitted = self.fit(&request, preempt).and_then(|(prompt, _)| {
            let signals = Signals::default();
            self.submit(
                chat,
                prompt,
                &request.params,
                signals,
                RequestOutput::ReadAhead,
            )
        });
        if self.is_over(submitted, preempt) {
            return;
        }
        self.ahead = Some((chat, request));
    }

    /// Submits the request of a title.
    fn make_title(&mut self, (chat, request): (ChatId, TurnRequest), preempt: &AtomicBool) {
        let host = &mut self.host;
        let prompt = || host.prompt(&request.conversation, preempt);
        let submitted = without_panic(prompt).and_then(|prompt| {
            let (signals, title) = (Signals::default(), RequestOutput::Title(String::new()));
            self.submit(chat, prompt, &request.params, signals, title)
        });
        if !self.is_over(submitted, preempt) {
            self.titles.push_front((chat, request));
        }
    }

    /// Handles the submission of idle work. Returns false if it was preempted, and has to be repeated.
    fn is_over(&mut self, submitted: Result<(), (Failure, bool)>, preempt: &AtomicBool) -> bool {
        // Nobody waits for it, and failed work is repeated when it is needed.
        match submitted {
            Ok(()) => true,
            Err((failure, true)) => {
                self.fail(&failure);
                true
            }
            Err(_) if preempt.load(Ordering::SeqCst) => false,
            Err((failure, false)) => {
                tracing::debug!(code = failure.code.name(), "idle work failed");
                true
            }
        }
    }

    /// Fits a request into the context.
    fn fit(
        &mut self,
        request: &TurnRequest,
        cancel: &AtomicBool,
    ) -> Result<(Prompt, Truncation), (Failure, bool)> {
        let host = &mut self.host;
        without_panic(|| {
            let Some(limits) = host.info().map(Limits::of) else {
                return Err(Failure::new(FailureCode::Other, "No model is open."));
            };
            fit::fit(request, limits, &mut |conversation| {
                host.prompt(conversation, cancel)
            })
        })
    }

    fn submit(
        &mut self,
        chat: ChatId,
        prompt: Prompt,
        params: &GenerateParams,
        signals: Signals,
        output: RequestOutput,
    ) -> Result<(), (Failure, bool)> {
        self.last_id += 1;
        let id = RequestId(self.last_id);
        let request = ModelRequest {
            id,
            priority: output.priority(),
            conversation: chat.0.cast_unsigned(),
            prompt,
            params: params.clone(),
            signals: signals.clone(),
        };
        let host = &mut self.host;
        if let Err(failed) = without_panic(|| host.submit(request)) {
            if let RequestOutput::Api(output) = output {
                output.end(Err(failed.0.clone()));
            }
            return Err(failed);
        }
        let mut output = output;
        if let (RequestOutput::Api(output), Some(info)) = (&mut output, self.host.info()) {
            let counter = self.host.counter();
            output.begin(info, counter);
        }
        let submitted = SubmittedRequest {
            chat,
            signals,
            output,
        };
        self.requests.insert(id, submitted);
        Ok(())
    }

    /// Runs what the requests need next.
    fn step(&mut self, preempt: &AtomicBool) {
        let (host, requests) = (&mut self.host, &mut self.requests);
        let (rate, report) = (&mut self.rate, self.report);
        let step = || {
            Ok(host.step(preempt, &mut |id, event| {
                if let Some(request) = requests.get_mut(&id) {
                    request.receive(event, rate, report);
                }
            }))
        };
        match catch_panic(FailureCode::Other, step) {
            (Ok(ended), _) => {
                for (id, result) in ended {
                    if let Some(request) = self.requests.remove(&id) {
                        self.finish(request, result);
                    }
                }
            }
            (Err(failure), _) => self.fail(&failure),
        }
    }

    fn finish(&mut self, request: SubmittedRequest, result: Result<Finished, Failure>) {
        self.unsaved = true;
        match (request.output, result) {
            (RequestOutput::Answer { run, .. }, result) => {
                let result = result.map(|finished| GeneratedAnswer {
                    reason: finished.reason,
                    stats: AnswerStats::new(finished.stats, self.host.info()),
                });
                self.report_end(run, result, false);
            }
            (RequestOutput::Api(output), result) => {
                output.end(result);
                (self.report)(Report::ApiEnded);
            }
            (RequestOutput::Title(title), Ok(finished))
                if finished.reason != StopReason::Cancelled =>
            {
                let chat = request.chat;
                (self.report)(Report::Titled { chat, title });
            }
            (_, Err(failure)) => {
                tracing::debug!(code = failure.code.name(), "idle work failed");
            }
            (_, Ok(_)) => {}
        }
    }

    fn report_end(&self, run: AnswerRun, result: Result<GeneratedAnswer, Failure>, panicked: bool) {
        let open = self.host.info().filter(|_| !panicked);
        (self.report)(Report::Ended {
            run,
            result,
            panicked,
            open: open.map(named).map(Box::new),
        });
    }

    /// Ends all answers and closes the model after a panic: a later answer must not use a cache of other tokens. Those that
    /// the actor begins before it knows of the panic are withdrawn then.
    fn fail(&mut self, failure: &Failure) {
        for (_, request) in std::mem::take(&mut self.requests) {
            match request.output {
                RequestOutput::Answer { run, .. } => {
                    self.report_end(run, Err(failure.clone()), true);
                }
                RequestOutput::Api(output) => output.end(Err(failure.clone())),
                RequestOutput::ReadAhead | RequestOutput::Title(_) => {}
            }
        }
        (self.report)(Report::Panicked);
        self.unsaved = false;
        self.close();
    }

    /// Saves a part of the caches.
    fn save_caches(&mut self) {
        let host = &mut self.host;
        match without_panic(|| Ok(host.save_caches())) {
            Ok(more) => self.unsaved = more,
            Err((failure, _)) => self.fail(&failure),
        }
    }

    /// Ends idle work before the model is closed, and saves caches within a time limit.
    fn end(&mut self) {
        self.ahead = None;
        self.titles.clear();
        for request in self.requests.values_mut() {
            if let RequestOutput::Api(output) = &mut request.output {
                output.withdraw();
            }
        }
        self.cancel(|_| true);
        let deadline = Instant::now() + END_WITHIN;
        let never = AtomicBool::new(false);
        while !self.requests.is_empty() && Instant::now() < deadline {
            self.step(&never);
        }
        self.requests.clear();
        while self.unsaved && Instant::now() < deadline {
            let host = &mut self.host;
            let more = without_panic(|| Ok(host.save_caches()));
            self.unsaved = more.unwrap_or(false);
        }
    }

    fn close(&mut self) {
        // After a panic of a driver the model is gone in any case.
        log_panic(|| self.host.close());
    }

    fn is_answering(&self) -> bool {
        self.requests.values().any(SubmittedRequest::is_answer)
    }

    fn drop_ahead(&mut self) {
        self.ahead = None;
        self.cancel(|it| matches!(it.output, RequestOutput::ReadAhead));
    }

    fn cancel(&self, is_cancelled: impl Fn(&SubmittedRequest) -> bool) {
        for request in self.requests.values().filter(|it| is_cancelled(it)) {
            request.signals.cancel.store(true, Ordering::Relaxed);
        }
    }
}

impl SubmittedRequest {
    fn is_answer(&self) -> bool {
        self.output.priority().is_answer()
    }

    fn receive(&mut self, event: Event<'_>, last_rate: &mut ReadingRate, report: &dyn Fn(Report)) {
        let at = Instant::now();
        match (&mut self.output, event) {
            (
                RequestOutput::Answer { run, rate },
                Event::Prefill {
                    done,
                    total,
                    cached,
                },
            ) => {
                let reading = rate.progress(at, done, total, cached);
                *last_rate = *rate;
                report(Report::Reading(*run, reading));
            }
            (RequestOutput::Answer { run, .. }, Event::Token { id, piece, kind }) => {
                report(Report::Token {
                    run: *run,
                    id,
                    text: piece.to_owned(),
                    kind,
                    at,
                });
            }
            (RequestOutput::Answer { run, .. }, Event::Call { name, arguments }) => {
                report(Report::Call {
                    run: *run,
                    name: name.to_owned(),
                    arguments: arguments.to_owned(),
                    at,
                });
            }
            (
                RequestOutput::Title(title),
                Event::Token {
                    piece,
                    kind: TokenKind::Answer,
                    ..
                },
            ) => title.push_str(piece),
            (RequestOutput::Api(output), event) => output.generated(event),
            // It begins again after an answer.
            (RequestOutput::Title(title), Event::Prefill { .. }) => title.clear(),
            // Only programs want them.
            (RequestOutput::Answer { .. }, Event::Logprobs { .. })
            | (RequestOutput::Title(_) | RequestOutput::ReadAhead, _) => {}
        }
    }
}

impl RequestOutput {
    fn priority(&self) -> Priority {
        match self {
            RequestOutput::Answer { .. } => Priority::Answer,
            RequestOutput::ReadAhead => Priority::ReadAhead,
            RequestOutput::Title(_) => Priority::Title,
            RequestOutput::Api(_) => Priority::Api,
        }
    }
}

fn named(info: &ModelInfo) -> ModelInfo {
    info.clone().with_names_cut()
}
