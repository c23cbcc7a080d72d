//! The ids of a prompt against the whole conversation as the template renders it.

use inference::{MessageFrame, ToolCall, ToolDefinition};
use jiff::civil::Date;
use serde_json::{Value, json};
use testing::{Lcg, hostile};

use super::frame::{FrameKey, Unit};
use super::guard::{Guard, Segment};
use super::*;
use crate::gguf::Gguf;
use crate::gguf::write::{self, Field};
use crate::model::architecture::SMOLLM3;
use crate::text::protocol::{ChosenProtocol, Protocol};
use crate::text::reference;

const TODAY: Date = Date::constant(2026, 3, 5);

/// Control tokens of Llama 3, in place of tokens that no template here writes.
const RENAMED: [(&str, &str); 3] = [
    ("<|finetune_right_pad_id|>", "<|start_header_id|>"),
    ("<tool_response>", "<|end_header_id|>"),
    ("</tool_response>", "<|eot_id|>"),
];

/// A tokenizer with the special tokens of all formats.
fn tokenizer() -> Arc<Tokenizer> {
    const CONTROL: i32 = 3;
    let file = Gguf::open(&testing::tiny_model()).expect("the tiny model");
    let tokens = file.strings("tokenizer.ggml.tokens").expect("tokens");
    let types = file.i32s("tokenizer.ggml.token_type").expect("types");
    let renamed = |token: &str| RENAMED.iter().find(|(from, _)| *from == token);
    let begin = tokens
        .iter()
        .position(|token| *token == "<|begin_of_text|>");
    let fields = file.keys().filter_map(|key| {
        let field = match key {
            "tokenizer.ggml.tokens" => {
                let tokens = tokens.iter().map(|token| {
                    let token = renamed(token).map_or(*token, |(_, to)| to);
                    token.to_owned()
                });
                Field::Strings(tokens.collect())
            }
            "tokenizer.ggml.token_type" => {
                let types = types.iter().zip(&tokens);
                let types = types.map(|(ty, token)| renamed(token).map_or(*ty, |_| CONTROL));
                Field::I32s(types.collect())
            }
            "tokenizer.ggml.add_bos_token" | "tokenizer.ggml.bos_token_id" => return None,
            _ => Field::from_value(&file.get(key)?)?,
        };
        Some((key, field))
    });
    let begin = begin.and_then(|id| u32::try_from(id).ok());
    let begins = [
        ("tokenizer.ggml.add_bos_token", Field::Bool(true)),
        (
            "tokenizer.ggml.bos_token_id",
            Field::U32(begin.expect("an id")),
        ),
    ];
    let image = write::header(fields.chain(begins), &[]);
    let file = Gguf::from_bytes(image).expect("a GGUF");
    Arc::new(Tokenizer::from_gguf(&file).expect("a tokenizer"))
}

/// The prompt of a conversation as the template renders all of it at once.
fn whole(format: &PromptFormat, conversation: &Conversation) -> Vec<u32> {
    const END: usize = usize::MAX;
    let verbatim = MessageFrame::default();
    let messages = conversation.messages.as_slice();
    let key = FrameKey::of(conversation);
    let rest = frame::after_system(messages);
    let last = rest.last();
    let open = last.filter(|turn| turn.open && turn.role == Role::Assistant);
    let mut answers = Vec::new();
    let mut rendered = Vec::new();
    let code = format.code_tool(&conversation.tools);
    for (at, turn) in rest.iter().enumerate() {
        let goes_on = open.is_some() && at + 1 == rest.len();
        let unit = Unit {
            around: &verbatim,
            thinking: conversation.thinking,
            code: code.as_ref(),
            turns: std::slice::from_ref(turn),
        };
        let ids = format.answer_ids(unit, turn);
        let mut content = match ids {
            Some(_) => Guard::placeholder(at),
            None => format.content(unit, turn, goes_on),
        };
        if goes_on {
            content.push_str(&Guard::placeholder(END));
        }
        answers.push(ids);
        rendered.push(json!({"role": turn.role.name(), "content": content}));
    }
    let context = format.context(&key, rendered, open.is_none());
    let render = format
        .template_of(&key)
        .render(&context, conversation.today)
        .expect("render");
    let segments = format.guard().segments(&render, &NEVER);
    let mut ids = Vec::new();
    for segment in segments.expect("segments") {
        match segment {
            Segment::Text(text) => ids.extend(format.tokenizer.encode(&text, false)),
            Segment::Special(id) => ids.push(id),
            Segment::Placeholder(END) => break,
            Segment::Placeholder(at) => ids.extend(answers[at].iter().flatten()),
        }
    }
    let start = format.tokenizer.prompt_start();
    if ids.first().copied() != start {
        ids.splice(0..0, start);
    }
    ids
}

