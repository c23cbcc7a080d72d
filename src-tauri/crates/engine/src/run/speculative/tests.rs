//! Drafts against a search of the whole text, measured costs and acceptance rates, and answers with and without drafts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bench::repetitive_texts::{Script, scripts};
use inference::{Event, Finished, GenerateParams, Prompt, Sampling, Signals};

use super::{
    BUDGET_PER_TOKEN, DRAFTS, Drafter, INITIAL_BUDGET, LEARNING_RATE, LONGEST, MAX_BUDGET, NGRAM,
    PassCosts, Speculator, assumed_ratio,
};
use crate::gguf::Gguf;
use crate::model::evaluate::Pass;
use crate::run::generate::generate;
use crate::run::random::Random;
use crate::run::scheduler::Scheduler;
use crate::run::scripted::Scripted;
use crate::run::sequence::Sequence;
use crate::run::session::Session;
use crate::text::tokenizer::Tokenizer;

mod tiny_model;

fn below(random: &mut Random, bound: usize) -> usize {
    (random.bits() % bound as u64) as usize
}

#[test]
fn a_prediction_is_what_followed_the_last_occurrence() {
    let mut random = Random::new(1);
    let mut found = 0;
    for _ in 0..200 {
        let alphabet = 2 + below(&mut random, 12);
        let (mut drafter, mut tokens) = (Drafter::new(), Vec::new());
        for _ in 0..30 {
            let more = 1 + below(&mut random, 9);
            tokens.extend((0..more).map(|_| below(&mut random, alphabet) as u32));
            drafter.index(&tokens);
            let at = (NGRAM..tokens.len())
                .rev()
                .find(|&at| tokens[at - NGRAM..at] == tokens[tokens.len() - NGRAM..]);
            let mut expected = tokens.clone();
            for i in at.into_iter().flat_map(|at| at..at + LONGEST) {
                expected.push(expected[i]);
            }
            let prediction = drafter.predict(&tokens);
            assert_eq!(prediction.is_some(), at.is_some());
            assert_eq!(
                prediction.unwrap_or_default()[..expected.len() - tokens.len()],
                expected[tokens.len()..]
            );
            found += usize::from(at.is_some());
        }
    }
    assert!(found > 1000, "the texts hardly repeat themselves: {found}");
}

#[test]
fn what_is_learned_reaches_the_last_token_and_what_is_saved_has_a_bound() {
    let prediction: [u32; LONGEST] = std::array::from_fn(|i| i as u32);
    let mut drafter = Drafter {
        observed: Some((prediction, 0)),
        ..Drafter::new()
    };
    for id in prediction {
        assert!(drafter.observed.is_some());
        drafter.observe(id);
    }
    assert!(drafter.observed.is_none());
    assert_eq!(drafter.acceptance, [LEARNING_RATE; LONGEST]);
    for _ in 0..1000 {
        drafter.record(0, 0, &PassCosts::default());
    }
    assert!((drafter.budget - MAX_BUDGET).abs() < 1e-9);
}

#[test]
fn a_cancelled_pass_is_not_measured() {
    let time = Arc::new(AtomicUsize::new(0));
    let passes = Arc::new(AtomicUsize::new(0));
    let mut session = scripted(|_| vec![0.0; 8], MACHINES[0], &time, &passes);
    let costs = |session: &Session| format!("{:?}", session.costs());
    let before = costs(&session);
    for (cancel, pass) in [(true, Pass::Cancelled), (false, Pass::Complete)] {
        let cancel = AtomicBool::new(cancel);
        let step = session.step(&mut Sequence::default(), 1, &[], &cancel);
        assert_eq!(step.expect("no failure"), pass);
        assert_eq!(costs(&session) == before, pass == Pass::Cancelled);
    }
}

/// Cost of a pass over this number of tokens, in thousandths of a single-token pass.
type Machine = fn(usize) -> usize;

/// Memory sets the pace; arithmetic does; neither, but a second token is dear.
const MACHINES: [Machine; 3] = [
    |tokens| 1000 + 57 * (tokens - 1),
    |tokens| 1000 * tokens,
    |tokens| 1000 + if tokens > 1 { 800 + 30 * tokens } else { 0 },
];

