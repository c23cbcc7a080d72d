//! The tools of the window: the built-in ones, and those of the MCP servers in the settings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::tools::{ChatHit, ChatSearch};
use chat::{AppRow, Chat, Failure, Settings};
use mcp::{Secret, ServerConfig, ServerOptions, ServerState, Servers};
use serde::Serialize;

use crate::tools::{built_in, chat_hits};

/// The servers, for display. Values of their environments are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct ServerList {
    pub configs: Vec<ServerConfig>,
    pub states: Vec<ServerState>,
}

/// Owns the servers, whose settings are stored beside the chats. Clones share them.
#[derive(Clone)]
pub struct ToolServers(Arc<Inner>);

struct Inner {
    chat: Chat,
    /// `None` once the app ends.
    servers: Mutex<Option<Arc<Servers>>>,
}

impl ToolServers {
    /// Starts the enabled servers, and gives the chats their tools. `on_change` is called after each change of a server.
    pub fn start(
        chat: &Chat,
        on_change: impl Fn() + Send + Sync + 'static,
    ) -> Result<ToolServers, Failure> {
        let registry = built_in(Arc::new(AllChats(chat.clone())))
            .map_err(|error| Failure::other(format!("The tools did not start: {error}.")))?;
        let settings = chat.snapshot()?.settings;
        let configs = stored(chat).unwrap_or_else(|failure| {
            tracing::warn!(%failure, "no tool server was started");
            Vec::new()
        });
        let servers = Servers::start(configs, options(&settings));
        let servers = servers
            .map_err(|error| Failure::other(format!("The tool servers did not start: {error}.")))?;
        let servers = Arc::new(servers);
        let changed = chat.clone();
        servers.on_change(move || {
            changed.tools_changed();
            on_change();
        });
        registry.attach(Arc::<Servers>::clone(&servers));
        chat.set_tools(Arc::new(registry))?;
        Ok(ToolServers(Arc::new(Inner {
            chat: chat.clone(),
            servers: Mutex::new(Some(servers)),
        })))
    }

    /// Returns the servers.
    pub fn list(&self) -> Result<ServerList, Failure> {
        let mut configs = stored(&self.0.chat)?;
        for config in &mut configs {
            for value in config.env.values_mut() {
                *value = Secret::default();
            }
        }
        let states = self.with(|servers| servers.states()).unwrap_or_default();
        Ok(ServerList { configs, states })
    }

    /// Stores other settings of the servers, and applies them. An empty value in an environment leaves the stored one.
    pub fn save(&self, mut configs: Vec<ServerConfig>) -> Result<ServerList, Failure> {
        let before = stored(&self.0.chat)?;
        let mut names: Vec<&str> = Vec::new();
        for config in &configs {
            let name = config.name.trim();
            if name.is_empty() || config.command.trim().is_empty() {
                return Err(Failure::other("A server needs a name and a program."));
            }
            if names.contains(&name) {
                return Err(Failure::other(format!(
                    "There are two servers “{name}”. Give one another name."
                )));
            }
            names.push(name);
        }
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        for (at, config) in configs.iter_mut().enumerate() {
            config.name = config.name.trim().to_owned();
            let known = before.iter().find(|it| it.name == config.name);
            // A server with another name stands where it stood.
            let renamed = before
                .get(at)
                .filter(|it| !names.contains(&it.name) && it.command == config.command);
            let known = known.or(renamed);
            for (key, value) in &mut config.env {
                if value.expose().is_empty()
                    && let Some(stored) = known.and_then(|known| known.env.get(key))
                {
                    *value = stored.clone();
                }
            }
        }
        let value = serde_json::to_value(&configs);
        let value = value.map_err(|error| Failure::other(error.to_string()))?;
        self.0.chat.save_row(AppRow::Servers, value)?;
        let settings = self.0.chat.snapshot()?.settings;
        self.with(|servers| servers.set(configs, options(&settings)));
        self.list()
    }

    /// Applies the settings of the app to the servers that start from now on.
    pub fn settings_changed(&self, settings: &Settings) -> Result<(), Failure> {
        let configs = stored(&self.0.chat)?;
        self.with(|servers| servers.set(configs, options(settings)));
        Ok(())
    }

    /// Starts a server that does not run.
    pub fn start_server(&self, name: &str) {
        self.with(|servers| servers.start_server(name));
    }

    /// Stops a server until it is started again.
    pub fn stop_server(&self, name: &str) {
        self.with(|servers| servers.stop_server(name));
    }

