//! The routes.

use api::{FromServer, ToServer};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json as object};

use crate::access::Access;
use crate::error::HttpError;
use crate::guard::check;
use crate::link::AppLink;
use crate::metrics::{Metrics, PATHS};
use crate::queue::Queue;
use crate::reply::json;
use crate::requests::{JsonRequest, now};
use crate::state::RouteState;
use crate::{chat, completions, responses};

/// Bytes of a text whose tokens are counted, at most.
const LONGEST_TEXT: usize = 1 << 20;

/// Returns the routes.
pub fn of(link: AppLink, access: Access) -> Router {
    let served = RouteState {
        queue: Queue::new(link.clone()),
        link,
        metrics: Metrics::default(),
        access,
    };
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/models/{*name}", get(model))
        .route("/v1/chat/completions", post(chat::answer))
        .route("/v1/completions", post(completions::answer))
        .route("/v1/responses", post(responses::answer))
        .route("/tokenize", post(tokenize))
        .route(
            "/health",
            get(|| async { json(&object!({ "status": "ok" })) }),
        )
        .route("/metrics", get(metrics))
        .fallback(|uri: Uri| async move {
            let message = format!(
                "There is no {}. There are: {}.",
                uri.path(),
                PATHS.join(", ")
            );
            HttpError::new(StatusCode::NOT_FOUND, message)
        })
        .method_not_allowed_fallback(|| async {
            HttpError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "This path has another method.",
            )
        })
        .layer(middleware::from_fn_with_state(served.clone(), check))
        .with_state(served)
}

/// Returns the object of the model; `None` if there is none.
async fn object_of_model(served: &RouteState) -> Option<Value> {
    let reply = served.link.ask(|id| FromServer::Model { id }).await;
    let Some(ToServer::Model {
        name: Some(name),
        context,
        ..
    }) = reply
    else {
        return None;
    };
    Some(object!({
        "id": name,
        "object": "model",
        "created": now(),
        "owned_by": "goldcrest",
        "max_model_len": context,
    }))
}

async fn models(State(served): State<RouteState>) -> Response {
    let models: Vec<Value> = object_of_model(&served).await.into_iter().collect();
    json(&object!({ "object": "list", "data": models })).into_response()
}

/// Any name is taken for the open model, as in requests.
async fn model(State(served): State<RouteState>) -> Result<Response, HttpError> {
    let model = object_of_model(&served).await;
    let model = model
        .ok_or_else(|| HttpError::new(StatusCode::NOT_FOUND, "No model is open in Goldcrest."))?;
    Ok(json(&model).into_response())
}

async fn tokenize(
    State(served): State<RouteState>,
    request: Request,
) -> Result<Response, HttpError> {
    let request = JsonRequest::of(request).await?;
    let text = request.read(|fields| {
        let text = match fields.text("content")? {
            Some(text) => text,
            None => fields.needed_text("text")?,
        };
        if text.len() > LONGEST_TEXT {
            let problem = format!("At most {} MB of text are taken.", LONGEST_TEXT >> 20);
            return Err(fields.wrong("content", &problem));
        }
        Ok(text.to_owned())
    })?;
    let reply = served
        .link
        .ask(|id| FromServer::Tokenize { id, text })
        .await;
    match reply {
        Some(ToServer::Tokens { tokens, .. }) => {
            let count = tokens.len();
            Ok(json(&object!({ "tokens": tokens, "count": count })).into_response())
        }
        Some(ToServer::Refused { why, message, .. }) => {
            Err(HttpError::refused(why, message, |_| "content"))
        }
        _ => Err(HttpError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The text could not be read.",
        )),
    }
}

async fn metrics(State(served): State<RouteState>) -> Response {
    let text = served.metrics.text(served.queue.load());
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
