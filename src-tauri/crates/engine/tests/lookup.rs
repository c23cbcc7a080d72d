//! The starter model's answers with and without drafts from the context.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use engine::{
    Conversation, DeviceRequest, Engine, Event, GenerateParams, KeepThinking, LoadOptions, Role,
    Sampling, Stats, Turn,
};
use jiff::civil::Date;

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

fn starter() -> Engine {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../models/starter/starter-q4_k_m.gguf");
    let options = LoadOptions {
        device: DeviceRequest::Cpu,
        context: Some(2048),
        ..LoadOptions::default()
    };
    Engine::open(&path, &options, &mut |_| {}).expect("the starter model")
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
        today: Date::constant(2026, 3, 5),
        tools: Vec::new(),
        keep_thinking: KeepThinking::All,
    };
    let prompt = engine.prompt(&conversation).expect("a prompt");
    let params = GenerateParams {
        sampling: Sampling {
            temperature,
            seed: Some(7),
            ..Sampling::default()
        },
        max_tokens: Some(200),
        starts_in: prompt.starts_in,
        lookup,
    };
    let mut ids = Vec::new();
    let never = AtomicBool::new(false);
    let finished = engine.generate(&prompt.ids, &params, &never, &mut |event| {
        if let Event::Token { id, .. } = event {
            ids.push(id);
        }
    });
    (ids, finished.expect("an answer").stats)
}

#[test]
fn the_starter_answers_the_same_with_drafts() {
    let mut engine = starter();
    let mut accepted = 0;
    for question in QUESTIONS {
        let (plain, _) = answer(&mut engine, question, 0.0, false);
        let (guessed, stats) = answer(&mut engine, question, 0.0, true);
        assert_eq!(
            engine.tokenizer().decode(&guessed),
            engine.tokenizer().decode(&plain),
            "{question}"
        );
        assert_eq!(guessed, plain, "{question}");
        accepted += stats.accepted;
    }
    assert!(accepted > 0, "no draft was right");
}
