//! The local API: `goldcrest-serve` as a child process, answered by the model of a [`Chat`].

mod answer;
mod requests;
mod stop_texts;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use api::{ApiConfig, ApiKey, ApiRefusal, ApiSender, ApiServer, FromServer, ToServer};
use chat::{AppRow, Chat, Failure};
use engine::Signals;
use serde::{Deserialize, Serialize};

use answer::ApiAnswer;

/// Port that is used unless another is chosen.
pub const PORT: u16 = 8484;
/// Lowest port that needs no rights of an administrator.
const LOWEST_PORT: u16 = 1024;
/// Origins that may be named, and the bytes of one.
const MOST_ORIGINS: usize = 32;
const LONGEST_ORIGIN: usize = 300;

/// The local API, for display.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ApiState {
    /// True if it is switched on.
    pub on: bool,
    /// Port to listen on.
    pub port: u16,
    /// Origins of web pages that may ask.
    pub origins: Vec<String>,
    /// True once there is a key.
    pub has_key: bool,
    /// State of its program.
    pub status: ApiStatus,
}

/// States of the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum ApiStatus {
    /// It does not run.
    Off,
    /// It is being started.
    Starting,
    /// It listens.
    Listening {
        /// Address for clients.
        base_url: String,
        /// Answers that are being written.
        running: u32,
        /// Requests that wait for a place.
        waiting: u32,
    },
    /// It does not listen.
    Failed {
        /// Sentence for the user.
        message: String,
    },
}

/// A change of the local API.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ApiChange {
    /// The state after it.
    pub state: ApiState,
    /// The key, if one was made. It is not stored, and so shown this once.
    pub new_key: Option<String>,
}

/// The stored settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredApi {
    on: bool,
    port: u16,
    origins: Vec<String>,
    key: Option<ApiKey>,
}

impl Default for StoredApi {
    fn default() -> StoredApi {
        StoredApi {
            on: false,
            port: PORT,
            origins: Vec::new(),
            key: None,
        }
    }
}

impl StoredApi {
    /// Returns the configuration of the program; `None` if it is not switched on.
    fn config(&self) -> Option<ApiConfig> {
        let key = self.key.clone().filter(|_| self.on)?;
        Some(ApiConfig {
            port: self.port,
            key,
            origins: self.origins.clone(),
        })
    }
}

impl ApiStatus {
    fn is_running(&self) -> bool {
        matches!(self, ApiStatus::Starting | ApiStatus::Listening { .. })
    }
}

/// Owns the program, whose settings are stored beside the chats. Clones share it.
#[derive(Clone)]
pub struct LocalApi(Arc<ApiOwner>);

struct ApiOwner {
    chat: Chat,
    program: io::Result<PathBuf>,
    on_change: Box<dyn Fn(ApiState) + Send + Sync>,
    state: Mutex<ApiRun>,
    /// Held while settings change.
    changing: Mutex<()>,
    /// Held while a change is reported, so that the last report has the last state.
    reporting: Mutex<()>,
}

struct ApiRun {
    stored: StoredApi,
    status: ApiStatus,
    server: Option<ApiServer>,
    /// Number of starts and stops: lines of an earlier program are ignored.
    run: u64,
}

impl LocalApi {
    /// Starts the program if it was on. `on_change` is called after each change, on any thread.
    pub fn start(
        chat: &Chat,
        on_change: impl Fn(ApiState) + Send + Sync + 'static,
    ) -> Result<LocalApi, Failure> {
        let stored = chat.row(AppRow::Api)?;
        let stored = stored.map(serde_json::from_value::<StoredApi>).transpose();
        let stored = stored
            .inspect_err(|error| tracing::warn!(%error, "the settings of the local API are lost"))
            .unwrap_or_default()
            .unwrap_or_default();
        let api = LocalApi(Arc::new(ApiOwner {
            chat: chat.clone(),
            program: api::program(),
            on_change: Box::new(on_change),
            state: Mutex::new(ApiRun {
                stored,
                status: ApiStatus::Off,
                server: None,
                run: 0,
            }),
            changing: Mutex::default(),
            reporting: Mutex::default(),
        }));
        api.run();
        Ok(api)
    }

