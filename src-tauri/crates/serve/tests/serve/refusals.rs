//! Requests that are refused: by the app, and for a field.

use api::{ApiRefusal, RefusedPart, ToServer};
use serde_json::{Value, json};

use super::program::Program;
use super::routes::{asked, question};

#[test]
fn what_the_app_refuses_is_an_error_of_its_kind() {
    let program = Program::start();
    for (why, status, code) in [
        (ApiRefusal::TooLong, 400, "context_length_exceeded"),
        (ApiRefusal::NoModel, 503, "model_not_loaded"),
        (ApiRefusal::Unsupported(None), 400, "unsupported"),
        (ApiRefusal::Failed, 500, "model_failed"),
    ] {
        for streams in [false, true] {
            let body = json!({ "messages": question(), "stream": streams });
            let (id, _, waiting) = asked(&program, "/v1/chat/completions", body);
            let message = "The reason.".to_owned();
            program.reply(&ToServer::Refused { id, why, message });
            let reply = waiting.reply();
            assert_eq!(reply.status, status);
            let error = &reply.json()["error"];
            assert_eq!(
                (&error["message"], &error["code"]),
                (&json!("The reason."), &json!(code))
            );
        }
    }
    // What has been streamed stays.
    let body = json!({ "messages": question(), "stream": true });
    let (id, _, waiting) = asked(&program, "/v1/chat/completions", body);
    program.begin(id);
    program.say(id, "Half");
    let (why, message) = (ApiRefusal::NoModel, "The model was closed.".to_owned());
    program.reply(&ToServer::Refused { id, why, message });
    let events = waiting.events();
    assert!(
        events[1].contains("Half") && events[2].contains("The model was closed."),
        "{events:?}"
    );
}

#[test]
fn what_the_app_refuses_is_named_as_in_the_request() {
    let program = Program::start();
    let chat = json!({ "messages": question() });
    let response = json!({ "input": "Hi" });
    let text = json!({ "prompt": "a" });
    let unsupported = |part| ApiRefusal::Unsupported(Some(part));
    for (path, body, why, param) in [
        (
            "/v1/chat/completions",
            &chat,
            ApiRefusal::TooLong,
            json!("messages"),
        ),
        (
            "/v1/chat/completions",
            &chat,
            unsupported(RefusedPart::Prompt),
            json!("messages"),
        ),
        (
            "/v1/chat/completions",
            &chat,
            unsupported(RefusedPart::Form),
            json!("response_format"),
        ),
        (
            "/v1/chat/completions",
            &chat,
            unsupported(RefusedPart::Tools),
            json!("tools"),
        ),
        (
            "/v1/chat/completions",
            &chat,
            ApiRefusal::Unsupported(None),
            Value::Null,
        ),
        (
            "/v1/chat/completions",
            &chat,
            ApiRefusal::NoModel,
            Value::Null,
        ),
        (
            "/v1/responses",
            &response,
            ApiRefusal::TooLong,
            json!("input"),
        ),
        (
            "/v1/responses",
            &response,
            unsupported(RefusedPart::Form),
            json!("text.format"),
        ),
        (
            "/v1/completions",
            &text,
            ApiRefusal::TooLong,
            json!("prompt"),
        ),
    ] {
        let (id, _, waiting) = asked(&program, path, body.clone());
        let message = "The reason.".to_owned();
        program.reply(&ToServer::Refused { id, why, message });
        let (named, message) = waiting.reply().error();
        assert_eq!((named, message.as_str()), (param, "The reason."), "{path}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_wrong_field_is_named() {
    let program = Program::start();
    let chat = |more: Value| {
        let mut body = json!({ "messages": question() });
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    for (path, body, param) in [
        ("/v1/chat/completions", json!([]), "body"),
        ("/v1/chat/completions", json!({}), "messages"),
        (
            "/v1/chat/completions",
            chat(json!({ "temperature": "hot" })),
            "temperature",
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "temperature": 3 })),
            "temperature",
        ),
        ("/v1/chat/completions", chat(json!({ "n": 0 })), "n"),
        ("/v1/chat/completions", chat(json!({ "n": 1000 })), "n"),
        ("/v1/chat/completions", chat(json!({ "stop": 7 })), "stop"),
        (
            "/v1/chat/completions",
            chat(json!({ "stream": "yes" })),
            "stream",
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "max_tokens": -1 })),
            "max_tokens",
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "top_logprobs": 50 })),
            "top_logprobs",
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "reasoning_effort": "extreme" })),
            "reasoning_effort",
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "response_format": { "type": "xml" } })),
            "response_format.type",
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "response_format": { "type": "json_schema", "json_schema": {} } })),
            "response_format.json_schema.schema",
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "tools": [{ "type": "function", "function": { "name": "a b" } }] })),
            "tools[0].function.name",
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "tool_choice": "required" })),
            "tool_choice",
        ),
        (
            "/v1/chat/completions",
            json!({ "messages": [{ "role": "system", "content": "Be brief." }] }),
            "messages",
        ),
        ("/v1/completions", json!({}), "prompt"),
        (
            "/v1/completions",
            json!({ "prompt": "a", "stream_options": { "include_usage": "yes" } }),
            "stream_options.include_usage",
        ),
        ("/v1/completions", json!({ "prompt": [1, 2] }), "prompt"),
        (
            "/v1/completions",
            json!({ "prompt": "a", "suffix": "b" }),
            "suffix",
        ),
        ("/v1/responses", json!({}), "input"),
        (
            "/v1/responses",
            json!({ "input": "a", "previous_response_id": "r" }),
            "previous_response_id",
        ),
        (
            "/v1/responses",
            json!({ "input": [{ "type": "image" }] }),
            "input[0].type",
        ),
        (
            "/v1/responses",
            json!({ "input": [], "instructions": "Be brief." }),
            "input",
        ),
        (
            "/v1/responses",
            json!({ "input": [{ "role": "developer", "content": "Be brief." }] }),
            "input",
        ),
        (
            "/v1/responses",
            json!({ "input": [{ "type": "function_call_output", "output": { "sum": 3 } }] }),
            "input[0].output",
        ),
        (
            "/v1/responses",
            json!({ "input": [{ "type": "function_call_output", "output": [{ "type": "input_image" }] }] }),
            "input[0].output[0].type",
        ),
        ("/tokenize", json!({}), "text"),
        (
            "/tokenize",
            json!({ "content": "x".repeat(2 << 20) }),
            "content",
        ),
    ] {
        let reply = program.post(path, &body);
        assert_eq!(reply.status, 400, "{param}: {reply:?}");
        let (named, message) = reply.error();
        assert_eq!(named, param, "{message}");
    }
}