#[test]
fn costs_are_recent_minima() {
    let mut costs = PassCosts::default();
    assert_eq!(
        [0, 1, 2].map(|i| costs.ratio(i)),
        [assumed_ratio(0), 4.0, 8.0]
    );
    costs.record(2, 1.0);
    assert_eq!(
        costs.ratio(0),
        assumed_ratio(0),
        "there is nothing to compare with"
    );
    costs.record(1, 1.0);
    costs.record(2, 1.1);
    let near = |i, wanted: f64| {
        let ratio = costs.ratio(i);
        assert!((ratio - wanted).abs() < 1e-9, "{ratio} is not {wanted}");
    };
    near(0, 1.1);
    near(1, 1.3);
    near(2, 1.7);
    // The machine was busy with something else.
    costs.record(1, 30.0);
    costs.record(8, 40.0);
    costs.record(8, 1.5);
    assert!((1.4..1.5).contains(&costs.ratio(2)), "{}", costs.ratio(2));
    // The machine has become slower for good.
    for _ in 0..100 {
        costs.record(1, 2.0);
        costs.record(8, 8.0);
    }
    assert!((costs.ratio(2) - 4.0).abs() < 0.1, "{}", costs.ratio(2));
}

/// Cost of a script in thousandths of a pass, without its prompt, and the number of drafted tokens.
fn write_out(script: &Script, machine: Machine, drafter: bool) -> (usize, usize) {
    let time = Arc::new(AtomicUsize::new(0));
    let mut session = scripted(|_| vec![0.0], machine, &time, &Arc::default());
    let never = AtomicBool::new(false);
    let mut sequence = Sequence::default();
    let read = session.prefill(&mut sequence, &script.prompt, &never, &mut |_| {});
    assert_eq!(read.expect("no failure"), Pass::Complete);
    time.store(0, Ordering::Relaxed);
    let (mut tokens, mut speculator) = (script.prompt.clone(), Speculator::new(drafter));
    for (at, &id) in script.answer.iter().enumerate() {
        tokens.push(id);
        let max_draft = script.answer.len() - at - 1;
        let step = session.step_drafted(&mut sequence, &mut speculator, &tokens, max_draft);
        step.expect("no failure");
    }
    assert!(sequence.tokens().starts_with(&tokens));
    (time.load(Ordering::Relaxed), speculator.drafted)
}

#[test]
fn drafts_slow_no_text_on_any_machine_by_three_percent() {
    for (machine, cost) in MACHINES.into_iter().enumerate() {
        for script in scripts(100_000) {
            let (plain, none) = write_out(&script, cost, false);
            let (speculative, drafted) = write_out(&script, cost, true);
            assert_eq!((plain, none), (1000 * script.answer.len(), 0));
            let ratio = plain as f64 / speculative as f64;
            let label = format!("{} on machine {machine}: {ratio}, {drafted}", script.text);
            assert!(ratio > 0.97, "{label}");
            if machine == 0 && ["edit", "summary"].contains(&script.text) {
                assert!(ratio > 1.5, "{label}");
            }
        }
    }
}

#[test]
fn rejected_drafts_cost_no_more_than_the_budget() {
    let mut random = Random::new(2);
    for machine in MACHINES {
        for luck in [0, 1, 10, 50, 90, 100] {
            let (mut drafter, mut costs) = (Drafter::new(), PassCosts::default());
            // Text that seemed to repeat itself for sure.
            drafter.acceptance = [1.0; LONGEST];
            let tokens = [1, 2, 3].repeat(20);
            costs.record(1, 1.0);
            let (mut generated, mut lost) = (0, 0.0);
            while generated < 3000 {
                let drafted = drafter.draft(&tokens, LONGEST, &costs).len();
                let accepted = (0..drafted)
                    .take_while(|_| below(&mut random, 100) < luck)
                    .count();
                let seconds = machine(1 + drafted) as f64 / 1000.0;
                costs.record(1 + drafted, seconds);
                drafter.record(drafted, accepted, &costs);
                generated += accepted + 1;
                lost += seconds - 1.0 - accepted as f64;
                // The first draft is made before anything is known of its cost.
                let most = INITIAL_BUDGET + BUDGET_PER_TOKEN * generated as f64 + DRAFTS[0] as f64;
                assert!(lost <= most, "{lost} passes lost after {generated} tokens");
            }
        }
    }
}

/// A session whose clock follows the costs of passes on `machine`.
fn scripted(
    logits: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
    machine: Machine,
    time: &Arc<AtomicUsize>,
    passes: &Arc<AtomicUsize>,
) -> Session {
    let (spent, passes) = (Arc::clone(time), Arc::clone(passes));
    let on_pass = move |tokens| {
        passes.fetch_add(1, Ordering::Relaxed);
        spent.fetch_add(machine(tokens), Ordering::Relaxed);
    };
    let mut session = Session::new(Box::new(Scripted::new(logits, on_pass)));
    let time = Arc::clone(time);
    session.set_clock(move || time.load(Ordering::Relaxed) as f64 / 1000.0);
    session
}