    /// Ends all servers, with their processes. The chat has been closed before.
    pub fn end(&self) {
        // The last owner ends them.
        let servers = self.servers().take();
        drop(servers);
    }

    fn with<T>(&self, act: impl FnOnce(&Servers) -> T) -> Option<T> {
        let servers = self.servers().clone();
        servers.as_deref().map(act)
    }

    fn servers(&self) -> MutexGuard<'_, Option<Arc<Servers>>> {
        self.0
            .servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn stored(chat: &Chat) -> Result<Vec<ServerConfig>, Failure> {
    let Some(value) = chat.row(AppRow::Servers)? else {
        return Ok(Vec::new());
    };
    // The error itself may quote a secret.
    serde_json::from_value(value).map_err(|_| {
        Failure::other(
            "The stored tool servers cannot be read. Another version may have saved them.",
        )
    })
}

fn options(settings: &Settings) -> ServerOptions {
    ServerOptions {
        handshake_timeout: Duration::from_secs(settings.server_seconds.into()),
        call_timeout: Duration::from_secs(settings.tool_seconds.into()),
        ..ServerOptions::default()
    }
}

/// The chats on the disk.
struct AllChats(Chat);

impl ChatSearch for AllChats {
    fn search(
        &self,
        query: &str,
        limit: usize,
        except: Option<i64>,
    ) -> Result<Vec<ChatHit>, String> {
        let found = self.0.search(query);
        let found = found.map_err(|failure| failure.message)?;
        Ok(chat_hits(found, limit, except))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::collections::BTreeMap;
    use std::thread;
    use std::time::Instant;

    use mcp::ServerStatus;
    use store::Store;

    use super::*;
    use crate::models::tests::AnyModel;

    fn servers() -> (Chat, ToolServers) {
        let store = Store::in_memory().expect("a store");
        let chat = Chat::start(store, Box::new(AnyModel::default()), Box::new(|_| {}));
        let chat = chat.expect("a chat");
        let servers = ToolServers::start(&chat, || {}).expect("the tools");
        (chat, servers)
    }

    /// A server that is not started, with a password. It would answer nothing.
    fn server(name: &str, password: &str) -> ServerConfig {
        let env = [("PASSWORD".to_owned(), Secret::from(password.to_owned()))];
        ServerConfig {
            name: name.to_owned(),
            command: "sleep".to_owned(),
            args: vec!["600".to_owned()],
            env: BTreeMap::from(env),
            cwd: None,
            folders: Vec::new(),
            network: false,
            sandboxed: false,
            enabled: false,
        }
    }

    #[test]
    fn passwords_go_to_no_window_and_stay_when_it_saves() {
        let (chat, servers) = servers();
        let shown = servers.save(vec![server("birds", "hunter2")]);
        let shown = shown.expect("saved").configs;
        assert_eq!(shown[0].env["PASSWORD"].expose(), "");
        let mut shown = servers.list().expect("the servers").configs;
        assert_eq!(shown[0].env["PASSWORD"].expose(), "");
        // The window sends what it was shown, with another name and argument.
        shown[0].name = "wrens".to_owned();
        shown[0].args = vec!["601".to_owned()];
        servers.save(shown).expect("saved");
        let kept = stored(&chat).expect("the servers");
        assert_eq!((&*kept[0].name, &*kept[0].args[0]), ("wrens", "601"));
        assert_eq!(kept[0].env["PASSWORD"].expose(), "hunter2");
        // Another program does not have it.
        let other = ServerConfig {
            command: "cat".to_owned(),
            ..server("others", "")
        };
        servers.save(vec![other]).expect("saved");
        let kept = stored(&chat).expect("the servers");
        assert_eq!(kept[0].env["PASSWORD"].expose(), "");
        servers.end();
        chat.shutdown();
    }

    #[test]
    fn a_server_must_answer_within_the_time_of_the_settings() {
        let (chat, servers) = servers();
        let settings = chat.snapshot().expect("a snapshot").settings;
        let settings = Settings {
            server_seconds: 1,
            ..settings
        };
        let settings = chat.save_settings(settings).expect("saved");
        servers.settings_changed(&settings).expect("applied");
        let silent = ServerConfig {
            enabled: true,
            ..server("birds", "")
        };
        servers.save(vec![silent]).expect("saved");
        let began = Instant::now();
        let reason = loop {
            let mut states = servers.list().expect("the servers").states;
            if let ServerStatus::Failed { reason } = states.remove(0).status {
                break reason;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "the default");
            thread::sleep(Duration::from_millis(20));
        };
        assert!(reason.contains("within 1 second."), "{reason}");
        servers.end();
        chat.shutdown();
    }
}
