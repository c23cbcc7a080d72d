//! Chat's verbs over a scripted model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod scripted;
mod sending;
