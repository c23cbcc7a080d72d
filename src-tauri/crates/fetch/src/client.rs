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

/// How often a server may lead on to another address.
const REDIRECTS: usize = 10;
/// Where a proxy is named: the first that is set counts.
const PROXY: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

const NO_HOST: &str = "its name was not found";

/// What is asked of a server.
#[derive(Debug, Clone)]
pub struct Question<'r> {
    /// The file, with which is compared what the hub says of it.
    pub request: &'r DownloadRequest,
    /// The headers alone, which the first server of the hub sends.
    pub headers_only: bool,
    /// From which byte on. Without `If-Range`: the servers of one file may have several entity tags for it, and whether the
    /// parts make the file is known by its hash.
    pub from: Option<u64>,
}

/// What a server answered that was led to.
#[derive(Debug)]
pub struct ServerAnswer {
    pub response: Response<Body>,
    /// The address that was asked last.
    pub url: Url,
    /// Whether it was asked as the hub: with the token, if there is one.
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
    /// The hosts that are asked without the proxy.
    no_proxy: Vec<String>,
    token: Option<String>,
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
            no_proxy: no_proxy(),
            token: token::token(),
            hub: parse_address(&endpoint).map_err(FetchError::Endpoint)?,
        })
    }

    /// The address to ask: a mirror takes the hub's place.
    ///
    /// # Errors
    /// Where it is neither https nor of this computer.
    pub fn address(&self, url: &str) -> Result<Url, FetchError> {
        let url = match url.strip_prefix(HUB).and_then(|it| it.strip_prefix('/')) {
            Some(path) => format!("{}/{path}", self.hub.as_str().trim_end_matches('/')),
            None => url.to_owned(),
        };
        Ok(parse_address(&url)?)
    }

    /// Whether an address is of the hub.
    pub fn is_hub(&self, url: &Url) -> bool {
        url.origin() == self.hub.origin()
    }

    /// Whether the hub is sent a token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Asks, and goes where the server leads to. The token goes to the hub alone, and not any more once another server was
    /// asked.
    ///
    /// # Errors
    /// Where no server answers, one leads where nothing is asked, or the hub says that its file is another one.
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
        // The length of the file is that of its bytes on the way.
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

/// Whether an entry of `NO_PROXY` names a host, or a domain that it is in.
fn is_in(host: &str, entry: &str) -> bool {
    let domain = entry.trim_start_matches('*').trim_start_matches('.');
    let before = host.strip_suffix(domain);
    entry == "*" || before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// A variable that is set to something.
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

/// As it is shown: without a password, and without what follows `?`, which may be a signature.
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

/// What a failure to receive means: a server that ends in the middle of its answer, whatever of HTTP it breaks by that, has
/// cut it off.
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
        // What the system says where no name server knows the host, or none is there.
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
