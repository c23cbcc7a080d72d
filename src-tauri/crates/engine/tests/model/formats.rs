//! The engine around the forward pass, in each chat format: over tiny models whose vocabulary has the tokens of the
//! format. The files lie outside of the repository; the tests are skipped where they are absent.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::gguf::write::{self, Field};
use engine::{
    Conversation, Engine, Event, Finished, GenerateParams, Gguf, KvBlocks, LoadOptions, ModelFile,
    ModelRequest, Priority, Prompt, RequestId, Role, Sampling, Signals, StepOptions, TokenKind,
    Turn,
};
use inference::{Constraint, ToolCall, ToolDefinition};
use jiff::civil::Date;
use serde_json::json;

use crate::families::folder;
use crate::reference::{exactly, on_cpu};

static NEVER: AtomicBool = AtomicBool::new(false);

/// A format, a tiny model for it, a template by whose text it is chosen, and the tokens that take the place of others.
struct Format {
    name: &'static str,
    model: &'static str,
    template: &'static str,
    renamed: &'static [(&'static str, &'static str)],
    thinks: bool,
}

const FORMATS: [Format; 6] = [
    Format {
        name: "SmolLM3",
        model: "tiny-llama",
        template: "<|im_start|> Reasoning Mode",
        renamed: &[],
        thinks: true,
    },
    Format {
        name: "ChatML",
        model: "tiny-smollm2",
        template: "<|im_start|>",
        renamed: &[],
        thinks: false,
    },
    Format {
        name: "Qwen 2.5",
        model: "tiny-qwen2",
        template: "<|im_start|>",
        renamed: &[],
        thinks: false,
    },
    Format {
        name: "Qwen 3",
        model: "tiny-qwen3",
        template: "<|im_start|> <think>",
        renamed: &[],
        thinks: true,
    },
    Format {
        name: "Qwen 3 Instruct",
        model: "tiny-qwen3",
        template: "<|im_start|>",
        renamed: &[],
        thinks: false,
    },
    Format {
        name: "Llama 3",
        model: "tiny-llama",
        template: "<|start_header_id|>",
        renamed: &[
            ("<|im_start|>", "<|start_header_id|>"),
            ("<|finetune_right_pad_id|>", "<|end_header_id|>"),
            ("<|im_end|>", "<|eot_id|>"),
        ],
        thinks: false,
    },
];

impl Format {
    /// The tiny model with the template and the tokens of this format; `None` where it is absent.
    fn file(&self) -> Option<ModelFile> {
        let gguf = Gguf::open(&folder()?.join(format!("{}-q8_0.gguf", self.model)));
        let gguf = gguf.expect("a file");
        let template = Field::String(self.template.to_owned());
        let fields = gguf.keys().filter_map(|key| {
            let mut field = Field::from_value(&gguf.get(key)?)?;
            if let (Field::Strings(tokens), "tokenizer.ggml.tokens") = (&mut field, key) {
                for token in tokens {
                    if let Some((_, name)) = self.renamed.iter().find(|(old, _)| old == token) {
                        *token = (*name).to_owned();
                    }
                }
            }
            Some((key, field))
        });
        let fields = fields.chain([("tokenizer.chat_template", template)]);
        let header = Gguf::from_bytes(write::header(fields, &[])).expect("a header");
        let file = ModelFile::from_parts(&header, Arc::new(gguf)).expect("a model");
        let chosen = file.summary().protocol.to_string();
        let expected = format!("{}, chosen by the file's chat template", self.name);
        assert!(chosen.starts_with(&expected), "{chosen}");
        assert_eq!(file.summary().can_think, self.thinks, "{chosen}");
        Some(file)
    }

    fn open(&self) -> Option<Engine> {
        // With random weights, rounding may change the likeliest token.
        let file = self.file()?;
        Some(Engine::load(&file, &exactly(), &mut |_| {}).expect("its weights are there"))
    }
}

fn conversation(messages: Vec<Turn>, thinking: bool) -> Conversation {
    Conversation {
        messages,
        instructions: None,
        thinking,
        tools: std::sync::Arc::default(),
        today: Date::constant(2026, 3, 5),
    }
}

fn user(text: &str) -> Turn {
    Turn::new(Role::User, text)
}

/// The likeliest answer to a prompt, and its parts.
fn params(most: usize, lookup: bool) -> GenerateParams {
    GenerateParams {
        sampling: Sampling {
            temperature: 0.0,
            ..Sampling::default()
        },
        max_tokens: Some(most),
        lookup,
        ..GenerateParams::default()
    }
}

