//! Requests and their replies.

use api::{
    AnswerForm, ApiEnd, ApiMessage, ApiRefusal, ApiText, ApiUsage, FromServer, Generation,
    GenerationPrompt, TextPart, ToServer, TokenLogprob,
};
use serde_json::{Value, json};

use super::program::{Program, post};

/// Sends a request on a thread, and returns the request that reached the app, with its id, and the reply to come.
fn asked(program: &Program, path: &str, body: Value) -> (u64, Generation, Waiting) {
    let stream = program.sent(post(path, "", &body.to_string()).as_bytes());
    match program.line() {
        FromServer::Generate { id, request } => (id, *request, Waiting(stream)),
        other => panic!("{other:?}"),
    }
}

struct Waiting(std::net::TcpStream);

impl Waiting {
    fn reply(mut self) -> super::program::HttpReply {
        super::program::HttpReply::read(&mut self.0)
    }

    /// Returns the data of the events.
    fn events(self) -> Vec<String> {
        let reply = self.reply();
        assert_eq!(reply.status, 200, "{reply:?}");
        let lines = reply
            .body
            .lines()
            .filter_map(|it| it.strip_prefix("data: "));
        lines.map(str::to_owned).collect()
    }
}

fn question() -> Value {
    json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "Hi" }])
}

#[test]
fn a_chat_request_reaches_the_app_with_all_its_fields() {
    let program = Program::start();
    let tool = json!({ "type": "function", "function": { "name": "add", "description": "Adds", "parameters": { "type": "object" } } });
    let body = json!({
        "model": "any", "messages": question(), "tools": [tool], "tool_choice": "required",
        "parallel_tool_calls": false, "stop": ["\n\n", "END"], "max_tokens": 7,
        "max_completion_tokens": 9, "temperature": 0.5, "top_p": 0.75, "top_k": 5, "min_p": 0.25,
        "seed": 3, "logprobs": true, "top_logprobs": 2, "reasoning_effort": "low",
        "chat_template_kwargs": { "enable_thinking": false }, "unknown": [1],
    });
    let (id, request, waiting) = asked(&program, "/v1/chat/completions", body);
    let GenerationPrompt::Conversation {
        messages,
        tools,
        thinking,
    } = &request.prompt
    else {
        panic!("{request:?}")
    };
    assert_eq!(messages.len(), 2);
    assert_eq!(
        messages[1],
        ApiMessage::User {
            text: "Hi".to_owned()
        }
    );
    assert_eq!((tools[0].name.as_str(), *thinking), ("add", Some(false)));
    let form = AnswerForm::Calls {
        required: true,
        only: None,
        single: true,
    };
    assert_eq!(request.form, form);
    assert_eq!(request.stop, ["\n\n", "END"]);
    assert_eq!(
        (request.max_tokens, request.thinking_budget),
        (Some(9), Some(1024))
    );
    let sampling = request.sampling;
    assert_eq!(
        (sampling.temperature, sampling.top_p),
        (Some(0.5), Some(0.75))
    );
    assert_eq!(
        (sampling.top_k, sampling.min_p, sampling.seed),
        (Some(5), Some(0.25), Some(3))
    );
    assert_eq!(request.logprobs, Some(2));
    program.answer(id, "Hello");
    let reply = waiting.reply().json();
    assert_eq!(reply["choices"][0]["message"]["content"], "Hello");
    assert_eq!(reply["model"], "Tiny");
}

