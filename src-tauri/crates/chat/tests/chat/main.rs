//! Chat's verbs over a scripted model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod api;
mod bench;
mod beside;
mod bin;
mod branching;
mod calling;
mod chats;
mod clocks;
mod consent;
mod context;
mod copies;
mod counter;
mod crashing;
mod crowded;
mod failing;
mod fitting;
mod folders;
mod forking;
mod guide;
mod idle;
mod importing;
mod importing_again;
mod opening;
mod order;
mod presets;
mod remembering;
mod replaced;
mod restoring;
mod running;
mod scripted;
mod sending;
mod settings;
mod shown;
mod steering;
mod stopping;
mod summaries;
mod temporary;
mod titling;
mod tool_bench;
mod tool_parts;
mod undoing;
mod unloading;
mod unsaved;
mod wire;