    /// Returns the state.
    pub fn state(&self) -> ApiState {
        self.locked().view()
    }

    /// Changes the settings. At the first switching on a key is made.
    pub fn set(&self, on: bool, port: u32, origins: Vec<String>) -> Result<ApiChange, Failure> {
        let port = u16::try_from(port).ok().filter(|it| *it >= LOWEST_PORT);
        let Some(port) = port else {
            return Err(Failure::other(format!(
                "A port has a number from {LOWEST_PORT} to 65535."
            )));
        };
        let origins = checked(origins)?;
        let _changing = guard(&self.0.changing);
        let mut stored = self.locked().stored.clone();
        let new_key = (on && stored.key.is_none()).then(new_key).transpose()?;
        if let Some(key) = &new_key {
            stored.key = Some(ApiKey::of(key));
        }
        self.apply(StoredApi {
            on,
            port,
            origins,
            ..stored
        })?;
        Ok(ApiChange {
            state: self.state(),
            new_key,
        })
    }

    /// Replaces the key. Clients with the one before are refused from now on.
    pub fn replace_key(&self) -> Result<ApiChange, Failure> {
        let key = new_key()?;
        let _changing = guard(&self.0.changing);
        let stored = self.locked().stored.clone();
        self.apply(StoredApi {
            key: Some(ApiKey::of(&key)),
            ..stored
        })?;
        Ok(ApiChange {
            state: self.state(),
            new_key: Some(key),
        })
    }

    /// Ends the program. Its settings stay.
    pub fn end(&self) {
        let mut state = self.locked();
        state.run += 1;
        state.server = None;
    }

    /// Stores settings, and starts the program with them.
    fn apply(&self, stored: StoredApi) -> Result<(), Failure> {
        let value = serde_json::to_value(&stored);
        let value = value.map_err(|error| Failure::other(error.to_string()))?;
        self.0.chat.save_row(AppRow::Api, value)?;
        let mut state = self.locked();
        let is_same = (state.stored.on, state.stored.port) == (stored.on, stored.port);
        state.stored = stored;
        match (&state.server, state.stored.config()) {
            (Some(server), Some(config)) if is_same && state.status.is_running() => {
                server.configure(config);
                drop(state);
                self.report();
            }
            _ => {
                drop(state);
                self.run();
            }
        }
        Ok(())
    }

    /// Ends the program, and starts it if it is switched on.
    fn run(&self) {
        let mut state = self.locked();
        state.run += 1;
        state.server = None;
        let Some(config) = state.stored.config() else {
            state.status = ApiStatus::Off;
            drop(state);
            return self.report();
        };
        let run = state.run;
        let api = self.clone();
        let started = match &self.0.program {
            Ok(program) => serve(&self.0.chat, program, &config, move |event| {
                api.heard(run, event);
            }),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        match started {
            Ok(server) => {
                state.server = Some(server);
                state.status = ApiStatus::Starting;
            }
            Err(error) => {
                let message = format!("The local API did not start: {error}.");
                state.status = ApiStatus::Failed { message };
            }
        }
        drop(state);
        self.report();
    }

    /// Notes an event of the program that was started as this run.
    fn heard(&self, run: u64, event: ServeEvent) {
        let mut state = self.locked();
        if state.run != run {
            return;
        }
        match event {
            ServeEvent::Listening(port) => {
                state.status = ApiStatus::Listening {
                    base_url: base_url(port),
                    running: 0,
                    waiting: 0,
                };
            }
            ServeEvent::Failed(message) => state.status = ApiStatus::Failed { message },
            ServeEvent::Load(now_running, now_waiting) => {
                if let ApiStatus::Listening {
                    running, waiting, ..
                } = &mut state.status
                {
                    (*running, *waiting) = (now_running, now_waiting);
                }
            }
        }
        drop(state);
        self.report();
    }

    fn report(&self) {
        let _reporting = guard(&self.0.reporting);
        (self.0.on_change)(self.state());
    }

    fn locked(&self) -> MutexGuard<'_, ApiRun> {
        guard(&self.0.state)
    }
}