/// Checks the prompt against the whole render, and returns its text.
fn assert_whole(encoder: &PromptEncoder, conversation: &Conversation, case: &str) -> String {
    let prompt = encoder.prompt(conversation, &NEVER);
    let prompt = prompt.unwrap_or_else(|error| panic!("{case}: {error}: {conversation:?}"));
    let whole = whole(&encoder.format, conversation);
    let text = |ids: &[u32]| encoder.format.tokenizer.decode(ids);
    assert_eq!(text(&prompt.ids), text(&whole), "{case}: {conversation:?}");
    assert_eq!(prompt.ids, whole, "{case}: {conversation:?}");
    text(&prompt.ids)
}

/// Goldcrest's own template of each format, the tiny model's, and the published ones that run.
fn templates() -> Vec<(String, ChatTemplate)> {
    let own = Protocol::all().map(|it| (it.name.to_owned(), ChatTemplate::of_protocol(it)));
    let tiny = include_str!("../../../tests/fixtures/tiny-smollm3.jinja");
    let tiny = [("tiny".to_owned(), as_published(tiny))];
    let published = PUBLISHED.into_iter().filter_map(|(name, renders)| {
        let published = reference::published(name, renders)?;
        Some((name.to_owned(), as_published(&published.source)))
    });
    own.chain(tiny).chain(published).collect()
}

/// Published templates that run, and the names of their renders.
const PUBLISHED: [(&str, &str); 5] = [
    ("smollm3-official", "official"),
    ("smollm3-unsloth", "unsloth"),
    ("smollm2", "smollm2"),
    ("qwen2", "qwen2"),
    ("llama3", "llama3"),
];

fn as_published(source: &str) -> ChatTemplate {
    let chosen = ChosenProtocol::of_model(Some(source), &SMOLLM3, |_| true);
    ChatTemplate::of_file(Some(source), chosen.expect("a format"))
}

/// A conversation as a chat or an import may have it.
fn any_conversation(random: &mut Lcg, tokenizer: &Tokenizer) -> Conversation {
    let mut messages = Vec::new();
    if random.below(4) == 0 {
        messages.push(Turn::new(Role::System, hostile(random)));
    }
    for _ in 0..=random.below(7) {
        messages.push(Turn::new(Role::User, hostile(random)));
        match random.below(8) {
            0 => messages.push(Turn::new(Role::System, hostile(random))),
            1 => messages.push(Turn::new(Role::Tool, hostile(random))),
            2 => messages.extend([(); 2].map(|()| Turn::new(Role::Tool, hostile(random)))),
            _ => {}
        }
        if random.below(6) > 0 {
            messages.push(any_answer(random, tokenizer));
        }
    }
    if let Some(last) = messages.last_mut() {
        last.open = random.below(2) == 0;
    }
    let instructions = (random.below(3) == 0).then(|| hostile(random));
    Conversation {
        messages,
        instructions,
        thinking: random.below(2) == 0,
        tools: (0..random.below(3))
            .map(|at| any_tool(random, at))
            .collect(),
        today: TODAY,
    }
}

fn any_tool(random: &mut Lcg, at: usize) -> ToolDefinition {
    ToolDefinition {
        name: format!("tool_{at}"),
        description: hostile(random),
        parameters: json!({
            "type": "object",
            "properties": {hostile(random): {"type": "string", "enum": [hostile(random), 1.5]}},
        }),
        code: (random.below(3) == 0).then(|| "code".to_owned()),
    }
}

fn any_answer(random: &mut Lcg, tokenizer: &Tokenizer) -> Turn {
    let thinking = (random.below(2) == 0).then(|| hostile(random));
    // White space before a call is trimmed with the text that it ends.
    let text = hostile(random).trim().to_owned();
    let written = match &thinking {
        Some(thinking) => format!("<think>\n{thinking}\n</think>\n{text}"),
        None => text.clone(),
    };
    let ids = (random.below(2) == 0).then(|| tokenizer.encode(&written, true));
    let call = |arguments: String| ToolCall {
        at: text.len(),
        name: "tool_0".to_owned(),
        arguments,
    };
    let calls = match random.below(3) {
        0 => vec![call(json!({"code": hostile(random)}).to_string())],
        1 => vec![call(hostile(random)), call(String::new())],
        _ => Vec::new(),
    };
    Turn {
        thinking,
        ids,
        calls,
        ..Turn::new(Role::Assistant, text)
    }
}

#[test]
fn messages_encoded_one_by_one_are_the_whole_render() {
    let tokenizer = tokenizer();
    let mut random = Lcg(29);
    for (name, template) in templates() {
        let encoder = PromptEncoder::new(Arc::new(template), Arc::clone(&tokenizer));
        for _ in 0..150 {
            let conversation = any_conversation(&mut random, &tokenizer);
            let _text = assert_whole(&encoder, &conversation, &name);
        }
    }
}

