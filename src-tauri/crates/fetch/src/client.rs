//! Requests over HTTP: redirects, the token, the proxy.

use std::io;
use std::sync::Arc;

use download::{HUB, hub_endpoint, is_loopback};
use ureq::http::{HeaderMap, Response};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};
use url::Url;

use crate::error::FetchError;
use crate::retries::units;
use crate::token;

/// How often a server may lead on to another address.
const REDIRECTS: usize = 10;
/// Where a proxy is named: the first that is set counts.
const PROXY: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

const NO_HOST: &str = "there is no host of this name, or no network";

/// What is asked of a server.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The headers alone, which the first server of the hub sends.
    pub headers_only: bool,
    /// From which byte on, and the entity tag by which the server knows what it sent before.
    pub from: Option<(u64, Option<String>)>,
}

/// What a server answered that was led to.
#[derive(Debug)]
pub struct ServerAnswer {
    pub response: Response<Body>,
    pub host: String,
}

pub struct Client {
    agent: Agent,
    proxy: Option<Proxy>,
    authorization: Option<String>,
    /// The hub's address, or that of a mirror: the only server that is sent the token.
    hub: Url,
}

impl Client {
    /// With the variables of the environment.
    ///
    /// # Errors
    /// Where one of them cannot be used.
    pub fn new() -> Result<Self, FetchError> {
        let endpoint = hub_endpoint(&|name| std::env::var_os(name));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(provider)
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            // A connection that was cut off is not used again.
            .max_idle_connections(0)
            .user_agent(concat!("goldcrest/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(units(15)))
            .timeout_connect(Some(units(15)))
            .timeout_recv_response(Some(units(30)))
            .timeout_per_read(Some(units(30)))
            .build()
            .new_agent();
        Ok(Self {
            agent,
            proxy: proxy()?,
            authorization: token::authorization()?,
            hub: checked(&endpoint)?,
        })
    }

    /// The address to ask: a mirror takes the hub's place.
    ///
    /// # Errors
    /// Where it is neither https nor of this computer.
    pub fn address(&self, url: &str) -> Result<Url, FetchError> {
        match url.strip_prefix(HUB).and_then(|it| it.strip_prefix('/')) {
            Some(path) => checked(&format!(
                "{}/{path}",
                self.hub.as_str().trim_end_matches('/')
            )),
            None => checked(url),
        }
    }

    /// Whether the server of an address is sent a token.
    pub fn has_token_for(&self, url: &Url) -> bool {
        self.authorization.is_some() && url.origin() == self.hub.origin()
    }

    /// Asks, and goes where the server leads to. The token goes to the hub alone, and not any more once another server was
    /// asked.
    ///
    /// # Errors
    /// Where no server answers, or one leads where nothing is asked.
    pub fn ask(&self, url: &Url, question: &Question) -> Result<ServerAnswer, FetchError> {
        let mut url = url.clone();
        let first = host(&url);
        let mut is_hub = true;
        for _ in 0..=REDIRECTS {
            is_hub &= url.origin() == self.hub.origin();
            let response = self.ask_once(&url, question, is_hub)?;
            let is_answer = question.headers_only && is_linked(response.headers());
            let next = (response.status().is_redirection() && !is_answer)
                .then(|| header(response.headers(), "location"))
                .flatten();
            let Some(next) = next else {
                let host = host(&url);
                return Ok(ServerAnswer { response, host });
            };
            let from = host(&url);
            let is_encrypted = url.scheme() == "https";
            let unsafe_redirect = |to| FetchError::UnsafeRedirect { host: from, to };
            url = match url.join(next) {
                Ok(next) if checked(next.as_str()).is_err() => {
                    return Err(unsafe_redirect(without_query(&next)));
                }
                Ok(next) if is_encrypted && next.scheme() != "https" => {
                    return Err(unsafe_redirect(without_query(&next)));
                }
                Ok(next) => next,
                Err(error) => {
                    return Err(unsafe_redirect(format!("a place that is none ({error})")));
                }
            };
        }
        Err(FetchError::TooManyRedirects { host: first })
    }

    fn ask_once(
        &self,
        url: &Url,
        question: &Question,
        is_hub: bool,
    ) -> Result<Response<Body>, FetchError> {
        let mut request = if question.headers_only {
            self.agent.head(url.as_str())
        } else {
            self.agent.get(url.as_str())
        };
        // The length of the file is that of its bytes on the way.
        request = request.header("Accept-Encoding", "identity");
        if let Some(authorization) = self.authorization.as_ref().filter(|_| is_hub) {
            request = request.header("Authorization", authorization);
        }
        if let Some((from, tag)) = &question.from {
            request = request.header("Range", format!("bytes={from}-"));
            if let Some(tag) = tag {
                request = request.header("If-Range", tag);
            }
        }
        let proxy = self.proxy.clone().filter(|_| !is_loopback(url));
        request
            .config()
            .proxy(proxy)
            .build()
            .call()
            .map_err(|error| failure(&host(url), error))
    }
}

/// Whether these headers are the hub's, which names size and hash of a file that another server sends.
fn is_linked(headers: &HeaderMap) -> bool {
    headers.contains_key("x-linked-etag")
}

/// A header as text.
pub fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn proxy() -> Result<Option<Proxy>, FetchError> {
    let set = |variable| {
        let value = std::env::var(variable).ok();
        value
            .filter(|it| !it.trim().is_empty())
            .map(|it| (variable, it))
    };
    let Some((variable, name)) = PROXY.into_iter().find_map(set) else {
        return Ok(None);
    };
    let bad = |reason: ureq::Error| FetchError::BadProxy {
        variable,
        // It may hold a password.
        name: name.rsplit('@').next().unwrap_or_default().to_owned(),
        reason: reason.to_string(),
    };
    let proxy = Proxy::new(name.trim()).map_err(bad)?;
    let mut builder = Proxy::builder(proxy.protocol())
        .host(proxy.host())
        .port(proxy.port())
        .resolve_target(proxy.resolve_target());
    if let Some(username) = proxy.username() {
        builder = builder.username(username);
    }
    if let Some(password) = proxy.password() {
        builder = builder.password(password);
    }
    let excepted = std::env::var("NO_PROXY").or_else(|_| std::env::var("no_proxy"));
    for host in excepted.unwrap_or_default().split(',') {
        builder = builder.no_proxy(host.trim());
    }
    builder.build().map(Some).map_err(bad)
}

/// An address that may be asked: encrypted, or of this computer.
fn checked(text: &str) -> Result<Url, FetchError> {
    let bad = || FetchError::Address(text.split('?').next().unwrap_or_default().to_owned());
    let url = Url::parse(text).map_err(|_| bad())?;
    let is_allowed = match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        _ => false,
    };
    let has_password = !url.username().is_empty() || url.password().is_some();
    if is_allowed && !has_password {
        Ok(url)
    } else {
        Err(bad())
    }
}

/// As it is shown: without a password, and without what follows `?`, which may be a signature.
fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    // An address that cannot have a password has none.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or("the server").to_owned()
}

