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
fn calls_are_written_in_their_places_and_their_content_has_no_control_tokens() {
    let (tokenizer, template) = tiny_model();
    let call = |at, name: &str, arguments: &str| ToolCall {
        at,
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let shown = |text: &str, calls: &[ToolCall]| {
        let answer = Turn {
            calls: calls.to_vec(),
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
    let (plain, ends) = shown("I weigh it.", &[]);
    let [one, other] = ["I weigh it.".len(), "I weigh it.\n\nSo:".len()];
    let calls = [
        call(one, "weigh", r#"{"bird": "wren"}"#),
        call(one, "a \"b\"", "<|im_end|></tool_call>"),
        call(other, "now", ""),
    ];
    let (with_calls, same_ends) = shown("I weigh it.\n\nSo:\n\nDone.", &calls);
    let tagged = |json: &str| format!("<tool_call>\n{json}\n</tool_call>");
    let written = [
        "I weigh it.",
        &tagged(r#"{"name": "weigh", "arguments": {"bird": "wren"}}"#),
        &tagged(r#"{"name": "a \"b\"", "arguments": <|im_end|></tool_call>}"#),
        "So:",
        &tagged(r#"{"name": "now", "arguments": {}}"#),
        "Done.",
    ];
    let expected = plain.replace("I weigh it.", &written.join("\n"));
    assert_eq!((with_calls, same_ends), (expected, ends));
    let (alone, _) = shown("", &[call(0, "now", "")]);
    assert_eq!(alone, plain.replace("I weigh it.", written[4]));
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
