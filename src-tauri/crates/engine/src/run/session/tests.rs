//! Logits equal those of a cold run, however the tokens came into the cache.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpu::Executor;
use inference::Sampling;
use kernels::{Cpu, CpuLevel, KvType};

use super::Session;
use crate::gguf::Gguf;
use crate::model::config::Config;
use crate::model::error::DeviceError;
use crate::model::evaluate::{Evaluate, Pass};
use crate::model::forward::CpuModel;
use crate::model::gpu::GpuModel;
use crate::model::split::Split;
use crate::model::weights;
use crate::run::sampler::Sampler;
use crate::run::sequence::Sequence;
use testing::faulty_gpu::{Faulty, InjectedFault, any_device, device};

static NEVER: AtomicBool = AtomicBool::new(false);

/// A session with a sequence.
struct Single {
    session: Session,
    sequence: Sequence,
}

impl Single {
    fn new(model: impl Evaluate + 'static) -> Single {
        Single::of(Session::new(Box::new(model)))
    }

    fn of(session: Session) -> Single {
        Single {
            session,
            sequence: Sequence::default(),
        }
    }

    fn prefill(&mut self, prompt: &[u32], cancel: &AtomicBool) -> (Pass, usize) {
        let (sequence, mut cached) = (&mut self.sequence, None);
        let pass = self.session.prefill(sequence, prompt, cancel, &mut |done| {
            cached.get_or_insert(done);
        });
        (pass.expect("no failure"), cached.expect("progress"))
    }

    fn step(&mut self, id: u32) -> Result<Pass, DeviceError> {
        self.session.step(&mut self.sequence, id, &[], &NEVER)
    }

    fn samples_on_device(&mut self, sampler: &Sampler) -> bool {
        let samples = self.session.samples_on_device(&mut self.sequence, sampler);
        samples.expect("no failure")
    }

    fn step_on_device(&mut self, id: u32, sampler: &mut Sampler, more: bool) -> u32 {
        let sequence = &mut self.sequence;
        let next = self
            .session
            .step_on_device(sequence, id, sampler, more, &NEVER);
        next.expect("no failure").expect("not cancelled")
    }

    fn logits(&mut self) -> &mut [f32] {
        self.session.logits(0)
    }
}

fn session(cpu: Cpu, kv: KvType, chunk: usize) -> Single {
    let (gguf, config) = tiny();
    let weights = weights::load(&cpu, &gguf, &config, &mut |_| {}).expect("its weights");
    let model = CpuModel::new(config, cpu, weights, kv, chunk).expect("room for it");
    Single::new(model)
}

/// The best level of this machine that multiplies in integers, however many tokens there are.
fn integers(kv: KvType, chunk: usize) -> Single {
    let level = CpuLevel::available()
        .into_iter()
        .rfind(|&level| level != CpuLevel::Amx);
    session(
        Cpu::new(2, level.expect("a level of this machine")),
        kv,
        chunk,
    )
}

/// A matrix unit, for passes over more than a few tokens.
fn tiles(chunk: usize) -> Single {
    session(Cpu::new(2, CpuLevel::Amx), KvType::F16, chunk)
}

fn exact(chunk: usize) -> Single {
    session(Cpu::exact(2), KvType::F32, chunk)
}

/// Makes a session with this number of tokens per pass.
type Make = fn(usize) -> Single;

/// Every backend that works here, the CPU with every kind of cache, and the tolerance between two ways on it.
fn backends() -> Vec<(Make, f64)> {
    let mut all: Vec<(Make, f64)> = vec![
        (|chunk| integers(KvType::F32, chunk), ROUNDING),
        (|chunk| integers(KvType::F16, chunk), ROUNDING),
        (|chunk| integers(KvType::Q8_0, chunk), ROUNDING),
    ];
    if CpuLevel::available().contains(&CpuLevel::Amx) {
        all.push((tiles, TILES));
    }
    if let Some(device) = any_device() {
        let has_matrices = gpu::Executor::limits(&device).matrices.is_some();
        let bound = if has_matrices { TILES } else { ROUNDING };
        all.push((on_gpu, bound));
        all.push((on_both, bound));
    }
    all
}

