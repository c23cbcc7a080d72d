//! Answers: reasons to end, statistics, and reproducibility.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{
    Engine, Event, Finished, GenerateError, GenerateParams, LoadOptions, Prompt, Sampling, Signals,
    StopReason, TokenKind,
};

use crate::reference::{on_cpu, open};

const PROMPT: [u32; 6] = [261, 367, 29, 476, 255, 53];

fn prompt() -> Prompt {
    Prompt::of_ids(PROMPT.to_vec())
}

fn tiny(context: Option<usize>) -> Engine {
    open(
        "tiny-q4_k_m",
        &LoadOptions {
            context,
            ..on_cpu()
        },
    )
}

fn params(max_tokens: Option<usize>, seed: u64) -> GenerateParams {
    let sampling = Sampling {
        temperature: 1.0,
        seed: Some(seed),
        ..Sampling::default()
    };
    GenerateParams {
        sampling,
        max_tokens,
        ..GenerateParams::default()
    }
}

fn answer(engine: &mut Engine, prompt: &[u32], params: &GenerateParams) -> (Vec<u32>, Finished) {
    let (prompt, mut ids) = (Prompt::of_ids(prompt.to_vec()), Vec::new());
    let finished = engine.generate(&prompt, params, &Signals::default(), &mut |event| {
        if let Event::Token { id, .. } = event {
            ids.push(id);
        }
    });
    (ids, finished.expect("it answers"))
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let (first, finished) = answer(&mut tiny(None), &PROMPT, &params(Some(20), 3));
    assert_eq!(finished.stats.seed, 3);
    let (again, _) = answer(&mut tiny(None), &PROMPT, &params(Some(20), 3));
    let (other, _) = answer(&mut tiny(None), &PROMPT, &params(Some(20), 4));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn a_random_seed_is_reported_and_reproduces_the_answer() {
    let mut params = params(Some(20), 0);
    params.sampling.seed = None;
    let (first, finished) = answer(&mut tiny(None), &PROMPT, &params);
    params.sampling.seed = Some(finished.stats.seed);
    assert_eq!(answer(&mut tiny(None), &PROMPT, &params).0, first);
}

#[test]
fn an_answer_ends_at_its_limit() {
    let (ids, finished) = answer(&mut tiny(None), &PROMPT, &params(Some(5), 1));
    assert_eq!((ids.len(), finished.reason), (5, StopReason::MaxTokens));
    assert_eq!(
        (finished.stats.prompt_tokens, finished.stats.tokens),
        (6, 5)
    );
    let (ids, finished) = answer(&mut tiny(None), &PROMPT, &params(Some(0), 1));
    assert_eq!((ids.len(), finished.reason), (0, StopReason::MaxTokens));
}

#[test]
fn a_full_context_ends_an_answer() {
    // This model seldom ends its turn.
    let mut full = 0;
    for seed in 0..20 {
        let (ids, finished) = answer(&mut tiny(Some(16)), &PROMPT, &params(None, seed));
        match finished.reason {
            StopReason::ContextFull => {
                assert_eq!(ids.len(), 10, "seed {seed}");
                full += 1;
            }
            StopReason::EndOfTurn => assert!(ids.len() < 10, "seed {seed}"),
            reason => panic!("seed {seed} ended by {reason:?}"),
        }
    }
    assert!(full >= 15, "{full} of 20 filled the context");
}

#[test]
fn a_prompt_that_leaves_no_room_is_refused() {
    let mut engine = tiny(Some(6));
    let refused = engine.generate(
        &prompt(),
        &params(None, 1),
        &Signals::default(),
        &mut |_| {},
    );
    assert!(matches!(
        refused,
        Err(GenerateError::TooLong {
            prompt: 6,
            context: 6
        })
    ));
    let refused = engine.generate(
        &Prompt::of_ids(Vec::new()),
        &params(None, 1),
        &Signals::default(),
        &mut |_| {},
    );
    assert!(matches!(refused, Err(GenerateError::Empty)));
}

#[test]
fn a_follow_up_reads_only_what_is_new() {
    let mut engine = tiny(None);
    let (ids, _) = answer(&mut engine, &PROMPT, &params(Some(8), 1));
    let follow_up = [&PROMPT[..], &ids, &[7, 8, 9]].concat();
    let mut progress = Vec::new();
    let finished = engine
        .generate(
            &Prompt::of_ids(follow_up),
            &params(Some(1), 1),
            &Signals::default(),
            &mut |event| {
                if let Event::Prefill {
                    done,
                    total,
                    cached,
                } = event
                {
                    progress.push((done, total, cached));
                }
            },
        )
        .expect("it answers");
    // The last token of an answer has been chosen but not read.
    assert_eq!(finished.stats.cached_tokens, 13);
    assert_eq!(progress, [(13, 17, 13), (17, 17, 13)]);
}

#[test]
fn cancel_stops_an_answer_at_once() {
    let mut engine = tiny(None);
    let signals = Signals::default();
    let mut tokens = 0;
    let finished = engine
        .generate(&prompt(), &params(None, 1), &signals, &mut |event| {
            if matches!(event, Event::Token { .. }) {
                tokens += 1;
                signals.cancel.store(tokens == 3, Ordering::Relaxed);
            }
        })
        .expect("it answers");
    assert_eq!(
        (finished.reason, finished.stats.tokens),
        (StopReason::Cancelled, 3)
    );
    let finished = engine.generate(
        &Prompt::of_ids(vec![9; 300]),
        &params(None, 1),
        &Signals::cancelled_by(&Arc::new(AtomicBool::new(true))),
        &mut |event| {
            assert!(
                !matches!(event, Event::Token { .. }),
                "stopped before the prompt was read"
            );
        },
    );
    assert_eq!(
        finished.expect("stopping is no error").reason,
        StopReason::Cancelled
    );
}

#[test]
fn thinking_tokens_are_counted_separately() {
    let mut engine = tiny(None);
    let (params, never) = (params(Some(4), 2), Signals::default());
    let prompt = Prompt {
        starts_in: TokenKind::Thinking,
        ..prompt()
    };
    let mut parts = Vec::new();
    let finished = engine
        .generate(&prompt, &params, &never, &mut |event| {
            if let Event::Token { kind, .. } = event {
                parts.push(kind);
            }
        })
        .expect("it answers");
    let thinking = parts
        .iter()
        .filter(|&&kind| kind == TokenKind::Thinking)
        .count();
    assert!(thinking > 0);
    assert_eq!(finished.stats.thinking_tokens, thinking);
}
