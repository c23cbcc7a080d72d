//! Chat templates: the Jinja source stored in a GGUF, rendered as transformers renders it.
//!
//! Templates are written for Python's Jinja2 (`trim_blocks`, `lstrip_blocks`, loop controls,
//! string methods, dicts printed by `repr`). What they print is the protocol that the model was
//! trained on, so the result must be equal byte for byte.

mod generation;
mod python;

use jiff::civil::Date;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, ErrorKind};
use serde_json::json;

const NAME: &str = "chat";
const BUILT_IN: &str = include_str!("templates/smollm3.jinja");

/// Steps that one rendering may take: a template from a stranger's file must not hang the app.
const FUEL: u64 = 5_000_000;

/// A compiled chat template and what it can express.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    capabilities: Capabilities,
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
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
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
    /// Compiles `source`.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`], with the line, when it is not a template.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
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
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_formatter(python::write_value);
        environment.add_filter("string", |value: &Value| python::str_of(value));
        environment.add_filter("tojson", python::to_json);
        environment.add_function(
            "raise_exception",
            |message: String| -> Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        environment
            .add_template_owned(NAME, generation::without_tags(source))
            .map_err(|error| syntax_error(&error))?;
        let mut template = Self {
            environment,
            capabilities: Capabilities::default(),
        };
        template.capabilities = template.probe();
        Ok(template)
    }

    /// Goldcrest's own template of the SmolLM3 protocol, for files that bring none.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse(BUILT_IN).expect("the built-in template compiles, as its test shows")
    }

    /// What the template reacts to.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
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
        let clock = Value::from_function(move |format: &str| python::strftime(today, format));
        let context = minijinja::context! {
            strftime_now => clock,
            ..Value::from(Serde(context))
        };
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(context))
            .map_err(|error| TemplateError::Render {
                line: line_of(&error),
                message: message_of(&error),
            })
    }

    /// Renders one question in several ways and looks at what changes. A template that refuses
    /// a question has no capabilities.
    fn probe(&self) -> Capabilities {
        const MARK: &str = "goldcrest-probe";
        let render = |extra: serde_json::Value| {
            let mut context = json!({
                "messages": [{"role": "user", "content": "Hi"}],
                "add_generation_prompt": true,
            });
            if let (Some(context), Some(extra)) = (context.as_object_mut(), extra.as_object()) {
                context.extend(extra.clone());
            }
            self.render(&context, Date::constant(2026, 1, 1)).ok()
        };
        let shows_mark = |extra| render(extra).is_some_and(|text: String| text.contains(MARK));
        let tool = json!({"type": "function", "function": {"name": MARK, "description": "",
            "parameters": {"type": "object", "properties": {}}}});
        Capabilities {
            thinking: render(json!({"enable_thinking": true}))
                != render(json!({"enable_thinking": false})),
            tools: shows_mark(json!({"xml_tools": [tool], "tools": [tool]})),
            instructions: shows_mark(json!({"custom_instructions": MARK})),
        }
    }
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

fn message_of(error: &Error) -> String {
    error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
