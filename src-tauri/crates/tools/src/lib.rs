//! Tools that a model may call: the registry, and those that are built in.
//!
//! The calculator and Python compute in a child process with limits (`process.rs`): an expression or a program can
//! overflow the stack or take all memory. The others are short and run here.

#![warn(missing_docs)]

mod arguments;
mod built_in;
mod calculator;
mod call;
mod clock;
mod date_time;
mod fingerprint;
mod goldcrest_help;
mod process;
mod python;
mod registry;
mod schema;
mod search_chats;
mod serve;
mod tool;

pub use inference::ToolOutcome;

pub use arguments::{check_arguments, checked};
pub use built_in::built_in;
pub use call::{CallAnswer, MadeCall, REPEATED, answer_to, given};
pub use clock::now;
pub use registry::{Registry, ToolProvider};
pub use search_chats::{ChatHit, ChatSearch};
pub use serve::serve;
pub use tool::{Effects, Tool, ToolError, ToolInfo, ToolOutput, ToolRun, ToolSource};