#[test]
fn a_whole_answer_has_its_parts_and_figures() {
    let program = Program::start();
    let body = json!({ "messages": question(), "logprobs": true });
    let (id, _, waiting) = asked(&program, "/v1/chat/completions", body);
    program.begin(id);
    let logprob = TokenLogprob {
        bytes: "né".into(),
        logprob: -1.5,
        top: vec![(b"n".to_vec(), -0.5)],
    };
    for (part, text) in [(TextPart::Thinking, "Hm."), (TextPart::Answer, "né")] {
        let logprobs = vec![logprob.clone(); usize::from(part == TextPart::Answer)];
        let text = ApiText {
            part,
            text: text.to_owned(),
            logprobs,
        };
        program.reply(&ToServer::Text { id, text });
    }
    let call = |name: &str| ToServer::Call {
        id,
        name: name.to_owned(),
        arguments: r#"{"a":1}"#.to_owned(),
    };
    program.reply(&call("add"));
    program.reply(&call("subtract"));
    let usage = ApiUsage {
        prompt: 10,
        cached: 4,
        answer: 5,
        thinking: 2,
    };
    let reason = ApiEnd::Calls;
    program.reply(&ToServer::Ended { id, reason, usage });
    let reply = waiting.reply().json();
    let choice = &reply["choices"][0];
    assert_eq!(choice["message"]["reasoning_content"], "Hm.");
    assert_eq!(choice["message"]["content"], "né");
    let calls = choice["message"]["tool_calls"].as_array().expect("calls");
    assert_eq!(calls[1]["function"]["name"], "subtract");
    assert_eq!(calls[1]["function"]["arguments"], r#"{"a":1}"#);
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    assert_eq!(choice["finish_reason"], "tool_calls");
    let token = &choice["logprobs"]["content"][0];
    assert_eq!(
        (&token["token"], &token["logprob"]),
        (&json!("né"), &json!(-1.5))
    );
    assert_eq!(token["bytes"], json!("né".as_bytes()));
    assert_eq!(token["top_logprobs"][0]["token"], "n");
    assert_eq!(reply["usage"]["total_tokens"], 15);
    assert_eq!(reply["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
    assert_eq!(
        reply["usage"]["completion_tokens_details"]["reasoning_tokens"],
        2
    );
}

#[test]
fn a_streamed_answer_comes_in_chunks() {
    let program = Program::start();
    let body = json!({ "messages": question(), "stream": true, "stream_options": { "include_usage": true } });
    let (id, _, waiting) = asked(&program, "/v1/chat/completions", body);
    program.answer(id, "One two");
    let events = waiting.events();
    assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
    let chunks: Vec<Value> = events[..events.len() - 1]
        .iter()
        .map(|it| serde_json::from_str(it).expect("JSON"))
        .collect();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(chunks[1]["choices"][0]["delta"]["content"], "One two");
    assert_eq!(chunks[2]["choices"][0]["finish_reason"], "stop");
    assert_eq!(chunks[3]["choices"], json!([]));
    assert_eq!(chunks[3]["usage"]["total_tokens"], 0);
    assert!(chunks.iter().all(|it| it["id"] == chunks[0]["id"]));
}

#[test]
fn several_answers_have_seeds_of_their_own() {
    let program = Program::start();
    let body = json!({ "messages": question(), "n": 2, "seed": 5 });
    let (first, request, waiting) = asked(&program, "/v1/chat/completions", body);
    let (second, other) = match program.line() {
        FromServer::Generate { id, request } => (id, request),
        line => panic!("{line:?}"),
    };
    let mut seeds = [request.sampling.seed, other.sampling.seed];
    seeds.sort();
    assert_eq!(seeds, [Some(5), Some(6)]);
    program.answer(second, "b");
    program.answer(first, "a");
    let reply = waiting.reply().json();
    let choices = reply["choices"].as_array().expect("a list");
    let mut texts: Vec<&Value> = choices.iter().map(|it| &it["message"]["content"]).collect();
    texts.sort_by_key(|it| it.to_string());
    assert_eq!(texts, ["a", "b"]);
    assert_eq!(
        (&choices[0]["index"], &choices[1]["index"]),
        (&json!(0), &json!(1))
    );
}

#[test]
fn plain_text_is_continued() {
    let program = Program::start();
    let body = json!({ "prompt": "Once", "echo": true, "logprobs": 1, "stop": "." });
    let (id, request, waiting) = asked(&program, "/v1/completions", body);
    let text = "Once".to_owned();
    assert_eq!(request.prompt, GenerationPrompt::Text { text });
    assert_eq!((request.max_tokens, request.logprobs), (Some(16), Some(1)));
    program.answer(id, " upon");
    let reply = waiting.reply().json();
    assert_eq!(reply["choices"][0]["text"], "Once upon");
    assert_eq!(reply["object"], "text_completion");
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
    let events = waiting.events();
    let events: Vec<Value> = events
        .iter()
        .map(|it| serde_json::from_str(it).expect("JSON"))
        .collect();
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
fn what_the_app_refuses_is_an_error_of_its_kind() {
    let program = Program::start();
    for (why, status, code) in [
        (ApiRefusal::TooLong, 400, "context_length_exceeded"),
        (ApiRefusal::NoModel, 503, "model_not_loaded"),
        (ApiRefusal::Unsupported, 400, "unsupported"),
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
        ("/v1/completions", json!({}), "prompt"),
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

#[test]
fn the_model_its_tokens_and_the_figures_can_be_asked_for() {
    let program = Program::start();
    let key = format!("Authorization: Bearer {}\r\n", super::program::KEY);
    let head =
        format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{key}\r\n");
    let models = Waiting(program.sent(head.as_bytes()));
    let FromServer::Model { id } = program.line() else {
        panic!("it asks for the model")
    };
    let name = Some("Tiny".to_owned());
    let context = Some(2048);
    program.reply(&ToServer::Model { id, name, context });
    assert_eq!(models.reply().json()["data"][0]["id"], "Tiny");
    let body = json!({ "content": "Hi" }).to_string();
    let tokens = Waiting(program.sent(post("/tokenize", "", &body).as_bytes()));
    let FromServer::Tokenize { id, text } = program.line() else {
        panic!("it asks for tokens")
    };
    assert_eq!(text, "Hi");
    let tokens_of = vec![7, 8];
    program.reply(&ToServer::Tokens {
        id,
        tokens: tokens_of,
    });
    assert_eq!(
        tokens.reply().json(),
        json!({ "tokens": [7, 8], "count": 2 })
    );
    assert_eq!(program.get("/health", "").json(), json!({ "status": "ok" }));
    let metrics = program.get("/metrics", &key);
    let line = "goldcrest_requests_total{path=\"/v1/models\",status=\"200\"} 1";
    assert!(metrics.body.contains(line), "{}", metrics.body);
    assert!(metrics.body.contains("goldcrest_running 0"));
    assert_eq!(program.get("/v2/nothing", &key).status, 404);
    assert_eq!(program.get("/v1/chat/completions", &key).status, 405);
}
