//! Responses: their input, items and events.

use api::{
    ApiEnd, ApiMessage, ApiRefusal, ApiText, ApiUsage, GenerationPrompt, TextPart, ToServer,
};
use serde_json::{Value, json};

use super::program::Program;
use super::routes::{Waiting, asked};

/// Returns the events.
fn events(waiting: Waiting) -> Vec<Value> {
    let events = waiting.events();
    let events = events
        .iter()
        .map(|it| serde_json::from_str(it).expect("JSON"));
    events.collect()
}

#[test]
fn a_response_has_items_and_events() {
    let program = Program::start();
    let input = json!([
        { "role": "user", "content": [{ "type": "input_text", "text": "Add" }] },
        { "type": "function_call", "call_id": "c", "name": "add", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c", "output": "3" },
    ]);
    let body = json!({ "input": input, "instructions": "Be brief.", "stream": true, "max_output_tokens": 50 });
    let (id, request, waiting) = asked(&program, "/v1/responses", body);
    let GenerationPrompt::Conversation { messages, .. } = &request.prompt else {
        panic!("{request:?}")
    };
    assert_eq!(messages.len(), 4);
    assert_eq!(
        messages[3],
        ApiMessage::Tool {
            text: "3".to_owned()
        }
    );
    program.begin(id);
    let thought = ApiText {
        part: TextPart::Thinking,
        text: "Hm.".to_owned(),
        logprobs: Vec::new(),
    };
    program.reply(&ToServer::Text { id, text: thought });
    program.say(id, "It is ");
    program.say(id, "3.");
    let (name, arguments) = ("add".to_owned(), "{}".to_owned());
    program.reply(&ToServer::Call {
        id,
        name,
        arguments,
    });
    program.end(id);
    let events = events(waiting);
    let kinds: Vec<&str> = events.iter().filter_map(|it| it["type"].as_str()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], json!(at));
    }
    let output = &events.last().expect("the last")["response"]["output"];
    assert_eq!(output[0]["content"][0]["text"], "Hm.");
    assert_eq!(output[1]["content"][0]["text"], "It is 3.");
    assert_eq!(output[2]["arguments"], "{}");
}

#[test]
fn results_in_the_input_of_a_response_stand_in_the_order_of_their_calls() {
    let program = Program::start();
    let call =
        |id: &str| json!({ "type": "function_call", "call_id": id, "name": id, "arguments": "{}" });
    let output = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": id });
    let input = json!([call("a"), call("b"), output("b"), output("a")]);
    let (id, request, _waiting) = asked(&program, "/v1/responses", json!({ "input": input }));
    let GenerationPrompt::Conversation { messages, .. } = &request.prompt else {
        panic!("{request:?}")
    };
    let tool = |text: &str| ApiMessage::Tool {
        text: text.to_owned(),
    };
    assert_eq!(messages[1..], [tool("a"), tool("b")]);
    program.answer(id, "done");
}

#[test]
fn the_result_of_a_call_may_have_parts() {
    let program = Program::start();
    let input = json!([
        { "type": "function_call", "call_id": "a", "name": "a", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "a", "output": [
            { "type": "input_text", "text": "3 " }, { "type": "input_text", "text": "wrens" },
        ] },
    ]);
    let (id, request, _waiting) = asked(&program, "/v1/responses", json!({ "input": input }));
    let GenerationPrompt::Conversation { messages, .. } = &request.prompt else {
        panic!("{request:?}")
    };
    let text = "3 wrens".to_owned();
    assert_eq!(messages[1..], [ApiMessage::Tool { text }]);
    program.answer(id, "done");
}

#[test]
fn an_item_that_is_cut_off_is_incomplete() {
    let program = Program::start();
    let reason = ApiEnd::Length;
    let usage = ApiUsage::default();
    let statuses = |response: &Value| {
        let items = response["output"].as_array().expect("items");
        let statuses = items.iter().map(|it| it["status"].clone());
        statuses.collect::<Vec<_>>()
    };
    let begin = |streams: bool| {
        let body = json!({ "input": "Hi", "stream": streams });
        let (id, _, waiting) = asked(&program, "/v1/responses", body);
        program.begin(id);
        let text = ApiText {
            part: TextPart::Thinking,
            text: "Hm.".to_owned(),
            logprobs: Vec::new(),
        };
        program.reply(&ToServer::Text { id, text });
        program.say(id, "It");
        (id, waiting)
    };
    let (id, waiting) = begin(false);
    program.reply(&ToServer::Ended { id, reason, usage });
    let whole = waiting.reply().json();
    assert_eq!(whole["status"], "incomplete");
    assert_eq!(statuses(&whole), ["completed", "incomplete"]);
    for (is_refused, kind) in [(false, "response.incomplete"), (true, "response.failed")] {
        let (id, waiting) = begin(true);
        if is_refused {
            let (why, message) = (ApiRefusal::Failed, "The device failed.".to_owned());
            program.reply(&ToServer::Refused { id, why, message });
        } else {
            program.reply(&ToServer::Ended { id, reason, usage });
        }
        let events = events(waiting);
        let done: Vec<&Value> = events
            .iter()
            .filter(|it| it["type"] == "response.output_item.done")
            .map(|it| &it["item"]["status"])
            .collect();
        assert_eq!(done, ["completed", "incomplete"]);
        let last = events.last().expect("the last");
        assert_eq!(last["type"], kind);
        assert_eq!(statuses(&last["response"]), ["completed", "incomplete"]);
    }
}
