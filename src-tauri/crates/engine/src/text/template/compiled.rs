//! Templates compiled for this process, with the syntax, filters and methods of transformers.

use jiff::civil::Date;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, ErrorKind};

use super::error::TemplateError;
use super::{generation, python};

const NAME: &str = "chat";

/// Instructions of one rendering. They bound neither time nor memory: one may be a product of long strings.
const FUEL: u64 = 5_000_000;

/// Compiles a template as transformers would.
pub(super) fn compile(source: &str) -> Result<Environment<'static>, TemplateError> {
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

pub(super) fn render(
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

/// The message of an error, truncated.
fn message_of(error: &Error) -> String {
    const LONGEST: usize = 500;
    let message = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    let shown = message
        .chars()
        .map(|c| if is_invisible(c) { ' ' } else { c });
    shown.take(LONGEST).collect()
}

/// Control characters, and those of Unicode that set the direction of the text: they would control a
/// terminal, or reorder the message in the window.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
