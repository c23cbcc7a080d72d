//! House rules that run as tests over the Rust code and the UI.
//!
//! A rule is a function from a [`Tree`] to its violations. `tests/house.rs` runs each over this
//! repository; each rule's own unit tests show that it can fail, on a tree made up for it.

mod modules;
mod paths;
pub mod rules;
mod source;
mod tree;

pub use source::code_only;
pub use tree::{File, Tree};

use std::fmt;

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, from the repository's top folder.
    pub path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// Fault and remedy.
    pub what: String,
}

impl Finding {
    /// Makes a finding about a file as a whole.
    pub fn in_file(path: &str, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: 0,
            what: what.into(),
        }
    }

    /// Makes a finding about a line, given as an index from 0.
    pub fn at(path: &str, index: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: index + 1,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}
