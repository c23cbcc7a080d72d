//! `POST /v1/completions`: plain text, without a chat format.

use std::collections::VecDeque;

use api::{AnswerForm, ApiEnd, ApiUsage, Generation, GenerationPrompt, ToServer, TokenLogprob};
use axum::extract::{Request, State};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::chat::finish;
use crate::error::HttpError;
use crate::fields::JsonFields;
use crate::logprobs;
use crate::reply::json as as_json;
use crate::requests::{ApiAnswers, add, body, client, id, now, usage};
use crate::sampling::{MOST_CHOICES, of_choice, sampling, sends_usage, stops, tokens};
use crate::state::RouteState;
use crate::streaming::{EventFormat, done, event, failed, stream};

/// Likeliest tokens that this route reports, at most.
const MOST_LOGPROBS: u64 = 5;

pub async fn answer(
    State(served): State<RouteState>,
    request: Request,
) -> Result<Response, HttpError> {
    let (headers, body) = body(request).await?;
    let fields = JsonFields::of(&body, "")?;
    let requests = requests(&fields)?;
    let prompts: Vec<String> = requests.iter().map(prompt_of).collect();
    let echoes = fields.flag("echo")?.unwrap_or(false);
    let client = client(&headers, fields.text("user")?);
    let streams = fields.flag("stream")?.unwrap_or(false);
    let reports_logprobs = requests.iter().any(|it| it.logprobs.is_some());
    let (model, answers) = ApiAnswers::begin(&served, &client, requests).await?;
    let mut format = TextFormat {
        id: id("cmpl-"),
        created: now(),
        model,
        sends_usage: sends_usage(&fields)?,
        reports_logprobs,
        texts: prompts
            .into_iter()
            .map(|it| if echoes { it } else { String::new() })
            .collect(),
        usage: ApiUsage::default(),
    };
    if streams {
        return Ok(stream(answers, format));
    }
    let whole = format.whole(answers).await?;
    Ok(as_json(&whole).into_response())
}

fn prompt_of(request: &Generation) -> String {
    match &request.prompt {
        GenerationPrompt::Text { text } => text.clone(),
        GenerationPrompt::Conversation { .. } => String::new(),
    }
}

/// Reads the requests for answers: `n` of each prompt.
fn requests(fields: &JsonFields<'_>) -> Result<Vec<Generation>, HttpError> {
    let problem = || {
        let problem = format!("This has to be a text, or a list of at most {MOST_CHOICES} texts.");
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
    let logprobs = fields.count("logprobs", 0..=MOST_LOGPROBS)?;
    let generation = Generation {
        prompt: GenerationPrompt::Text {
            text: String::new(),
        },
        form: AnswerForm::Free,
        sampling: sampling(fields)?,
        max_tokens: Some(tokens(fields, "max_tokens")?.unwrap_or(16)),
        thinking_budget: None,
        stop: stops(fields)?,
        logprobs: logprobs.map(|it| it as usize),
    };
    let answers = prompts.iter().flat_map(|text| {
        let generation = &generation;
        (0..each).map(move |choice| Generation {
            prompt: GenerationPrompt::Text {
                text: (*text).to_owned(),
            },
            sampling: of_choice(generation.sampling, choice),
            ..generation.clone()
        })
    });
    Ok(answers.collect())
}

struct TextFormat {
    id: String,
    created: u64,
    model: String,
    sends_usage: bool,
    reports_logprobs: bool,
    /// Text of each answer so far.
    texts: Vec<String>,
    usage: ApiUsage,
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
                    add(&mut self.usage, usage);
                }
                ToServer::Refused { why, message, .. } => {
                    return Err(HttpError::refused(why, message));
                }
                _ => {}
            }
        }
        let choices = self.texts.iter().enumerate().map(|(index, text)| {
            self.choice(index, text, begins[index], &tokens[index], reasons[index])
        });
        let mut whole = self.object(choices.collect());
        whole["usage"] = usage(self.usage);
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
                add(&mut self.usage, usage);
                let last = self.choice(choice, "", 0, &[], Some(reason));
                out.push_back(event(&self.object(vec![last])));
            }
            ToServer::Refused { why, message, .. } => {
                out.push_back(failed(why, message));
            }
            _ => {}
        }
    }

    fn end(&mut self, out: &mut VecDeque<Event>) {
        if self.sends_usage {
            let mut last = self.object(Vec::new());
            last["usage"] = usage(self.usage);
            out.push_back(event(&last));
        }
        out.push_back(done());
    }
}
