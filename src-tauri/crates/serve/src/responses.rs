//! `POST /v1/responses`: text, tools and streaming. Nothing is stored, so no response can be referred to later.

use std::collections::VecDeque;

use api::{
    ApiEnd, ApiMessage, ApiTool, ApiUsage, Generation, GenerationPrompt, RefusedPart, TextPart,
    ToServer,
};
use axum::extract::{Request, State};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::HttpError;
use crate::fields::JsonFields;
use crate::messages::{CallResults, checked, form, schema, text_or_parts, tool, with_a_question};
use crate::reply::json as as_json;
use crate::requests::{ApiAnswers, JsonRequest, id, now};
use crate::sampling::{sampling, thinking, tokens};
use crate::state::RouteState;
use crate::streaming::{EventFormat, stream};

pub async fn answer(
    State(served): State<RouteState>,
    request: Request,
) -> Result<Response, HttpError> {
    let request = JsonRequest::of(request).await?;
    let client = request.client()?;
    let (generation, streams, mut output) = request.read(|fields| {
        let streams = fields.flag("stream")?.unwrap_or(false);
        Ok((generation(fields)?, streams, ResponseOutput::new(fields)))
    })?;
    let requests = vec![generation];
    let (model, mut answers) = ApiAnswers::begin(&served, &client, requests, 1, field_of).await?;
    output.response["model"] = json!(model);
    if streams {
        return Ok(stream(answers, output));
    }
    let mut unused = VecDeque::new();
    while let Some((choice, reply)) = answers.next().await {
        if let ToServer::Refused { why, message, .. } = reply {
            return Err(HttpError::refused(why, message, field_of));
        }
        output.reply(choice, reply, &mut unused);
        unused.clear();
    }
    Ok(as_json(&output.object()).into_response())
}

/// Returns the field of a part of a request.
fn field_of(part: RefusedPart) -> &'static str {
    match part {
        RefusedPart::Prompt => "input",
        RefusedPart::Form => "text.format",
        RefusedPart::Tools => "tools",
    }
}

fn generation(fields: &JsonFields<'_>) -> Result<Generation, HttpError> {
    if fields.get("previous_response_id").is_some() {
        return Err(fields.wrong(
            "previous_response_id",
            "Nothing is stored here. Send the whole conversation as input.",
        ));
    }
    let mut tools: Vec<ApiTool> = Vec::new();
    for entry in fields.objects("tools")? {
        if entry.needed_text("type")? != "function" {
            return Err(entry.wrong("type", "Only functions can be called."));
        }
        tools.push(tool(&entry)?);
    }
    let tools = checked(fields, tools)?;
    let text = fields.object("text")?;
    let format = text.map(|it| it.object("format")).transpose()?;
    let form = form(fields, &tools, schema(format.flatten())?)?;
    let reasoning = fields.object("reasoning")?;
    let effort = match &reasoning {
        Some(reasoning) => reasoning.text("effort")?,
        None => None,
    };
    let (thinks, thinking_budget) = thinking(effort).ok_or_else(|| {
        fields.wrong(
            "reasoning.effort",
            "This has to be none, minimal, low, medium or high.",
        )
    })?;
    let mut messages = Vec::new();
    if let Some(text) = fields.text("instructions")? {
        messages.push(ApiMessage::System {
            text: text.to_owned(),
        });
    }
    match fields.get("input") {
        None => return Err(fields.wrong("input", "This is missing.")),
        Some(Value::String(text)) => messages.push(ApiMessage::User { text: text.clone() }),
        Some(_) => {
            let mut results = CallResults::default();
            for item in fields.objects("input")? {
                add_item(&item, &mut messages, &mut results)?;
            }
            results.add_to(&mut messages);
        }
    }
    let messages = with_a_question(fields, "input", messages)?;
    Ok(Generation {
        prompt: GenerationPrompt::Conversation {
            messages,
            tools,
            thinking: thinks,
        },
        form,
        sampling: sampling(fields)?,
        max_tokens: tokens(fields, "max_output_tokens")?,
        thinking_budget,
        stop: Vec::new(),
        logprobs: None,
    })
}

