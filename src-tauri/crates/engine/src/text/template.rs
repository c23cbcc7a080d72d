//! Chat templates: the Jinja source stored in a GGUF, rendered as transformers renders it.
//!
//! Templates target Python's Jinja2 (`trim_blocks`, `lstrip_blocks`, loop controls,
//! string methods, dicts printed by `repr`). Their output is the protocol that the model was
//! trained on, so the result must be byte-identical.
//!
//! A template is an untrusted program, so only published texts that are known to be harmless run, and Goldcrest's own.

mod compiled;
mod error;
mod generation;
mod python;

use inference::ToolDefinition;
use jiff::civil::Date;
use minijinja::Environment;
use serde_json::json;

use compiled::{compile, render};
pub use error::TemplateError;

use super::protocol::{Basis, ChosenProtocol, Protocol, SMOLLM3_CHAT};

/// A compiled chat template with its capabilities.
#[derive(Debug)]
pub struct ChatTemplate {
    protocol: &'static Protocol,
    environment: Box<Environment<'static>>,
    capabilities: Capabilities,
    /// Goldcrest's own template, if this one cannot list tools.
    with_tools: Option<Box<ChatTemplate>>,
}

/// The variables that a template uses, found by rendering it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The format has thinking, and `enable_thinking` changes the prompt.
    pub thinking: bool,
    /// The variable `custom_instructions` appears in the prompt.
    pub instructions: bool,
    /// Tools appear in the prompt, and the format has calls.
    pub tools: bool,
    /// A tool whose argument is a program has a list and calls of its own.
    pub code: bool,
}

impl ChatTemplate {
    /// Returns the template of a file: `source` if it is a published one that may run, else Goldcrest's own of the
    /// `chosen` format.
    #[must_use]
    pub fn of_file(source: Option<&str>, chosen: ChosenProtocol) -> Self {
        let may_run = chosen.basis == Basis::Published { may_run: true };
        let published = source
            .filter(|_| may_run)
            .and_then(|source| compile(source).ok());
        let Some(environment) = published else {
            let mut own = Self::of_protocol(chosen.protocol);
            if let Some([tools, calls]) = source.and_then(introductions) {
                own.environment.add_global("tools_introduction", tools);
                own.environment.add_global("calls_introduction", calls);
            }
            return own;
        };
        let mut template = Self::new(chosen.protocol, environment);
        if !template.capabilities.tools && chosen.protocol.tools.is_some() {
            template.with_tools = Some(Box::new(Self::of_protocol(chosen.protocol)));
        }
        template
    }

    /// Compiles a trusted `source` of the SmolLM3 format.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`], with the line.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        Ok(Self::new(&SMOLLM3_CHAT, compile(source)?))
    }

    /// Goldcrest's own template of the SmolLM3 format.
    #[must_use]
    pub fn built_in() -> Self {
        Self::of_protocol(&SMOLLM3_CHAT)
    }

    /// Goldcrest's own template of a format.
    pub(crate) fn of_protocol(protocol: &'static Protocol) -> Self {
        let environment = compile(protocol.template)
            .expect("the built-in templates compile, as their test shows");
        Self::new(protocol, environment)
    }

    fn new(protocol: &'static Protocol, environment: Environment<'static>) -> Self {
        let mut template = Self {
            protocol,
            environment: Box::new(environment),
            capabilities: Capabilities::default(),
            with_tools: None,
        };
        template.capabilities = template.probe();
        template
    }

    /// The chat format that it writes.
    #[must_use]
    pub fn protocol(&self) -> &'static Protocol {
        self.protocol
    }

    /// Its capabilities.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Returns true if tools can be listed in a prompt, by this template or by Goldcrest's own in its place.
    #[must_use]
    pub fn can_call_tools(&self) -> bool {
        self.listing_tools().capabilities.tools
    }

    /// The template of conversations with tools.
    pub(crate) fn listing_tools(&self) -> &ChatTemplate {
        self.with_tools.as_deref().unwrap_or(self)
    }

    /// Returns true if one of these tools has calls that are programs, without JSON, and a list of its own.
    pub(crate) fn runs_code(&self, tools: &[ToolDefinition]) -> bool {
        self.capabilities.code && tools.iter().any(|tool| tool.code.is_some())
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
        render(&self.environment, context, today)
    }

    /// Renders one question with several variables and compares the prompts. A variable on which the template fails is
    /// not a capability.
    fn probe(&self) -> Capabilities {
        const MARK: &str = "goldcrest-probe";
        const DAY: Date = Date::constant(2026, 1, 1);
        let prompt = |mut context: serde_json::Value| {
            context["messages"] = json!([{"role": "user", "content": "Hi"}]);
            context["add_generation_prompt"] = json!(true);
            self.render(&context, DAY)
        };
        let shows_mark = |context| prompt(context).is_ok_and(|text| text.contains(MARK));
        let with = prompt(json!({"enable_thinking": true}));
        let without = prompt(json!({"enable_thinking": false}));
        let tools = self.protocol.tools.as_ref();
        let lists = |variable: Option<&str>, value: serde_json::Value| {
            variable.is_some_and(|variable| shows_mark(json!({variable: [value]})))
        };
        let tool = json!({"type": "function", "function": {"name": MARK, "parameters": {}}});
        Capabilities {
            thinking: self.protocol.thinking.is_some() && with.is_ok() && with != without,
            instructions: shows_mark(json!({"custom_instructions": MARK})),
            tools: lists(tools.map(|it| it.tools), tool),
            code: lists(tools.and_then(|it| it.signatures), json!(MARK)),
        }
    }
}

/// Returns the words before the list of tools, and before the form of a call, of a template of Qwen's that does not run.
/// Its models were trained on them. Words that are not plain are not taken.
fn introductions(source: &str) -> Option<[String; 2]> {
    const LONGEST: usize = 500;
    let (_, rest) = source.split_once(r"# Tools\n\n")?;
    let (tools, rest) = rest.split_once(r"\n<tools>")?;
    let (_, rest) = rest.split_once(r"</tools>\n\n")?;
    let (calls, _) = rest.split_once(r"\n<tool_call>")?;
    let words = [tools, calls].map(|words| words.replace(r"\n", "\n"));
    let is_plain = |c: char| c == '\n' || (' '..='~').contains(&c) && !"\"'\\{|}".contains(c);
    let are_plain = words
        .iter()
        .all(|words| words.len() <= LONGEST && words.chars().all(is_plain));
    are_plain.then_some(words)
}

#[cfg(test)]
mod tests;