impl ApiRun {
    fn view(&self) -> ApiState {
        ApiState {
            on: self.stored.on,
            port: self.stored.port,
            origins: self.stored.origins.clone(),
            has_key: self.stored.key.is_some(),
            status: self.status.clone(),
        }
    }
}

/// Returns the address for clients.
pub fn base_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/v1")
}

/// Makes a key.
pub fn new_key() -> Result<String, Failure> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::other(format!("No key could be made: {error}.")))?;
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    Ok(format!("gold-{}", digits.collect::<String>()))
}

/// Returns the origins without spaces and repetitions.
pub fn checked(origins: Vec<String>) -> Result<Vec<String>, Failure> {
    let mut found: Vec<String> = Vec::new();
    for origin in origins {
        let origin = origin.trim().trim_end_matches('/').to_owned();
        if origin.len() > LONGEST_ORIGIN || !is_origin(&origin) {
            return Err(Failure::other(format!(
                "“{origin}” is not the address of a web page. It has the form https://example.org, \
                 http://localhost:3000 or app://obsidian.md."
            )));
        }
        if !found.contains(&origin) {
            found.push(origin);
        }
    }
    if found.len() > MOST_ORIGINS {
        return Err(Failure::other(format!(
            "At most {MOST_ORIGINS} web pages may use the local API."
        )));
    }
    Ok(found)
}

/// Returns whether a text is a scheme, a host and perhaps a port. Pages in editors and extensions have schemes of their own.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return false;
    };
    let consists_of = |text: &str, others: &[u8]| {
        let mut bytes = text.bytes();
        bytes.all(|it| it.is_ascii_alphanumeric() || others.contains(&it))
    };
    scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && consists_of(scheme, b"+-.")
        && !host.is_empty()
        && consists_of(host, b"._-:[]")
}

/// Events of the program.
pub enum ServeEvent {
    /// It listens on this port.
    Listening(u16),
    /// It has ended, with a sentence on the reason.
    Failed(String),
    /// The answers that are being written, and the requests that wait.
    Load(u32, u32),
}

/// Starts the program, and answers its requests by the model of a chat.
///
/// # Errors
/// Fails if the program cannot be started.
pub fn serve(
    chat: &Chat,
    program: &std::path::Path,
    config: &ApiConfig,
    mut on_event: impl FnMut(ServeEvent) + Send + 'static,
) -> io::Result<ApiServer> {
    let requests = Requests::default();
    let texts = tokenizing(chat.clone(), Arc::clone(&requests))?;
    let mut clients = Clients {
        chat: chat.clone(),
        requests,
        texts,
    };
    let mut has_failed = false;
    ApiServer::start(program, config, move |sender, line| match line {
        Some(FromServer::Listening { port }) => on_event(ServeEvent::Listening(port)),
        Some(FromServer::Failed { message }) => {
            has_failed = true;
            on_event(ServeEvent::Failed(message));
        }
        Some(FromServer::Load { running, waiting }) => {
            on_event(ServeEvent::Load(running, waiting));
        }
        Some(line) => clients.take(sender, line),
        None => {
            clients.cancel_all();
            if !has_failed {
                let message = "The local API ended unexpectedly. Switch it off and on again.";
                on_event(ServeEvent::Failed(message.to_owned()));
            }
        }
    })
}

/// Flags of the requests that have not ended, by their ids.
type Requests = Arc<Mutex<HashMap<u64, Signals>>>;

/// A text to be encoded, with the id of its request.
type Text = (u64, String, ApiSender);

/// The requests of the program.
struct Clients {
    chat: Chat,
    requests: Requests,
    texts: Sender<Text>,
}

