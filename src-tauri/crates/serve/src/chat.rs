//! `POST /v1/chat/completions`.

use std::collections::VecDeque;

use api::{
    ApiEnd, ApiUsage, Generation, GenerationPrompt, RefusedPart, TextPart, ToServer, TokenLogprob,
};
use axum::extract::{Request, State};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::error::HttpError;
use crate::fields::JsonFields;
use crate::logprobs;
use crate::messages;
use crate::reply::json as as_json;
use crate::requests::{ApiAnswers, JsonRequest, add, id, now, usage};
use crate::sampling::{
    MOST_CHOICES, MOST_LOGPROBS, sampling, sends_usage, stops, thinking, tokens,
};
use crate::state::RouteState;
use crate::streaming::{EventFormat, done, event, failed, stream};

pub async fn answer(
    State(served): State<RouteState>,
    request: Request,
) -> Result<Response, HttpError> {
    let request = JsonRequest::of(request).await?;
    let client = request.client()?;
    let Wanted {
        generation,
        choices,
        streams,
        sends_usage,
    } = request.read(Wanted::read)?;
    let reports_logprobs = generation.logprobs.is_some();
    let requests = vec![generation];
    let (model, answers) = ApiAnswers::begin(&served, &client, requests, choices, field_of).await?;
    let head = Head {
        id: id("chatcmpl-"),
        created: now(),
        model,
    };
    if streams {
        let format = ChunkFormat {
            head,
            sends_usage,
            reports_logprobs,
            begun: vec![false; choices],
            calls: vec![0; choices],
            usage: ApiUsage::default(),
        };
        return Ok(stream(answers, format));
    }
    let whole = whole(answers, &head, choices, reports_logprobs).await?;
    Ok(as_json(&whole).into_response())
}

/// Returns the field of a part of a request.
fn field_of(part: RefusedPart) -> &'static str {
    match part {
        RefusedPart::Prompt => "messages",
        RefusedPart::Form => "response_format",
        RefusedPart::Tools => "tools",
    }
}

/// A request of this route.
struct Wanted {
    generation: Generation,
    choices: usize,
    streams: bool,
    sends_usage: bool,
}

impl Wanted {
    fn read(fields: &JsonFields<'_>) -> Result<Wanted, HttpError> {
        let tools = messages::tools(fields)?;
        let format = messages::schema(fields.object("response_format")?)?;
        let form = messages::form(fields, &tools, format)?;
        let effort = thinking(fields.text("reasoning_effort")?);
        let (mut thinks, thinking_budget) = effort.ok_or_else(|| {
            fields.wrong(
                "reasoning_effort",
                "This has to be none, minimal, low, medium or high.",
            )
        })?;
        if let Some(template) = fields.object("chat_template_kwargs")? {
            thinks = template.flag("enable_thinking")?.or(thinks);
        }
        let most = tokens(fields, "max_completion_tokens")?;
        let max_tokens = most.or(tokens(fields, "max_tokens")?);
        let likeliest = fields.count("top_logprobs", 0..=MOST_LOGPROBS)?;
        let logprobs = fields
            .flag("logprobs")?
            .unwrap_or(false)
            .then(|| likeliest.unwrap_or(0) as usize);
        Ok(Wanted {
            choices: fields.count("n", 1..=MOST_CHOICES)?.unwrap_or(1) as usize,
            streams: fields.flag("stream")?.unwrap_or(false),
            sends_usage: sends_usage(fields)?,
            generation: Generation {
                prompt: GenerationPrompt::Conversation {
                    messages: messages::messages(fields)?,
                    tools,
                    thinking: thinks,
                },
                form,
                sampling: sampling(fields)?,
                max_tokens,
                thinking_budget,
                stop: stops(fields)?,
                logprobs,
            },
        })
    }
}

/// Fields that all events of an answer share.
struct Head {
    id: String,
    created: u64,
    model: String,
}

/// Returns the name of a reason for the end.
pub fn finish(reason: ApiEnd) -> &'static str {
    match reason {
        ApiEnd::Stop => "stop",
        ApiEnd::Calls => "tool_calls",
        ApiEnd::Length => "length",
    }
}

fn call(name: &str, arguments: &str) -> Value {
    json!({
        "id": id("call_"),
        "type": "function",
        "function": { "name": name, "arguments": arguments },
    })
}

/// An answer that is not streamed.
#[derive(Default)]
struct Collected {
    text: String,
    thinking: String,
    calls: Vec<Value>,
    logprobs: Vec<TokenLogprob>,
    reason: Option<ApiEnd>,
}

