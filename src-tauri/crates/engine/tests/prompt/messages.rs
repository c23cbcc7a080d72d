//! Messages encoded one by one are the prompt of all of them.

use std::sync::Arc;

use engine::{ChatTemplate, Conversation, MessageEncoder, Role, Tokenizer, Turn};

use super::{HOSTILE, Random, conversation, generated, hostile, prompt_of, tiny_model, user};

/// An answer as the model wrote it, tags in its text included.
fn generated_text(tokenizer: &Tokenizer, text: &str) -> Turn {
    Turn {
        ids: Some(tokenizer.encode(text, true)),
        ..Turn::new(Role::Assistant, text)
    }
}

fn composed(encoder: &MessageEncoder, conversation: &Conversation) -> Vec<u32> {
    let frame = encoder.frame(conversation).expect("a frame");
    let mut ids = frame.head.clone();
    for (at, turn) in conversation.messages.iter().enumerate() {
        let around = match turn.role {
            Role::Assistant => &frame.answer,
            _ => &frame.user,
        };
        if at > 0 {
            ids.extend(&around.opening);
        }
        ids.extend(encoder.message(&frame, turn).ids);
    }
    ids.extend(&frame.tail);
    ids
}

#[test]
fn the_messages_of_a_prompt_can_be_encoded_one_by_one() {
    let (tokenizer, own) = tiny_model();
    let tokenizer = Arc::new(tokenizer);
    let talk = |random: &mut Random| {
        let ids = tokenizer.encode("<think>\nShort.\n</think>\nSix grams.", true);
        let written = Turn {
            thinking: Some("How heavy it is.".to_owned()),
            ..Turn::new(Role::Assistant, "About six grams.")
        };
        vec![
            user("How heavy is a goldcrest?"),
            generated(ids, "Short.", "Six grams."),
            user(&format!("  {}{}", HOSTILE[1], hostile(random))),
            written,
            user("And now?\n\n```\n1 + 1\n```"),
            Turn::new(Role::Assistant, "Two."),
            user("How do I strip the tags?"),
            generated_text(&tokenizer, "Cut `<think>` and `</think>`."),
            user("A question without an answer."),
            user(&hostile(random)),
        ]
    };
    let mut random = Random(7);
    for template in [own, ChatTemplate::built_in()] {
        let template = Arc::new(template);
        let encoder = MessageEncoder::new(Arc::clone(&template), Arc::clone(&tokenizer));
        for thinking in [true, false] {
            for instructions in [
                None,
                Some("Answer in verse, as in /think/about.".to_owned()),
            ] {
                let all = talk(&mut random);
                for count in 1..=all.len() {
                    let conversation = Conversation {
                        instructions: instructions.clone(),
                        ..conversation(all[..count].to_vec(), thinking)
                    };
                    let prompt = prompt_of(&conversation, &template, &tokenizer).expect("a prompt");
                    let composed = composed(&encoder, &conversation);
                    assert_eq!(
                        composed, prompt.ids,
                        "{count} messages, thinking {thinking}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_thinking_of_a_message_is_counted_with_its_tags_and_a_tag_of_the_answer_is_not() {
    let (tokenizer, template) = tiny_model();
    let tokenizer = Arc::new(tokenizer);
    let encoder = MessageEncoder::new(Arc::new(template), Arc::clone(&tokenizer));
    let frame = encoder.frame(&conversation(Vec::new(), true));
    let frame = frame.expect("a frame");
    let count = |text| tokenizer.encode(text, true).len();
    let thought = "<think>\nIs `<think>` meant?\n</think>";
    let said = "\nCut `<think>` and `</think>`.";
    let ids = tokenizer.encode(&format!("{thought}{said}"), true);
    let turn = generated(ids, "Is `<think>` meant?", "Cut `<think>` and `</think>`.");
    let message = encoder.message(&frame, &turn);
    assert_eq!(message.thinking, count(thought));
    // The same from text, in which a tag of the thinking or of the answer has the tokens of typed text.
    let turn = Turn { ids: None, ..turn };
    let message = encoder.message(&frame, &turn);
    let thought = tokenizer.encode("\nIs `<think>` meant?\n", false).len() + 2;
    assert_eq!(message.thinking, thought);
    let unthought = Turn::new(Role::Assistant, "Cut `<think>` and `</think>`.");
    assert_eq!(encoder.message(&frame, &unthought).thinking, 0);
    assert_eq!(encoder.message(&frame, &user("`<think>`")).thinking, 0);
}

#[test]
fn an_answer_can_be_begun_behind_an_empty_thinking() {
    let (tokenizer, template) = tiny_model();
    let begun = Turn {
        open: true,
        thinking: Some(String::new()),
        ..Turn::new(Role::Assistant, "")
    };
    let asked = conversation(vec![user("How heavy?")], true);
    let before = prompt_of(&asked, &template, &tokenizer).expect("a prompt");
    let asked = conversation(vec![user("How heavy?"), begun], true);
    let prompt = prompt_of(&asked, &template, &tokenizer).expect("a prompt");
    let empty = tokenizer.encode("<think>\n\n</think>\n", true);
    let header = prompt
        .ids
        .strip_suffix(&empty[..])
        .expect("an empty thinking");
    // This template opens the thinking.
    assert_eq!(before.ids[..header.len()], *header);
    assert_eq!(prompt.starts_in, engine::Part::Answer);
}
