//! The starter model's own words at temperature 0: one text through tokenizer, template, forward pass and sampler.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use engine::{
    Conversation, CpuLevel, Engine, Event, GenerateParams, KeepThinking, LoadOptions, Role,
    Sampling, Turn,
};
use serde::{Deserialize, Serialize};

use crate::reference::{fixture, on_cpu};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Golden {
    question: String,
    thinking: bool,
    /// All that the model wrote, its thinking and the tags around it included.
    answer: String,
}

fn starter() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../models/starter/starter-q4_k_m.gguf")
}

fn answer(engine: &mut Engine, question: &str, thinking: bool) -> String {
    let conversation = Conversation {
        messages: vec![Turn::new(Role::User, question)],
        instructions: None,
        thinking,
        today: jiff::civil::date(2026, 3, 5),
        tools: Vec::new(),
        keep_thinking: KeepThinking::default(),
    };
    let prompt = engine.prompt(&conversation).expect("a prompt");
    let sampling = Sampling {
        temperature: 0.0,
        ..Sampling::default()
    };
    let params = GenerateParams {
        sampling,
        max_tokens: Some(160),
        starts_in: prompt.starts_in,
        ..GenerateParams::default()
    };
    let mut ids = Vec::new();
    let finished = engine.generate(
        &prompt.ids,
        &params,
        &AtomicBool::new(false),
        &mut |event| {
            if let Event::Token { id, .. } = event {
                ids.push(id);
            }
        },
    );
    finished.expect("it answers");
    engine.tokenizer().decode(&ids)
}

/// Set `GOLDCREST_BLESS=1` to write the answers anew after the starter model has been trained anew.
#[test]
fn the_starter_says_what_it_said() {
    let path = fixture("golden.json");
    let json = fs::read_to_string(&path).expect("the fixture is committed");
    let mut golden: Vec<Golden> = serde_json::from_str(&json).expect("golden answers");
    let bless = std::env::var_os("GOLDCREST_BLESS").is_some();
    for level in CpuLevel::available() {
        let options = LoadOptions {
            cpu_level: Some(level),
            ..on_cpu()
        };
        let mut engine =
            Engine::open(&starter(), &options, &mut |_| {}).expect("the starter opens");
        for golden in &mut golden {
            let answer = answer(&mut engine, &golden.question, golden.thinking);
            if bless {
                golden.answer = answer;
            } else {
                let hint = "trained anew? set GOLDCREST_BLESS=1";
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
        fs::write(path, json + "\n").expect("the fixture can be written");
    }
}