fn on_gpu(chunk: usize) -> Single {
    let options = gpu::Options {
        kv: KvType::F32,
        floats: false,
        matrices: true,
    };
    gpu_session(options, chunk)
}

fn gpu_session(options: gpu::Options, chunk: usize) -> Single {
    let (gguf, config) = tiny();
    let device = device().expect("asked before");
    let model = GpuModel::load(device, &config, &gguf, options, chunk, &mut |_| {});
    Single::new(model.expect("it takes the model"))
}

/// The first layers on the CPU, the others on the GPU.
fn on_both(chunk: usize) -> Single {
    let options = gpu::Options {
        kv: KvType::F16,
        floats: false,
        matrices: true,
    };
    let device = device().expect("asked before");
    let level = CpuLevel::available()[0];
    Single::new(split(device, Cpu::new(2, level), options, chunk, 3))
}

/// The last `fit_layers` on a GPU, the others on a CPU.
fn split<E: Executor>(
    exec: E,
    cpu: Cpu,
    options: gpu::Options,
    chunk: usize,
    fit_layers: usize,
) -> Split<E> {
    let (gguf, config) = tiny();
    let last = GpuModel::load_last(exec, &config, &gguf, options, chunk, &mut |_| {});
    let mut last = last.expect("it takes the model");
    while last.layers() > fit_layers {
        assert!(last.drop_first_layer().expect("no failure"));
    }
    let layers = config.shape.layers - fit_layers;
    let weights = weights::load_first_layers(&cpu, &gguf, &config, layers, &mut |_| {});
    let first = config.with_layers(layers);
    let first = CpuModel::new(first, cpu, weights.expect("its weights"), options.kv, chunk);
    Split::new(first.expect("room for it"), last)
}

/// GPU options that compute like the exact CPU.
const EXACT: gpu::Options = gpu::Options {
    kv: KvType::F32,
    floats: true,
    matrices: true,
};

fn tiny() -> (Gguf, Config) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
    let gguf = Gguf::open(&path).expect("the fixture is committed");
    let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
    (gguf, config)
}

pub(super) fn tokens(seed: u32, count: u32) -> Vec<u32> {
    (0..count)
        .map(|at| (at * 37 + seed * 101 + at * at % 13) % 512)
        .collect()
}

/// Returns the logits after `prompt`, and how much of it was in the cache.
fn read(single: &mut Single, prompt: &[u32]) -> (Vec<f32>, usize) {
    let (pass, cached) = single.prefill(prompt, &NEVER);
    assert_eq!(pass, Pass::Complete);
    assert_eq!(single.sequence.tokens(), prompt);
    (single.logits().to_vec(), cached)
}

#[track_caller]
pub(super) fn assert_close(ours: &[f32], theirs: &[f32], bound: f64) {
    let square =
        |values: &mut dyn Iterator<Item = f32>| values.map(|v| f64::from(v).powi(2)).sum::<f64>();
    let error = square(&mut ours.iter().zip(theirs).map(|(a, b)| a - b));
    let relative = (error / square(&mut theirs.iter().copied())).sqrt();
    assert!(relative <= bound, "{relative} apart");
}

/// Tolerance of sums in another order, which round differently; activations rounded to 8 bits amplify that on random
/// weights. A wrong position or block gives a difference around 1; see also the test in exact arithmetic.
pub(super) const ROUNDING: f64 = 0.05;
/// Tolerance of a matrix unit, which reads a prompt in bf16 or f16, while single tokens use 8-bit integers: the difference
/// is their whole rounding error.
const TILES: f64 = 0.08;

#[test]
fn logits_do_not_depend_on_the_chunk_size() {
    for (make, bound) in backends() {
        let prompt = tokens(1, 70);
        let (cold, _) = read(&mut make(512), &prompt);
        for chunk in [1, 7, 64] {
            let (chunked, _) = read(&mut make(chunk), &prompt);
            assert_close(&chunked, &cold, bound);
        }
    }
}

