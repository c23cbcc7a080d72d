//! The sandbox of untrusted templates, outside of this process.

use std::fmt::Debug;

use jiff::civil::Date;
use serde_json::Value;

use super::error::TemplateError;

/// Renders untrusted templates in isolation. The shell implements it with a child process; this crate starts
/// none.
pub trait TemplateSandbox: Debug + Send + Sync {
    /// Renders `source` over `context` on the day `today`, within limits of time, memory and output.
    ///
    /// # Errors
    /// [`TemplateError::Stopped`] at a limit, else the error of the template.
    fn render(&self, source: &str, context: &Value, today: Date) -> Result<String, TemplateError>;

    /// Renders `source` over each of `contexts`, within the limits of one rendering where the sandbox supports it.
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

/// The origin of a model's chat template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateUse {
    /// Goldcrest's own, because the file has none.
    BuiltIn,
    /// The file's: its text is known.
    Known,
    /// Goldcrest's own, in place of the file's, whose text is unknown.
    Unknown,
    /// The file's, whose text is unknown, in a sandbox.
    Own,
}

impl TemplateUse {
    /// Its name in the output of commands.
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
