//! Prompts of the tiny model: what users write stays text, and every prompt extends the one
//! before together with the answer that was generated.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use engine::gguf::write::{self, Field};
use engine::{
    ChatTemplate, Conversation, Gguf, Part, Prompt, PromptError, Role, Tokenizer, Turn,
    encode_prompt,
};
use jiff::civil::Date;
use serde_json::json;

mod answers;
mod messages;

const TODAY: Date = Date::constant(2026, 3, 5);

fn tiny_model() -> (Tokenizer, ChatTemplate) {
    let file = Gguf::open(&testing::tiny_model()).expect("the tiny model");
    let template = file.str("tokenizer.chat_template").expect("a template");
    let template = ChatTemplate::parse(template).expect("a template");
    (Tokenizer::from_gguf(&file).expect("a tokenizer"), template)
}

fn conversation(messages: Vec<Turn>, thinking: bool) -> Conversation {
    Conversation {
        messages,
        instructions: None,
        thinking,
        today: TODAY,
    }
}

fn prompt_of(
    conversation: &Conversation,
    template: &ChatTemplate,
    tokenizer: &Tokenizer,
) -> Result<Prompt, PromptError> {
    encode_prompt(conversation, template, tokenizer, &AtomicBool::new(false))
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

/// A small generator of numbers, the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

const HOSTILE: [&str; 26] = [
    "<|im_end|>",
    "<|im_start|>",
    "<think>",
    "</think>",
    "<",
    "|im_end|>",
    "<|im_",
    "end|>",
    "<<",
    "\u{fdd0}",
    "\u{fdd1}",
    "\u{fdd1}0\u{fdd1}",
    "\u{fdd2}",
    "<\u{fdd0}",
    "/think",
    "/no_think",
    "{{ 7*7 }}",
    "{% if %}",
    "\n",
    "\n\n",
    " ",
    "é",
    "🙂",
    "\u{e000}",
    "\u{10ffff}",
    "plain",
];

fn hostile(random: &mut Random) -> String {
    let pieces = 1 + random.below(12);
    (0..pieces)
        .map(|_| match random.below(4) {
            0 => char::from_u32(u32::try_from(random.below(0x11_0000)).expect("a code"))
                .unwrap_or('\u{fffd}')
                .to_string(),
            _ => HOSTILE[random.below(HOSTILE.len())].to_owned(),
        })
        .collect()
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
    let mut random = Random(7);
    for template in [tiny_template, ChatTemplate::built_in()] {
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
fn content_joined_to_a_templates_text_stays_text() {
    let (tokenizer, _) = tiny_model();
    let asked = |source: &str, text: &str| {
        let template = ChatTemplate::parse(source).expect("a template");
        let conversation = conversation(vec![user(text)], true);
        prompt_of(&conversation, &template, &tokenizer).expect("a prompt")
    };
    let special = |ids: &[u32]| {
        let control = |id: &&u32| {
            let text = std::str::from_utf8(tokenizer.piece(**id));
            text.is_ok_and(|text| tokenizer.special(text) == Some(**id))
        };
        ids.iter().filter(control).count()
    };
    for whole in ["<|im_end|>", "<|im_start|>", "<think>", "</think>"] {
        for from in 0..whole.len() {
            for to in from + 1..=whole.len() {
                let (before, inside, after) = (&whole[..from], &whole[from..to], &whole[to..]);
                for strip in ["", " | trim", ".strip()", ".lstrip('\\n')", ".rstrip()"] {
                    let source = format!("{before}{{{{ messages[-1]['content']{strip} }}}}{after}");
                    let prompt = asked(&source, inside);
                    assert_eq!(tokenizer.decode(&prompt.ids), whole, "{source}");
                    assert_eq!(special(&prompt.ids), 0, "{source} over {inside:?}");
                    if strip.contains("tri") && !strip.contains("\\n") {
                        let prompt = asked(&source, &format!(" {inside}\n"));
                        assert_eq!(special(&prompt.ids), 0, "{source} over {inside:?} in space");
                    }
                }
            }
        }
    }
    // Two pieces of content, with nothing between them.
    let source = "{{ messages[-1]['content'] }}{{ messages[-1]['content'] }}";
    for text in [
        "<|im_end|><|im_end|",
        "|im_end|><",
        "\u{fdd0}",
        ">",
        "think",
    ] {
        let prompt = asked(source, text);
        assert_eq!(special(&prompt.ids), 0, "{text:?}");
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
        assert_eq!(prompt.starts_in == Part::Thinking, opened);
    }
}

#[test]
fn instructions_do_not_switch_the_mode() {
    let (tokenizer, tiny_template) = tiny_model();
    for template in [tiny_template, ChatTemplate::built_in()] {
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
    for template in [template, ChatTemplate::built_in()] {
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
    let tokenizer = Tokenizer::from_gguf(&file).expect("a tokenizer");
    for source in ["{{ bos_token }}hi", "hi"] {
        let template = ChatTemplate::parse(source).expect("a template");
        let asked = conversation(vec![user("Hi")], false);
        let prompt = prompt_of(&asked, &template, &tokenizer).expect("a prompt");
        assert_eq!(prompt.ids[0], begin, "{source}");
        assert_eq!(count(&prompt.ids, begin), 1, "{source}");
    }
}

#[test]
fn a_template_that_reads_answers_gets_them_as_text() {
    let (tokenizer, _) = tiny_model();
    let template = ChatTemplate::parse("{% for m in messages %}{{ m.content[:2] }};{% endfor %}");
    let turn = generated(tokenizer.encode("answer", true), "", "answer");
    let prompt = conversation(vec![user("hi"), turn], true);
    let prompt = prompt_of(&prompt, &template.expect("a template"), &tokenizer).expect("a prompt");
    assert_eq!(tokenizer.decode(&prompt.ids), "hi;an;");
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
    let stopped = encode_prompt(&talk, &template, &tokenizer, &stop);
    assert!(
        matches!(stopped, Err(PromptError::Cancelled)),
        "{stopped:?}"
    );
    let whole = encode_prompt(&talk, &template, &tokenizer, &AtomicBool::new(false));
    assert!(whole.expect("a prompt").ids.len() > 50_000);
}
