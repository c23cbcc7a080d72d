//! A thousand calls of random models over random schemas: every one that ends has its schema, by an independent check.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testing::Lcg;

use super::*;
use crate::grammar::hostile_schemas;

/// Random logits, but the same ones after the same tokens.
pub(super) fn random_logits(vocab: usize, seed: Arc<AtomicU64>) -> impl Fn(&[u32]) -> Vec<f32> {
    move |tokens: &[u32]| {
        let mut state = seed.load(Ordering::Relaxed) ^ 0x9e37_79b9_7f4a_7c15;
        for id in tokens {
            let mixed = (state ^ u64::from(*id)).wrapping_mul(0x2545_f491_4f6c_dd1d);
            state = mixed.rotate_left(23);
        }
        let next = (0..vocab).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / 4_194_304.0
        });
        next.collect()
    }
}

/// A schema of any kind.
fn any_schema(random: &mut Lcg, depth: usize) -> Value {
    let kinds = if depth == 0 { 8 } else { 11 };
    match random.below(kinds) {
        0 => json!({"type": "string", "enum": ["a", "b\"c", "ü", "🙂\n"]}),
        1 => json!({"type": "string", "pattern": "^[a-f]{2,5}(-[0-9]+)?$"}),
        2 => {
            let least = random.below(4);
            json!({"type": "string", "minLength": least, "maxLength": least + random.below(9)})
        }
        3 => {
            let least = random.below(100) as i64 - 50;
            json!({"type": "integer", "minimum": least, "maximum": least + random.below(2000) as i64})
        }
        4 => json!({"type": "number", "exclusiveMinimum": -1, "maximum": 99.5}),
        5 => json!({"type": "boolean", "description": "Ja oder nein: ✓"}),
        6 => json!({"const": {"ключ": [1, null, "<|im_end|>"]}}),
        7 => {
            json!({"type": "string", "format": (["date", "uuid", "ipv4"][random.below(3)])})
        }
        8 => {
            let least = random.below(3);
            let items = any_schema(random, depth - 1);
            json!({"type": "array", "items": items, "minItems": least, "maxItems": least + random.below(4)})
        }
        9 => json!({"anyOf": [any_schema(random, depth - 1), {"type": "null"}]}),
        _ => any_object(random, depth - 1),
    }
}

fn any_object(random: &mut Lcg, depth: usize) -> Value {
    let names = ["city", "größe", "a b", "\"q\"", "x-1", "名前"];
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for _ in 0..1 + random.below(4) {
        let name = names[random.below(names.len())];
        if properties
            .insert(name.to_owned(), any_schema(random, depth))
            .is_none()
            && random.below(2) == 0
        {
            required.push(name);
        }
    }
    json!({"type": "object", "properties": properties, "required": required})
}

#[test]
fn a_thousand_random_calls_have_the_schemas_of_their_tools() {
    let mut random = Lcg(5);
    let tokenizer = Arc::new(tokenizer());
    let tools: Vec<ToolDefinition> = (0..200)
        .map(|at| tool(&format!("tool_{at}"), any_object(&mut random, 2)))
        .collect();
    let prompt = Prompt::of_ids(tokenizer.encode("<think>\n\n</think>\n", true));
    let (mut ended, mut cut) = (0, 0);
    for (at, tool) in tools.iter().enumerate() {
        let schema = jsonschema::options()
            .should_validate_formats(true)
            .build(&tool.parameters)
            .expect("a schema");
        let seed = Arc::new(AtomicU64::new(0));
        let logits = random_logits(tokenizer.vocabulary_size(), Arc::clone(&seed));
        let session = Session::new(Box::new(Scripted::new(logits, |_| {})));
        let mut scheduler = Scheduler::new(session, Arc::clone(&tokenizer), 4096);
        scheduler.grammars.set_calls(&SMOLLM3_CHAT.calls, true);
        for round in 0..5 {
            seed.store(at as u64 * 5 + round, Ordering::Relaxed);
            let mut params = calls([tool.clone()], true);
            params.sampling.temperature = 1.0;
            params.sampling.top_p = 1.0;
            params.sampling.seed = Some(round);
            params.max_tokens = Some(1500);
            let mut reported = Reported::default();
            let never = Signals::default();
            let finished = generate(&mut scheduler, &prompt, &params, &never, &mut |event| {
                reported.add(event);
            });
            let case = format!("{} {reported:?}", tool.parameters);
            let finished = finished.unwrap_or_else(|error| panic!("{error}: {case}"));
            assert_eq!(reported.answer, "", "{case}");
            cut += usize::from(finished.reason != StopReason::EndOfTurn);
            ended += reported.calls.len();
            for (name, arguments) in &reported.calls {
                assert_eq!(*name, tool.name);
                let arguments: Value = serde_json::from_str(arguments).expect(&case);
                if let Err(error) = schema.validate(&arguments) {
                    panic!("{error}: {case}");
                }
            }
        }
    }
    assert!(
        ended >= 1000 && cut < 100,
        "{ended} calls, {cut} answers cut off"
    );
}

#[test]
fn a_hostile_schema_holds_an_answer_or_ends_it_with_an_error_and_no_token_takes_long() {
    let tokenizer = Arc::new(tokenizer());
    let prompt = Prompt::of_ids(tokenizer.encode("<think>\n\n</think>\n", true));
    let (mut held, mut failed) = (0, 0);
    for (name, schema) in hostile_schemas() {
        let logits = random_logits(tokenizer.vocabulary_size(), Arc::default());
        let session = Session::new(Box::new(Scripted::new(logits, |_| {})));
        let mut scheduler = Scheduler::new(session, Arc::clone(&tokenizer), 4096);
        let mut params = params(Constraint::Json(Arc::new(schema)));
        params.sampling.temperature = 1.0;
        params.max_tokens = Some(200);
        let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
        let never = Signals::default();
        let finished = generate(&mut scheduler, &prompt, &params, &never, &mut |_| {
            longest = longest.max(last.elapsed());
            last = Instant::now();
        });
        held += usize::from(finished.is_ok());
        failed += usize::from(finished.is_err());
        // The first event follows the compilation.
        assert!(
            longest < Duration::from_secs(3),
            "{name}: {longest:?} {finished:?}"
        );
    }
    assert!(held > 5 && failed > 5, "{held} held, {failed} failed");
}
