//! Prompts of the tiny model: what users write stays text, and every prompt extends the one
//! before together with the answer that was generated.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::gguf::write::{self, Field};
use engine::{
    ChatTemplate, Conversation, Gguf, Prompt, PromptEncoder, PromptError, Role, TokenKind,
    Tokenizer, Turn,
};
use jiff::civil::Date;
use serde_json::json;
use testing::{Lcg, hostile};

mod answers;
mod messages;

const TODAY: Date = Date::constant(2026, 3, 5);

fn tiny_model() -> (Arc<Tokenizer>, Arc<ChatTemplate>) {
    let file = Gguf::open(&testing::tiny_model()).expect("the tiny model");
    let template = file.str("tokenizer.chat_template").expect("a template");
    let template = ChatTemplate::parse(template).expect("a template");
    let tokenizer = Tokenizer::from_gguf(&file).expect("a tokenizer");
    (Arc::new(tokenizer), Arc::new(template))
}

fn built_in() -> Arc<ChatTemplate> {
    Arc::new(ChatTemplate::built_in())
}

fn conversation(messages: Vec<Turn>, thinking: bool) -> Conversation {
    Conversation {
        messages,
        instructions: None,
        thinking,
        tools: std::sync::Arc::default(),
        today: TODAY,
    }
}

fn prompt_of(
    conversation: &Conversation,
    template: &Arc<ChatTemplate>,
    tokenizer: &Arc<Tokenizer>,
) -> Result<Prompt, PromptError> {
    let encoder = PromptEncoder::new(Arc::clone(template), Arc::clone(tokenizer));
    encoder.prompt(conversation, &AtomicBool::new(false))
}

fn user(text: &str) -> Turn {
    Turn::new(Role::User, text)
}

fn generated(ids: Vec<u32>, thinking: &str, text: &str) -> Turn {
    Turn {
        ids: Some(ids),
        thinking: Some(thinking.to_owned()),
        ..Turn::new(Role::Assistant, text)
    }
}

fn count(ids: &[u32], id: u32) -> usize {
    ids.iter().filter(|&&other| other == id).count()
}

/// Content with the same place in the protocol and nothing in it to take for structure.
const MILD: &str = "mild";

#[test]
fn content_never_becomes_structure() {
    let (tokenizer, tiny_template) = tiny_model();
    let specials: Vec<u32> = (0..u32::try_from(tokenizer.vocabulary_size()).expect("ids"))
        .filter(|&id| {
            std::str::from_utf8(tokenizer.piece(id))
                .is_ok_and(|text| tokenizer.special(text) == Some(id))
        })
        .collect();
    assert_eq!(specials.len(), 13);
    let mut random = Lcg(7);
    for template in [tiny_template, built_in()] {
        for round in 0..400 {
            let thinking = round % 2 == 0;
            let texts: Vec<String> = (0..5).map(|_| hostile(&mut random)).collect();
            let build = |texts: &[String]| {
                let mut answer = Turn::new(Role::Assistant, texts[1].clone());
                answer.thinking =
                    Some(texts[4].clone()).filter(|text| !text.trim_matches('\n').is_empty());
                let messages = vec![
                    user(&texts[0]),
                    answer,
                    Turn::new(Role::Tool, texts[2].clone()),
                    Turn {
                        open: round % 3 == 0,
                        ..Turn::new(Role::Assistant, texts[1].clone())
                    },
                    user(&texts[0]),
                ];
                let conversation = Conversation {
                    instructions: Some(texts[3].clone()).filter(|text| !text.trim().is_empty()),
                    ..conversation(messages, thinking)
                };
                prompt_of(&conversation, &template, &tokenizer).expect("a prompt")
            };
            let prompt = build(&texts);
            let mild: Vec<String> = texts
                .iter()
                .map(|text| {
                    if text.trim().is_empty() {
                        text.clone()
                    } else {
                        MILD.to_owned()
                    }
                })
                .collect();
            let expected = build(&mild);
            for &special in &specials {
                assert_eq!(
                    count(&prompt.ids, special),
                    count(&expected.ids, special),
                    "{texts:?}: {}",
                    tokenizer.decode(&prompt.ids)
                );
            }
            let text = tokenizer.decode(&prompt.ids);
            assert!(text.contains(&format!("<|im_start|>user\n{}<|im_end|>\n", texts[0])));
            assert!(text.contains(&format!("<|im_start|>user\n{}<|im_end|>\n", texts[2])));
            assert!(text.contains(texts[3].trim_end()), "{texts:?}: {text}");
        }
    }
}

#[test]
fn innocent_prompts_are_the_render_encoded() {
    let (tokenizer, template) = tiny_model();
    for thinking in [true, false] {
        let messages = vec![
            user("What is 2 + 2?"),
            Turn::new(Role::Assistant, "\n4."),
            user("Thanks/think"),
        ];
        let prompt = prompt_of(&conversation(messages, thinking), &template, &tokenizer);
        let prompt = prompt.expect("a prompt");
        let context = json!({
            "messages": [
                {"role": "user", "content": "What is 2 + 2?"},
                {"role": "assistant", "content": "4."},
                {"role": "user", "content": "Thanks/think"},
            ],
            "add_generation_prompt": true,
            "enable_thinking": thinking,
        });
        let render = template.render(&context, TODAY).expect("render");
        assert_eq!(tokenizer.decode(&prompt.ids), render);
        assert_eq!(prompt.ids, tokenizer.encode(&render, true));
        let opened = tokenizer.decode(&prompt.ids).ends_with("<think>\n");
        assert_eq!(prompt.starts_in == TokenKind::Thinking, opened);
    }
}