struct Answer {
    ids: Vec<u32>,
    finished: Finished,
    passes: usize,
    /// Contents of the cache afterwards.
    cached: Vec<u32>,
}

fn answer(
    prompt: &[u32],
    logits: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
    params: &GenerateParams,
) -> Answer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer.gguf");
    let gguf = Gguf::open(&path).expect("the fixture is committed");
    let tokenizer = Tokenizer::from_gguf(&gguf).expect("a tokenizer");
    let passes = Arc::new(AtomicUsize::new(0));
    let session = scripted(logits, MACHINES[0], &Arc::default(), &passes);
    let mut scheduler = Scheduler::new(session, Arc::new(tokenizer), 512);
    let mut ids = Vec::new();
    let prompt = Prompt::of_ids(prompt.to_vec());
    let never = Signals::default();
    let finished = generate(&mut scheduler, &prompt, params, &never, &mut |event| {
        if let Event::Token { id, .. } = event {
            ids.push(id);
        }
    });
    Answer {
        ids,
        finished: finished.expect("no failure"),
        passes: passes.load(Ordering::Relaxed),
        cached: scheduler.sequences().next().unwrap_or_default().to_vec(),
    }
}

fn params(temperature: f32, seed: u64, max_tokens: Option<usize>, lookup: bool) -> GenerateParams {
    GenerateParams {
        sampling: Sampling {
            temperature,
            seed: Some(seed),
            repeat_penalty: 1.05,
            ..Sampling::default()
        },
        max_tokens,
        lookup,
        ..GenerateParams::default()
    }
}

/// Every token depends on the two before it.
fn chain(vocab: usize) -> impl Fn(&[u32]) -> Vec<f32> + Send + 'static {
    move |tokens| {
        let before = tokens.iter().rev().take(2);
        let mut random = Random::new(before.fold(0, |seed, &id| 31 * seed + u64::from(id)));
        (0..vocab).map(|_| 8.0 * random.uniform() as f32).collect()
    }
}

#[test]
fn drafts_change_only_the_number_of_passes() {
    let (mut drafted, mut accepted) = (0, 0);
    for seed in 0..60 {
        let vocab = 4 + seed as usize % 20;
        let most = [None, Some(1), Some(2), Some(7), Some(100)][seed as usize % 5];
        let temperature = [0.0, 0.6, 1.2][seed as usize % 3];
        let run = |lookup| {
            let params = params(temperature, seed, most, lookup);
            answer(&[1, 2, 3], chain(vocab), &params)
        };
        let (plain, speculative) = (run(false), run(true));
        assert_eq!(plain.ids, speculative.ids, "seed {seed}");
        assert_eq!(plain.finished.reason, speculative.finished.reason);
        assert_eq!(plain.finished.stats.tokens, plain.ids.len());
        assert_eq!(speculative.finished.stats.tokens, speculative.ids.len());
        assert_eq!(plain.finished.stats.drafted_tokens, 0);
        let whole = [&[1, 2, 3], &speculative.ids[..]].concat();
        assert!(whole.starts_with(&speculative.cached), "seed {seed}");
        assert!(speculative.passes <= plain.passes);
        drafted += speculative.finished.stats.drafted_tokens;
        accepted += speculative.finished.stats.accepted_tokens;
    }
    assert!(
        accepted > 1000 && drafted > accepted + 100,
        "{accepted} of {drafted} drafted tokens were accepted: both must occur"
    );
}

#[test]
fn an_edit_of_the_prompt_takes_few_passes() {
    const VOCAB: u32 = 400;
    let mut random = Random::new(3);
    let prompt: Vec<u32> = (0..150)
        .map(|_| below(&mut random, VOCAB as usize) as u32)
        .collect();
    // The prompt again, with every 15th token changed.
    let edit = |at: usize| (prompt[at] + u32::from(at % 15 == 14)) % VOCAB;
    let script = [&prompt[..], &(0..150).map(edit).collect::<Vec<_>>()].concat();
    let run = |drafter| {
        let script = script.clone();
        let next = move |tokens: &[u32]| {
            let mut logits = vec![0.0; VOCAB as usize];
            logits[script[tokens.len() % script.len()] as usize] = 9.0;
            logits
        };
        answer(&prompt, next, &params(0.0, 1, Some(150), drafter))
    };
    let (plain, speculative) = (run(false), run(true));
    assert_eq!(speculative.ids, script[150..]);
    assert_eq!(plain.ids, speculative.ids);
    assert_eq!(plain.passes, 152, "three chunks of prompt");
    assert!(
        3 * speculative.passes <= 2 * plain.passes,
        "{} passes where {} read one token each",
        speculative.passes,
        plain.passes
    );
}