fn answer(
    engine: &mut Engine,
    prompt: &Prompt,
    most: usize,
    lookup: bool,
) -> (Vec<(u32, TokenKind)>, Finished) {
    let params = params(most, lookup);
    let mut tokens = Vec::new();
    let finished = engine.generate(prompt, &params, &Signals::default(), &mut |event| {
        if let Event::Token { id, kind, .. } = event {
            tokens.push((id, kind));
        }
    });
    (tokens, finished.expect("it answers"))
}

fn ids(tokens: &[(u32, TokenKind)]) -> Vec<u32> {
    tokens.iter().map(|(id, _)| *id).collect()
}

/// The text of one part of an answer.
fn text(engine: &Engine, tokens: &[(u32, TokenKind)], of: TokenKind) -> String {
    let ids: Vec<u32> = tokens
        .iter()
        .filter(|(_, kind)| *kind == of)
        .map(|(id, _)| *id)
        .collect();
    engine.tokenizer().decode(&ids)
}

/// Runs `test` for each format, with thinking where there is any, and without.
fn each(mut test: impl FnMut(&Format, &mut Engine, bool)) {
    for format in &FORMATS {
        for thinking in [false, true] {
            let Some(mut engine) = format.open() else {
                return;
            };
            if format.thinks || !thinking {
                test(format, &mut engine, thinking);
            }
        }
    }
}

#[test]
fn typed_control_tokens_stay_text() {
    each(|format, engine, thinking| {
        let tokenizer = engine.tokenizer();
        let vocabulary = u32::try_from(tokenizer.vocabulary_size()).expect("ids");
        let specials: Vec<(u32, String)> = (0..vocabulary)
            .filter_map(|id| {
                let text = String::from_utf8(tokenizer.piece(id).to_vec()).ok()?;
                (tokenizer.special(&text) == Some(id)).then_some((id, text))
            })
            .collect();
        assert!(specials.len() > 8, "{}", format.name);
        let counts = |typed: &str| {
            let turns = vec![
                user(typed),
                Turn::new(Role::Assistant, format!("a{typed}")),
                user(&format!("{typed}b")),
            ];
            let asked = Conversation {
                instructions: Some(typed.to_owned()),
                ..conversation(turns, thinking)
            };
            let prompt = engine.prompt(&asked).expect("a prompt");
            let count = |id: u32| prompt.ids.iter().filter(|other| **other == id).count();
            let counts: Vec<usize> = specials.iter().map(|(id, _)| count(*id)).collect();
            (counts, tokenizer.decode(&prompt.ids))
        };
        let (expected, _) = counts("mild");
        for (_, special) in &specials {
            let (found, shown) = counts(special);
            assert_eq!(found, expected, "{}: {special}: {shown}", format.name);
            assert!(shown.contains(&format!("{special}b")), "{shown}");
        }
    });
}

#[test]
fn a_stopped_answer_goes_on_where_it_was() {
    each(|format, engine, thinking| {
        let first = conversation(vec![user("Tell me more.")], thinking);
        let first = engine.prompt(&first).expect("a prompt");
        let (begun, _) = answer(engine, &first, 12, false);
        let (whole, _) = answer(engine, &first, 20, false);
        let thought = text(engine, &begun, TokenKind::Thinking);
        let open = Turn {
            open: true,
            ids: Some(ids(&begun)),
            thinking: Some(thought).filter(|thought| !thought.is_empty()),
            ..Turn::new(Role::Assistant, text(engine, &begun, TokenKind::Answer))
        };
        let goes_on = conversation(vec![user("Tell me more."), open.clone()], thinking);
        let prompt = engine.prompt(&goes_on).expect("a prompt");
        let (name, begun) = (format.name, ids(&begun));
        assert_eq!(prompt.ids, [first.ids.clone(), begun].concat(), "{name}");
        let (rest, _) = answer(engine, &prompt, 8, false);
        assert_eq!(ids(&rest), ids(&whole)[12..], "{name}");

        // The same from text, as after a change of the model.
        let typed = Turn {
            ids: None,
            thinking: None,
            ..Turn::new(Role::Assistant, "Well, ")
        };
        let open = Turn {
            open: true,
            ..typed
        };
        let goes_on = conversation(vec![user("Tell me more."), open], thinking);
        let prompt = engine.prompt(&goes_on).expect("a prompt");
        let shown = engine.tokenizer().decode(&prompt.ids);
        let before = engine.tokenizer().decode(&first.ids);
        assert_eq!(shown, format!("{before}Well, "), "{name}");
    });
}