#[test]
fn published_conversations_are_encoded_as_transformers_renders_them() {
    let tokenizer = tokenizer();
    for (name, renders) in PUBLISHED {
        let Some(published) = reference::published(name, renders) else {
            return;
        };
        let template = Arc::new(as_published(&published.source));
        let lists_tools = template.capabilities().tools;
        let source = ChatTemplate::parse(&published.source).expect("it compiles");
        let encoder = PromptEncoder::new(template, Arc::clone(&tokenizer));
        let mut compared = 0;
        for case in published.cases {
            let Some(conversation) = conversation_of(&case.context) else {
                continue;
            };
            let place = format!("{name}: {}", case.name);
            let text = assert_whole(&encoder, &conversation, &place);
            // Instructions and a system message stand together, while the template chooses. Tools that it cannot list
            // are in Goldcrest's own.
            let system = conversation.messages[0].role == Role::System;
            let is_own = !conversation.tools.is_empty() && !lists_tools;
            if !is_own && (conversation.instructions.is_none() || !system) {
                let begin = "<|begin_of_text|>";
                let mut theirs = case.rendered;
                if name == "llama3" && !conversation.tools.is_empty() {
                    // Transformers puts the tools into the first question, Goldcrest into the system message.
                    let mut context = case.context;
                    context["tools_in_user_message"] = false.into();
                    theirs = source.render(&context, TODAY).expect("it renders");
                }
                let [ours, theirs] =
                    [&text, &theirs].map(|it| it.strip_prefix(begin).unwrap_or(it));
                assert_eq!(ours, theirs, "{place}");
                compared += 1;
            }
        }
        assert!(compared > 0, "{name}");
    }
}

/// The conversation of a render's variables; `None` if it begins no answer, or lists a tool that is not in the usual
/// form.
fn conversation_of(context: &Value) -> Option<Conversation> {
    if context["add_generation_prompt"] != true {
        return None;
    }
    let messages = context["messages"].as_array()?.iter().map(|message| {
        let role = Role::from_name(message["role"].as_str()?)?;
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let text = message["content"].as_str()?;
        let calls = calls.map(|call| ToolCall {
            at: text.len(),
            name: call["function"]["name"]
                .as_str()
                .expect("a name")
                .to_owned(),
            arguments: call["function"]["arguments"].to_string().replace(':', ": "),
        });
        Some(Turn {
            calls: calls.collect(),
            ..Turn::new(role, text)
        })
    });
    let tools = ["tools", "xml_tools"].map(|variable| context[variable].as_array());
    let tools = tools.into_iter().flatten().flatten().map(|tool| {
        let function = tool["function"].as_object()?;
        Some(ToolDefinition {
            name: function["name"].as_str()?.to_owned(),
            description: function["description"].as_str()?.to_owned(),
            parameters: function["parameters"].clone(),
            code: None,
        })
    });
    Some(Conversation {
        messages: messages.collect::<Option<_>>()?,
        instructions: context["custom_instructions"].as_str().map(str::to_owned),
        thinking: context["enable_thinking"].as_bool().unwrap_or(true),
        tools: tools.collect::<Option<_>>()?,
        today: TODAY,
    })
}

/// Variables of a conversation with a call, its result, and another question.
fn context_with_calls(calls: usize) -> Value {
    let call = json!({"function": {"name": "calculate", "arguments": {"expression": "6*7"}}});
    let result = json!({"role": "tool", "content": "42"});
    let mut messages = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "What is 6 * 7?"}),
        json!({"role": "assistant", "content": "", "tool_calls": vec![call; calls]}),
    ];
    messages.extend(vec![result; calls]);
    messages.extend([
        json!({"role": "assistant", "content": "42."}),
        json!({"role": "user", "content": "Thanks"}),
    ]);
    json!({
        "messages": messages,
        "tools": [{"type": "function", "function": {
            "name": "calculate",
            "description": "Evaluate an expression",
            "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}},
        }}],
        "enable_thinking": false,
        "add_generation_prompt": true,
        "bos_token": "<|begin_of_text|>",
        "tools_in_user_message": false,
    })
}

