//! Forms that an answer is held to: JSON of a schema, and calls of tools. llguidance says which tokens a form allows next.

mod calls;
mod compiler;
mod cost;
mod limits;
mod loosening;
mod probe;
mod rules;
mod schema;

pub(crate) use calls::MAX_CALLS;
pub(crate) use compiler::Grammars;
pub use cost::FormCost;
pub(crate) use limits::reason_of;
pub(crate) use rules::{AnswerRules, Form, OpeningTag};
#[cfg(test)]
pub(crate) use schema::tests::hostile_schemas;
pub use schema::{SchemaError, check_schema};
