//! JSON Schemas of untrusted sources, made usable: too large ones are refused, and what cannot be enforced is left out.

use serde_json::{Value, json};

use super::limits::reason_of;
use super::loosening::Loosening;
use super::probe::{warnings, with_options};

/// Longest schema in bytes; published ones of tools have 50,000.
const MAX_BYTES: usize = 256 << 10;
/// Deepest nesting.
const MAX_DEPTH: usize = 64;

/// Error of a JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is too long.
    #[error("the JSON schema has {} bytes; at most {} are read", figures::count(*bytes), figures::count(MAX_BYTES))]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It is nested too deeply.
    #[error("the JSON schema is nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// It is no schema, or nothing can satisfy it, or it is too complex.
    #[error("the JSON schema cannot be used: {0}")]
    Unusable(String),
}

/// Checks a JSON Schema without a model. Returns the parts that are not enforced, as sentences.
///
/// # Errors
/// Fails if answers cannot be held to it.
pub fn check_schema(schema: &Value) -> Result<Vec<String>, SchemaError> {
    usable(schema).map(|usable| usable.left_out)
}

/// A schema that compiles.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UsableSchema {
    /// The schema, with options for llguidance.
    pub schema: Value,
    /// Parts that are not enforced.
    pub left_out: Vec<String>,
}

impl UsableSchema {
    /// Any object.
    pub fn any_object() -> UsableSchema {
        UsableSchema {
            schema: with_options(json!({"type": "object"})),
            left_out: Vec::new(),
        }
    }
}

