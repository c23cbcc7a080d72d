//! Requests that share a model: an answer has the tokens of a run by itself, whatever runs beside it or before it.

use std::path::Path;
use std::sync::atomic::AtomicUsize;

use inference::{GenerateParams, Prompt, RequestId, Sampling, Signals};
use kernels::{Cpu, CpuLevel, KvType};

use super::*;
use crate::gguf::Gguf;
use crate::model::config::Config;
use crate::model::forward::CpuModel;
use crate::run::kv_blocks::in_memory::Blocks;

mod ending;
mod memory;
mod priorities;
mod reuse;
mod together;

fn tokenizer() -> Tokenizer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer.gguf");
    Tokenizer::from_gguf(&Gguf::open(&path).expect("the fixture")).expect("a tokenizer")
}

/// The tiny model.
fn session() -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
    let gguf = Gguf::open(&path).expect("the fixture");
    let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
    let cpu = Cpu::new(2, CpuLevel::best());
    let model = CpuModel::load(&config, cpu, &gguf, KvType::F16, 32, &mut |_| {});
    even(Session::new(Box::new(model.expect("it loads"))))
}

/// Has all passes take the same time.
fn even(mut session: Session) -> Session {
    let now = AtomicUsize::new(0);
    session.set_clock(move || now.fetch_add(1, Ordering::Relaxed) as f64);
    session
}

fn params(seed: u64, temperature: f32, tokens: usize) -> GenerateParams {
    GenerateParams {
        sampling: Sampling {
            temperature,
            seed: Some(seed),
            ..Sampling::default()
        },
        max_tokens: Some(tokens),
        lookup: seed.is_multiple_of(2),
        ..GenerateParams::default()
    }
}

/// Prompts of different lengths, some with a common beginning. A pass reads each without rounding it in another way
/// than passes over its tokens.
fn prompts() -> Vec<Prompt> {
    let prompt = |at: u32| {
        let ids = (0..3 + at / 2).map(|i| (i * 7 + (at / 2) * 31) % 500);
        Prompt::of_ids(ids.collect())
    };
    (0..10).map(prompt).collect()
}

/// An answer of conversation 0. Its id is given when it is submitted.
fn request(prompt: &Prompt, params: &GenerateParams) -> ModelRequest {
    ModelRequest {
        id: RequestId(0),
        priority: Priority::Answer,
        conversation: 0,
        prompt: prompt.clone(),
        params: params.clone(),
        signals: Signals::default(),
    }
}

/// Tokens and end of a request.
#[derive(Debug, Default, Clone)]
struct WrittenAnswer {
    /// The tokens since its prompt was read last.
    ids: Vec<u32>,
    /// Steps, and tokens of the prompt that were in the cache after each.
    read: Vec<(usize, usize)>,
    /// Steps after which it had each token.
    steps: Vec<usize>,
    reason: Option<Result<StopReason, String>>,
    stats: Stats,
}

/// A scheduler, and what its requests have written.
struct ScheduledRun {
    scheduler: Scheduler,
    preempt: AtomicBool,
    blocks: Blocks,
    written: Vec<WrittenAnswer>,
    /// Number of steps so far.
    steps: usize,
}

impl ScheduledRun {
    fn new(session: Session, context: usize) -> ScheduledRun {
        ScheduledRun {
            scheduler: Scheduler::new(session, Arc::new(tokenizer()), context),
            preempt: AtomicBool::new(false),
            blocks: Blocks::default(),
            written: Vec::new(),
            steps: 0,
        }
    }

    /// Submits a request. Returns its index.
    fn submit(&mut self, request: ModelRequest) -> usize {
        let at = self.written.len();
        self.written.push(WrittenAnswer::default());
        let id = RequestId(at as u64);
        let submitted = self.scheduler.submit(ModelRequest { id, ..request });
        submitted.expect("a prompt that fits");
        at
    }

    fn step(&mut self) {
        let (written, number) = (&mut self.written, self.steps);
        let mut step = StepOptions {
            preempt: &self.preempt,
            blocks: &mut self.blocks,
        };
        let ended = self.scheduler.step(&mut step, &mut |of, event| {
            let written = &mut written[of.0 as usize];
            match event {
                Event::Prefill { done, .. } => {
                    (written.ids, written.steps) = (Vec::new(), Vec::new());
                    written.read.push((number, done));
                }
                Event::Token { id, .. } => {
                    written.ids.push(id);
                    written.steps.push(number);
                }
                Event::Call { .. } | Event::Logprobs { .. } => {}
            }
        });
        for (of, result) in ended {
            let written = &mut written[of.0 as usize];
            assert!(written.reason.is_none(), "it ends once");
            let reason = result.map(|finished| {
                written.stats = finished.stats;
                finished.reason
            });
            written.reason = Some(reason.map_err(|error| error.to_string()));
        }
        self.steps += 1;
        assert!(self.steps < 10_000, "it ends");
    }

    /// Runs all requests to the end.
    fn finish(&mut self) {
        while self.scheduler.is_busy() {
            self.step();
        }
    }

    /// Runs a request to the end.
    fn run(&mut self, request: ModelRequest) -> WrittenAnswer {
        let at = self.submit(request);
        self.finish();
        self.written[at].clone()
    }

    /// The tokens of the sequences in memory that are not empty.
    fn sequences(&self) -> Vec<Vec<u32>> {
        let sequences = self.scheduler.sequences().map(<[u32]>::to_vec);
        sequences.filter(|tokens| !tokens.is_empty()).collect()
    }
}

/// Runs requests; each is submitted before the step of its number.
fn run(
    session: Session,
    context: usize,
    requests: Vec<(usize, ModelRequest)>,
    mut before_step: impl FnMut(usize),
) -> Vec<WrittenAnswer> {
    let mut run = ScheduledRun::new(session, context);
    let mut later = VecDeque::from(requests);
    while !later.is_empty() || run.scheduler.is_busy() {
        while let Some((_, request)) = later.pop_front_if(|(at, _)| *at <= run.steps) {
            run.submit(request);
        }
        before_step(run.steps);
        run.step();
    }
    run.written
}

/// Runs a request by itself, in a session of its own.
fn run_alone(request: ModelRequest) -> WrittenAnswer {
    ScheduledRun::new(session(), 4096).run(request)
}

/// [`run_alone`] for each of these answers.
fn run_each_alone(prompts: &[Prompt], params: &[GenerateParams]) -> Vec<WrittenAnswer> {
    let requests = prompts.iter().zip(params);
    let alone = requests.map(|(prompt, params)| run_alone(request(prompt, params)));
    alone.collect()
}