#[test]
fn in_f32_logits_do_not_depend_on_the_chunk_size() {
    let prompt = tokens(2, 150);
    let (cold, _) = read(&mut exact(512), &prompt);
    let (chunked, _) = read(&mut exact(7), &prompt);
    assert_close(&chunked, &cold, 1e-5);
}

#[test]
fn a_common_prefix_is_not_evaluated_again() {
    for (make, bound) in backends() {
        let (common, first, second) = (tokens(3, 90), tokens(4, 40), tokens(5, 25));
        let mut session = make(32);
        read(&mut session, &[common.clone(), first].concat());
        let prompt = [common, second].concat();
        let (reused, cached) = read(&mut session, &prompt);
        assert_eq!(cached, 90);
        assert_close(&reused, &read(&mut make(32), &prompt).0, bound);
    }
}

#[test]
fn a_cached_prompt_costs_one_token() {
    for (make, bound) in backends() {
        let prompt = tokens(6, 50);
        let mut session = make(32);
        let (first, _) = read(&mut session, &prompt);
        let (second, cached) = read(&mut session, &prompt);
        assert_eq!(cached, 49);
        assert_close(&second, &first, bound);
        let (shorter, cached) = read(&mut session, &prompt[..20]);
        assert_eq!(cached, 19);
        assert_close(&shorter, &read(&mut make(32), &prompt[..20]).0, bound);
    }
}

#[test]
fn tokens_one_by_one_are_a_prompt() {
    for (make, bound) in backends() {
        let prompt = tokens(7, 60);
        let mut session = make(32);
        read(&mut session, &prompt[..40]);
        for &id in &prompt[40..] {
            assert_eq!(session.step(id).expect("no failure"), Pass::Complete);
        }
        assert_close(session.logits(), &read(&mut make(32), &prompt).0, bound);
    }
}

#[test]
fn truncated_tokens_leave_no_trace() {
    let (kept, gone, next) = (tokens(13, 64), tokens(14, 200), tokens(15, 30));
    for (make, bound) in backends() {
        let mut session = make(64);
        read(&mut session, &[kept.clone(), gone.clone()].concat());
        session.sequence.truncate(kept.len());
        assert_eq!(session.sequence.tokens(), kept);
        let prompt = [kept.clone(), next.clone()].concat();
        let (again, _) = read(&mut session, &prompt);
        assert_close(&again, &read(&mut make(64), &prompt).0, bound);
    }
}

#[test]
fn a_smaller_cache_takes_less_memory() {
    let prompt = tokens(16, 300);
    let bytes = [KvType::F32, KvType::F16, KvType::Q8_0].map(|kv| {
        let mut session = integers(kv, 512);
        read(&mut session, &prompt);
        session.sequence.bytes()
    });
    assert_eq!(bytes[0], 2 * bytes[1]);
    // A byte a value, and two for each 32.
    assert_eq!(bytes[2], bytes[1] * 34 / 64);
}

#[test]
fn the_cache_is_valid_after_cancel() {
    for (make, bound) in backends() {
        let prompt = tokens(8, 300);
        let (cold, _) = read(&mut make(64), &prompt);
        let mut session = make(64);
        let mut cancelled = 0;
        for delay in 0..6 {
            session.sequence.truncate(0);
            let cancel = AtomicBool::new(delay == 0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_micros(1400 * delay));
                    cancel.store(true, Ordering::Relaxed);
                });
                let (pass, _) = session.prefill(&prompt, &cancel);
                cancelled += usize::from(pass == Pass::Cancelled);
            });
            let so_far = session.sequence.tokens();
            assert_eq!(so_far, &prompt[..so_far.len()]);
            assert_close(&read(&mut session, &prompt).0, &cold, bound);
        }
        assert!(cancelled > 0, "the flag was never seen");
    }
}

#[test]
fn a_token_outside_of_the_vocabulary_is_an_error_without_effect() {
    for (make, bound) in backends() {
        let prompt = tokens(9, 10);
        let mut session = make(32);
        let (before, _) = read(&mut session, &prompt);
        assert!(session.step(525).is_err());
        assert_close(&read(&mut session, &prompt).0, &before, bound);
    }
}

