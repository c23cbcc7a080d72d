//! The sandbox of a server: bubblewrap on Linux, by namespaces of the kernel. Other systems have none that a program may
//! use for another without rights of its own.

use serde::Serialize;

use crate::config::ServerConfig;

/// Protection against a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Sandbox {
    /// No network, and no files but its program and the folders given to it.
    Full,
    /// Likewise, with the network. That includes programs on this computer that listen on it.
    NetworkAllowed,
    /// It may do all that the user may.
    None {
        /// Sentence on the reason.
        why: String,
    },
}

impl Sandbox {
    /// Returns the protection of a server on this computer.
    pub(crate) fn of(config: &ServerConfig) -> Sandbox {
        if !config.sandboxed {
            return Sandbox::None {
                why: "The sandbox is switched off for this server.".to_owned(),
            };
        }
        match linux::bubblewrap() {
            Ok(_) if config.network => Sandbox::NetworkAllowed,
            Ok(_) => Sandbox::Full,
            Err(why) => Sandbox::None {
                why: why.to_owned(),
            },
        }
    }

    /// Returns a sentence for the user.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Sandbox::Full => {
                "It runs in a sandbox: it has no network, and sees only the folders given to it."
                    .to_owned()
            }
            Sandbox::NetworkAllowed => {
                "It runs in a sandbox with the network, and sees only the folders given to it."
                    .to_owned()
            }
            Sandbox::None { why } => {
                format!("It runs without a sandbox, and may do all that you may. {why}")
            }
        }
    }

    /// Returns true if there is one.
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self, Sandbox::None { .. })
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{HOME, Inside, arguments, bubblewrap};

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::path::{Component, Path, PathBuf};
    use std::sync::OnceLock;
    use std::time::Duration;

    use system::child::{Call, Child};

    use crate::config::GivenFolder;

    /// Home of a server.
    pub(crate) const HOME: &str = "/tmp/user";
    const PLACES: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];
    const MISSING: &str = "The sandbox needs bubblewrap, which is not installed. Install the package \"bubblewrap\", or \
                           switch the sandbox off for this server.";
    const REFUSED: &str = "The sandbox needs user namespaces, which this system refuses to bubblewrap. Allow them, or \
                           switch the sandbox off for this server.";
    /// Folders of the system with programs and libraries; links on most systems today.
    const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
    /// Settings of the system without which programs do not run, or cannot read certificates, names and times.
    const SETTINGS: [&str; 16] = [
        "/etc/alternatives",
        "/etc/ca-certificates",
        "/etc/crypto-policies",
        "/etc/host.conf",
        "/etc/hosts",
        "/etc/ld.so.cache",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/localtime",
        "/etc/mime.types",
        "/etc/nsswitch.conf",
        "/etc/pki",
        "/etc/protocols",
        "/etc/services",
        "/etc/ssl",
        "/etc/timezone",
    ];

    /// Returns bubblewrap if it works here, else a sentence on what is missing. It is tried once.
    pub(crate) fn bubblewrap() -> Result<&'static Path, &'static str> {
        static FOUND: OnceLock<Result<PathBuf, &str>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let program = PLACES.iter().map(PathBuf::from).find(|path| path.is_file());
            let program = program.ok_or(MISSING)?;
            let trial = [
                "--unshare-all",
                "--die-with-parent",
                "--ro-bind",
                "/",
                "/",
                "true",
            ];
            let child = Child {
                program: program.clone(),
                leading: trial.iter().map(OsString::from).collect(),
                timeout: Duration::from_secs(10),
                output_limit: 0,
            };
            match child.run(Call::default()) {
                Ok(_) => Ok(program),
                Err(error) => {
                    tracing::warn!("bubblewrap does not work: {}", error.stderr.trim());
                    Err(REFUSED)
                }
            }
        });
        found.as_deref().map_err(|why| *why)
    }

    /// The view of a server.
    pub(crate) struct Inside<'a> {
        /// Files of its program.
        pub parts: &'a [PathBuf],
        /// Folders given to it.
        pub folders: &'a [GivenFolder],
        /// True with the network.
        pub network: bool,
        /// Folder in which it starts.
        pub cwd: Option<&'a Path>,
        /// File in place of the list of users, which has one.
        pub users: &'a Path,
    }

    /// Returns bubblewrap's arguments before those of the program.
    ///
    /// # Errors
    /// Returns a sentence if a folder cannot be given.
    pub(crate) fn arguments(inside: &Inside<'_>) -> Result<Vec<OsString>, String> {
        let mut args: Vec<OsString> = Vec::new();
        let mut add = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
            args.extend(words.iter().map(|word| word.as_ref().to_owned()));
        };
        // Ends it with this app, however the app ends.
        add(&[
            &"--unshare-all",
            &"--die-with-parent",
            &"--new-session",
            &"--cap-drop",
            &"ALL",
        ]);
        if inside.network {
            add(&[
                &"--share-net",
                &"--ro-bind-try",
                &"/etc/resolv.conf",
                &"/etc/resolv.conf",
            ]);
        }
        add(&[&"--ro-bind", &"/usr", &"/usr"]);
        for folder in SYSTEM {
            match std::fs::read_link(folder) {
                Ok(target) => add(&[&"--symlink", &target, &folder]),
                Err(_) => add(&[&"--ro-bind-try", &folder, &folder]),
            }
        }
        for file in SETTINGS {
            add(&[&"--ro-bind-try", &file, &file]);
        }
        add(&[&"--ro-bind", &inside.users, &"/etc/passwd"]);
        add(&[
            &"--proc", &"/proc", &"--dev", &"/dev", &"--tmpfs", &"/tmp", &"--dir", &HOME,
        ]);
        for part in inside.parts.iter().filter(|part| !is_shown(part)) {
            add(&[&"--ro-bind", part, part]);
        }
        for folder in in_order(inside.folders)? {
            let bind = if folder.writable {
                "--bind"
            } else {
                "--ro-bind"
            };
            add(&[&bind, &folder.path, &folder.path]);
        }
        let cwd = inside.cwd.unwrap_or(Path::new(HOME));
        let given = inside.folders.iter().map(|it| &it.path);
        if cwd != Path::new(HOME)
            && !is_shown(cwd)
            && !given.chain(inside.parts).any(|it| cwd.starts_with(it))
        {
            return Err(format!(
                "It is to start in {}, which is not among the folders given to it. Give it that folder.",
                cwd.display()
            ));
        }
        add(&[&"--remount-ro", &"/", &"--chdir", &cwd, &"--"]);
        Ok(args)
    }

    /// Returns whether every server sees a path.
    fn is_shown(path: &Path) -> bool {
        let is_system = SYSTEM.iter().any(|it| path.starts_with(it));
        is_system || path.starts_with("/usr")
    }

    /// Sorts the folders: one inside another must be bound after it, to keep its own rights.
    fn in_order(folders: &[GivenFolder]) -> Result<Vec<&GivenFolder>, String> {
        let mut sorted: Vec<&GivenFolder> = folders.iter().collect();
        sorted.sort_by_key(|it| it.path.components().count());
        for GivenFolder { path, .. } in &sorted {
            let shown = path.display();
            let is_special = ["/proc", "/sys", "/dev", "/etc/passwd"]
                .iter()
                .any(|it| path.starts_with(it));
            let is_plain =
                path.is_absolute() && !path.components().any(|it| it == Component::ParentDir);
            if is_special || !is_plain || path.parent().is_none() {
                return Err(format!(
                    "{shown} cannot be given to it: choose a folder of your own."
                ));
            }
            if !path.exists() {
                return Err(format!(
                    "The folder {shown}, which is given to it, is not there."
                ));
            }
        }
        Ok(sorted)
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use std::path::Path;

    pub(crate) fn bubblewrap() -> Result<&'static Path, &'static str> {
        Err("Goldcrest has no sandbox for programs on this system.")
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::config::GivenFolder;

    fn given(path: &Path, writable: bool) -> GivenFolder {
        GivenFolder {
            path: path.to_owned(),
            writable,
        }
    }

    fn inside(folders: &[GivenFolder], cwd: Option<&Path>) -> Result<String, String> {
        let users = PathBuf::from("/etc/passwd");
        let args = arguments(&Inside {
            parts: &[],
            folders,
            network: false,
            cwd,
            users: &users,
        })?;
        let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn a_folder_inside_another_keeps_its_own_rights() {
        let outer = tempfile::tempdir().expect("a folder");
        let inner = outer.path().join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let args = inside(
            &[given(&inner, false), given(outer.path(), true)],
            Some(&inner),
        )
        .expect("arguments");
        let position = |mode: &str, path: &Path| {
            let words = format!("--{mode} {0} {0}", path.display());
            args.find(&words)
                .unwrap_or_else(|| panic!("{words} in {args}"))
        };
        assert!(position("bind", outer.path()) < position("ro-bind", &inner));
        assert!(args.ends_with(&format!("--chdir {} --", inner.display())));
        assert!(!args.contains("--share-net"));
    }

    #[test]
    fn a_folder_that_cannot_be_given_is_named() {
        for path in ["/", "/proc/1", "relative", "/usr/../root"] {
            let refused = inside(&[given(Path::new(path), false)], None).expect_err(path);
            assert!(refused.starts_with(path), "{refused}");
        }
        let refused =
            inside(&[given(Path::new("/nonexistent/a"), false)], None).expect_err("absent");
        assert!(refused.contains("is not there"), "{refused}");
        let refused = inside(&[], Some(Path::new("/root"))).expect_err("not given");
        assert!(refused.contains("Give it that folder"), "{refused}");
    }

    #[test]
    fn a_server_without_a_sandbox_says_why() {
        let none = Sandbox::None {
            why: "The sandbox is switched off for this server.".to_owned(),
        };
        assert!(
            none.sentence()
                .contains("all that you may. The sandbox is switched off")
        );
    }
}
