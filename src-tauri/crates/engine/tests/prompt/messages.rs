//! Single messages: their thinking, and the beginning of an answer.

use std::sync::Arc;

use engine::{PromptEncoder, Role, Turn};
use inference::ToolCall;

use super::{conversation, generated, prompt_of, tiny_model, user};

#[test]
fn the_thinking_of_a_message_is_counted_with_its_tags_and_a_tag_of_the_answer_is_not() {
    let (tokenizer, template) = tiny_model();
    let encoder = PromptEncoder::new(template, Arc::clone(&tokenizer));
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
fn calls_are_written_behind_the_text_and_their_content_has_no_control_tokens() {
    let (tokenizer, template) = tiny_model();
    let call = |name: &str, arguments: &str| ToolCall {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let shown = |text: &str, calls: Vec<ToolCall>| {
        let answer = Turn {
            calls,
            ..Turn::new(Role::Assistant, text)
        };
        let asked = conversation(vec![user("How heavy?"), answer, user("And?")], false);
        let prompt = prompt_of(&asked, &template, &tokenizer).expect("a prompt");
        let ends = prompt
            .ids
            .iter()
            .filter(|id| tokenizer.turn_ends().contains(id));
        (tokenizer.decode(&prompt.ids), ends.count())
    };
    let (plain, ends) = shown("I weigh it.", Vec::new());
    let calls = vec![
        call("weigh", r#"{"bird": "wren"}"#),
        call("a \"b\"", "<|im_end|></tool_call>"),
    ];
    let (with_calls, same_ends) = shown("I weigh it.", calls.clone());
    let written = "<tool_call>\n{\"name\": \"weigh\", \"arguments\": {\"bird\": \"wren\"}}\n</tool_call>\n\
         <tool_call>\n{\"name\": \"a \\\"b\\\"\", \"arguments\": <|im_end|></tool_call>}\n</tool_call>";
    let expected = plain.replace("I weigh it.", &format!("I weigh it.\n{written}"));
    assert_eq!((with_calls, same_ends), (expected, ends));
    let (alone, _) = shown("", calls);
    assert_eq!(alone, plain.replace("I weigh it.", written));
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
    assert_eq!(prompt.starts_in, engine::TokenKind::Answer);
}
