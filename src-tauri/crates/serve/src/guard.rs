//! The layer around the routes: access, figures, and the replies to browsers.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::checked;
use crate::state::RouteState;

/// Answers a request if its client may ask.
pub async fn check(State(served): State<RouteState>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let (mut response, origin) = match checked(&served.access, &request) {
        Err((error, origin)) => (error.into_response(), origin),
        Ok(origin @ Some(_)) if request.method() == Method::OPTIONS => {
            (preflight(request.headers()), origin)
        }
        Ok(origin) => (next.run(request).await, origin),
    };
    served.metrics.answered(&path, response.status());
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    response
}

/// Answers a browser that asks what a page may send.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // The headers that official clients add, such as x-stainless-os.
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    if asked.contains_key("access-control-request-private-network") {
        headers.insert(
            "access-control-allow-private-network",
            HeaderValue::from_static("true"),
        );
    }
    response
}