/// Adds an item of the input.
fn add_item(
    item: &JsonFields<'_>,
    messages: &mut Vec<ApiMessage>,
    results: &mut CallResults,
) -> Result<(), HttpError> {
    let kind = item.text("type")?.unwrap_or("message");
    if kind != "function_call_output" {
        results.add_to(messages);
    }
    match kind {
        "message" => {
            let text = text_or_parts(item, "content")?.unwrap_or_default();
            messages.push(match item.needed_text("role")? {
                "system" | "developer" => ApiMessage::System { text },
                "user" => ApiMessage::User { text },
                "assistant" => ApiMessage::Assistant {
                    text,
                    calls: Vec::new(),
                },
                _ => {
                    return Err(item.wrong(
                        "role",
                        "This has to be system, developer, user or assistant.",
                    ));
                }
            });
        }
        "function_call" => {
            let name = item.needed_text("name")?.to_owned();
            let arguments = item.text("arguments")?.unwrap_or("{}").to_owned();
            results.called(item.text("call_id")?.unwrap_or_default());
            match messages.last_mut() {
                Some(ApiMessage::Assistant { calls, .. }) => calls.push((name, arguments)),
                _ => messages.push(ApiMessage::Assistant {
                    text: String::new(),
                    calls: vec![(name, arguments)],
                }),
            }
        }
        "function_call_output" => {
            let text = text_or_parts(item, "output")?;
            let text = text.ok_or_else(|| item.wrong("output", "This is missing."))?;
            results.push(item.text("call_id")?, text);
        }
        // Of an earlier answer. Models read answers without their thinking.
        "reasoning" => {}
        _ => return Err(item.wrong("type", "This kind of input is not known here.")),
    }
    Ok(())
}

/// A response as it grows, and its events.
struct ResponseOutput {
    response: Value,
    /// Its output so far.
    items: Vec<Value>,
    /// The part that is being written, whose item is the last one.
    open: Option<TextPart>,
    /// Number of events so far.
    sequence: u64,
}

impl ResponseOutput {
    fn new(fields: &JsonFields<'_>) -> ResponseOutput {
        let asked = |name: &str| fields.get(name).cloned();
        let response = json!({
            "id": id("resp_"),
            "object": "response",
            "created_at": now(),
            "status": "in_progress",
            "error": null,
            "incomplete_details": null,
            "instructions": asked("instructions"),
            "max_output_tokens": asked("max_output_tokens"),
            "metadata": asked("metadata").unwrap_or_else(|| json!({})),
            "model": "",
            "parallel_tool_calls": asked("parallel_tool_calls").unwrap_or(json!(true)),
            "previous_response_id": null,
            "reasoning": asked("reasoning"),
            "store": false,
            "temperature": asked("temperature"),
            "text": asked("text").unwrap_or_else(|| json!({ "format": { "type": "text" } })),
            "tool_choice": asked("tool_choice").unwrap_or(json!("auto")),
            "tools": asked("tools").unwrap_or_else(|| json!([])),
            "top_p": asked("top_p"),
            "truncation": "disabled",
            "usage": null,
        });
        ResponseOutput {
            response,
            items: Vec::new(),
            open: None,
            sequence: 0,
        }
    }

