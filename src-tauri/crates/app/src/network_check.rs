//! Counts the network sockets of this process and its descendants: the web view's, and a download's.
//!
//! Linux shows them in `/proc`: `PID/fd` has a link `socket:[INODE]` for each open socket, and the tables in `PID/net`
//! list the inodes by protocol. Other systems have no such files.

mod tables;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use self::tables::{Socket, Sockets};

/// Result of a check, for the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum NetworkCheck {
    /// The sockets were counted.
    Counted { processes: Vec<ProcessSockets> },
    /// This system does not show them.
    NotShown { system: String },
}

/// Role of a process in the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum ProcessRole {
    /// The app itself.
    App,
    /// The program that downloads, which is started only when the user requests a download.
    Download,
    /// The local API, which listens for programs on this computer.
    Api,
    /// The renderer of the window.
    WebView,
    /// Another process that was started by the app, or by one of these.
    Other,
}

/// The open sockets of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ProcessSockets {
    pub pid: u32,
    /// Name of its program.
    pub name: String,
    pub role: ProcessRole,
    /// True if the system let the app see its sockets.
    pub readable: bool,
    /// Network sockets, such as `TCP 10.0.0.2:51234 to 18.4.5.6:443`.
    pub network: Vec<String>,
    /// Number of sockets to other programs on this computer.
    pub local: u32,
    /// Number of sockets to the kernel itself, which reports changes by them.
    pub kernel: u32,
    /// Number of sockets in no table: they are not connected.
    pub unconnected: u32,
}

/// Counts the sockets now.
pub fn run() -> NetworkCheck {
    if cfg!(target_os = "linux") {
        let processes = processes(Path::new("/proc"), std::process::id());
        NetworkCheck::Counted { processes }
    } else {
        NetworkCheck::NotShown {
            system: std::env::consts::OS.to_owned(),
        }
    }
}

/// Returns a process and its descendants, as a folder shows them.
fn processes(proc: &Path, root: u32) -> Vec<ProcessSockets> {
    // Most processes share a network namespace, and so the tables.
    let mut tables = HashMap::new();
    let mut found = Vec::new();
    for pid in family(proc, root) {
        let process = proc.join(pid.to_string());
        // A process that has ended meanwhile has none.
        let Some(name) = name(&process) else { continue };
        let inodes = inodes(&process);
        let namespace = fs::read_link(process.join("ns/net")).unwrap_or_default();
        // Read after the sockets, so that one that was just opened is in them.
        let sockets = tables
            .entry(namespace)
            .or_insert_with(|| Sockets::read(&process.join("net")));
        let role = role(&name, pid == root);
        found.push(count(pid, name, role, inodes, sockets));
    }
    found
}

fn role(name: &str, is_root: bool) -> ProcessRole {
    if is_root {
        ProcessRole::App
    } else if name == "goldcrest-fetch" {
        ProcessRole::Download
    } else if name == "goldcrest-serve" {
        ProcessRole::Api
    } else if name.starts_with("WebKit") {
        ProcessRole::WebView
    } else {
        ProcessRole::Other
    }
}

fn count(
    pid: u32,
    name: String,
    role: ProcessRole,
    inodes: Option<Vec<u64>>,
    sockets: &Sockets,
) -> ProcessSockets {
    let mut counted = ProcessSockets {
        pid,
        name,
        role,
        readable: inodes.is_some(),
        network: Vec::new(),
        local: 0,
        kernel: 0,
        unconnected: 0,
    };
    for inode in inodes.unwrap_or_default() {
        match sockets.of(inode) {
            Some(Socket::Network(words)) => counted.network.push(words.clone()),
            Some(Socket::Local) => counted.local += 1,
            Some(Socket::Kernel) => counted.kernel += 1,
            None => counted.unconnected += 1,
        }
    }
    counted.network.sort_unstable();
    counted
}

/// Returns a process and its descendants, parents first.
fn family(proc: &Path, root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let parent = pid.and_then(|_| parent(&entry.path()));
        if let (Some(pid), Some(parent)) = (pid, parent) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut family = vec![root];
    let mut at = 0;
    while let Some(pid) = family.get(at) {
        let mut below = children.remove(pid).unwrap_or_default();
        below.sort_unstable();
        family.extend(below);
        at += 1;
    }
    family
}

fn parent(process: &Path) -> Option<u32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the name of the program, which `comm` truncates at 15 characters.
fn name(process: &Path) -> Option<String> {
    let command = fs::read(process.join("cmdline")).unwrap_or_default();
    let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
    let program = String::from_utf8_lossy(program);
    match Path::new(&*program).file_name() {
        Some(name) => Some(name.to_string_lossy().into_owned()),
        None => Some(
            fs::read_to_string(process.join("comm"))
                .ok()?
                .trim()
                .to_owned(),
        ),
    }
}

/// Returns the inodes of the open sockets; `None` if the system does not let the app see them.
fn inodes(process: &Path) -> Option<Vec<u64>> {
    let entries = fs::read_dir(process.join("fd")).ok()?;
    let inode = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        inode.parse().ok()
    };
    Some(entries.flatten().filter_map(inode).collect())
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