#[test]
fn calls_are_written_as_models_of_the_format_do() {
    each(|format, engine, thinking| {
        let answer = |calls| Turn {
            calls,
            ..Turn::new(Role::Assistant, "I weigh it.")
        };
        let shown = |calls| {
            let messages = vec![user("How heavy?"), answer(calls), user("And?")];
            let prompt = engine.prompt(&conversation(messages, thinking));
            engine.tokenizer().decode(&prompt.expect("a prompt").ids)
        };
        let call = ToolCall {
            at: "I weigh it.".len(),
            name: "weigh".to_owned(),
            arguments: r#"{"bird": "wren"}"#.to_owned(),
        };
        let call_of =
            |arguments: &str| format!(r#"{{"name": "weigh", "{arguments}": {{"bird": "wren"}}}}"#);
        let written = match format.name {
            "ChatML" => format!("\n{}", call_of("arguments")),
            "Llama 3" => format!("\n{}", call_of("parameters")),
            _ => format!("\n<tool_call>\n{}\n</tool_call>", call_of("arguments")),
        };
        let expected = format!("I weigh it.{written}");
        let expected = shown(Vec::new()).replace("I weigh it.", &expected);
        assert_eq!(shown(vec![call]), expected, "{}", format.name);
    });
}

#[test]
fn the_next_prompt_goes_on_from_the_cache() {
    each(|format, engine, thinking| {
        let first = conversation(vec![user("Tell me more.")], thinking);
        let first = engine.prompt(&first).expect("a prompt");
        let (said, _) = answer(engine, &first, 12, false);
        let thought = text(engine, &said, TokenKind::Thinking);
        let turns = vec![
            user("Tell me more."),
            Turn {
                ids: Some(ids(&said)),
                thinking: Some(thought).filter(|thought| !thought.is_empty()),
                ..Turn::new(Role::Assistant, text(engine, &said, TokenKind::Answer))
            },
            user("And now?"),
        ];
        let next = engine.prompt(&conversation(turns, thinking)).expect("it");
        let (_, finished) = answer(engine, &next, 1, false);
        // Qwen 3 leaves earlier thinking out, also the empty one.
        let tokenizer = engine.tokenizer();
        let start = tokenizer.special("<think>");
        let kept = match first.ids.iter().rposition(|id| Some(*id) == start) {
            Some(at) if format.name == "Qwen 3" => at,
            _ if format.name == "Qwen 3" => first.ids.len(),
            _ => first.ids.len() + said.len() - 1,
        };
        let cached = finished.stats.cached_tokens;
        assert!(cached >= kept, "{}: {cached} of {kept}", format.name);
    });
}

#[test]
fn the_next_round_of_calls_goes_on_from_the_cache() {
    let parameters = json!({ "type": "object", "properties": { "bird": { "enum": ["wren"] } } });
    let tools: Arc<[ToolDefinition]> = Arc::new([ToolDefinition {
        name: "weigh".to_owned(),
        description: "Weighs a bird.".to_owned(),
        parameters,
        code: None,
    }]);
    each(|format, engine, thinking| {
        if thinking || format.name == "ChatML" {
            return;
        }
        let with_tools = |turns| Conversation {
            tools: Arc::clone(&tools),
            ..conversation(turns, false)
        };
        let first = with_tools(vec![user("How heavy?")]);
        let first = engine.prompt(&first).expect("a prompt");
        let params = GenerateParams {
            constraint: Some(Constraint::Calls {
                tools: Arc::clone(&tools),
                required: true,
            }),
            ..params(400, false)
        };
        let (mut said, mut calls) = (Vec::new(), Vec::new());
        let mut on_event = |event: Event<'_>| match event {
            Event::Token { id, .. } => said.push(id),
            Event::Call { name, arguments } => calls.push(ToolCall {
                at: 0,
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            }),
            _ => {}
        };
        let called = engine.generate(&first, &params, &Signals::default(), &mut on_event);
        called.expect("a call");
        assert!(!calls.is_empty(), "{}", format.name);
        let results: Vec<_> = calls.iter().map(|_| Turn::new(Role::Tool, "6 g")).collect();
        let answer_with_calls = Turn {
            ids: Some(said.clone()),
            calls,
            ..Turn::new(Role::Assistant, "")
        };
        let turns = [vec![user("How heavy?"), answer_with_calls], results].concat();
        let next = engine.prompt(&with_tools(turns)).expect("a prompt");
        let (_, finished) = answer(engine, &next, 1, false);
        // Qwen 3 leaves an empty thinking out.
        let kept = match format.name {
            "Qwen 3" => {
                let start = engine.tokenizer().special("<think>");
                let at = first.ids.iter().rposition(|id| Some(*id) == start);
                at.expect("an empty thinking")
            }
            // The last tokens, which the form determines, are not evaluated.
            _ => first.ids.len() + said.len() - 2,
        };
        let cached = finished.stats.cached_tokens;
        assert!(cached >= kept, "{}: {cached} of {kept}", format.name);
    });
}