#[test]
fn in_f32_the_gpu_agrees_with_the_cpu() {
    if device().is_none() {
        return;
    }
    let prompt = tokens(12, 150);
    let all = exact(512).session.all_logits(&prompt).expect("no failure");
    // Software Vulkan takes long for each pass.
    for (chunk, count) in [(1, 20), (7, 80), (512, 150)] {
        let (ours, _) = read(&mut gpu_session(EXACT, chunk), &prompt[..count]);
        assert_close(&ours, &all[count - 1], 1e-5);
    }
}

#[test]
fn in_f32_a_split_model_agrees_with_the_cpu() {
    let Some(device) = device() else { return };
    let prompt = tokens(12, 80);
    let all = exact(512).session.all_logits(&prompt).expect("no failure");
    // One of five layers on the GPU, or all but one, with kernels for one, a few and many tokens.
    for (fit_layers, chunk, count) in [(4, 1, 20), (1, 7, 80), (2, 512, 80), (3, 512, 80)] {
        let split = split(device.clone(), Cpu::exact(2), EXACT, chunk, fit_layers);
        let mut session = Single::new(split);
        let (ours, _) = read(&mut session, &prompt[..count]);
        assert_close(&ours, &all[count - 1], 1e-5);
        let ours = session
            .session
            .all_logits(&prompt[..20])
            .expect("no failure");
        for (ours, theirs) in ours.iter().zip(&all) {
            assert_close(ours, theirs, 1e-5);
        }
    }
}

#[test]
fn the_device_sampler_agrees_with_the_host_sampler() {
    if device().is_none() {
        return;
    }
    let likeliest = Sampling {
        temperature: 0.0,
        ..Sampling::default()
    };
    let with = |temperature, top_k, top_p, min_p| Sampling {
        temperature,
        top_k,
        top_p,
        min_p,
        ..Sampling::default()
    };
    let kinds = [
        likeliest,
        Sampling::default(),
        with(1.0, 40, 1.0, 0.0),
        with(0.8, 20, 0.9, 0.0),
        with(1.3, 0, 1.0, 0.1),
        // Flat, and nothing cut off: the host has to choose from these.
        with(3.0, 0, 1.0, 0.0),
    ];
    let suppressed: Vec<u32> = (0..2000).step_by(2).collect();
    let prompt = tokens(13, 30);
    for sampling in kinds {
        let (mut ours, mut theirs) = (on_gpu(32), on_gpu(32));
        let sampler = |_| Sampler::new(sampling.clone(), 5).with_suppressed(&suppressed);
        let mut samplers = [0, 1].map(sampler);
        for session in [&mut ours, &mut theirs] {
            read(session, &prompt);
        }
        assert!(ours.samples_on_device(&samplers[0]));
        let mut id = 7;
        for left in (0..20).rev() {
            let pass = theirs.step(id).expect("no failure");
            assert_eq!(pass, Pass::Complete);
            let before = theirs.sequence.tokens().to_vec();
            let expected = samplers[1].sample(theirs.logits(), &before);
            let found = ours.step_on_device(id, &mut samplers[0], left > 0);
            assert_eq!(found, expected, "{sampling:?}");
            assert!(!suppressed.contains(&expected), "{sampling:?}");
            id = expected;
        }
        assert_eq!(ours.sequence.tokens(), theirs.sequence.tokens());
    }
}