#[test]
fn instructions_do_not_switch_the_mode() {
    let (tokenizer, tiny_template) = tiny_model();
    for template in [tiny_template, built_in()] {
        for thinking in [true, false] {
            let instructions = "Read /srv/think/notes and /no_think; see /system_override.\n";
            let conversation = Conversation {
                instructions: Some(instructions.to_owned()),
                ..conversation(vec![user("Hi")], thinking)
            };
            let prompt = prompt_of(&conversation, &template, &tokenizer).expect("a prompt");
            let text = tokenizer.decode(&prompt.ids);
            let mode = if thinking {
                "Mode: /think\n"
            } else {
                "Mode: /no_think\n"
            };
            assert!(text.contains(mode), "{text}");
            let block = format!("## Custom Instructions\n\n{}\n\n", instructions.trim_end());
            assert!(text.contains(&block), "{text}");
        }
    }
}

#[test]
fn blank_instructions_are_none() {
    let (tokenizer, template) = tiny_model();
    for template in [template, built_in()] {
        let text = |instructions: Option<&str>| {
            let messages = vec![Turn::new(Role::System, "Speak French."), user("Hi")];
            let conversation = Conversation {
                instructions: instructions.map(str::to_owned),
                ..conversation(messages, false)
            };
            let prompt = prompt_of(&conversation, &template, &tokenizer);
            tokenizer.decode(&prompt.expect("a prompt").ids)
        };
        assert_eq!(text(Some(" \n")), text(None));
    }
}

#[test]
fn newlines_before_an_answer_that_is_known_as_text_are_left_out() {
    let (tokenizer, template) = tiny_model();
    let text = |answer: &str| {
        let turns = vec![user("Hi"), Turn::new(Role::Assistant, answer), user("And?")];
        let prompt = prompt_of(&conversation(turns, false), &template, &tokenizer);
        tokenizer.decode(&prompt.expect("a prompt").ids)
    };
    assert_eq!(text("\n\nYes.\n\nNo."), text("Yes.\n\nNo."));
}

#[test]
fn instructions_stand_before_a_system_message() {
    let (tokenizer, template) = tiny_model();
    let messages = vec![Turn::new(Role::System, "Speak French."), user("Hi")];
    let both = Conversation {
        instructions: Some("Be brief.\n".to_owned()),
        ..conversation(messages, false)
    };
    let prompt = prompt_of(&both, &template, &tokenizer).expect("a prompt");
    let text = tokenizer.decode(&prompt.ids);
    assert!(text.contains("Be brief.\n\nSpeak French."), "{text}");
}

#[test]
fn a_prompt_begins_with_one_begin_of_text() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer.gguf");
    let file = Gguf::open(&path).expect("the fixture");
    let tokenizer = Tokenizer::from_gguf(&file).expect("a tokenizer");
    let begin = tokenizer.special("<|begin_of_text|>").expect("a token");
    let fields = file.keys().filter_map(|key| {
        let field = match key {
            "tokenizer.ggml.add_bos_token" | "tokenizer.ggml.bos_token_id" => return None,
            _ => Field::from_value(&file.get(key)?)?,
        };
        Some((key, field))
    });
    let begins = [
        ("tokenizer.ggml.add_bos_token", Field::Bool(true)),
        ("tokenizer.ggml.bos_token_id", Field::U32(begin)),
    ];
    let image = write::header(fields.chain(begins), &[]);
    let file = Gguf::from_bytes(image).expect("a GGUF");
    let tokenizer = Arc::new(Tokenizer::from_gguf(&file).expect("a tokenizer"));
    const CHAT: &str = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}";
    for source in [format!("{{{{ bos_token }}}}{CHAT}"), CHAT.to_owned()] {
        let template = Arc::new(ChatTemplate::parse(&source).expect("a template"));
        let asked = conversation(vec![user("Hi")], false);
        let prompt = prompt_of(&asked, &template, &tokenizer).expect("a prompt");
        assert_eq!(prompt.ids[0], begin, "{source}");
        assert_eq!(count(&prompt.ids, begin), 1, "{source}");
    }
}

#[test]
fn an_empty_conversation_has_no_prompt() {
    let (tokenizer, template) = tiny_model();
    let empty = conversation(Vec::new(), true);
    assert!(matches!(
        prompt_of(&empty, &template, &tokenizer),
        Err(PromptError::Empty)
    ));
}

#[test]
fn a_prompt_in_the_making_can_be_stopped() {
    let (tokenizer, template) = tiny_model();
    let talk = conversation(vec![user(&"many words ".repeat(50_000))], true);
    let stop = AtomicBool::new(true);
    let encoder = PromptEncoder::new(template, tokenizer);
    let stopped = encoder.prompt(&talk, &stop);
    assert!(
        matches!(stopped, Err(PromptError::Cancelled)),
        "{stopped:?}"
    );
    let whole = encoder.prompt(&talk, &AtomicBool::new(false));
    assert!(whole.expect("a prompt").ids.len() > 50_000);
}
