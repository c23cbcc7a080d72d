//! From a request to its answers: body, client, places, and the replies of the app.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::{Generation, RefusedPart, ToServer};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use crate::error::HttpError;
use crate::fields::JsonFields;
use crate::queue::MOST_WAITING;
use crate::sampling::of_choice;
use crate::state::RouteState;

/// Bytes of a body, at most.
pub const LONGEST_BODY: usize = 16 << 20;
/// Time for a body.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Depth of a body. The lines to the app are a few levels deeper, and are read by a parser with a limit of its own.
const DEEPEST: usize = 64;
/// Characters of a client's name that count.
const LONGEST_CLIENT: usize = 200;

/// A request with a body of JSON. It may be large, so that it is dropped once its fields are read.
pub struct JsonRequest {
    headers: HeaderMap,
    body: Value,
}

impl JsonRequest {
    /// Reads the body of a request.
    pub async fn of(request: Request<Body>) -> Result<JsonRequest, HttpError> {
        let too_large = || {
            let message = format!("The request has more than {} MB.", LONGEST_BODY >> 20);
            HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        let (head, body) = request.into_parts();
        let announced = head.headers.get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|it| it > LONGEST_BODY as u64) {
            return Err(too_large());
        }
        let read = tokio::time::timeout(BODY_TIME, to_bytes(body, LONGEST_BODY)).await;
        let read = read.map_err(|_| {
            HttpError::new(
                StatusCode::REQUEST_TIMEOUT,
                "The request did not come in time.",
            )
        })?;
        let bytes = read.map_err(|_| too_large())?;
        let body = serde_json::from_slice(&bytes).map_err(|error| {
            HttpError::new(
                StatusCode::BAD_REQUEST,
                format!("The request is not JSON: {error}."),
            )
        })?;
        if is_deeper(&body, DEEPEST) {
            let message = format!("The request has objects or lists more than {DEEPEST} deep.");
            return Err(HttpError::new(StatusCode::BAD_REQUEST, message));
        }
        Ok(JsonRequest {
            headers: head.headers,
            body,
        })
    }

    /// Returns the name by which a client's requests are counted: its user, or its program.
    pub fn client(&self) -> Result<String, HttpError> {
        let user = JsonFields::of(&self.body, "")?.text("user")?;
        let agent = self.headers.get(header::USER_AGENT);
        let agent = agent.and_then(|it| it.to_str().ok());
        let name = user.or(agent).unwrap_or_default();
        Ok(name.chars().take(LONGEST_CLIENT).collect())
    }

    /// Reads the fields, and drops the body.
    pub fn read<T>(
        self,
        read: impl FnOnce(&JsonFields<'_>) -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        read(&JsonFields::of(&self.body, "")?)
    }
}

/// Returns whether a value has objects or lists deeper than this.
fn is_deeper(value: &Value, most: usize) -> bool {
    let deeper = |value: &Value| most == 0 || is_deeper(value, most - 1);
    match value {
        Value::Array(list) => list.iter().any(deeper),
        Value::Object(object) => object.values().any(deeper),
        _ => false,
    }
}

/// Answers to one request. Dropping them cancels those that have not ended.
pub struct ApiAnswers {
    replies: UnboundedReceiver<(usize, ToServer)>,
    /// Replies that were looked at, and not taken.
    first: Option<(usize, ToServer)>,
    _writing: JoinSet<()>,
}

impl ApiAnswers {
    /// Begins with the answers, this number to each request, and waits until the first is begun. `field_of` returns the
    /// field of a part of the requests.
    ///
    /// # Errors
    /// Fails if the queue is full, or the app refuses the first one.
    pub async fn begin(
        served: &RouteState,
        client: &str,
        requests: Vec<Generation>,
        each: usize,
        field_of: fn(RefusedPart) -> &'static str,
    ) -> Result<(String, ApiAnswers), HttpError> {
        let places = served.queue.places(client, requests.len() * each);
        let places = places.ok_or_else(|| {
            let message =
                format!("{MOST_WAITING} requests are waiting already. Try again in a moment.");
            HttpError::new(StatusCode::TOO_MANY_REQUESTS, message)
        })?;
        let (sender, replies) = unbounded_channel();
        let mut writing = JoinSet::new();
        // A request may be large: its answers share it while they wait, and it is dropped once it is sent.
        let requests = requests
            .into_iter()
            .flat_map(|request| iter::repeat_n(Arc::new(request), each).enumerate());
        for (choice, (mut place, (seed, request))) in places.into_iter().zip(requests).enumerate() {
            let (served, sender) = (served.clone(), sender.clone());
            writing.spawn(async move {
                place.taken().await;
                let mut exchange = served.link.generate(Generation {
                    sampling: of_choice(request.sampling, seed),
                    ..Arc::unwrap_or_clone(request)
                });
                while let Some(reply) = exchange.next().await {
                    served.metrics.reply(&reply);
                    // An error means that the client is gone, and with it this task.
                    let _ = sender.send((choice, reply));
                }
                drop(place);
            });
        }
        drop(sender);
        let mut answers = ApiAnswers {
            replies,
            first: None,
            _writing: writing,
        };
        match answers.next().await {
            Some((_, ToServer::Begun { model, .. })) => Ok((model, answers)),
            Some((_, ToServer::Refused { why, message, .. })) => {
                Err(HttpError::refused(why, message, field_of))
            }
            other => {
                answers.first = other;
                Ok((String::new(), answers))
            }
        }
    }

    /// Returns the next reply, and the number of its answer; `None` at the end of all.
    pub async fn next(&mut self) -> Option<(usize, ToServer)> {
        match self.first.take() {
            None => self.replies.recv().await,
            first => first,
        }
    }
}

/// Returns the time in seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| it.as_secs())
}

/// Makes an id, such as `chatcmpl-…`.
pub fn id(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = since.map_or(0, |it| it.as_micros() as u64);
    format!(
        "{prefix}{at:x}{:04x}",
        NEXT.fetch_add(1, Ordering::Relaxed) & 0xffff
    )
}

/// Returns the usage of tokens as the two older routes report it.
pub fn usage(usage: api::ApiUsage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.answer,
        "total_tokens": usage.prompt + usage.answer,
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens_details": { "reasoning_tokens": usage.thinking },
    })
}

/// Returns the usage of the answers to several prompts.
pub fn sum(usages: &[api::ApiUsage]) -> api::ApiUsage {
    let mut sum = api::ApiUsage::default();
    for usage in usages {
        sum.prompt += usage.prompt;
        sum.cached += usage.cached;
        sum.answer += usage.answer;
        sum.thinking += usage.thinking;
    }
    sum
}

/// Adds the usage of another answer to the same prompt.
pub fn add(sum: &mut api::ApiUsage, other: api::ApiUsage) {
    sum.prompt = sum.prompt.max(other.prompt);
    sum.cached = sum.cached.max(other.cached);
    sum.answer += other.answer;
    sum.thinking += other.thinking;
}
