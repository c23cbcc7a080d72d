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

use super::protocol::{Protocol, SMOLLM3_CHAT};

/// A chat template with its capabilities and origin.
#[derive(Debug)]
pub struct ChatTemplate {
    protocol: &'static Protocol,
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
    /// run it; else Goldcrest's own of the `protocol` that the file's vocabulary suggests.
    #[must_use]
    pub fn of_file(
        source: Option<&str>,
        protocol: &'static Protocol,
        sandbox: Option<Arc<dyn TemplateSandbox>>,
    ) -> Self {
        let Some(source) = source else {
            return Self::of_protocol(protocol, TemplateUse::BuiltIn);
        };
        if let Some((protocol, may_run)) = known::protocol_of(source) {
            return match compile(source) {
                Ok(environment) if may_run => {
                    let program = Program::Compiled(Box::new(environment));
                    Self::new(protocol, program, TemplateUse::Known)
                }
                _ => Self::of_protocol(protocol, TemplateUse::Known),
            };
        }
        match sandbox {
            Some(sandbox) => {
                let source = source.to_owned();
                let program = Program::Sandboxed { source, sandbox };
                Self::new(protocol, program, TemplateUse::Own)
            }
            None => Self::of_protocol(protocol, TemplateUse::Unknown),
        }
    }

    /// Compiles a trusted `source` to run in this process.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`], with the line.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        Ok(Self::new(
            &SMOLLM3_CHAT,
            Program::Compiled(Box::new(compile(source)?)),
            TemplateUse::Known,
        ))
    }

    /// Goldcrest's own template of the SmolLM3 protocol, for files without one.
    #[must_use]
    pub fn built_in() -> Self {
        Self::of_protocol(&SMOLLM3_CHAT, TemplateUse::BuiltIn)
    }

    /// Goldcrest's own template of a protocol.
    fn of_protocol(protocol: &'static Protocol, origin: TemplateUse) -> Self {
        let environment = compile(protocol.template)
            .expect("the built-in templates compile, as their test shows");
        Self::new(protocol, Program::Compiled(Box::new(environment)), origin)
    }

    fn new(protocol: &'static Protocol, program: Program, origin: TemplateUse) -> Self {
        let mut template = Self {
            protocol,
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

    /// The chat format that it writes.
    #[must_use]
    pub fn protocol(&self) -> &'static Protocol {
        self.protocol
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
