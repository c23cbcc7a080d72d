//! A conversation with the tiny model: each prompt goes on from the cache of the last answer.

use engine::{
    Conversation, Engine, Event, GenerateParams, LoadOptions, Role, Sampling, Signals, Turn,
};
use jiff::civil::Date;

#[test]
fn every_turn_goes_on_from_the_cache() {
    let options = LoadOptions {
        context: Some(2048),
        ..LoadOptions::default()
    };
    let mut engine =
        Engine::open(&testing::tiny_model(), &options, &mut |_| {}).expect("the tiny model");
    for thinking in [true, false] {
        let mut messages = Vec::new();
        let mut read = None;
        for (question, most) in [
            ("Hello!", 60),
            ("What can you do?", 5),
            ("Where are my chats?", 60),
        ] {
            messages.push(Turn::new(Role::User, question));
            let conversation = Conversation {
                messages: messages.clone(),
                instructions: None,
                thinking,
                tools: std::sync::Arc::default(),
                today: Date::constant(2026, 3, 5),
            };
            let prompt = engine.prompt(&conversation).expect("a prompt");
            let params = GenerateParams {
                sampling: Sampling {
                    temperature: 0.0,
                    ..Sampling::default()
                },
                max_tokens: Some(most),
                ..GenerateParams::default()
            };
            let mut ids = Vec::new();
            let finished = engine
                .generate(&prompt, &params, &Signals::default(), &mut |event| {
                    if let Event::Token { id, .. } = event {
                        ids.push(id);
                    }
                })
                .expect("an answer");
            if let Some(read) = read {
                assert!(
                    finished.stats.cached_tokens + 1 >= read,
                    "{} of {read} tokens came from the cache",
                    finished.stats.cached_tokens
                );
            }
            read = Some(prompt.ids.len() + ids.len());
            messages.push(Turn {
                ids: Some(ids),
                ..Turn::new(Role::Assistant, "")
            });
        }
    }
}
