//! Small models made by code, quantised and read back.

mod architectures;
mod folders;
mod hostile;
mod lengths;
mod models;
mod output;
mod types;
