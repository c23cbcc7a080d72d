//! `goldcrest-serve` with a scripted app: its routes, who may ask, and clients that do everything wrong.

#![expect(clippy::disallowed_types, reason = "its clients connect to it")]

mod access;
mod hostile;
mod places;
mod program;
mod refusals;
mod responses;
mod routes;