/// What a failure of the connection means for the user.
fn failure(host: &str, error: ureq::Error) -> FetchError {
    let host = host.to_owned();
    let unreachable = |host, reason: &str| FetchError::Unreachable {
        host,
        reason: reason.trim_end_matches('.').to_owned(),
    };
    match error {
        ureq::Error::HostNotFound => unreachable(host, NO_HOST),
        ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
            unreachable(host, "it does not answer")
        }
        ureq::Error::Timeout(_) => FetchError::Stalled { host },
        ureq::Error::Rustls(error) => untrusted(host, &error),
        ureq::Error::Tls(reason) => unreachable(host, reason),
        ureq::Error::Io(error) => connection_failure(host, &error),
        ureq::Error::Protocol(error) => FetchError::Protocol {
            host,
            reason: error.to_string(),
        },
        ureq::Error::ConnectProxyFailed(reason) => unreachable(
            host,
            &format!("the proxy refused the connection ({reason})"),
        ),
        error => unreachable(host, &error.to_string()),
    }
}

/// What a failure to receive means: a server that ends in the middle of its answer, whatever of HTTP it breaks by that, has
/// cut it off.
pub fn reading_failure(host: &str, error: io::Error) -> FetchError {
    match failure(host, ureq::Error::from(error)) {
        FetchError::Protocol { host, .. } => FetchError::CutOff { host },
        error => error,
    }
}

fn connection_failure(host: String, error: &io::Error) -> FetchError {
    let inner = error.get_ref();
    if let Some(error) = inner.and_then(|it| it.downcast_ref::<rustls::Error>()) {
        return untrusted(host, error);
    }
    let reason = match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => return FetchError::Stalled { host },
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => return FetchError::CutOff { host },
        io::ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "there is no network".to_owned()
        }
        // What the system says where no name server knows the host, or none is there.
        _ if error.to_string().contains("lookup address") => NO_HOST.to_owned(),
        _ => error.to_string(),
    };
    FetchError::Unreachable { host, reason }
}

fn untrusted(host: String, error: &rustls::Error) -> FetchError {
    match error {
        rustls::Error::InvalidCertificate(_)
        | rustls::Error::General(_)
        | rustls::Error::NoCertificatesPresented => FetchError::Untrusted {
            host,
            reason: error.to_string(),
        },
        _ => FetchError::CutOff { host },
    }
}
