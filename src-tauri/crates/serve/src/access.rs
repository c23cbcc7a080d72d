//! Access to the API: for programs on this computer, by a name of this computer and with the key.
//!
//! A web page can send requests to this computer, too. The check of `Host` keeps out pages whose own name was made to
//! point here (DNS rebinding), that of `Origin` all others but those that the user named.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use api::ApiConfig;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::error::HttpError;

/// The clients that may ask. Clones share them.
#[derive(Clone)]
pub struct Access(Arc<RwLock<ApiConfig>>);

impl Access {
    pub fn new(config: ApiConfig) -> Access {
        Access(Arc::new(RwLock::new(config)))
    }

    /// Has other clients ask from now on.
    pub fn replace(&self, config: ApiConfig) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn config(&self) -> RwLockReadGuard<'_, ApiConfig> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the origin of a page that may ask; `None` if no page asks.
    fn origin<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a HeaderValue>, HttpError> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(None);
        };
        let config = self.config();
        let mut origins = config.origins.iter();
        let mut is_named = |text: &str| origins.any(|it| it.eq_ignore_ascii_case(text));
        if origin.to_str().is_ok_and(&mut is_named) {
            return Ok(Some(origin));
        }
        Err(HttpError::new(
            StatusCode::FORBIDDEN,
            "Web pages may use the local API only if their address is named in the settings.",
        ))
    }

    fn has_key(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION);
        let given = given.and_then(|it| it.to_str().ok());
        let key = given.and_then(|it| {
            let (scheme, key) = it.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
        key.is_some_and(|key| self.config().key.is(key))
    }
}

/// Returns whether a host is a name of this computer.
fn is_own(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(name))
}

/// Returns the origin of the page that asks, if one does.
///
/// # Errors
/// Fails if the client may not ask; with the origin, if a page may read the reason.
pub fn checked(
    access: &Access,
    request: &Request,
) -> Result<Option<HeaderValue>, (HttpError, Option<HeaderValue>)> {
    let headers = request.headers();
    let named = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    let target = request.uri().authority().map(|it| it.as_str());
    if !named.or(target).is_some_and(is_own) || !target.is_none_or(is_own) {
        let error = HttpError::new(
            StatusCode::FORBIDDEN,
            "The local API answers at localhost, 127.0.0.1 and [::1] only.",
        );
        return Err((error, None));
    }
    let origin = access
        .origin(headers)
        .map_err(|error| (error, None))?
        .cloned();
    let is_free = request.uri().path() == "/health"
        || request.method() == Method::OPTIONS && origin.is_some();
    if !is_free && !access.has_key(headers) {
        let error = HttpError {
            code: Some("invalid_api_key"),
            ..HttpError::new(
                StatusCode::UNAUTHORIZED,
                "The key is missing or wrong. Send it as: Authorization: Bearer KEY. A new one can be made in \
                 Settings → Local API.",
            )
        };
        return Err((error, origin));
    }
    Ok(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_computer_are_its_own() {
        for host in [
            "localhost",
            "LOCALHOST:8484",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(is_own(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io:80",
            "localhost:8484@evil.example",
            "127.0.0.2",
            "0.0.0.0",
            "::1",
        ] {
            assert!(!is_own(host), "{host}");
        }
    }
}