#[test]
fn a_gpu_that_fails_during_an_answer_fails_over_to_the_cpu() {
    let Some(exec) = device() else { return };
    let failures = [
        gpu::GpuError::Lost("unplugged".to_owned()),
        gpu::GpuError::OutOfMemory("1 GB".to_owned()),
        gpu::GpuError::TimedOut(10),
    ];
    let prompt = tokens(14, 40);
    let greedy = Sampling {
        temperature: 0.0,
        ..Sampling::default()
    };
    let answer = |session: &mut Single| {
        let mut sampler = Sampler::new(greedy.clone(), 1);
        read(session, &prompt);
        session.samples_on_device(&sampler);
        let mut ids = vec![7];
        for left in (0..12).rev() {
            let id = ids[ids.len() - 1];
            ids.push(session.step_on_device(id, &mut sampler, left > 0));
        }
        ids
    };
    // Exact arithmetic on both, so that both give the same answer.
    let expected = answer(&mut gpu_session(EXACT, 64));
    let (gguf, config) = tiny();
    for (index, submits_left) in [1, 3, 8, 11, 16].into_iter().enumerate() {
        for (lies, whole) in [(false, true), (true, true), (false, false), (true, false)] {
            let fault = match lies {
                true => InjectedFault::Nan,
                false => InjectedFault::Fails(failures[index % failures.len()].clone()),
            };
            let failing = Faulty::new(exec.clone(), usize::MAX, fault);
            let device = failing.clone();
            let model: Box<dyn Evaluate> = if whole {
                let model = GpuModel::load(device, &config, &gguf, EXACT, 64, &mut |_| {});
                Box::new(model.expect("it takes the model"))
            } else {
                Box::new(split(device, Cpu::exact(2), EXACT, 64, 2))
            };
            failing.show_after(submits_left);
            let reload = Box::new(move || {
                assert_eq!(failing.taken(), 0, "its memory goes first");
                let (gguf, config) = tiny();
                let cpu = Cpu::exact(2);
                let weights = weights::load(&cpu, &gguf, &config, &mut |_| {});
                let weights = weights.map_err(|error| error.to_string())?;
                let model = CpuModel::new(config, cpu, weights, KvType::F32, 32);
                Ok(Box::new(model.map_err(|error| error.to_string())?) as Box<dyn Evaluate>)
            });
            let mut session = Single::of(Session::with_failover(model, reload));
            let found = answer(&mut session);
            assert_eq!(
                found, expected,
                "failing at submit {submits_left}, lies: {lies}, whole: {whole}"
            );
            let reason = session.session.failure().expect("it has failed");
            assert!(reason.contains("GPU"), "{reason}");
            assert_eq!(session.sequence.tokens().len(), prompt.len() + 12);
        }
    }
}

#[test]
fn an_answer_of_a_gpu_can_be_cancelled_while_the_cpu_reads_it_again() {
    let Some(exec) = device() else { return };
    let (gguf, config) = tiny();
    let lost = InjectedFault::Fails(gpu::GpuError::Lost("unplugged".to_owned()));
    let failing = Faulty::new(exec, usize::MAX, lost);
    let model = GpuModel::load(failing.clone(), &config, &gguf, EXACT, 64, &mut |_| {});
    let cancel = Arc::<AtomicBool>::default();
    let stop = Arc::clone(&cancel);
    let reload = Box::new(move || {
        stop.store(true, Ordering::Relaxed);
        let (gguf, config) = tiny();
        let model = CpuModel::load(&config, Cpu::exact(2), &gguf, KvType::F32, 32, &mut |_| {});
        let model = model.map_err(|error| error.to_string())?;
        Ok(Box::new(model) as Box<dyn Evaluate>)
    });
    let model = Box::new(model.expect("it takes the model"));
    let mut single = Single::of(Session::with_failover(model, reload));
    let prompt = tokens(14, 40);
    read(&mut single, &prompt);
    let mut sampler = Sampler::new(Sampling::default(), 1);
    assert!(single.samples_on_device(&sampler));
    failing.show_after(0);
    let Single { session, sequence } = &mut single;
    let next = session.step_on_device(sequence, 7, &mut sampler, true, &cancel);
    assert_eq!(next.expect("it is survived"), None);
    assert_eq!(sequence.tokens(), prompt);
    // It goes on as if nothing had happened.
    let next = session.step_on_device(sequence, 7, &mut sampler, true, &NEVER);
    assert!(next.expect("no failure").is_some());
    assert_eq!(sequence.tokens().len(), prompt.len() + 1);
}
