//! Calls beside other requests, with drafts, and after a pause: always the same tokens.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use inference::{ModelRequest, Priority, RequestId};
use kernels::{Cpu, CpuLevel, KvType};

use super::random::random_logits;
use super::*;
use crate::model::config::Config;
use crate::model::forward::CpuModel;
use crate::run::kv_blocks::NoBlocks;
use crate::run::scheduler::StepOptions;

/// The tiny model of random weights.
fn scheduler() -> Scheduler {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
    let gguf = Gguf::open(&path).expect("the fixture");
    let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
    let cpu = Cpu::new(2, CpuLevel::best());
    let model = CpuModel::load(&config, cpu, &gguf, KvType::F16, 512, &mut |_| {});
    let mut session = Session::new(Box::new(model.expect("it loads")));
    // Every pass takes a tick, so that all drafts seem to pay.
    let now = AtomicUsize::new(0);
    session.set_clock(move || now.fetch_add(1, Ordering::Relaxed) as f64);
    let mut scheduler = Scheduler::new(session, Arc::new(tokenizer()), 512);
    scheduler.grammars.set_calls(&SMOLLM3_CHAT.calls, true);
    scheduler
}

fn request(at: u64, required: bool, lookup: bool) -> ModelRequest {
    let kinds =
        json!({"type": "array", "items": {"enum": ["wren", "robin", "goldcrest"]}, "maxItems": 12});
    let birds = tool(
        "list_birds",
        json!({"type": "object", "properties": {"kinds": kinds}, "required": ["kinds"]}),
    );
    let mut params = calls([weather(), birds], required);
    params.sampling.temperature = 1.0;
    params.sampling.seed = Some(at);
    params.max_tokens = Some(150);
    params.lookup = lookup;
    let thought = if at.is_multiple_of(4) {
        ""
    } else {
        "<think>\n\n</think>\n"
    };
    ModelRequest {
        id: RequestId(at),
        priority: Priority::Answer,
        conversation: at,
        prompt: Prompt::of_ids(tokenizer().encode(&format!("{at}{thought}"), true)),
        params,
        signals: Signals::default(),
    }
}

/// Random logits, for which it does not matter which tokens are evaluated together.
fn scripted() -> Scheduler {
    let tokenizer = Arc::new(tokenizer());
    let logits = random_logits(tokenizer.vocabulary_size(), Arc::default());
    let session = Session::new(Box::new(Scripted::new(logits, |_| {})));
    let mut scheduler = Scheduler::new(session, tokenizer, 512);
    scheduler.grammars.set_calls(&SMOLLM3_CHAT.calls, true);
    scheduler
}

/// Runs requests together; `pauses` at each of these steps the newest one.
fn run(mut scheduler: Scheduler, requests: Vec<ModelRequest>, pauses: &[usize]) -> Vec<Reported> {
    let mut steps = 0..;
    let mut reported: Vec<Reported> = requests.iter().map(|_| Reported::default()).collect();
    let first = requests[0].id.0;
    for request in requests {
        scheduler.submit(request).expect("a good request");
    }
    let never = AtomicBool::new(false);
    while scheduler.is_busy() {
        if steps.next().is_some_and(|step| pauses.contains(&step)) {
            scheduler.pause_newest();
        }
        let mut step = StepOptions {
            preempt: &never,
            blocks: &mut NoBlocks,
        };
        let ended = scheduler.step(&mut step, &mut |id, event| {
            reported[usize::try_from(id.0 - first).expect("few")].add(event);
        });
        for (_, result) in ended {
            result.expect("an answer");
        }
    }
    reported
}

#[test]
fn calls_are_the_same_alone_and_beside_others_and_with_drafts() {
    let mut ended = 0;
    for first in (0..9).step_by(3) {
        let all = |lookup| (first..first + 3).map(move |at| request(at, at % 3 > 0, lookup));
        let alone: Vec<Reported> = all(false)
            .map(|it| run(scheduler(), vec![it], &[]).remove(0))
            .collect();
        let drafted: Vec<Reported> = all(true)
            .map(|it| run(scheduler(), vec![it], &[]).remove(0))
            .collect();
        assert_eq!(alone, drafted);
        assert_eq!(alone, run(scheduler(), all(false).collect(), &[]));
        assert_eq!(alone, run(scheduler(), all(true).collect(), &[]));
        ended += alone.iter().map(|it| it.calls.len()).sum::<usize>();
    }
    assert!(ended > 3, "{ended} calls");
}

#[test]
fn a_call_goes_on_after_its_cache_was_freed() {
    for first in [1, 4, 7] {
        let all = || vec![request(first, true, false), request(first + 1, true, false)];
        let expected = run(scripted(), all(), &[]);
        let paused = run(scripted(), all(), &[5, 9, 14, 20, 33]);
        assert_eq!(expected, paused);
        assert!(expected.iter().any(|it| !it.calls.is_empty()));
    }
}
