//! Compilation without a model, which shows if a schema can be used.

use std::sync::OnceLock;

use llguidance::ParserFactory;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities};
use serde_json::{Value, json};

use super::limits::{limits, reason_of};

/// Returns true if llguidance can match this regular expression.
pub(super) fn is_pattern_usable(pattern: &str) -> bool {
    /// Longest one, in bytes.
    const LONGEST: usize = 1000;
    let schema = json!({"type": "string", "pattern": pattern});
    pattern.len() <= LONGEST && warnings(&with_options(schema)).is_ok()
}

/// Compiles a schema for a vocabulary of single bytes. Returns llguidance's warnings; the error is a message.
pub(super) fn warnings(schema: &Value) -> Result<Vec<String>, String> {
    static FACTORY: OnceLock<Result<ParserFactory, String>> = OnceLock::new();
    let factory = FACTORY.get_or_init(|| {
        let bytes = ApproximateTokEnv::single_byte_env();
        let factory = ParserFactory::new(&bytes, InferenceCapabilities::default(), &[]);
        let mut factory = factory.map_err(|error| error.to_string())?;
        *factory.quiet().limits_mut() = limits();
        Ok(factory)
    });
    let factory = factory.as_ref().map_err(Clone::clone)?;
    let grammar = TopLevelGrammar::from_json_schema(schema.clone());
    let parser = factory.create_parser(grammar);
    let mut parser = parser.map_err(|error| reason_of(&error.to_string()))?;
    Ok(parser.grammar_warnings())
}

/// The schema with the form in which models write JSON: on one line, with a space behind each comma and colon.
pub(super) fn with_options(schema: Value) -> Value {
    let mut schema = match schema {
        Value::Bool(true) => json!({}),
        other => other,
    };
    if let Value::Object(fields) = &mut schema {
        let options = json!({
            "item_separator": ", ",
            "key_separator": ": ",
            "whitespace_flexible": false,
            "coerce_one_of": true,
            "lenient": true,
        });
        fields.insert("x-guidance".to_owned(), options);
    }
    schema
}
