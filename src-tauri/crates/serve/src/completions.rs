//! `POST /v1/completions`: plain text, without a chat format.

use std::collections::VecDeque;
use std::iter;

use api::{
    AnswerForm, ApiEnd, ApiUsage, Generation, GenerationPrompt, RefusedPart, ToServer, TokenLogprob,
};
use axum::extract::{Request, State};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::chat::finish;
use crate::error::HttpError;
use crate::fields::JsonFields;
use crate::logprobs;
use crate::reply::json as as_json;
use crate::requests::{ApiAnswers, JsonRequest, add, id, now, sum, usage};
use crate::sampling::{MOST_CHOICES, sampling, sends_usage, stops, tokens};
use crate::state::RouteState;
use crate::streaming::{EventFormat, done, event, failed, stream};

/// Likeliest tokens that this route reports, at most.
const MOST_LOGPROBS: u64 = 5;

pub async fn answer(
    State(served): State<RouteState>,
    request: Request,
) -> Result<Response, HttpError> {
    let request = JsonRequest::of(request).await?;
    let client = request.client()?;
    let TextRequest {
        requests,
        each,
        texts,
        streams,
        sends_usage,
    } = request.read(TextRequest::read)?;
    let reports_logprobs = requests.iter().any(|it| it.logprobs.is_some());
    let usages = vec![ApiUsage::default(); requests.len()];
    let (model, answers) = ApiAnswers::begin(&served, &client, requests, each, field_of).await?;
    let mut format = TextFormat {
        id: id("cmpl-"),
        created: now(),
        model,
        sends_usage,
        reports_logprobs,
        texts,
        each,
        usages,
    };
    if streams {
        return Ok(stream(answers, format));
    }
    let whole = format.whole(answers).await?;
    Ok(as_json(&whole).into_response())
}

/// Returns the field of a part of a request, which has nothing but its prompt that a model may be unable to answer.
fn field_of(_: RefusedPart) -> &'static str {
    "prompt"
}

/// A request of this route.
struct TextRequest {
    /// One for each prompt.
    requests: Vec<Generation>,
    /// Number of answers to each prompt.
    each: usize,
    /// Beginnings of the answers: their prompts, if they are repeated.
    texts: Vec<String>,
    streams: bool,
    sends_usage: bool,
}

impl TextRequest {
    fn read(fields: &JsonFields<'_>) -> Result<TextRequest, HttpError> {
        let problem = || {
            let problem =
                format!("This has to be a text, or a list of at most {MOST_CHOICES} texts.");
            fields.wrong("prompt", &problem)
        };
        let prompts: Vec<&str> = match fields.get("prompt") {
            None => return Err(fields.wrong("prompt", "This is missing.")),
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(list)) => {
                let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
                texts.ok_or_else(problem)?
            }
            Some(_) => return Err(problem()),
        };
        if fields.text("suffix")?.is_some_and(|it| !it.is_empty()) {
            return Err(fields.wrong(
                "suffix",
                "The model cannot write what stands between two texts.",
            ));
        }
        let each = fields.count("n", 1..=MOST_CHOICES)?.unwrap_or(1) as usize;
        if prompts.is_empty() || prompts.len() * each > MOST_CHOICES as usize {
            return Err(problem());
        }
        let echoes = fields.flag("echo")?.unwrap_or(false);
        let begins = prompts.iter().map(|text| if echoes { *text } else { "" });
        let texts = begins.flat_map(|text| iter::repeat_n(text.to_owned(), each));
        let logprobs = fields.count("logprobs", 0..=MOST_LOGPROBS)?;
        let (sampling, stop) = (sampling(fields)?, stops(fields)?);
        let max_tokens = tokens(fields, "max_tokens")?.unwrap_or(16);
        let requests = prompts.iter().map(|text| Generation {
            prompt: GenerationPrompt::Text {
                text: (*text).to_owned(),
            },
            form: AnswerForm::Free,
            sampling,
            max_tokens: Some(max_tokens),
            thinking_budget: None,
            stop: stop.clone(),
            logprobs: logprobs.map(|it| it as usize),
        });
        Ok(TextRequest {
            requests: requests.collect(),
            each,
            texts: texts.collect(),
            streams: fields.flag("stream")?.unwrap_or(false),
            sends_usage: sends_usage(fields)?,
        })
    }
}