    fn event(&mut self, kind: &str, mut data: Value, out: &mut VecDeque<Event>) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        out.push_back(Event::default().event(kind).data(data.to_string()));
    }

    /// Returns the response as it is now.
    fn object(&self) -> Value {
        let mut response = self.response.clone();
        response["output"] = json!(self.items);
        response
    }

    /// Returns the place of the last item.
    fn place(&self) -> Value {
        let last = self.items.last().map_or(Value::Null, |it| it["id"].clone());
        let at = self.items.len().saturating_sub(1);
        json!({ "item_id": last, "output_index": at, "content_index": 0 })
    }

    fn add(&mut self, item: Value, out: &mut VecDeque<Event>) {
        self.items.push(item.clone());
        let at = self.items.len() - 1;
        let added = json!({ "output_index": at, "item": item });
        self.event("response.output_item.added", added, out);
    }

    /// Begins with a part, unless it is being written.
    fn open(&mut self, part: TextPart, out: &mut VecDeque<Event>) {
        if self.open == Some(part) {
            return;
        }
        self.close("completed", out);
        self.open = Some(part);
        match part {
            TextPart::Thinking => {
                let item = json!({ "id": id("rs_"), "type": "reasoning", "status": "in_progress", "summary": [], "content": [] });
                self.add(item, out);
            }
            TextPart::Answer => {
                let item = json!({ "id": id("msg_"), "type": "message", "status": "in_progress", "role": "assistant", "content": [] });
                self.add(item, out);
            }
        }
        let empty = text_of(part, "");
        let mut added = self.place();
        added["part"] = empty.clone();
        self.event("response.content_part.added", added, out);
        if let Some(item) = self.items.last_mut() {
            item["content"] = json!([empty]);
        }
    }

    /// Ends the part that is being written, with this status of its item.
    fn close(&mut self, status: &str, out: &mut VecDeque<Event>) {
        let Some(part) = self.open.take() else {
            return;
        };
        let place = self.place();
        let Some(item) = self.items.last_mut() else {
            return;
        };
        item["status"] = json!(status);
        let (item, content) = (item.clone(), item["content"][0].clone());
        let mut done = place.clone();
        done["text"] = content["text"].clone();
        match part {
            TextPart::Thinking => self.event("response.reasoning_text.done", done, out),
            TextPart::Answer => {
                done["logprobs"] = json!([]);
                self.event("response.output_text.done", done, out);
            }
        }
        let mut done = place.clone();
        done["part"] = content;
        self.event("response.content_part.done", done, out);
        let done = json!({ "output_index": place["output_index"], "item": item });
        self.event("response.output_item.done", done, out);
    }

    fn push(&mut self, part: TextPart, text: &str, out: &mut VecDeque<Event>) {
        self.open(part, out);
        if let Some(item) = self.items.last_mut()
            && let Value::String(so_far) = &mut item["content"][0]["text"]
        {
            so_far.push_str(text);
        }
        let mut delta = self.place();
        delta["delta"] = json!(text);
        match part {
            TextPart::Thinking => self.event("response.reasoning_text.delta", delta, out),
            TextPart::Answer => {
                delta["logprobs"] = json!([]);
                self.event("response.output_text.delta", delta, out);
            }
        }
    }

    fn call(&mut self, name: &str, arguments: &str, out: &mut VecDeque<Event>) {
        self.close("completed", out);
        let mut item = json!({
            "id": id("fc_"),
            "type": "function_call",
            "status": "in_progress",
            "call_id": id("call_"),
            "name": name,
            "arguments": "",
        });
        self.add(item.clone(), out);
        let place = self.place();
        let place = |more: Value| {
            let mut object = more;
            object["item_id"] = place["item_id"].clone();
            object["output_index"] = place["output_index"].clone();
            object
        };
        let delta = place(json!({ "delta": arguments }));
        self.event("response.function_call_arguments.delta", delta, out);
        let done = place(json!({ "arguments": arguments, "name": name }));
        self.event("response.function_call_arguments.done", done, out);
        item["arguments"] = json!(arguments);
        item["status"] = json!("completed");
        let at = self.items.len() - 1;
        self.items[at] = item.clone();
        let done = json!({ "output_index": at, "item": item });
        self.event("response.output_item.done", done, out);
    }

    fn ended(&mut self, reason: ApiEnd, usage: ApiUsage, out: &mut VecDeque<Event>) {
        let (status, kind) = match reason {
            ApiEnd::Length => ("incomplete", "response.incomplete"),
            ApiEnd::Stop | ApiEnd::Calls => ("completed", "response.completed"),
        };
        self.close(status, out);
        self.response["usage"] = json!({
            "input_tokens": usage.prompt,
            "input_tokens_details": { "cached_tokens": usage.cached },
            "output_tokens": usage.answer,
            "output_tokens_details": { "reasoning_tokens": usage.thinking },
            "total_tokens": usage.prompt + usage.answer,
        });
        self.response["status"] = json!(status);
        if reason == ApiEnd::Length {
            self.response["incomplete_details"] = json!({ "reason": "max_output_tokens" });
        }
        let last = json!({ "response": self.object() });
        self.event(kind, last, out);
    }
}

impl EventFormat for ResponseOutput {
    fn begin(&mut self, out: &mut VecDeque<Event>) {
        for kind in ["response.created", "response.in_progress"] {
            let response = json!({ "response": self.object() });
            self.event(kind, response, out);
        }
    }

    fn reply(&mut self, _: usize, reply: ToServer, out: &mut VecDeque<Event>) {
        match reply {
            ToServer::Text { text, .. } => self.push(text.part, &text.text, out),
            ToServer::Call {
                name, arguments, ..
            } => self.call(&name, &arguments, out),
            ToServer::Ended { reason, usage, .. } => self.ended(reason, usage, out),
            ToServer::Refused { why, message, .. } => {
                self.close("incomplete", out);
                let error = HttpError::refused(why, message, field_of);
                self.response["status"] = json!("failed");
                self.response["error"] =
                    json!({ "code": "server_error", "message": error.message });
                let failed = json!({ "response": self.object() });
                self.event("response.failed", failed, out);
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &mut VecDeque<Event>) {}
}

/// Makes the content of an item.
fn text_of(part: TextPart, text: &str) -> Value {
    match part {
        TextPart::Thinking => json!({ "type": "reasoning_text", "text": text }),
        TextPart::Answer => {
            json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
        }
    }
}
