//! Requests over HTTP: redirects, the token, the proxy.

use std::io;
use std::sync::Arc;

use download::{DownloadRequest, HUB, hub_endpoint, is_loopback, parse_address};
use ureq::http::Response;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};
use url::Url;

use crate::error::FetchError;
use crate::headers::{Linked, header};
use crate::retries::units;
use crate::token;

/// Maximum redirects of a request.
const REDIRECTS: usize = 10;
/// Variables that name a proxy: the first that is set counts.
const PROXY: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

const NO_HOST: &str = "its name was not found";

/// Kind of a request.
#[derive(Debug, Clone)]
pub struct Question<'r> {
    /// Requested file, with which the hub's headers are compared.
    pub request: &'r DownloadRequest,
    /// True for the headers only, which the first server of the hub sends.
    pub headers_only: bool,
    /// First byte. Without `If-Range`: the servers of one file may have several entity tags for it, and the hash shows
    /// whether the parts make the file.
    pub from: Option<u64>,
}

/// Answer of a server, after redirects.
#[derive(Debug)]
pub struct ServerAnswer {
    pub response: Response<Body>,
    /// Final address.
    pub url: Url,
    /// True if it was requested from the hub: with the token, if there is one.
    pub is_hub: bool,
}

impl ServerAnswer {
    pub fn host(&self) -> String {
        host(&self.url)
    }
}

pub struct Client {
    agent: Agent,
    proxy: Option<Proxy>,
    /// Hosts that bypass the proxy.
    no_proxy: Vec<String>,
    token: Option<String>,
    /// Address of the hub, or of a mirror: the only server that gets the token.
    hub: Url,
}

