//! The suggestions of the first screen, answered by the bundled model at the app's defaults.

use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;

use chat::{ModelChoice, ModelHost, ModelOptions, SamplingSettings, Settings};
use engine::{Conversation, Event, GenerateParams, Priority, Role, StopReason, TokenKind, Turn};
use serde::Deserialize;

use super::EngineModel;
use super::freed_memory::LARGE_MODEL;
use crate::bundled_model;
use crate::run_request::{request, run};

/// Suggestions of the page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suggestions {
    for_bundled_model: Vec<String>,
}

/// Words of a right answer to each that the guide does not answer.
const RIGHT: [(&str, &[&str]); 3] = [
    (
        "Check whether a number is even in Python",
        &["```python", "% 2 == 0"],
    ),
    ("What is photosynthesis?", &["light", "oxygen"]),
    (
        "Give me three tips for better sleep",
        &["1. ", "2. ", "3. "],
    ),
];

const SEEDS: u64 = 2;

#[test]
fn every_suggestion_of_the_first_screen_is_answered_rightly() {
    let shown: Suggestions =
        serde_json::from_str(include_str!("../../../../ui/src/chat/suggestions.json"))
            .expect("JSON");
    let guide = guide::Guide::shared();
    let (of_guide, of_model): (Vec<_>, Vec<_>) = (shown.for_bundled_model.iter())
        .partition(|question| guide.answer(question).sure().is_some());
    assert_eq!(of_guide, ["Is what I write private?"]);
    assert_eq!(of_model, RIGHT.map(|(question, _)| question));
    let Some(file) = bundled_model::real_file() else {
        testing::skip("set-up could not fetch the small model that comes with the app");
        return;
    };
    let _alone = LARGE_MODEL.lock().unwrap_or_else(PoisonError::into_inner);
    let settings = Settings::default();
    let mut model = EngineModel::default();
    let options = ModelOptions {
        device: "cpu".into(),
        threads: Some(2),
        context_length: Some(2048),
        kv_type: settings.kv_type,
    };
    let info = model
        .open(&ModelChoice::File(file), &options, &mut |_| {})
        .expect("it opens");
    for (question, words) in RIGHT {
        for seed in 0..SEEDS {
            let sampling = SamplingSettings {
                seed: Some(seed),
                ..settings.sampling_changes
            };
            let conversation = Conversation {
                messages: vec![Turn::new(Role::User, question)],
                instructions: None,
                thinking: false,
                tools: std::sync::Arc::default(),
                today: jiff::civil::date(2026, 1, 1),
            };
            let params = GenerateParams {
                sampling: sampling.over(info.sampling.of(false)),
                ..GenerateParams::default()
            };
            let label = format!("{question}, seed {seed}");
            let answer = answer(&mut model, &conversation, &params, &label);
            for word in words {
                assert!(
                    answer.contains(word),
                    "{label}: {word:?} is not in {answer:?}"
                );
            }
        }
    }
}

/// Returns the text.
fn answer(
    model: &mut EngineModel,
    conversation: &Conversation,
    params: &GenerateParams,
    label: &str,
) -> String {
    let mut said = String::new();
    let never = AtomicBool::new(false);
    let prompt = model.prompt(conversation, &never).expect("a prompt");
    let request = request(Priority::Answer, &prompt, params);
    let finish = run(model, request, &mut |event| {
        if let Event::Token { piece, kind, .. } = event
            && kind == TokenKind::Answer
        {
            said.push_str(piece);
        }
    });
    let finish = finish.expect("an answer");
    assert_eq!(finish.reason, StopReason::EndOfTurn, "{label}: {said:?}");
    said
}
