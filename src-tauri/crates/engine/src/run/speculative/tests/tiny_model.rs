//! The tiny model's answers with and without drafts.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::civil::Date;

use crate::{
    Conversation, Engine, Event, GenerateParams, LoadOptions, Role, Sampling, Signals, Stats, Turn,
};

const QUESTIONS: [&str; 12] = [
    "Hello!",
    "What can you do?",
    "Where are my chats?",
    "How do I open the 3B model?",
    "What is Goldcrest?",
    "Does it need the internet?",
    "How do I stop an answer?",
    "Tell me about the licence.",
    "What is 2 + 2?",
    "Which devices can you run on?",
    "Repeat: the cat sat on the mat, the cat sat on the mat, the cat sat on the mat.",
    "Wie geht es dir?",
];

fn tiny_model() -> Engine {
    let options = LoadOptions {
        context: Some(2048),
        ..LoadOptions::default()
    };
    Engine::open(&testing::tiny_model(), &options, &mut |_| {}).expect("the tiny model")
}

fn answer(
    engine: &mut Engine,
    question: &str,
    temperature: f32,
    lookup: bool,
) -> (Vec<u32>, Stats) {
    let conversation = Conversation {
        messages: vec![Turn::new(Role::User, question)],
        instructions: None,
        thinking: true,
        tools: std::sync::Arc::default(),
        today: Date::constant(2026, 3, 5),
    };
    let prompt = engine.prompt(&conversation).expect("a prompt");
    // A prompt that is cached up to its last token is read with other arithmetic than an uncached one.
    engine.retain(|_| false);
    let params = GenerateParams {
        sampling: Sampling {
            temperature,
            seed: Some(7),
            ..Sampling::default()
        },
        max_tokens: Some(200),
        lookup,
        ..GenerateParams::default()
    };
    let mut ids = Vec::new();
    let never = Signals::default();
    let finished = engine.generate(&prompt, &params, &never, &mut |event| {
        if let Event::Token { id, .. } = event {
            ids.push(id);
        }
    });
    (ids, finished.expect("an answer").stats)
}

#[test]
fn the_tiny_model_answers_the_same_with_drafts() {
    let mut engine = tiny_model();
    // Every pass takes a tick, so that all drafts seem to pay.
    let ticks = AtomicUsize::new(0);
    let tick = move || ticks.fetch_add(1, Ordering::Relaxed) as f64;
    engine.session().set_clock(tick);
    let (mut drafted, mut accepted) = (0, 0);
    for question in QUESTIONS {
        for temperature in [0.0, 0.8] {
            let (plain, _) = answer(&mut engine, question, temperature, false);
            let (speculative, stats) = answer(&mut engine, question, temperature, true);
            assert_eq!(
                engine.tokenizer().decode(&speculative),
                engine.tokenizer().decode(&plain),
                "{question} at {temperature}"
            );
            assert_eq!(speculative, plain, "{question} at {temperature}");
            drafted += stats.drafted_tokens;
            accepted += stats.accepted_tokens;
        }
    }
    assert!(
        accepted > 0 && drafted > accepted,
        "{accepted} of {drafted} drafted tokens were accepted: both must occur"
    );
}