impl Client {
    /// Configures the client by the environment.
    ///
    /// # Errors
    /// Fails if one of the variables cannot be used.
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
            // A connection that was cut off is not reused.
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
            no_proxy: no_proxy(),
            token: token::token(),
            hub: parse_address(&endpoint).map_err(FetchError::Endpoint)?,
        })
    }

    /// Returns the address of the request: a mirror replaces the hub.
    ///
    /// # Errors
    /// Fails if it is neither https nor of this computer.
    pub fn address(&self, url: &str) -> Result<Url, FetchError> {
        let url = match url.strip_prefix(HUB).and_then(|it| it.strip_prefix('/')) {
            Some(path) => format!("{}/{path}", self.hub.as_str().trim_end_matches('/')),
            None => url.to_owned(),
        };
        Ok(parse_address(&url)?)
    }

    /// Returns whether an address is of the hub.
    pub fn is_hub(&self, url: &Url) -> bool {
        url.origin() == self.hub.origin()
    }

    /// Returns whether the hub gets a token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Sends the request, following redirects. Only the hub gets the token, and no longer after a redirect to another
    /// server.
    ///
    /// # Errors
    /// Fails if no server answers, a redirect leads to a forbidden address, or the hub's headers differ from the
    /// request.
    pub fn ask(&self, url: &Url, question: &Question<'_>) -> Result<ServerAnswer, FetchError> {
        let mut url = url.clone();
        let first = host(&url);
        let mut is_hub = true;
        for _ in 0..=REDIRECTS {
            is_hub &= self.is_hub(&url);
            let response = self.ask_once(&url, question, is_hub)?;
            Linked::of(response.headers()).check(&host(&url), question.request)?;
            let is_answer = question.headers_only && Linked::is_in(response.headers());
            let next = (response.status().is_redirection() && !is_answer)
                .then(|| header(response.headers(), "location"))
                .flatten();
            let Some(next) = next else {
                return Ok(ServerAnswer {
                    response,
                    url,
                    is_hub,
                });
            };
            let from = host(&url);
            let is_encrypted = url.scheme() == "https";
            let unsafe_redirect = |to| FetchError::UnsafeRedirect { host: from, to };
            url = match url.join(next) {
                Ok(next) if parse_address(next.as_str()).is_err() => {
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
        question: &Question<'_>,
        is_hub: bool,
    ) -> Result<Response<Body>, FetchError> {
        let mut request = if question.headers_only {
            self.agent.head(url.as_str())
        } else {
            self.agent.get(url.as_str())
        };
        // The length of the file is that of the bytes sent.
        request = request.header("Accept-Encoding", "identity");
        if let Some(token) = self.token.as_ref().filter(|_| is_hub) {
            request = request.header("Authorization", token::authorization(token)?);
        }
        if let Some(from) = question.from {
            request = request.header("Range", format!("bytes={from}-"));
        }
        let proxy = self.proxy.clone().filter(|_| self.is_proxied(url));
        request
            .config()
            .proxy(proxy)
            .build()
            .call()
            .map_err(|error| failure(&host(url), error))
    }

    fn is_proxied(&self, url: &Url) -> bool {
        let host = host(url);
        let is_excepted = self.no_proxy.iter().any(|entry| is_in(&host, entry));
        !is_excepted && !is_loopback(url)
    }
}

/// Returns whether an entry of `NO_PROXY` matches a host or its domain.
fn is_in(host: &str, entry: &str) -> bool {
    let domain = entry.trim_start_matches('*').trim_start_matches('.');
    let before = host.strip_suffix(domain);
    entry == "*" || before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Returns the value of a variable that is not empty.
fn set(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok()?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

fn proxy() -> Result<Option<Proxy>, FetchError> {
    let is_set = |variable| Some((variable, set(variable)?));
    let Some((variable, name)) = PROXY.into_iter().find_map(is_set) else {
        return Ok(None);
    };
    let proxy = Proxy::new(&name).map_err(|reason| FetchError::BadProxy {
        variable,
        // It may hold a password.
        name: name.rsplit('@').next().unwrap_or_default().to_owned(),
        reason: reason.to_string(),
    })?;
    Ok(Some(proxy))
}

fn no_proxy() -> Vec<String> {
    let list = set("NO_PROXY").or_else(|| set("no_proxy"));
    let list = list.unwrap_or_default().to_ascii_lowercase();
    let entries = list.split(',').map(str::trim);
    entries
        .filter(|entry| !entry.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Formats an address for display: without a password, and without the query, which may be a signature.
pub fn without_query(url: &Url) -> String {
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

/// Converts a failure of the connection into an error for the user.
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
        ureq::Error::Rustls(error) => encryption_failure(host, &error),
        ureq::Error::Tls(reason) => FetchError::Encryption {
            host,
            reason: reason.to_owned(),
        },
        ureq::Error::Io(error) => connection_failure(host, &error),
        error @ (ureq::Error::Protocol(_)
        | ureq::Error::Http(_)
        | ureq::Error::LargeResponseHeader(..)) => FetchError::Protocol {
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

/// Converts a failure to receive: a server that ends in the middle of its answer, whatever of HTTP it breaks by that,
/// has closed the connection.
pub fn reading_failure(host: &str, error: io::Error) -> FetchError {
    match failure(host, ureq::Error::from(error)) {
        FetchError::Protocol { host, .. } | FetchError::Encryption { host, .. } => {
            FetchError::CutOff { host }
        }
        error => error,
    }
}

fn connection_failure(host: String, error: &io::Error) -> FetchError {
    let inner = error.get_ref();
    if let Some(error) = inner.and_then(|it| it.downcast_ref::<rustls::Error>()) {
        return encryption_failure(host, error);
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
        // The system's message if no name server knows the host, or none is reachable.
        _ if error.to_string().contains("lookup address") => NO_HOST.to_owned(),
        _ => error.to_string(),
    };
    FetchError::Unreachable { host, reason }
}

fn encryption_failure(host: String, error: &rustls::Error) -> FetchError {
    match error {
        rustls::Error::InvalidCertificate(_)
        | rustls::Error::General(_)
        | rustls::Error::NoCertificatesPresented => FetchError::Untrusted {
            host,
            reason: error.to_string(),
        },
        _ => FetchError::Encryption {
            host,
            reason: error.to_string(),
        },
    }
}