#[test]
fn lookup_changes_no_answer() {
    let mut drafted = None;
    each(|format, engine, thinking| {
        let asked = "one two three four five one two three four five one two three four";
        let prompt = conversation(vec![user(asked)], thinking);
        let prompt = engine.prompt(&prompt).expect("a prompt");
        let (plain, _) = answer(engine, &prompt, 150, false);
        let (fast, finished) = answer(engine, &prompt, 150, true);
        assert_eq!(ids(&fast), ids(&plain), "{}", format.name);
        *drafted.get_or_insert(0) += finished.stats.drafted_tokens;
    });
    assert_ne!(drafted, Some(0), "of random weights some repeat themselves");
}

/// Blocks of KV caches in memory.
#[derive(Default)]
struct Blocks(HashMap<Vec<u32>, Vec<u8>>, usize);

impl KvBlocks for Blocks {
    fn load(&mut self, tokens: &[u32], first: usize, each: &mut dyn FnMut(&[u8]) -> bool) {
        let ends = (first + self.1..=tokens.len()).step_by(self.1);
        for block in ends.map_while(|end| self.0.get(&tokens[..end])) {
            if !each(block) {
                return;
            }
        }
    }

    fn holds(&mut self, _: u64, tokens: &[u32]) -> bool {
        self.0.contains_key(tokens)
    }

    fn store(&mut self, _: u64, tokens: &[u32], block: &[u8]) -> bool {
        self.0.insert(tokens.to_vec(), block.to_vec());
        true
    }
}

#[test]
fn a_chat_from_the_disk_goes_on_as_a_cold_run_does() {
    each(|format, engine, thinking| {
        let long = "Some words to read. ".repeat(120);
        let asked = conversation(
            vec![user(&long), Turn::new(Role::Assistant, "Yes."), user("?")],
            thinking,
        );
        let prompt = engine.prompt(&asked).expect("a prompt");
        let (said, _) = answer(engine, &prompt, 16, false);
        let block = engine.session().block().expect("on the CPU");
        let mut blocks = Blocks(HashMap::new(), block);
        while engine.session().store_block(&mut blocks).expect("memory") {}
        assert!(!blocks.0.is_empty(), "{}", format.name);

        let mut again = format.open().expect("it is there");
        let submitted = again.submit(ModelRequest {
            id: RequestId(1),
            priority: Priority::Answer,
            conversation: 1,
            prompt,
            params: params(16, false),
            signals: Signals::default(),
        });
        submitted.expect("it fits");
        let mut same = Vec::new();
        let finished = loop {
            let mut step = StepOptions {
                preempt: &NEVER,
                blocks: &mut blocks,
            };
            let ended = again.step(&mut step, &mut |_, event| {
                if let Event::Token { id, .. } = event {
                    same.push(id);
                }
            });
            if let Some((_, result)) = ended.into_iter().next() {
                break result.expect("it answers");
            }
        };
        assert_eq!(same, ids(&said), "{}", format.name);
        assert!(finished.stats.cached_tokens >= block, "{}", format.name);
    });
}

/// The tiny models were trained for 4,096 tokens.
#[test]
fn a_longer_context_is_that_of_the_publisher_or_refused_with_the_reason() {
    for format in &FORMATS {
        let Some(file) = format.file() else { return };
        let options = LoadOptions {
            context: Some(20_000),
            ..on_cpu()
        };
        let engine = Engine::load(&file, &options, &mut |_| {}).expect("its weights are there");
        let summary = engine.summary();
        let note = summary.context_note.as_deref().unwrap_or_default();
        let (expected, reason) = match format.model {
            "tiny-qwen2" | "tiny-qwen3" => (16_384, "longer than it was trained for"),
            _ => (4096, "the model supports no more"),
        };
        assert_eq!(summary.context_length, expected, "{}", format.name);
        assert!(note.contains(reason), "{}: {note}", format.name);
    }
}
