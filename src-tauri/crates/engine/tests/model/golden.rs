//! The tiny model's own words at temperature 0: one text through tokenizer, template, forward pass and sampler.

use std::fs;

use engine::{
    Conversation, CpuLevel, Engine, Event, GenerateParams, KvType, LoadOptions, Prompt, Role,
    Sampling, Signals, Turn,
};
use serde::{Deserialize, Serialize};

use crate::reference::{fixture, on_cpu, on_gpu};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Golden {
    question: String,
    thinking: bool,
    /// All that the model wrote, its thinking and the tag after it included.
    answer: String,
}

fn golden() -> Vec<Golden> {
    let json = fs::read_to_string(fixture("golden.json")).expect("the fixture is committed");
    serde_json::from_str(&json).expect("golden answers")
}

fn prompt(engine: &Engine, question: &str, thinking: bool) -> Prompt {
    let conversation = Conversation {
        messages: vec![Turn::new(Role::User, question)],
        instructions: None,
        thinking,
        tools: std::sync::Arc::default(),
        today: jiff::civil::date(2026, 3, 5),
    };
    engine.prompt(&conversation).expect("a prompt")
}

fn answer(engine: &mut Engine, question: &str, thinking: bool) -> String {
    let prompt = prompt(engine, question, thinking);
    let sampling = Sampling {
        temperature: 0.0,
        ..Sampling::default()
    };
    let params = GenerateParams {
        sampling,
        max_tokens: Some(160),
        ..GenerateParams::default()
    };
    let mut ids = Vec::new();
    let finished = engine.generate(&prompt, &params, &Signals::default(), &mut |event| {
        if let Event::Token { id, .. } = event {
            ids.push(id);
        }
    });
    finished.expect("it answers");
    engine.tokenizer().decode(&ids)
}

/// Set `GOLDCREST_BLESS=1` to write the answers after the tiny model was retrained.
#[test]
fn the_tiny_model_gives_its_golden_answers() {
    let mut golden = golden();
    let bless = std::env::var_os("GOLDCREST_BLESS").is_some();
    for level in CpuLevel::available() {
        let options = LoadOptions {
            cpu_level: Some(level),
            ..on_cpu()
        };
        let mut engine = Engine::open(&testing::tiny_model(), &options, &mut |_| {})
            .expect("the tiny model opens");
        for golden in &mut golden {
            let answer = answer(&mut engine, &golden.question, golden.thinking);
            if bless {
                golden.answer = answer;
            } else {
                let hint = "retrained? set GOLDCREST_BLESS=1";
                assert_eq!(
                    answer,
                    golden.answer,
                    "{} at {} ({hint})",
                    golden.question,
                    level.name()
                );
            }
        }
    }
    if bless {
        let json = serde_json::to_string_pretty(&golden).expect("plain data");
        fs::write(fixture("golden.json"), json + "\n").expect("the fixture can be written");
    }
}

#[test]
fn the_tiny_model_gives_its_golden_answers_on_a_gpu() {
    let Some(options) = on_gpu() else { return };
    let mut engine =
        Engine::open(&testing::tiny_model(), &options, &mut |_| {}).expect("the tiny model opens");
    assert!(engine.device().on_gpu, "{}", engine.device().name);
    for golden in golden() {
        let answer = answer(&mut engine, &golden.question, golden.thinking);
        assert_eq!(answer, golden.answer, "{}", golden.question);
    }
}

/// With keys and values in 8 bits, the tiny model's answers hardly change: at nearly every position of the golden
/// answers the same token is the likeliest.
#[test]
fn a_quantised_cache_hardly_changes_what_the_tiny_model_says() {
    for level in CpuLevel::available() {
        let options = LoadOptions {
            cpu_level: Some(level),
            kv: KvType::Q8_0,
            ..on_cpu()
        };
        let mut engine = Engine::open(&testing::tiny_model(), &options, &mut |_| {})
            .expect("the tiny model opens");
        let (mut same, mut all) = (0, 0);
        for golden in golden() {
            let prompt = prompt(&engine, &golden.question, golden.thinking).ids;
            let said = engine.tokenizer().encode(&golden.answer, true);
            let ids = [&prompt[..], &said].concat();
            let logits = engine.logits(&ids, true).expect("logits");
            for (at, &id) in said.iter().enumerate() {
                let row = &logits[prompt.len() + at - 1];
                let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
                same += usize::from(best == Some(id as usize));
            }
            all += said.len();
        }
        assert!(
            all > 100 && same * 100 >= all * 98,
            "{}: {same} of {all} tokens",
            level.name()
        );
    }
}
