//! Answers of a scripted model that are held to a form: what is reported, and what cannot be written.

use std::path::Path;
use std::sync::Arc;

use inference::{
    Constraint, Event, Finished, GenerateParams, Prompt, Sampling, Signals, StopReason, TokenKind,
    ToolDefinition,
};
use serde_json::{Value, json};

use crate::gguf::Gguf;
use crate::gguf::write::{self, Field};
use crate::run::error::GenerateError;
use crate::run::generate::generate;
use crate::run::scheduler::Scheduler;
use crate::run::scripted::Scripted;
use crate::run::session::Session;
use crate::text::protocol::{CallFormat, Protocol, SMOLLM3_CHAT};
use crate::text::tokenizer::Tokenizer;

mod either;
mod random;
mod together;

fn fixture() -> Gguf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer.gguf");
    Gguf::open(&path).expect("the fixture")
}

fn tokenizer() -> Tokenizer {
    Tokenizer::from_gguf(&fixture()).expect("a tokenizer")
}

/// The vocabulary with tokens that have another text and type.
fn tokenizer_with(renamed: &[(&str, &str, i32)]) -> Tokenizer {
    let file = fixture();
    let tokens = file.strings("tokenizer.ggml.tokens").expect("tokens");
    let types = file.i32s("tokenizer.ggml.token_type").expect("types");
    let new = |token: &str| renamed.iter().find(|(from, ..)| *from == token);
    let fields = file.keys().filter_map(|key| {
        let field = match key {
            "tokenizer.ggml.tokens" => {
                let tokens = tokens.iter();
                let tokens = tokens.map(|token| new(token).map_or(*token, |it| it.1).to_owned());
                Field::Strings(tokens.collect())
            }
            "tokenizer.ggml.token_type" => {
                let types = types.iter().zip(&tokens);
                Field::I32s(
                    types
                        .map(|(ty, token)| new(token).map_or(*ty, |it| it.2))
                        .collect(),
                )
            }
            _ => Field::from_value(&file.get(key)?)?,
        };
        Some((key, field))
    });
    let file = Gguf::from_bytes(write::header(fields, &[])).expect("a GGUF");
    Tokenizer::from_gguf(&file).expect("a tokenizer")
}

/// The tags of calls as ordinary text, with a token that goes on behind a tag.
fn text_tags() -> Tokenizer {
    const NORMAL: i32 = 1;
    tokenizer_with(&[
        ("<tool_call>", ">Ċ", NORMAL),
        ("</tool_call>", "x<", NORMAL),
        ("<code>", "}x", NORMAL),
        ("</code>", "\"name\":", NORMAL),
    ])
}

fn tool(name: &str, parameters: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        parameters,
        code: None,
    }
}

fn weather() -> ToolDefinition {
    let city = json!({"type": "string"});
    let days = json!({"type": "integer", "minimum": 1, "maximum": 9});
    let properties = json!({"city": city, "days": days});
    tool(
        "get_weather",
        json!({"type": "object", "properties": properties, "required": ["city"]}),
    )
}

fn run_python() -> ToolDefinition {
    ToolDefinition {
        code: Some("program".to_owned()),
        ..tool(
            "run_python",
            json!({"type": "object", "properties": {"program": {"type": "string"}}}),
        )
    }
}

fn calls(tools: impl IntoIterator<Item = ToolDefinition>, required: bool) -> GenerateParams {
    params(Constraint::Calls {
        tools: tools.into_iter().collect(),
        required,
    })
}

fn params(constraint: Constraint) -> GenerateParams {
    GenerateParams {
        sampling: Sampling {
            temperature: 0.0,
            seed: Some(7),
            ..Sampling::default()
        },
        max_tokens: Some(400),
        constraint: Some(constraint),
        ..GenerateParams::default()
    }
}

