//! Answers as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use api::{ApiRefusal, RefusedPart, ToServer};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

use crate::error::HttpError;
use crate::requests::ApiAnswers;

/// Interval of the comments that keep a quiet connection open: a long prompt takes minutes to read.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The events of a route.
pub trait EventFormat: Send + 'static {
    /// Appends the events before the first reply.
    fn begin(&mut self, _out: &mut VecDeque<Event>) {}

    /// Appends the events of a reply.
    fn reply(&mut self, choice: usize, reply: ToServer, out: &mut VecDeque<Event>);

    /// Appends the events after the last reply.
    fn end(&mut self, out: &mut VecDeque<Event>);
}

/// Sends answers as they are written.
pub fn stream(answers: ApiAnswers, mut format: impl EventFormat) -> Response {
    let mut ready = VecDeque::new();
    format.begin(&mut ready);
    let state = (answers, format, ready, false);
    let events = stream::unfold(
        state,
        |(mut answers, mut format, mut ready, mut is_over)| async move {
            loop {
                if let Some(event) = ready.pop_front() {
                    let event = Ok::<_, Infallible>(event);
                    return Some((event, (answers, format, ready, is_over)));
                }
                if is_over {
                    return None;
                }
                match answers.next().await {
                    Some((choice, reply)) => format.reply(choice, reply, &mut ready),
                    None => {
                        format.end(&mut ready);
                        is_over = true;
                    }
                }
            }
        },
    );
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(events).keep_alive(keep_alive).into_response()
}

/// Makes an event of an object.
pub fn event(data: &Value) -> Event {
    Event::default().data(data.to_string())
}

/// Makes the event of an answer that could not be completed. `field_of` returns the field of a part of the request.
pub fn failed(
    why: ApiRefusal,
    message: String,
    field_of: fn(RefusedPart) -> &'static str,
) -> Event {
    event(&json!({ "error": HttpError::refused(why, message, field_of).object() }))
}

/// The event after the last one of the two older routes.
pub fn done() -> Event {
    Event::default().data("[DONE]")
}
