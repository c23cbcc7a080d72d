//! The ids of a prompt against the whole conversation as the template renders it.

use inference::MessageFrame;
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
    for (at, turn) in rest.iter().enumerate() {
        let goes_on = open.is_some() && at + 1 == rest.len();
        let unit = Unit {
            around: &verbatim,
            thinking: conversation.thinking,
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
        .template
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
        today: TODAY,
    }
}

fn any_answer(random: &mut Lcg, tokenizer: &Tokenizer) -> Turn {
    let thinking = (random.below(2) == 0).then(|| hostile(random));
    let text = hostile(random);
    let written = match &thinking {
        Some(thinking) => format!("<think>\n{thinking}\n</think>\n{text}"),
        None => text.clone(),
    };
    let ids = (random.below(2) == 0).then(|| tokenizer.encode(&written, true));
    Turn {
        thinking,
        ids,
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
        let encoder = PromptEncoder::new(template, Arc::clone(&tokenizer));
        let mut compared = 0;
        for case in published.cases {
            let Some(conversation) = conversation_of(&case.context) else {
                continue;
            };
            let place = format!("{name}: {}", case.name);
            let text = assert_whole(&encoder, &conversation, &place);
            // Instructions and a system message stand together, while the template chooses.
            let system = conversation.messages[0].role == Role::System;
            if conversation.instructions.is_none() || !system {
                let begin = "<|begin_of_text|>";
                let [ours, theirs] =
                    [&text, &case.rendered].map(|it| it.strip_prefix(begin).unwrap_or(it));
                assert_eq!(ours, theirs, "{place}");
                compared += 1;
            }
        }
        assert!(compared > 0, "{name}");
    }
}

/// The conversation of a render's variables; `None` if it lists tools or begins no answer.
fn conversation_of(context: &Value) -> Option<Conversation> {
    let lists_tools = ["tools", "xml_tools"]
        .iter()
        .any(|key| !context[key].is_null());
    if lists_tools || context["add_generation_prompt"] != true {
        return None;
    }
    let messages = context["messages"].as_array()?.iter().map(|message| {
        let role = [Role::System, Role::User, Role::Assistant, Role::Tool]
            .into_iter()
            .find(|role| role.name() == message["role"])?;
        Some(Turn::new(role, message["content"].as_str()?))
    });
    Some(Conversation {
        messages: messages.collect::<Option<_>>()?,
        instructions: context["custom_instructions"].as_str().map(str::to_owned),
        thinking: context["enable_thinking"].as_bool().unwrap_or(true),
        today: TODAY,
    })
}
