//! Small models made by code, quantised and read back.

mod architectures;
mod folders;
mod hostile;
mod lengths;
mod models;
mod output;
#[expect(dead_code, reason = "no test here asks for a GPU")]
#[path = "../../../skipped.rs"]
mod skipped;
mod types;
