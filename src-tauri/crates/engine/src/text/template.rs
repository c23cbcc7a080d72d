//! Chat templates: the Jinja source stored in a GGUF, rendered as transformers renders it.
//!
//! Templates target Python's Jinja2 (`trim_blocks`, `lstrip_blocks`, loop controls,
//! string methods, dicts printed by `repr`). Their output is the protocol that the model was
//! trained on, so the result must be byte-identical.
//!
//! A template is an untrusted program. Only known texts run in this process; any
//! other is replaced by the built-in one, or runs in a [`TemplateSandbox`] of the caller.

mod compiled;
mod error;
mod generation;
mod known;
mod python;
mod sandbox;

use std::sync::Arc;

use jiff::civil::Date;
use minijinja::Environment;
use serde_json::json;

pub use compiled::render_template;
use compiled::{compile, render};
use error::MAX_SOURCE_BYTES;
pub use error::TemplateError;
pub use sandbox::{TemplateSandbox, TemplateUse};

const BUILT_IN: &str = include_str!("templates/smollm3.jinja");

/// A chat template with its capabilities and origin.
#[derive(Debug)]
pub struct ChatTemplate {
    program: Program,
    origin: TemplateUse,
    capabilities: Capabilities,
    fault: Option<TemplateError>,
}

/// Where a template runs.
#[derive(Debug)]
enum Program {
    /// In this process.
    Compiled(Box<Environment<'static>>),
    /// In a sandbox.
    Sandboxed {
        source: String,
        sandbox: Arc<dyn TemplateSandbox>,
    },
}

/// The variables that a template uses, found by rendering it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// `enable_thinking` changes the prompt.
    pub thinking: bool,
    /// Tools in `xml_tools` or `tools` appear in the prompt.
    pub tools: bool,
    /// The variable `custom_instructions` appears in the prompt.
    pub instructions: bool,
}

impl ChatTemplate {
    /// The template for a file with the template `source`: that one if its text is known, or if there is a `sandbox` to
    /// run it; else the built-in one.
    #[must_use]
    pub fn of_file(source: Option<&str>, sandbox: Option<Arc<dyn TemplateSandbox>>) -> Self {
        let Some(source) = source else {
            return Self::built_in();
        };
        if known::is_known(source)
            && let Ok(environment) = compile(source)
        {
            return Self::new(Program::Compiled(Box::new(environment)), TemplateUse::Known);
        }
        match sandbox {
            Some(sandbox) => {
                let source = source.to_owned();
                Self::new(Program::Sandboxed { source, sandbox }, TemplateUse::Own)
            }
            None => Self {
                origin: TemplateUse::Unknown,
                ..Self::built_in()
            },
        }
    }

    /// Compiles a trusted `source` to run in this process.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`], with the line.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        Ok(Self::new(
            Program::Compiled(Box::new(compile(source)?)),
            TemplateUse::Known,
        ))
    }

    /// Goldcrest's own template of the SmolLM3 protocol, for files without one.
    #[must_use]
    pub fn built_in() -> Self {
        let environment =
            compile(BUILT_IN).expect("the built-in template compiles, as its test shows");
        Self::new(
            Program::Compiled(Box::new(environment)),
            TemplateUse::BuiltIn,
        )
    }

    fn new(program: Program, origin: TemplateUse) -> Self {
        let mut template = Self {
            program,
            origin,
            capabilities: Capabilities::default(),
            fault: None,
        };
        match template.probe() {
            Ok(capabilities) => template.capabilities = capabilities,
            Err(error) => template.fault = Some(error),
        }
        template
    }

    /// Its origin.
    #[must_use]
    pub fn origin(&self) -> TemplateUse {
        self.origin
    }

    /// Its capabilities.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Why it failed on the first prompt of the probe.
    #[must_use]
    pub fn fault(&self) -> Option<&TemplateError> {
        self.fault.as_ref()
    }

    /// Renders the template over `context`, an object of template variables (`messages`,
    /// `add_generation_prompt`, `enable_thinking`, `xml_tools`, …), as if on the day `today`.
    ///
    /// # Errors
    /// [`TemplateError::Render`], with the line.
    pub fn render(
        &self,
        context: &serde_json::Value,
        today: Date,
    ) -> Result<String, TemplateError> {
        match &self.program {
            Program::Compiled(environment) => render(environment, context, today),
            Program::Sandboxed { source, .. } if source.len() > MAX_SOURCE_BYTES => {
                Err(TemplateError::TooLong {
                    bytes: source.len(),
                })
            }
            Program::Sandboxed { source, sandbox } => sandbox.render(source, context, today),
        }
    }

    /// Renders one question with several variables and compares the prompts. A variable on which the template fails is
    /// not a capability. A sandbox is called once.
    fn probe(&self) -> Result<Capabilities, TemplateError> {
        const MARK: &str = "goldcrest-probe";
        const DAY: Date = Date::constant(2026, 1, 1);
        let tool = json!({"type": "function", "function": {"name": MARK, "description": "",
            "parameters": {"type": "object", "properties": {}}}});
        let contexts = [
            json!({"enable_thinking": true}),
            json!({"enable_thinking": false}),
            json!({"xml_tools": [tool], "tools": [tool]}),
            json!({"custom_instructions": MARK}),
        ]
        .map(|mut context| {
            context["messages"] = json!([{"role": "user", "content": "Hi"}]);
            context["add_generation_prompt"] = json!(true);
            context
        });
        let prompts: Vec<_> = match &self.program {
            Program::Sandboxed { source, sandbox } if source.len() <= MAX_SOURCE_BYTES => {
                sandbox.render_each(source, &contexts, DAY)
            }
            _ => contexts
                .iter()
                .map(|context| self.render(context, DAY))
                .collect(),
        };
        let [thinking, without, tools, instructions] =
            <[_; 4]>::try_from(prompts).map_err(|_| TemplateError::Stopped {
                reason: "its sandbox left a prompt out".to_owned(),
            })?;
        let thinking = thinking?;
        let shows_mark =
            |prompt: Result<String, TemplateError>| prompt.is_ok_and(|text| text.contains(MARK));
        Ok(Capabilities {
            thinking: without.as_ref() != Ok(&thinking),
            tools: shows_mark(tools),
            instructions: shows_mark(instructions),
        })
    }
}

#[cfg(test)]
mod tests;