struct TextFormat {
    id: String,
    created: u64,
    model: String,
    sends_usage: bool,
    reports_logprobs: bool,
    /// Text of each answer so far.
    texts: Vec<String>,
    /// Number of answers to each prompt.
    each: usize,
    /// Usage of each prompt and its answers.
    usages: Vec<ApiUsage>,
}

impl TextFormat {
    fn object(&self, choices: Vec<Value>) -> Value {
        json!({
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        })
    }

    /// Returns an answer, or a piece of it that begins at this character.
    fn choice(
        &self,
        index: usize,
        text: &str,
        begins: usize,
        tokens: &[TokenLogprob],
        reason: Option<ApiEnd>,
    ) -> Value {
        let logprobs = self
            .reports_logprobs
            .then(|| logprobs::of_completion(tokens, begins));
        json!({
            "index": index,
            "text": text,
            "logprobs": logprobs,
            "finish_reason": reason.map(finish),
        })
    }

    /// Adds the usage of an answer to that of its prompt.
    fn add(&mut self, choice: usize, usage: ApiUsage) {
        if let Some(sum) = self.usages.get_mut(choice / self.each) {
            add(sum, usage);
        }
    }

    /// Returns the object of whole answers.
    async fn whole(&mut self, mut answers: ApiAnswers) -> Result<Value, HttpError> {
        let begins: Vec<usize> = self.texts.iter().map(|it| it.chars().count()).collect();
        let mut tokens: Vec<Vec<TokenLogprob>> = vec![Vec::new(); self.texts.len()];
        let mut reasons = vec![None; self.texts.len()];
        while let Some((choice, reply)) = answers.next().await {
            match reply {
                ToServer::Text { text, .. } => {
                    self.texts[choice].push_str(&text.text);
                    tokens[choice].extend(text.logprobs);
                }
                ToServer::Ended { reason, usage, .. } => {
                    reasons[choice] = Some(reason);
                    self.add(choice, usage);
                }
                ToServer::Refused { why, message, .. } => {
                    return Err(HttpError::refused(why, message, field_of));
                }
                _ => {}
            }
        }
        let choices = self.texts.iter().enumerate().map(|(index, text)| {
            self.choice(index, text, begins[index], &tokens[index], reasons[index])
        });
        let mut whole = self.object(choices.collect());
        whole["usage"] = usage(sum(&self.usages));
        Ok(whole)
    }
}

impl EventFormat for TextFormat {
    fn begin(&mut self, out: &mut VecDeque<Event>) {
        for (index, text) in self.texts.iter().enumerate() {
            if !text.is_empty() {
                let choice = self.choice(index, text, 0, &[], None);
                out.push_back(event(&self.object(vec![choice])));
            }
        }
    }

    fn reply(&mut self, choice: usize, reply: ToServer, out: &mut VecDeque<Event>) {
        match reply {
            ToServer::Text { text, .. } => {
                let begins = self.texts[choice].chars().count();
                let piece = self.choice(choice, &text.text, begins, &text.logprobs, None);
                self.texts[choice].push_str(&text.text);
                out.push_back(event(&self.object(vec![piece])));
            }
            ToServer::Ended { reason, usage, .. } => {
                self.add(choice, usage);
                let last = self.choice(choice, "", 0, &[], Some(reason));
                out.push_back(event(&self.object(vec![last])));
            }
            ToServer::Refused { why, message, .. } => {
                out.push_back(failed(why, message, field_of));
            }
            _ => {}
        }
    }

    fn end(&mut self, out: &mut VecDeque<Event>) {
        if self.sends_usage {
            let mut last = self.object(Vec::new());
            last["usage"] = usage(sum(&self.usages));
            out.push_back(event(&last));
        }
        out.push_back(done());
    }
}