/// Returns the object of whole answers.
async fn whole(
    mut answers: ApiAnswers,
    head: &Head,
    choices: usize,
    reports_logprobs: bool,
) -> Result<Value, HttpError> {
    let mut collected: Vec<Collected> = (0..choices).map(|_| Collected::default()).collect();
    let mut total = ApiUsage::default();
    while let Some((choice, reply)) = answers.next().await {
        let Some(answer) = collected.get_mut(choice) else {
            continue;
        };
        match reply {
            ToServer::Text { text, .. } => {
                let part = match text.part {
                    TextPart::Thinking => &mut answer.thinking,
                    TextPart::Answer => &mut answer.text,
                };
                part.push_str(&text.text);
                answer.logprobs.extend(text.logprobs);
            }
            ToServer::Call {
                name, arguments, ..
            } => answer.calls.push(call(&name, &arguments)),
            ToServer::Ended { reason, usage, .. } => {
                answer.reason = Some(reason);
                add(&mut total, usage);
            }
            ToServer::Refused { why, message, .. } => {
                return Err(HttpError::refused(why, message, field_of));
            }
            _ => {}
        }
    }
    let choices = collected.into_iter().enumerate().map(|(index, answer)| {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        let is_call = answer.text.is_empty() && !answer.calls.is_empty();
        let content = if is_call {
            Value::Null
        } else {
            json!(answer.text)
        };
        message.insert("content".to_owned(), content);
        message.insert("refusal".to_owned(), Value::Null);
        if !answer.thinking.is_empty() {
            message.insert("reasoning_content".to_owned(), json!(answer.thinking));
        }
        if !answer.calls.is_empty() {
            message.insert("tool_calls".to_owned(), json!(answer.calls));
        }
        let logprobs = reports_logprobs
            .then(|| json!({ "content": logprobs::of_chat(&answer.logprobs), "refusal": null }));
        json!({
            "index": index,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": answer.reason.map(finish),
        })
    });
    Ok(json!({
        "id": head.id,
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": choices.collect::<Vec<_>>(),
        "usage": usage(total),
    }))
}

/// Chunks of answers.
struct ChunkFormat {
    head: Head,
    sends_usage: bool,
    reports_logprobs: bool,
    /// True for each answer whose first chunk was sent.
    begun: Vec<bool>,
    /// Number of calls of each answer.
    calls: Vec<usize>,
    usage: ApiUsage,
}

impl ChunkFormat {
    fn chunk(&self, choices: Value, usage: Value) -> Event {
        let mut chunk = json!({
            "id": self.head.id,
            "object": "chat.completion.chunk",
            "created": self.head.created,
            "model": self.head.model,
            "choices": choices,
        });
        if self.sends_usage {
            chunk["usage"] = usage;
        }
        event(&chunk)
    }

    fn delta(
        &self,
        choice: usize,
        delta: &Value,
        logprobs: Option<&[TokenLogprob]>,
        reason: Option<ApiEnd>,
    ) -> Event {
        let logprobs = logprobs
            .filter(|it| self.reports_logprobs && !it.is_empty())
            .map(|it| json!({ "content": logprobs::of_chat(it), "refusal": null }));
        let choice = json!({
            "index": choice,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": reason.map(finish),
        });
        self.chunk(json!([choice]), Value::Null)
    }

    /// Appends the first chunk of an answer.
    fn open(&mut self, choice: usize, out: &mut VecDeque<Event>) {
        if !std::mem::replace(&mut self.begun[choice], true) {
            let delta = json!({ "role": "assistant", "content": "" });
            out.push_back(self.delta(choice, &delta, None, None));
        }
    }
}

impl EventFormat for ChunkFormat {
    fn reply(&mut self, choice: usize, reply: ToServer, out: &mut VecDeque<Event>) {
        self.open(choice, out);
        match reply {
            ToServer::Text { text, .. } => {
                let delta = match text.part {
                    TextPart::Thinking => json!({ "reasoning_content": text.text }),
                    TextPart::Answer => json!({ "content": text.text }),
                };
                out.push_back(self.delta(choice, &delta, Some(&text.logprobs), None));
            }
            ToServer::Call {
                name, arguments, ..
            } => {
                let mut call = call(&name, &arguments);
                call["index"] = json!(self.calls[choice]);
                self.calls[choice] += 1;
                let delta = json!({ "tool_calls": [call] });
                out.push_back(self.delta(choice, &delta, None, None));
            }
            ToServer::Ended { reason, usage, .. } => {
                add(&mut self.usage, usage);
                out.push_back(self.delta(choice, &json!({}), None, Some(reason)));
            }
            ToServer::Refused { why, message, .. } => {
                out.push_back(failed(why, message, field_of));
            }
            _ => {}
        }
    }

    fn end(&mut self, out: &mut VecDeque<Event>) {
        if self.sends_usage {
            out.push_back(self.chunk(json!([]), usage(self.usage)));
        }
        out.push_back(done());
    }
}