#[test]
fn calls_and_results_stand_in_a_prompt_as_the_published_templates_write_them() {
    let tokenizer = tokenizer();
    for (name, calls) in [("qwen2", 1), ("qwen2", 2), ("qwen3", 2), ("llama3", 1)] {
        let Some(published) = reference::published(name, name) else {
            return;
        };
        let context = context_with_calls(calls);
        let source = ChatTemplate::parse(&published.source).expect("it compiles");
        let theirs = source.render(&context, TODAY).expect("it renders");
        let conversation = conversation_of(&context).expect("a conversation");
        let encoder = PromptEncoder::new(
            Arc::new(as_published(&published.source)),
            Arc::clone(&tokenizer),
        );
        let prompt = encoder.prompt(&conversation, &NEVER).expect("a prompt");
        let ours = tokenizer.decode(&prompt.ids);
        let [ours, theirs] = [&ours, &theirs].map(|it| it.trim_start_matches("<|begin_of_text|>"));
        assert_eq!(ours, theirs, "{name}");
        let tags = ["<tool_call>", "</tool_call>"].map(|tag| {
            let id = tokenizer.special(tag).expect("a tag");
            prompt.ids.iter().filter(|it| **it == id).count()
        });
        // One pair more is in the instructions, and one in their example.
        let expected = if name == "llama3" { 0 } else { calls + 2 };
        assert_eq!(tags, [expected; 2], "{name}");
    }
}

/// A program with tools, as SmolLM3's code tool has it.
fn with_code_tool(others: usize) -> Conversation {
    let tool = |name: &str, code: Option<&str>| ToolDefinition {
        name: name.to_owned(),
        description: format!("The tool {name}.\nMore."),
        parameters: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
        code: code.map(str::to_owned),
    };
    let run = tool("run_python", Some("code"));
    let others = (0..others).map(|at| tool(&format!("other_{at}"), None));
    let call = ToolCall {
        at: 0,
        name: "run_python".to_owned(),
        arguments: json!({"code": "print(6 * 7)\nprint('</code>')"}).to_string(),
    };
    Conversation {
        messages: vec![
            Turn::new(Role::User, "What is 6 * 7?"),
            Turn {
                calls: vec![call],
                ..Turn::new(Role::Assistant, "")
            },
            Turn::new(Role::Tool, "42"),
        ],
        instructions: None,
        thinking: false,
        tools: others.chain([run]).collect(),
        today: TODAY,
    }
}

#[test]
fn the_code_tool_of_smollm3_lists_the_others_as_functions_and_is_called_without_json() {
    let tokenizer = tokenizer();
    let official = reference::published("smollm3-official", "official");
    let official = official.map(|it| as_published(&it.source));
    for template in [Some(ChatTemplate::built_in()), official]
        .into_iter()
        .flatten()
    {
        let encoder = PromptEncoder::new(Arc::new(template), Arc::clone(&tokenizer));
        let text = assert_whole(&encoder, &with_code_tool(1), "one tool");
        let signature =
            "def other_0(text: str = None) -> str:\n    \"\"\"The tool other_0.\"\"\"\n</tools>";
        assert!(text.contains(signature), "{text}");
        assert!(
            text.contains("'name': 'other_0'") && !text.contains("run_python"),
            "{text}"
        );
        let call = "<code>\nprint(6 * 7)\nprint('</code>')\n</code><|im_end|>";
        assert!(text.contains(call), "{text}");
        let prompt = encoder
            .prompt(&with_code_tool(1), &NEVER)
            .expect("a prompt");
        let close = tokenizer.special("</code>").expect("a tag");
        let closes = prompt.ids.iter().filter(|id| **id == close).count();
        assert_eq!(
            closes, 2,
            "one in the instructions, and one behind the program"
        );
        let text = assert_whole(&encoder, &with_code_tool(0), "no other tool");
        assert!(
            text.contains("<tools>\n# None: only Python itself is there.\n</tools>"),
            "{text}"
        );
        assert!(
            !text.contains("JSON") && !text.contains("<tool_call>"),
            "{text}"
        );
    }
    // A template without a list of functions has it among the others.
    let tiny = as_published(include_str!("../../../tests/fixtures/tiny-smollm3.jinja"));
    let encoder = PromptEncoder::new(Arc::new(tiny), Arc::clone(&tokenizer));
    let text = assert_whole(&encoder, &with_code_tool(1), "tiny");
    assert!(text.contains("'name': 'run_python'"), "{text}");
    assert!(
        text.contains("<tool_call>\n{\"name\": \"run_python\", \"arguments\": {\"code\":"),
        "{text}"
    );
}

#[test]
fn a_file_whose_template_lists_no_tools_has_them_by_goldcrests_own() {
    let Some(unsloth) = reference::published("smollm3-unsloth", "unsloth") else {
        return;
    };
    let template = as_published(&unsloth.source);
    assert!(!template.capabilities().tools && template.can_call_tools());
    let encoder = PromptEncoder::new(Arc::new(template), tokenizer());
    let text = assert_whole(&encoder, &with_code_tool(1), "unsloth");
    assert!(text.contains("'name': 'other_0'"), "{text}");
}
