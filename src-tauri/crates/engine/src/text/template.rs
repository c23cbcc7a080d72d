//! Chat templates: the Jinja source stored in a GGUF, rendered as transformers renders it.
//!
//! Templates are written for Python's Jinja2 (`trim_blocks`, `lstrip_blocks`, loop controls,
//! string methods, dicts printed by `repr`). What they print is the protocol that the model was
//! trained on, so the result must be equal byte for byte.
//!
//! A template is a program from whoever made the file. Only known texts run in this process; any
//! other gives way to the built-in one, or runs in a [`TemplateSandbox`] of the caller's.

mod generation;
mod known;
mod python;
mod sandbox;

use std::sync::Arc;

use jiff::civil::Date;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use sandbox::{TemplateSandbox, TemplateUse, render_template};

const NAME: &str = "chat";
const BUILT_IN: &str = include_str!("templates/smollm3.jinja");

/// Steps that one rendering may take. They bound neither time nor memory: one step may be a product of long strings.
const FUEL: u64 = 5_000_000;

/// The longest source in bytes; the published templates have 5,000.
const LONGEST: usize = 64 << 10;

/// A chat template, what it can express, and where it came from.
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
    /// Wherever the sandbox has it run.
    Sandboxed {
        source: String,
        sandbox: Arc<dyn TemplateSandbox>,
    },
}

/// What a template reacts to, found by rendering it and looking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// `enable_thinking` changes the prompt.
    pub thinking: bool,
    /// Tools given as `xml_tools` or `tools` appear in the prompt.
    pub tools: bool,
    /// The variable `custom_instructions` appears in the prompt.
    pub instructions: bool,
}

/// Why a template cannot be used; lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TemplateError {
    /// The source is too long for a chat template.
    #[error("the chat template has {bytes} bytes; at most {LONGEST} are read")]
    TooLong {
        /// Length of the source.
        bytes: usize,
    },
    /// A sandbox ended it before it was done.
    #[error("the chat template was stopped: {reason}")]
    Stopped {
        /// The end of a sentence.
        reason: String,
    },
    /// The source is not a Jinja template.
    #[error("the chat template has an error in line {line}: {message}")]
    Syntax {
        /// Line of the template's source.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// The template stopped while rendering, by itself (`raise_exception`) or by a mistake.
    #[error("the chat template failed in line {line}: {message}")]
    Render {
        /// Line of the template's source.
        line: usize,
        /// What happened there.
        message: String,
    },
}

impl ChatTemplate {
    /// The template for a file that brings `source`: that one where its text is known, or where there is a `sandbox` to
    /// run it in; else the built-in one.
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

    /// Compiles `source` to run in this process, for which it has to be trusted.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`], with the line, when it is not a template.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        Ok(Self::new(
            Program::Compiled(Box::new(compile(source)?)),
            TemplateUse::Known,
        ))
    }

    /// Goldcrest's own template of the SmolLM3 protocol, for files that bring none.
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

    /// Which text it is.
    #[must_use]
    pub fn origin(&self) -> TemplateUse {
        self.origin
    }

    /// What the template reacts to.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Why it refused even the first question that it was given, to see what it reacts to.
    #[must_use]
    pub fn fault(&self) -> Option<&TemplateError> {
        self.fault.as_ref()
    }

    /// Renders the template over `context`, an object of template variables (`messages`,
    /// `add_generation_prompt`, `enable_thinking`, `xml_tools`, …), as if on the day `today`.
    ///
    /// # Errors
    /// [`TemplateError::Render`], with the line, when the template gives up.
    pub fn render(
        &self,
        context: &serde_json::Value,
        today: Date,
    ) -> Result<String, TemplateError> {
        match &self.program {
            Program::Compiled(environment) => render(environment, context, today),
            Program::Sandboxed { source, .. } if source.len() > LONGEST => {
                Err(TemplateError::TooLong {
                    bytes: source.len(),
                })
            }
            Program::Sandboxed { source, sandbox } => sandbox.render(source, context, today),
        }
    }

    /// Renders one question in several ways and looks at what changes. What a template refuses, it
    /// is not capable of. A sandbox is asked once.
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
            Program::Sandboxed { source, sandbox } if source.len() <= LONGEST => {
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

/// Compiles a template as transformers would.
fn compile(source: &str) -> Result<Environment<'static>, TemplateError> {
    if source.len() > LONGEST {
        return Err(TemplateError::TooLong {
            bytes: source.len(),
        });
    }
    let mut environment = Environment::new();
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|error| syntax_error(&error))?,
    );
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(python::method);
    environment.set_formatter(python::write_value);
    environment.add_filter("string", |value: &Value| python::str_of(value));
    environment.add_filter("tojson", python::to_json);
    environment.add_filter("indent", python::indent);
    environment.add_filter("format", python::format);
    environment.add_function(
        "raise_exception",
        |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        },
    );
    environment
        .add_template_owned(NAME, generation::without_tags(source))
        .map_err(|error| syntax_error(&error))?;
    Ok(environment)
}

fn render(
    environment: &Environment<'_>,
    context: &serde_json::Value,
    today: Date,
) -> Result<String, TemplateError> {
    let clock = Value::from_function(move |format: &str| python::strftime(today, format));
    let context = minijinja::context! {
        strftime_now => clock,
        ..Value::from(Serde(context))
    };
    environment
        .get_template(NAME)
        .and_then(|template| template.render(context))
        .map_err(|error| TemplateError::Render {
            line: line_of(&error),
            message: message_of(&error),
        })
}

fn syntax_error(error: &Error) -> TemplateError {
    TemplateError::Syntax {
        line: line_of(error),
        message: message_of(error),
    }
}

fn line_of(error: &Error) -> usize {
    error.line().unwrap_or(1)
}

/// What is wrong, cut where a template raises more than a sentence.
fn message_of(error: &Error) -> String {
    const LONGEST: usize = 500;
    let message = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    let shown = message.chars().map(|c| if is_unseen(c) { ' ' } else { c });
    shown.take(LONGEST).collect()
}

/// Control characters, and those of Unicode that set the direction of the text behind them: they would speak to a
/// terminal, or make the window's sentence read otherwise.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests;
