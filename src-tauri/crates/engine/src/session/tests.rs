//! Whatever way tokens came into the cache, the logits are those of a cold run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use candle_core::Device;
use kernels::{Cpu, CpuLevel, KvType};

use super::Session;
use crate::backend::Backend;
use crate::backend::candle::Candle;
use crate::config::Config;
use crate::forward::{Model, Pass};
use crate::gguf::Gguf;
use crate::weights::Weights;

static NEVER: AtomicBool = AtomicBool::new(false);

fn session<B>(backend: B, chunk: usize) -> Session
where
    B: Backend<Matrix: Send, Norm: Send, Rows: Send, Positions: Send, KvLayer: Send>
        + Send
        + 'static,
{
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
    let gguf = Gguf::open(&path).expect("the fixture is committed");
    let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
    let weights = Weights::load(&backend, &gguf, &config, &mut |_| {}).expect("its weights");
    let model = Model::new(config, backend, weights, KvType::F32, chunk).expect("room for it");
    Session::new(Box::new(model))
}

fn cpu(chunk: usize) -> Session {
    session(Cpu::new(2, CpuLevel::detect()), chunk)
}

fn tokens(seed: u32, count: u32) -> Vec<u32> {
    (0..count)
        .map(|at| (at * 37 + seed * 101 + at * at % 13) % 512)
        .collect()
}

fn read(session: &mut Session, prompt: &[u32]) -> (Vec<f32>, usize) {
    let mut cached = None;
    let pass = session.read(prompt, &NEVER, &mut |done| {
        cached.get_or_insert(done);
    });
    assert_eq!(pass.expect("no failure"), Pass::Complete);
    assert_eq!(session.tokens(), prompt);
    (
        session.logits(0).to_vec(),
        cached.expect("progress was made"),
    )
}

#[track_caller]
fn assert_close(ours: &[f32], theirs: &[f32], bound: f64) {
    let square =
        |values: &mut dyn Iterator<Item = f32>| values.map(|v| f64::from(v).powi(2)).sum::<f64>();
    let error = square(&mut ours.iter().zip(theirs).map(|(a, b)| a - b));
    let relative = (error / square(&mut theirs.iter().copied())).sqrt();
    assert!(relative <= bound, "{relative} apart");
}

/// Sums in another order round differently, and activations that are rounded to 8 bits amplify that on random weights.
/// What comes out wrong, a position or a block say, is around 1 apart; see also the test in exact arithmetic.
const ROUNDING: f64 = 0.05;

#[test]
fn chunks_of_any_size_give_the_same() {
    let prompt = tokens(1, 150);
    let (cold, _) = read(&mut cpu(512), &prompt);
    for chunk in [1, 7, 64] {
        let (chunked, _) = read(&mut cpu(chunk), &prompt);
        assert_close(&chunked, &cold, ROUNDING);
    }
}

#[test]
fn in_exact_arithmetic_chunks_change_nothing_that_matters() {
    let prompt = tokens(2, 150);
    let (cold, _) = read(&mut session(Cpu::exact(2), 512), &prompt);
    let (chunked, _) = read(&mut session(Cpu::exact(2), 7), &prompt);
    assert_close(&chunked, &cold, 1e-5);
}

#[test]
fn a_common_beginning_is_not_read_again() {
    let (common, first, second) = (tokens(3, 90), tokens(4, 40), tokens(5, 25));
    let mut session = cpu(32);
    read(&mut session, &[common.clone(), first].concat());
    let prompt = [common, second].concat();
    let (reused, cached) = read(&mut session, &prompt);
    assert_eq!(cached, 90);
    assert_close(&reused, &read(&mut cpu(32), &prompt).0, ROUNDING);
}

#[test]
fn a_prompt_that_is_there_already_costs_one_token() {
    let prompt = tokens(6, 50);
    let mut session = cpu(32);
    let (first, _) = read(&mut session, &prompt);
    let (second, cached) = read(&mut session, &prompt);
    assert_eq!(cached, 49);
    assert_close(&second, &first, ROUNDING);
    let (shorter, cached) = read(&mut session, &prompt[..20]);
    assert_eq!(cached, 19);
    assert_close(&shorter, &read(&mut cpu(32), &prompt[..20]).0, ROUNDING);
}

#[test]
fn tokens_one_by_one_are_a_prompt() {
    let prompt = tokens(7, 60);
    let mut session = cpu(32);
    read(&mut session, &prompt[..40]);
    for &id in &prompt[40..] {
        assert_eq!(
            session.step(id, &[], &NEVER).expect("no failure"),
            Pass::Complete
        );
    }
    assert_close(session.logits(0), &read(&mut cpu(32), &prompt).0, ROUNDING);
}

#[test]
fn stopping_leaves_a_cache_that_can_be_trusted() {
    let prompt = tokens(8, 400);
    let (cold, _) = read(&mut cpu(64), &prompt);
    let mut session = cpu(64);
    let mut cancelled = 0;
    for delay in 0..12 {
        session.truncate(0);
        let cancel = AtomicBool::new(delay == 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(700 * delay));
                cancel.store(true, Ordering::Relaxed);
            });
            let pass = session
                .read(&prompt, &cancel, &mut |_| {})
                .expect("no failure");
            cancelled += usize::from(pass == Pass::Cancelled);
        });
        let so_far = session.tokens().len();
        assert_eq!(session.tokens(), &prompt[..so_far]);
        assert_close(&read(&mut session, &prompt).0, &cold, ROUNDING);
    }
    assert!(cancelled > 0, "the flag was never seen");
}

#[test]
fn a_token_outside_of_the_vocabulary_is_an_error_and_does_no_harm() {
    let prompt = tokens(9, 10);
    let mut session = cpu(32);
    let (before, _) = read(&mut session, &prompt);
    assert!(session.step(525, &[], &NEVER).is_err());
    assert_close(&read(&mut session, &prompt).0, &before, ROUNDING);
}

#[test]
fn the_candle_backend_is_the_same_model() {
    let prompt = tokens(10, 150);
    let (exact, _) = read(&mut session(Cpu::exact(2), 512), &prompt);
    let mut candle = session(Candle::new(Device::Cpu), 64);
    let (theirs, _) = read(&mut candle, &prompt);
    // candle quantises activations to 8 bits on the CPU.
    assert_close(&theirs, &exact, 0.1);
    let (reused, cached) = read(&mut candle, &[&prompt[..100], &tokens(11, 20)[..]].concat());
    assert_eq!(cached, 100);
    let (cold, _) = read(
        &mut session(Candle::new(Device::Cpu), 512),
        &[&prompt[..100], &tokens(11, 20)[..]].concat(),
    );
    assert_close(&reused, &cold, 0.02);
}
