//! The command that starts a server: its program, environment and sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config::ServerConfig;
use crate::program;
use crate::sandbox::Sandbox;

/// Variables that a server gets beside its own, where they are set: those that the official SDKs pass on.
#[cfg(not(windows))]
const INHERITED: [&str; 9] = [
    "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER",
];
#[cfg(windows)]
const INHERITED: [&str; 14] = [
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];
/// Programs that download the server before they run it.
const INSTALLERS: [&str; 8] = ["npx", "uvx", "bunx", "pnpx", "npm", "pnpm", "pipx", "uv"];

/// A command, ready to start. It has no `Debug`, because its environment may hold passwords.
pub struct Launch {
    /// Program.
    pub program: PathBuf,
    /// Arguments.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Folder in which it starts.
    pub cwd: Option<PathBuf>,
    /// File that the sandbox shows while the server runs.
    pub _users: Option<tempfile::NamedTempFile>,
}

impl Launch {
    /// Makes the command of a server.
    ///
    /// # Errors
    /// Returns a sentence if the program is not there, or the sandbox is not to be had.
    pub fn of(config: &ServerConfig, sandbox: &Sandbox) -> Result<Launch, String> {
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let program =
            program::find(&config.command, &search_path).ok_or_else(|| missing(config))?;
        match sandbox {
            Sandbox::None { why } if config.sandboxed && cfg!(target_os = "linux") => {
                Err(why.clone())
            }
            Sandbox::None { .. } => Ok(Launch {
                program,
                args: config.args.iter().map(OsString::from).collect(),
                env: with_own(inherited(), config),
                cwd: config.cwd.clone(),
                _users: None,
            }),
            Sandbox::Full | Sandbox::NetworkAllowed => Launch::in_sandbox(config, &program),
        }
    }

    #[cfg(target_os = "linux")]
    fn in_sandbox(config: &ServerConfig, program: &Path) -> Result<Launch, String> {
        use crate::parts;
        use crate::sandbox::{self, HOME, Inside};

        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let home = std::env::home_dir();
        let script = program::script(&config.command, &config.args);
        let parts = parts::of(program, script.as_deref(), &search_path, home.as_deref());
        let users = users().map_err(|error| format!("Its sandbox cannot be made: {error}."))?;
        let mut args = sandbox::arguments(&Inside {
            parts: &parts,
            folders: &config.folders,
            network: config.network,
            cwd: config.cwd.as_deref(),
            users: users.path(),
        })?;
        args.push(program.into());
        args.extend(config.args.iter().map(OsString::from));
        let folder = program.parent().unwrap_or(Path::new("/usr/bin"));
        let mut env: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), HOME.into()),
            ("TMPDIR".into(), "/tmp".into()),
            ("USER".into(), "user".into()),
            (
                "PATH".into(),
                format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display()).into(),
            ),
        ];
        let languages = inherited().into_iter();
        env.extend(
            languages.filter(|(name, _)| ["LANG", "LC_ALL", "TZ"].iter().any(|it| name == it)),
        );
        if !config.network {
            // They end at once with what is missing, in place of minutes of attempts.
            env.extend(
                ["npm_config_offline", "UV_OFFLINE"].map(|name| (name.into(), "true".into())),
            );
        }
        Ok(Launch {
            program: sandbox::bubblewrap()?.to_owned(),
            args,
            env: with_own(env, config),
            cwd: None,
            _users: Some(users),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn in_sandbox(_: &ServerConfig, _: &Path) -> Result<Launch, String> {
        Err("Goldcrest has no sandbox for programs on this system.".to_owned())
    }
}

/// Makes a list of users with one: the name of the real one is not a server's business, and some programs end without
/// any.
#[cfg(target_os = "linux")]
fn users() -> std::io::Result<tempfile::NamedTempFile> {
    use std::io::Write;
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let mut file = tempfile::NamedTempFile::new()?;
    let home = crate::sandbox::HOME;
    writeln!(
        file,
        "user:x:{}:{}::{home}:/bin/sh",
        user.as_raw(),
        group.as_raw()
    )?;
    Ok(file)
}

fn inherited() -> Vec<(OsString, OsString)> {
    let names = INHERITED.iter();
    let set = names.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    set.collect()
}

/// Adds a server's own variables, which replace others.
fn with_own(
    mut env: Vec<(OsString, OsString)>,
    config: &ServerConfig,
) -> Vec<(OsString, OsString)> {
    env.retain(|(name, _)| !config.env.keys().any(|own| name == own.as_str()));
    let own = config.env.iter();
    env.extend(own.map(|(name, value)| (name.into(), value.expose().into())));
    env
}

fn missing(config: &ServerConfig) -> String {
    let command = crate::clean::line(&config.command, 200);
    if Path::new(&config.command).components().count() > 1 {
        return format!("There is no program {command}.");
    }
    format!(
        "There is no program \"{command}\" on the search path. Install it, or write its full path. A program that only a \
         terminal finds needs the full path too."
    )
}

/// Returns a sentence if a server could not start because its program is to be downloaded first.
pub fn network_hint(config: &ServerConfig, sandbox: &Sandbox) -> Option<String> {
    let name = Path::new(&config.command).file_stem()?.to_str()?;
    let is_without = *sandbox == Sandbox::Full && INSTALLERS.contains(&name);
    is_without.then(|| {
        format!(
            "\"{name}\" downloads the server, and this one has no network. Allow it the network, or install the package \
             and write its program here."
        )
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn config(command: &str, sandboxed: bool) -> ServerConfig {
        ServerConfig {
            name: "a".into(),
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            folders: Vec::new(),
            network: false,
            sandboxed,
            enabled: true,
        }
    }

    #[test]
    fn a_server_runs_without_a_sandbox_only_if_it_was_switched_off() {
        let none = Sandbox::None {
            why: "Install bubblewrap.".to_owned(),
        };
        let refused = Launch::of(&config("sh", true), &none).err();
        assert_eq!(refused.as_deref(), Some("Install bubblewrap."));
        let Ok(launch) = Launch::of(&config("sh", false), &none) else {
            panic!("there is a shell");
        };
        assert!(launch.program.ends_with("sh") && launch.args.is_empty());
    }

    #[test]
    fn the_hint_on_the_network_is_for_installers_without_it() {
        assert!(network_hint(&config("/usr/bin/npx", true), &Sandbox::Full).is_some());
        assert_eq!(network_hint(&config("node", true), &Sandbox::Full), None);
        assert_eq!(
            network_hint(&config("npx", true), &Sandbox::NetworkAllowed),
            None
        );
    }
}
