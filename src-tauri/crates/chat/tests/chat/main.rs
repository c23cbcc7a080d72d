//! Chat's verbs over a scripted model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod branching;
mod chats;
mod clocks;
mod copies;
mod crashing;
mod failing;
mod fitting;
mod opening;
mod remembering;
mod scripted;
mod sending;
mod settings;
mod stopping;
mod unsaved;
mod wire;
