//! Errors of the API, in OpenAI's form.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use api::{ApiRefusal, RefusedPart};

/// An error for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpError {
    pub status: StatusCode,
    /// Field of the request that is wrong.
    pub param: Option<String>,
    pub code: Option<&'static str>,
    pub message: String,
}

impl HttpError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> HttpError {
        HttpError {
            status,
            param: None,
            code: None,
            message: message.into(),
        }
    }

    /// Makes the error of a field.
    pub fn field(param: impl Into<String>, problem: &str) -> HttpError {
        let param = param.into();
        HttpError {
            message: format!("{param}: {problem}"),
            param: Some(param),
            ..HttpError::new(StatusCode::BAD_REQUEST, "")
        }
    }

    /// Makes the error of a request that the app refused. `field_of` returns the field of a part of it.
    pub fn refused(
        why: ApiRefusal,
        message: String,
        field_of: fn(RefusedPart) -> &'static str,
    ) -> HttpError {
        let (status, code) = match why {
            ApiRefusal::TooLong => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
            ApiRefusal::NoModel => (StatusCode::SERVICE_UNAVAILABLE, "model_not_loaded"),
            ApiRefusal::Unsupported(_) => (StatusCode::BAD_REQUEST, "unsupported"),
            ApiRefusal::Failed => (StatusCode::INTERNAL_SERVER_ERROR, "model_failed"),
        };
        let part = match why {
            ApiRefusal::TooLong => Some(RefusedPart::Prompt),
            ApiRefusal::Unsupported(part) => part,
            ApiRefusal::NoModel | ApiRefusal::Failed => None,
        };
        HttpError {
            param: part.map(|part| field_of(part).to_owned()),
            code: Some(code),
            ..HttpError::new(status, message)
        }
    }

    /// Returns the error as an object.
    pub fn object(&self) -> Value {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        json!({
            "message": self.message,
            "type": kind,
            "param": self.param,
            "code": self.code,
        })
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.object() }).to_string();
        let mut response = (
            self.status,
            [(header::CONTENT_TYPE, "application/json")],
            body,
        )
            .into_response();
        let headers = response.headers_mut();
        match self.status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}