/// Everything that was reported.
#[derive(Debug, Default, PartialEq)]
struct Reported {
    thinking: String,
    answer: String,
    call: String,
    calls: Vec<(String, String)>,
    ids: Vec<u32>,
}

impl Reported {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Prefill { .. } | Event::Logprobs { .. } => {}
            Event::Call { name, arguments } => {
                self.calls.push((name.to_owned(), arguments.to_owned()));
            }
            Event::Token { id, piece, kind } => {
                self.ids.push(id);
                match kind {
                    TokenKind::Thinking => self.thinking.push_str(piece),
                    TokenKind::Answer => self.answer.push_str(piece),
                    TokenKind::Call => self.call.push_str(piece),
                    TokenKind::Control => {}
                }
            }
        }
    }
}

/// A chat format over a vocabulary, and the model's wish.
struct CallScript<'a> {
    tokenizer: Tokenizer,
    format: &'static CallFormat,
    runs_code: bool,
    says: &'a str,
}

impl<'a> CallScript<'a> {
    fn smollm3(says: &'a str) -> CallScript<'a> {
        CallScript {
            tokenizer: tokenizer(),
            format: &SMOLLM3_CHAT.calls,
            runs_code: true,
            says,
        }
    }

    fn llama3(says: &'a str) -> CallScript<'a> {
        let protocol = Protocol::all().find(|it| it.name == "Llama 3");
        CallScript {
            tokenizer: tokenizer_with(&[("<|finetune_right_pad_id|>", "<|python_tag|>", 3)]),
            format: &protocol.expect("a format").calls,
            runs_code: false,
            says,
        }
    }

    fn answer(self, params: &GenerateParams) -> (Reported, Finished) {
        let (reported, finished) = self.try_answer(params);
        (reported, finished.expect("an answer"))
    }

    /// Answers with a model that goes on with its text wherever the answer is a beginning of it, in the longest tokens.
    fn try_answer(self, params: &GenerateParams) -> (Reported, Result<Finished, GenerateError>) {
        let tokenizer = Arc::new(self.tokenizer);
        let prompt = Prompt::of_ids(tokenizer.encode("abc", true));
        let read = prompt.ids.len();
        let (says, of_model) = (self.says.to_owned(), Arc::clone(&tokenizer));
        let logits = move |tokens: &[u32]| {
            let so_far: Vec<u8> = tokens[read..]
                .iter()
                .flat_map(|id| of_model.piece(*id))
                .copied()
                .collect();
            let rest = says.as_bytes().strip_prefix(&*so_far);
            let logit = |id: u32| {
                let piece = of_model.piece(id);
                let goes_on = rest.is_some_and(|rest| !piece.is_empty() && rest.starts_with(piece));
                if goes_on {
                    return piece.len() as f32;
                }
                // Elsewhere it ends what it can end.
                let ends: [&[u8]; 5] = [b".", b"}", b"\"", b"</code>", b"<|im_end|>"];
                let rank = ends.iter().position(|end| *end == piece);
                rank.map_or(0.0, |rank| 0.1 + rank as f32 / 10.0)
            };
            (0..of_model.vocabulary_size() as u32).map(logit).collect()
        };
        let session = Session::new(Box::new(Scripted::new(logits, |_| {})));
        let mut scheduler = Scheduler::new(session, Arc::clone(&tokenizer), 4096);
        scheduler.grammars.set_calls(self.format, self.runs_code);
        let mut reported = Reported::default();
        let never = Signals::default();
        let finished = generate(&mut scheduler, &prompt, params, &never, &mut |event| {
            reported.add(event);
        });
        if finished.is_ok() {
            let held = scheduler.sequences().next().expect("parked")[read..].to_vec();
            assert!(
                reported.ids.starts_with(&held),
                "the cache has what was reported"
            );
        }
        (reported, finished)
    }
}

fn call(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

const CALL: &str = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 3}}\n</tool_call>";
const ARGUMENTS: &str = r#"{"city": "Bern", "days": 3}"#;

#[test]
fn a_call_is_reported_with_its_name_and_its_arguments_and_not_as_text() {
    let says = format!("Let me see.\n{CALL}\n{CALL}<|im_end|>");
    let (reported, finished) = CallScript::smollm3(&says).answer(&calls([weather()], false));
    assert_eq!(reported.answer, "Let me see.\n");
    assert_eq!(reported.call, format!("{CALL}\n{CALL}"));
    let expected = call("get_weather", ARGUMENTS);
    assert_eq!(reported.calls, [expected.clone(), expected]);
    assert_eq!(finished.reason, StopReason::EndOfTurn);
    // Without the constraint it is text.
    let free = GenerateParams {
        constraint: None,
        ..calls([], false)
    };
    let (reported, _) = CallScript::smollm3(&says).answer(&free);
    assert_eq!(reported.calls, []);
    assert!(reported.answer.contains("\"get_weather\""));
}

#[test]
fn a_call_has_a_name_and_arguments_that_exist() {
    let says = "<tool_call>\n{\"name\": \"delete_all\", \"arguments\": {\"city\": 7, \"days\": 12}}\n</tool_call><|im_end|>";
    let (reported, _) = CallScript::smollm3(says).answer(&calls([weather()], false));
    let [(name, arguments)] = &reported.calls[..] else {
        panic!("{reported:?}");
    };
    assert_eq!(name, "get_weather");
    let arguments: Value = serde_json::from_str(arguments).expect("JSON");
    assert!(arguments["city"].is_string(), "{arguments}");
}

#[test]
fn a_thinking_about_calls_has_none() {
    let says = format!("<think>\n{CALL} or not\n</think>\nDone.<|im_end|>");
    for required in [false, true] {
        let (reported, _) = CallScript::smollm3(&says).answer(&calls([weather()], required));
        assert!(reported.thinking.contains(CALL), "{reported:?}");
        assert_eq!(reported.calls.len(), usize::from(required), "{reported:?}");
        assert_eq!(reported.answer.contains("Done."), !required);
    }
}

#[test]
fn a_tag_that_is_ordinary_text_opens_a_call_wherever_its_tokens_end() {
    let of = |says: &str, tools: Vec<ToolDefinition>| {
        let script = CallScript {
            tokenizer: text_tags(),
            ..CallScript::smollm3(says)
        };
        script.answer(&calls(tools, false)).0
    };
    // `x<` begins before the tag, and `>\n` goes on behind it.
    let says = format!("ax{CALL}<|im_end|>");
    let reported = of(&says, vec![weather(), run_python()]);
    assert_eq!(reported.calls, [call("get_weather", ARGUMENTS)]);
    assert_eq!(reported.answer, "ax", "{reported:?}");
    let reported = of(
        "ax<code>\nprint(6 * 7)\n</code><|im_end|>",
        vec![weather(), run_python()],
    );
    assert_eq!(
        reported.calls,
        [call("run_python", r#"{"program":"print(6 * 7)"}"#)]
    );
    // Beginnings of tags are text.
    let says = "1 <tool_cal> <tool_<tool <code<|im_end|>";
    let reported = of(says, vec![weather(), run_python()]);
    assert_eq!(
        (&*reported.answer, &*reported.call),
        (&says[..says.len() - 10], "")
    );
}

#[test]
fn the_json_of_llama_3_is_a_call_at_the_beginning_of_an_answer_alone() {
    let of = |says: &str, params: &GenerateParams| CallScript::llama3(says).answer(params).0;
    let json = r#"{"name": "get_weather", "parameters": {"city": "Bern", "days": 3}}"#;
    for says in [
        json.to_owned(),
        format!("\n {json}"),
        format!("{json} and more"),
    ] {
        let reported = of(&says, &calls([weather()], false));
        assert_eq!(reported.calls, [call("get_weather", ARGUMENTS)], "{says}");
        assert_eq!(reported.answer.trim(), "");
    }
    for says in [
        format!("So: {json}<|im_end|>"),
        "{\"names\": 1}<|im_end|>".to_owned(),
    ] {
        let reported = of(&says, &calls([weather()], false));
        assert_eq!((reported.calls, reported.call), (Vec::new(), String::new()));
        assert_eq!(reported.answer, says[..says.len() - 10]);
    }
    let reported = of(&format!("{json}<|im_end|>"), &params(Constraint::NoCalls));
    assert!(
        !reported.answer.trim_start().starts_with("{\"name\""),
        "{reported:?}"
    );
    let reported = of("no", &calls([weather()], true));
    assert_eq!(reported.calls.len(), 1);
}

#[test]
fn a_program_is_a_call_of_the_code_tool() {
    let program = "print(\"</tool_call>\")\nx = {'a': 1}";
    let expected = call("run_python", &json!({"program": program}).to_string());
    let tools = [weather(), run_python()];
    let says = format!("Hm.<code>\n{program}\n</code><|im_end|>");
    let (reported, _) = CallScript::smollm3(&says).answer(&calls(tools.clone(), false));
    assert_eq!(reported.calls, std::slice::from_ref(&expected));
    assert_eq!(reported.call, format!("<code>\n{program}\n</code>"));
    // It has no JSON there, and no tag without the tool.
    let says = "<tool_call>\n{\"name\": \"run_python\", \"arguments\": {}}\n</tool_call><|im_end|>";
    let (reported, _) = CallScript::smollm3(says).answer(&calls(tools.clone(), false));
    assert_eq!(reported.calls[0].0, "get_weather");
    let (reported, _) =
        CallScript::smollm3("<code>a</code><|im_end|>").answer(&calls([weather()], false));
    assert_eq!(
        (reported.calls.len(), &*reported.answer),
        (0, "<code>a</code>")
    );
    // Llama's program goes on to the end of the turn.
    let says = format!("<|python_tag|>{program}<|im_end|>");
    let (reported, _) = CallScript::llama3(&says).answer(&calls(tools, false));
    assert_eq!(reported.calls, [expected]);
}

#[test]
fn a_required_call_is_the_whole_answer() {
    let says = "I would rather talk.<|im_end|>";
    for tools in [
        vec![weather()],
        vec![weather(), run_python()],
        vec![run_python()],
    ] {
        let (reported, finished) = CallScript::smollm3(says).answer(&calls(tools.clone(), true));
        assert_eq!(reported.answer, "", "{reported:?}");
        let is_cut = finished.reason == StopReason::MaxTokens;
        assert_eq!(reported.calls.is_empty(), is_cut, "{reported:?}");
        let script = CallScript {
            tokenizer: text_tags(),
            ..CallScript::smollm3(says)
        };
        let (reported, _) = script.answer(&calls(tools, true));
        assert_eq!(reported.answer, "", "{reported:?}");
    }
    let (_, error) = CallScript::smollm3(says).try_answer(&calls([], true));
    assert!(matches!(error, Err(GenerateError::Form(_))), "{error:?}");
}

#[test]
fn no_more_than_eight_calls_stand_in_an_answer() {
    let says = [CALL; 12].join("\n");
    let (reported, finished) = CallScript::smollm3(&says).answer(&GenerateParams {
        max_tokens: Some(4000),
        ..calls([weather()], false)
    });
    assert_eq!(reported.calls.len(), 8);
    assert_eq!(finished.reason, StopReason::EndOfTurn);
}

#[test]
fn behind_a_call_only_another_call_or_the_end_of_the_turn_may_stand() {
    let says = format!("{CALL}\nDone. And so on.<|im_end|>");
    let (reported, _) = CallScript::smollm3(&says).answer(&GenerateParams {
        max_tokens: Some(200),
        ..calls([weather()], false)
    });
    assert_eq!(reported.answer, "");
    assert_eq!(reported.calls[0], call("get_weather", ARGUMENTS));
}

#[test]
fn a_call_that_is_cut_off_is_none() {
    for tokens in 1..30 {
        let params = GenerateParams {
            max_tokens: Some(tokens),
            ..calls([weather()], false)
        };
        let (reported, finished) = CallScript::smollm3(CALL).answer(&params);
        assert_eq!(reported.ids.len(), tokens);
        assert_eq!((reported.calls.len(), &*reported.answer), (0, ""));
        assert_eq!(finished.reason, StopReason::MaxTokens);
    }
    // The beginning of a tag that is ordinary text is text in the end.
    let params = GenerateParams {
        max_tokens: Some(3),
        ..calls([weather()], false)
    };
    let script = CallScript {
        tokenizer: text_tags(),
        ..CallScript::smollm3("<tool_call>")
    };
    let (reported, _) = script.answer(&params);
    assert_eq!((reported.ids.len(), reported.call.len()), (3, 0));
    assert!("<tool_call>".starts_with(&reported.answer), "{reported:?}");
}

#[test]
fn without_calls_no_tag_can_be_written() {
    let says = format!("So: {CALL} <code>1</code><|im_end|>");
    for tokenizer in [tokenizer(), text_tags()] {
        let tags = ["<tool_call>", "<code>"].map(|tag| (tag, tokenizer.special(tag)));
        let script = CallScript {
            tokenizer,
            ..CallScript::smollm3(&says)
        };
        let (reported, _) = script.answer(&params(Constraint::NoCalls));
        assert_eq!(reported.call, "");
        assert!(reported.answer.starts_with("So: "), "{reported:?}");
        for (tag, special) in tags {
            match special {
                // Spelled out it is text, as in an answer about tags.
                Some(id) => assert!(!reported.ids.contains(&id), "{reported:?}"),
                None => assert!(!reported.answer.contains(tag), "{reported:?}"),
            }
        }
    }
}

#[test]
fn an_answer_of_json_has_its_schema_and_ends_with_it() {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "legs": {"enum": [2, 4]}},
        "required": ["name", "legs"],
    });
    let form = || params(Constraint::Json(Arc::new(schema.clone())));
    let json = r#"{"name": "wren", "legs": 2}"#;
    for says in [
        json.to_owned(),
        format!("\n{json} more"),
        format!("<think>\n{{\n</think>\n{json}"),
    ] {
        let (reported, finished) = CallScript::smollm3(&says).answer(&form());
        assert_eq!(reported.answer.trim(), json, "{reported:?}");
        assert_eq!(finished.reason, StopReason::EndOfTurn);
        assert_eq!(
            reported.thinking.trim(),
            if says.contains("think") { "{" } else { "" }
        );
    }
    let says = r#"Sure: {"name": "wren", "legs": 3}"#;
    let (reported, _) = CallScript::smollm3(says).answer(&form());
    assert!(!reported.answer.contains("Sure"), "{reported:?}");
    let bad = params(Constraint::Json(Arc::new(json!({"type": "birds"}))));
    let (_, error) = CallScript::smollm3(says).try_answer(&bad);
    assert!(matches!(error, Err(GenerateError::Schema(_))), "{error:?}");
}

#[test]
fn a_tool_whose_schema_cannot_be_used_has_any_object_and_the_others_have_theirs() {
    let hostile = tool(
        "broken",
        json!({"type": "object", "properties": {"a": {"type": "birds"}}}),
    );
    let says = "<tool_call>\n{\"name\": \"broken\", \"arguments\": {\"b\": [1, null]}}\n</tool_call>\n\
                <tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"birds\"";
    let (reported, _) = CallScript::smollm3(says).answer(&calls([hostile, weather()], false));
    assert_eq!(reported.calls[0], call("broken", "{\"b\": [1, null]}"));
    assert!(!reported.call.contains("birds"), "{reported:?}");
}