/// Starts a thread that encodes the texts of these requests: a long one must not delay other lines. It ends with the
/// sender.
fn tokenizing(chat: Chat, requests: Requests) -> io::Result<Sender<Text>> {
    let (texts, to_encode) = channel::<Text>();
    let encode = move || {
        for (id, text, sender) in to_encode {
            if guard(&requests).remove(&id).is_none() {
                // It was cancelled.
                continue;
            }
            let counter = chat.served_model().ok().flatten();
            let counter = counter.and_then(|model| model.counter);
            sender.send(&match counter {
                Some(counter) => ToServer::Tokens {
                    id,
                    tokens: counter.encode(&text),
                },
                None => no_model(id),
            });
        }
    };
    thread::Builder::new()
        .name("api texts".to_owned())
        .spawn(encode)?;
    Ok(texts)
}

impl Clients {
    fn take(&mut self, sender: &ApiSender, line: FromServer) {
        match line {
            FromServer::Generate { id, request } => self.generate(sender, id, *request),
            FromServer::Cancel { id } => {
                let signals = self.locked().remove(&id);
                if let Some(signals) = signals {
                    self.chat.cancel_program(&signals);
                }
            }
            FromServer::Tokenize { id, text } => {
                self.locked().insert(id, Signals::default());
                // An error means that the thread has ended, which drops the text.
                let _ = self.texts.send((id, text, sender.clone()));
            }
            FromServer::Model { id } => {
                let model = self.chat.served_model().ok().flatten();
                let info = model.as_ref().and_then(|model| model.info.as_ref());
                sender.send(&ToServer::Model {
                    id,
                    context: info.map(|info| info.context_length),
                    name: model.map(|model| model.name),
                });
            }
            FromServer::Listening { .. } | FromServer::Failed { .. } | FromServer::Load { .. } => {}
        }
    }

    fn generate(&self, sender: &ApiSender, id: u64, request: api::Generation) {
        let signals = Signals::default();
        let answer = ApiAnswer::new(&request, signals.clone());
        let request = requests::of(request, signals.clone());
        self.locked().insert(id, signals);
        let (sender, requests) = (sender.clone(), Arc::clone(&self.requests));
        let (chat, mut answer) = (&self.chat, answer);
        let listener = move |event: chat::ApiEvent<'_>| {
            let is_end = matches!(event, chat::ApiEvent::Ended(_));
            answer.event(id, event, &mut |line| sender.send(&line));
            if is_end {
                guard(&requests).remove(&id);
            }
        };
        chat.answer_program(request, Box::new(listener));
    }

    fn cancel_all(&self) {
        for signals in self.locked().values() {
            self.chat.cancel_program(signals);
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<u64, Signals>> {
        guard(&self.requests)
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_model(id: u64) -> ToServer {
    ToServer::Refused {
        id,
        why: ApiRefusal::NoModel,
        message: "No model is open in Goldcrest.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_addresses_of_pages() {
        let of = |origins: &[&str]| checked(origins.iter().map(|it| (*it).to_owned()).collect());
        let taken = of(&[
            "https://example.org/",
            " http://localhost:3000",
            "https://example.org",
        ]);
        let expected = ["https://example.org", "http://localhost:3000"].map(str::to_owned);
        assert_eq!(taken.map_err(|it| it.message), Ok(expected.to_vec()));
        let own_schemes = [
            "vscode-webview://1f2e-3d",
            "app://obsidian.md",
            "chrome-extension://abcdefgh",
            "tauri://localhost",
            "http://[::1]:3000",
        ];
        let taken = of(&own_schemes).map_err(|it| it.message);
        assert_eq!(taken, Ok(own_schemes.map(str::to_owned).to_vec()));
        for wrong in [
            "*",
            "null",
            "example.org",
            "https://",
            "https://a/b",
            "https://*.example.org",
            "file:///x",
            "://a",
            "1app://a",
            "app://a b",
            "app://a\u{1}",
            "app://a/b",
        ] {
            let error = of(&[wrong]).expect_err(wrong);
            assert!(error.message.contains(wrong.trim_end_matches('/')));
        }
    }

    #[test]
    fn keys_differ() {
        let [one, two] = [new_key(), new_key()].map(|key| key.expect("random bytes"));
        assert_ne!(one, two);
        assert_eq!(one.len(), "gold-".len() + 48);
    }
}
