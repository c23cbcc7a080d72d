//! The suggestions of the first screen, answered by the demo model at the app's defaults.

use std::sync::atomic::AtomicBool;

use chat::{ModelChoice, ModelHost, ModelOptions, SamplingSettings, Settings};
use engine::{Conversation, Event, GenerateParams, Part, Role, StopReason, Turn};
use jiff::ToSpan;
use serde::Deserialize;

use super::EngineModel;

/// Suggestions of the page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suggestions {
    for_demo_model: Vec<String>,
}

/// Words of a right answer.
const RIGHT: [(&str, &[&str]); 3] = [
    (
        "Is it private?",
        &[
            "it is private",
            "on this computer",
            "nothing you write is sent",
        ],
    ),
    (
        "Make a table of the planets",
        &["| Mercury | 1 | rock |", "| Jupiter | 5 | gas |"],
    ),
    (
        "Write fizzbuzz in Python",
        &["```python\n", "n % 15 == 0", "print(n)\n```"],
    ),
];

const SEEDS: u64 = 20;

#[test]
fn every_suggestion_of_the_first_screen_is_answered_rightly() {
    let shown: Suggestions =
        serde_json::from_str(include_str!("../../../ui/src/chat/suggestions.json")).expect("JSON");
    assert_eq!(shown.for_demo_model, RIGHT.map(|(question, _)| question));
    let settings = Settings::default();
    let mut model = EngineModel::default();
    let options = ModelOptions {
        device: "cpu".into(),
        threads: Some(2),
        context_length: settings.context_length,
        kv_type: settings.kv_type,
    };
    let info = model
        .open(&ModelChoice::DemoModel, &options, &mut |_| {})
        .expect("the demo model opens");
    assert!(info.can_think);
    for (question, words) in RIGHT {
        for thinking in [true, false] {
            for seed in 0..SEEDS {
                let sampling = SamplingSettings {
                    seed: Some(seed),
                    ..settings.sampling_changes
                };
                let conversation = Conversation {
                    messages: vec![Turn::new(Role::User, question)],
                    instructions: None,
                    thinking,
                    // The prompt contains the date, and the model is sensitive to every token of it.
                    today: jiff::civil::date(2026, 1, 1) + (37 * seed.cast_signed()).days(),
                    tools: Vec::new(),
                };
                let params = GenerateParams {
                    sampling: sampling.over(info.sampling.of(thinking)),
                    max_tokens: settings.max_tokens.map(|tokens| tokens as usize),
                    lookup: settings.lookup,
                    ..GenerateParams::default()
                };
                let today = conversation.today;
                let label = format!("{question} on {today}, thinking: {thinking}");
                let (thought, answer) = answer(&mut model, &conversation, &params, &label);
                for word in words {
                    assert!(
                        answer.contains(word),
                        "{label}: {word:?} is not in {answer:?}"
                    );
                }
                assert_eq!(thinking, !thought.trim().is_empty(), "{label}: {thought:?}");
                for text in [&thought, &answer] {
                    assert!(
                        !text.contains('<') && !text.contains("|>"),
                        "{label}: {text:?}"
                    );
                }
            }
        }
    }
}

/// Returns the thinking and the text.
fn answer(
    model: &mut EngineModel,
    conversation: &Conversation,
    params: &GenerateParams,
    label: &str,
) -> (String, String) {
    let (mut thought, mut said) = (String::new(), String::new());
    let never = AtomicBool::new(false);
    let prompt = model.prompt(conversation, &never).expect("a prompt");
    let finish = model
        .generate(&prompt, params, (&never).into(), &mut |event| {
            if let Event::Token { piece, part, .. } = event {
                match part {
                    Part::Thinking => thought.push_str(piece),
                    Part::Answer => said.push_str(piece),
                    Part::Control => {}
                }
            }
        })
        .expect("an answer");
    assert_eq!(finish.reason, StopReason::EndOfTurn, "{label}: {said:?}");
    (thought, said)
}