/// Makes a schema usable.
pub(super) fn usable(schema: &Value) -> Result<UsableSchema, SchemaError> {
    if depth(schema) > MAX_DEPTH {
        return Err(SchemaError::TooDeep);
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_BYTES {
        return Err(SchemaError::TooLong { bytes });
    }
    compiled(Loosening::new(schema)).or_else(|error| {
        // Patterns are the part that most often is too complex.
        compiled(Loosening::without_patterns(schema)).map_err(|_| error)
    })
}

fn compiled(mut loosening: Loosening<'_>) -> Result<UsableSchema, SchemaError> {
    let schema = with_options(loosening.loosened());
    let mut left_out = loosening.left_out;
    for warning in warnings(&schema).map_err(SchemaError::Unusable)? {
        let sentence = if warning.starts_with("oneOf") {
            "`oneOf` is enforced as `anyOf`".to_owned()
        } else {
            reason_of(&warning)
        };
        if !left_out.contains(&sentence) {
            left_out.push(sentence);
        }
    }
    Ok(UsableSchema { schema, left_out })
}

/// Depth of a value, without recursion.
fn depth(value: &Value) -> usize {
    let (mut deepest, mut open) = (0, vec![(value, 1)]);
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|it| (it, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|it| (it, depth + 1))),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn nested(depth: usize) -> Value {
        let mut schema = json!({"type": "string"});
        for _ in 0..depth {
            schema = json!({"type": "object", "properties": {"a": schema}});
        }
        schema
    }

    /// Schemas that are to take time, memory or the stack.
    pub(crate) fn hostile_schemas() -> Vec<(&'static str, Value)> {
        let many: Vec<Value> = (0..2000)
            .map(|at| json!({"const": format!("{at}")}))
            .collect();
        let wide: serde_json::Map<_, _> = (0..3000)
            .map(|at| {
                (
                    format!("p{at}"),
                    json!({"type": ["string", "null", "array"]}),
                )
            })
            .collect();
        let intersections: Vec<Value> = (0..12)
            .map(|_| json!({"anyOf": [{"type": "string"}, {"type": "object"}, {"minLength": 2}]}))
            .collect();
        vec![
            ("deep", nested(500)),
            ("long", json!({"description": "x".repeat(1 << 20)})),
            ("recursive", json!({"$ref": "#"})),
            (
                "a loop",
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            ),
            (
                "a tree",
                json!({"type": "object", "properties": {"next": {"$ref": "#"}}}),
            ),
            ("elsewhere", json!({"$ref": "https://example.org/schema"})),
            ("many", json!({"anyOf": many})),
            ("wide", json!({"type": "object", "properties": wide})),
            ("intersections", json!({"allOf": intersections})),
            (
                "pattern",
                json!({"type": "string", "pattern": "((a{1,1000}){1,1000}){1,1000}$"}),
            ),
            (
                "backtracking",
                json!({"type": "string", "pattern": "^(a+)+(b|c*)*(?=d)\\1$"}),
            ),
            (
                "lengths",
                json!({"type": "string", "minLength": 1_000_000_000_000_u64}),
            ),
            (
                "items",
                json!({"type": "array", "minItems": 4_000_000_000_u64, "items": {}}),
            ),
            (
                "numbers",
                json!({"type": "number", "multipleOf": 1e-300, "minimum": -1e308}),
            ),
            ("no schema", json!([1])),
            ("text", json!("ü".repeat(500))),
            ("false", json!(false)),
            (
                "wrong",
                json!({"type": 7, "properties": "x", "enum": {"ü": "é".repeat(90)}}),
            ),
            (
                "options",
                json!({"type": "object", "x-guidance": {"whitespace_pattern": "((x*)*)*"}}),
            ),
            (
                "conditions",
                json!({"if": {"const": 1}, "then": false, "not": {}, "uniqueItems": true}),
            ),
        ]
    }

    #[test]
    fn hostile_schemas_are_errors_or_loosened_within_a_moment() {
        for (name, schema) in hostile_schemas() {
            let started = Instant::now();
            let checked = check_schema(&schema);
            let took = started.elapsed();
            assert!(
                took < Duration::from_secs(3),
                "{name}: {took:?} {checked:?}"
            );
        }
        assert_eq!(check_schema(&nested(500)), Err(SchemaError::TooDeep));
        let long = check_schema(&json!({"description": "x".repeat(1 << 20)}));
        assert!(matches!(long, Err(SchemaError::TooLong { .. })), "{long:?}");
        let error = check_schema(&json!({"type": "birds"})).expect_err("no type");
        assert!(error.to_string().contains("birds"), "{error}");
    }

    #[test]
    fn parts_that_are_not_enforced_are_named() {
        let schema = json!({
            "type": "object",
            "title": "Birds",
            "properties": {
                "kind": {"type": "string", "not": {"const": "crow"}, "format": "bird"},
                "rings": {"type": "array", "uniqueItems": true, "maxItems": 100_000},
                "where": {"$ref": "https://example.org/place"},
                "name": {"type": "string", "pattern": "^(?!x)"},
                "uniqueItems": {"type": "integer"},
            },
            "uniqueItems": false,
        });
        let left_out = check_schema(&schema).expect("the rest is enforced");
        assert_eq!(
            left_out,
            [
                "`/properties/kind/not` is not enforced",
                "`/properties/kind/format (bird)` is not enforced",
                "`/properties/rings/uniqueItems` is not enforced",
                "`/properties/rings/maxItems` is not enforced",
                "`/properties/where/$ref` is not enforced",
                "`/properties/name/pattern` is not enforced",
            ]
        );
        let usual = json!({
            "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}}},
            "type": "object",
            "properties": {"place": {"$ref": "#/$defs/Place"}, "n": {"type": ["integer", "null"]}},
        });
        assert_eq!(check_schema(&usual), Ok(Vec::new()));
    }

    #[test]
    fn only_objects_that_are_not_combined_are_closed() {
        let closed = |schema: &Value| {
            usable(schema).expect("a schema").schema["additionalProperties"] == false
        };
        let object = json!({"type": "object", "properties": {"a": {}}});
        assert!(closed(&object));
        for (key, value) in [
            ("additionalProperties", json!(true)),
            ("allOf", json!([{"properties": {"b": {}}}])),
            ("required", json!(["b"])),
        ] {
            let mut other = object.clone();
            other[key] = value;
            assert!(!closed(&other), "{key}");
        }
    }
}
