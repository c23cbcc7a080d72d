//! MCP servers as tools. A server is a program that a user added: it runs on this computer, in a sandbox where the
//! system has one, and is spoken to over its stdin and stdout. Nothing here opens a network socket.
//!
//! [`Servers`] owns a thread with an async runtime, in which each server has a task that starts it, lists its tools and
//! starts it again after a crash. Everything else is synchronous.

#![warn(missing_docs)]

mod call;
mod clean;
mod config;
mod launch;
mod listing;
mod log;
mod naming;
#[cfg(target_os = "linux")]
mod parts;
mod paste;
mod process;
mod program;
mod request;
mod sandbox;
mod servers;
mod state;
mod supervisor;
mod tool;
mod transport;

pub use config::{GivenFolder, Secret, ServerConfig, ServerOptions};
pub use paste::{ParseError, PastedServer, parse_servers};
pub use sandbox::Sandbox;
pub use servers::Servers;
pub use state::{ServerState, ServerStatus, ServerTool};
