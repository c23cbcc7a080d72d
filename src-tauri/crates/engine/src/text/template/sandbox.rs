//! Templates of unknown text, which run outside of this process.

use std::fmt::Debug;

use jiff::civil::Date;
use serde_json::Value;

use super::error::TemplateError;

/// Renders templates of unknown text where they can do no harm. The shell has a child process do it; this crate knows
/// no processes.
pub trait TemplateSandbox: Debug + Send + Sync {
    /// What `source` makes of `context` on the day `today`, within limits of time, memory and output.
    ///
    /// # Errors
    /// [`TemplateError::Stopped`] where a limit was reached, else what is wrong with the template.
    fn render(&self, source: &str, context: &Value, today: Date) -> Result<String, TemplateError>;

    /// What `source` makes of each of `contexts`, within the limits of one rendering where the sandbox can do so.
    fn render_each(
        &self,
        source: &str,
        contexts: &[Value],
        today: Date,
    ) -> Vec<Result<String, TemplateError>> {
        contexts
            .iter()
            .map(|context| self.render(source, context, today))
            .collect()
    }
}

/// Which template writes the prompts of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateUse {
    /// Goldcrest's own, because the file brings none.
    BuiltIn,
    /// The file's: its text is known.
    Known,
    /// Goldcrest's own, in place of the file's, whose text is unknown.
    Unknown,
    /// The file's, whose text is unknown, in a sandbox.
    Own,
}

impl TemplateUse {
    /// What it is called in the output of commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Known => "known",
            Self::Unknown => "unknown",
            Self::Own => "own",
        }
    }
}
