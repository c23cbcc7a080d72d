//! What a newcomer meets first: the suggestions of the first screen, answered by the demo model at the app's defaults.

use std::sync::atomic::AtomicBool;

use chat::{
    HistoryMessage, LoadOptions, ModelChoice, ModelHost, Part, Piece, Role, SamplingSettings,
    Settings, StopReason, Turn,
};
use jiff::ToSpan;
use serde::Deserialize;

use super::EngineModel;

/// What the page shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suggestions {
    for_demo_model: Vec<String>,
}

/// The words that make an answer right.
const RIGHT: [(&str, &[&str]); 3] = [
    (
        "What is this app?",
        &["desktop chat app", "on your own computer", "offline"],
    ),
    (
        "Is anything sent to the cloud?",
        &[
            "it is private",
            "on this computer",
            "nothing you write is sent",
        ],
    ),
    (
        "Do I need an account?",
        &["No account is needed", "no sign-in"],
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
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(2),
        context_length: settings.context_length,
        kv_type: settings.kv_type,
        own_templates: settings.own_templates.clone(),
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
                    ..settings.sampling
                };
                let turn = Turn {
                    history: vec![HistoryMessage {
                        role: Role::User,
                        text: question.to_owned(),
                        thinking: None,
                        ids: None,
                    }],
                    instructions: None,
                    thinking,
                    // The prompt holds the date, and the model heeds every token of it.
                    today: jiff::civil::date(2026, 1, 1) + (37 * seed.cast_signed()).days(),
                    sampling: sampling.over(info.sampling),
                    max_tokens: settings.max_tokens.map(|tokens| tokens as usize),
                    lookup: settings.lookup,
                    resume: false,
                };
                let label = format!("{question} on {}, thinking: {thinking}", turn.today);
                let (thought, answer) = answer(&mut model, &turn, &label);
                for word in words {
                    assert!(
                        answer.contains(word),
                        "{label}: {word:?} is not in {answer:?}"
                    );
                }
                assert_eq!(thinking, !thought.trim().is_empty(), "{label}: {thought:?}");
                for text in [&thought, &answer] {
                    assert!(!text.contains(['<', '>', '|']), "{label}: {text:?}");
                }
            }
        }
    }
}

/// What was thought, and what was said.
fn answer(model: &mut EngineModel, turn: &Turn, label: &str) -> (String, String) {
    let (mut thought, mut said) = (String::new(), String::new());
    let finish = model
        .generate(turn, &AtomicBool::new(false), &mut |piece| {
            if let Piece::Token { text, part, .. } = piece {
                match part {
                    Part::Thinking => thought.push_str(text),
                    Part::Answer => said.push_str(text),
                    Part::Control => {}
                }
            }
        })
        .expect("an answer");
    assert_eq!(finish.reason, StopReason::EndOfTurn, "{label}: {said:?}");
    (thought, said)
}
