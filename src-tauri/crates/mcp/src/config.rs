//! Settings of a server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Settings of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ServerConfig {
    /// Name, unique among the servers.
    pub name: String,
    /// Program: a path, or a name that is on the search path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment, beside the few that every server has.
    pub env: BTreeMap<String, Secret>,
    /// Folder in which it starts. In the sandbox it must be among `folders`, or part of the program.
    pub cwd: Option<PathBuf>,
    /// Folders and files that the sandbox gives to it.
    pub folders: Vec<GivenFolder>,
    /// True if the sandbox lets it use the network.
    pub network: bool,
    /// True if it runs in a sandbox, where the system has one.
    pub sandboxed: bool,
    /// True if it runs.
    pub enabled: bool,
}

/// A folder, or a file, that a server may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct GivenFolder {
    /// Absolute path. It is the same inside the sandbox.
    pub path: PathBuf,
    /// True if it may be changed.
    pub writable: bool,
}

/// The value of a variable, which may be a password: `Debug` does not show it. It is serialised in full, because the
/// settings are.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the value.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Secret(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Limits of all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerOptions {
    /// Time from the start of a program to the list of its tools. `npx` may download the program in it.
    pub handshake_timeout: Duration,
    /// Longest time of a call, if its own deadline is not earlier.
    pub call_timeout: Duration,
    /// Bytes of a result's text that are kept.
    pub result_limit: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            handshake_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(300),
            result_limit: 100_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_variable_is_stored_and_is_not_shown() {
        let config = ServerConfig {
            name: "mail".into(),
            command: "mail-server".into(),
            args: Vec::new(),
            env: BTreeMap::from([("TOKEN".into(), Secret::from("hunter2".to_owned()))]),
            cwd: None,
            folders: Vec::new(),
            network: false,
            sandboxed: true,
            enabled: true,
        };
        let shown = format!("{config:?}");
        assert!(
            shown.contains("TOKEN") && !shown.contains("hunter2"),
            "{shown}"
        );
        let stored = serde_json::to_string(&config).expect("plain data");
        let read: ServerConfig = serde_json::from_str(&stored).expect("what was written");
        assert_eq!(read, config);
    }
}
