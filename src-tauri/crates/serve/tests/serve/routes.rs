//! Requests and their replies.

use api::{
    AnswerForm, ApiEnd, ApiMessage, ApiText, ApiUsage, FromServer, Generation, GenerationPrompt,
    TextPart, ToServer, TokenLogprob,
};
use serde_json::{Value, json};

use super::program::{Program, post};

/// Sends a request on a thread, and returns the request that reached the app, with its id, and the reply to come.
pub fn asked(program: &Program, path: &str, body: Value) -> (u64, Generation, Waiting) {
    let stream = program.sent(post(path, "", &body.to_string()).as_bytes());
    match program.line() {
        FromServer::Generate { id, request } => (id, *request, Waiting(stream)),
        other => panic!("{other:?}"),
    }
}

pub struct Waiting(std::net::TcpStream);

impl Waiting {
    pub fn reply(mut self) -> super::program::HttpReply {
        super::program::HttpReply::read(&mut self.0)
    }

    /// Returns the data of the events.
    pub fn events(self) -> Vec<String> {
        let reply = self.reply();
        assert_eq!(reply.status, 200, "{reply:?}");
        let lines = reply
            .body
            .lines()
            .filter_map(|it| it.strip_prefix("data: "));
        lines.map(str::to_owned).collect()
    }
}

pub fn question() -> Value {
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
fn the_usage_counts_each_prompt_once() {
    let program = Program::start();
    for streams in [false, true] {
        let body = json!({
            "prompt": ["a", "b"], "n": 2, "stream": streams,
            "stream_options": { "include_usage": true },
        });
        let (id, request, waiting) = asked(&program, "/v1/completions", body);
        let mut all = vec![(id, request)];
        while all.len() < 4 {
            match program.line() {
                FromServer::Generate { id, request } => all.push((id, *request)),
                line => panic!("{line:?}"),
            }
        }
        for (id, request) in all {
            let text = "a".to_owned();
            let is_first = request.prompt == GenerationPrompt::Text { text };
            let (prompt, cached) = if is_first { (10, 4) } else { (20, 8) };
            let usage = ApiUsage {
                prompt,
                cached,
                answer: 5,
                thinking: 0,
            };
            program.begin(id);
            let reason = ApiEnd::Stop;
            program.reply(&ToServer::Ended { id, reason, usage });
        }
        let object: Value = if streams {
            let events = waiting.events();
            serde_json::from_str(&events[events.len() - 2]).expect("JSON")
        } else {
            waiting.reply().json()
        };
        let usage = &object["usage"];
        assert_eq!(
            (&usage["prompt_tokens"], &usage["completion_tokens"]),
            (&json!(30), &json!(20))
        );
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 12);
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
