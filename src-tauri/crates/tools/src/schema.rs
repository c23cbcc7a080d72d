//! JSON Schema, as far as it tells a model which of its arguments is wrong.
//!
//! A schema may come from an untrusted server. Nothing that it refers to is loaded, and the check ends after a number
//! of steps: a few references that double at each level would otherwise take years. What it does not decide, such as
//! patterns, formats and references to other documents, is allowed; the tool checks its arguments itself.

use serde_json::{Map, Number, Value};

/// Maximum schemas that are applied in one check, and values that are compared.
const STEPS: usize = 100_000;
/// Maximum nesting of schemas.
const DEPTH: usize = 64;
/// Maximum values of an enumeration, and names of arguments, in a sentence.
const NAMED: usize = 12;

/// Returns the first fault of a value, without a full stop; `None` if none was found.
pub fn fault(schema: &Value, value: &Value) -> Option<String> {
    let mut check = SchemaCheck {
        root: schema,
        left: STEPS,
    };
    match check.check(schema, value, &mut Vec::new(), 0) {
        Err(Stop::Fault(fault)) => Some(fault),
        Ok(()) | Err(Stop::Undecided) => None,
    }
}

struct SchemaCheck<'s> {
    root: &'s Value,
    left: usize,
}

/// The end of a check before the whole value was checked.
enum Stop {
    Fault(String),
    /// The steps or levels do not suffice.
    Undecided,
}

type Checked = Result<(), Stop>;

/// The way to a value: names and indices.
type Place = Vec<String>;

impl<'s> SchemaCheck<'s> {
    fn check(
        &mut self,
        schema: &'s Value,
        value: &Value,
        place: &mut Place,
        depth: usize,
    ) -> Checked {
        self.step()?;
        if depth > DEPTH {
            return Err(Stop::Undecided);
        }
        let schema = match schema {
            Value::Bool(false) => return fail(format!("{} is not allowed", named(place))),
            Value::Object(schema) => schema,
            _ => return Ok(()),
        };
        if let Some(target) = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|it| self.target(it))
        {
            self.check(target, value, place, depth + 1)?;
        }
        self.type_of(schema, value, place)?;
        self.choices(schema, value, place)?;
        match value {
            Value::Object(object) => self.object(schema, object, place, depth)?,
            Value::Array(items) => self.array(schema, items, place, depth)?,
            Value::Number(number) => range(schema, number, place)?,
            Value::String(text) => length(
                schema,
                ["minLength", "maxLength"],
                text.chars().count(),
                "characters",
                place,
            )?,
            _ => {}
        }
        self.combined(schema, value, place, depth)
    }

    fn step(&mut self) -> Checked {
        self.left = self.left.checked_sub(1).ok_or(Stop::Undecided)?;
        Ok(())
    }

    /// Returns the schema at a reference within the document.
    fn target(&self, reference: &str) -> Option<&'s Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    fn type_of(&mut self, schema: &'s Map<String, Value>, value: &Value, place: &Place) -> Checked {
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => return Ok(()),
        };
        if types.is_empty() || types.iter().any(|name| is_of(name, value)) {
            return Ok(());
        }
        let wanted: Vec<&str> = types.iter().map(|name| with_article(name)).collect();
        let found = match value {
            Value::Number(number) if types.contains(&"integer") => number.to_string(),
            value => with_article(name_of(value)).to_owned(),
        };
        let wanted = wanted.join(" or ");
        fail(format!("{} must be {wanted}, not {found}", named(place)))
    }

    fn choices(&mut self, schema: &'s Map<String, Value>, value: &Value, place: &Place) -> Checked {
        if let Some(only) = schema.get("const").filter(|only| *only != value) {
            return fail(format!("{} must be {only}", named(place)));
        }
        let Some(Value::Array(choices)) = schema.get("enum") else {
            return Ok(());
        };
        for choice in choices {
            self.step()?;
            if choice == value {
                return Ok(());
            }
        }
        let listed: Vec<String> = choices.iter().take(NAMED).map(Value::to_string).collect();
        let more = if choices.len() > NAMED { ", …" } else { "" };
        fail(format!(
            "{} must be one of {}{more}",
            named(place),
            listed.join(", ")
        ))
    }

    fn object(
        &mut self,
        schema: &'s Map<String, Value>,
        object: &Map<String, Value>,
        place: &mut Place,
        depth: usize,
    ) -> Checked {
        if let Some(Value::Array(required)) = schema.get("required") {
            for name in required.iter().filter_map(Value::as_str) {
                self.step()?;
                if !object.contains_key(name) {
                    return fail(format!("{} is missing", inner(place, name)));
                }
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.contains_key("patternProperties");
        for (name, value) in object {
            self.step()?;
            let property = properties.and_then(|properties| properties.get(name));
            let others = schema.get("additionalProperties").filter(|_| !patterns);
            match (property, others) {
                (None, Some(Value::Bool(false))) => {
                    return fail(format!(
                        "{} is unknown; {}",
                        inner(place, name),
                        known(properties)
                    ));
                }
                (Some(inside), _) | (None, Some(inside)) => {
                    place.push(name.clone());
                    self.check(inside, value, place, depth + 1)?;
                    place.pop();
                }
                (None, None) => {}
            }
        }
        length(
            schema,
            ["minProperties", "maxProperties"],
            object.len(),
            "entries",
            place,
        )
    }

    fn array(
        &mut self,
        schema: &'s Map<String, Value>,
        items: &[Value],
        place: &mut Place,
        depth: usize,
    ) -> Checked {
        length(
            schema,
            ["minItems", "maxItems"],
            items.len(),
            "entries",
            place,
        )?;
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let first = first.map_or(&[][..], Vec::as_slice);
        for (at, item) in items.iter().enumerate() {
            if let Some(inside) = first.get(at).or_else(|| schema.get("items")) {
                place.push(format!("[{at}]"));
                self.check(inside, item, place, depth + 1)?;
                place.pop();
            }
        }
        Ok(())
    }

    fn combined(
        &mut self,
        schema: &'s Map<String, Value>,
        value: &Value,
        place: &mut Place,
        depth: usize,
    ) -> Checked {
        let list = |name| {
            schema
                .get(name)
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice)
        };
        for inside in list("allOf") {
            self.check(inside, value, place, depth + 1)?;
        }
        for name in ["anyOf", "oneOf"] {
            let mut faults = Vec::new();
            for inside in list(name) {
                let length = place.len();
                match self.check(inside, value, place, depth + 1) {
                    Ok(()) => {
                        faults.clear();
                        break;
                    }
                    Err(Stop::Fault(fault)) => faults.push(fault),
                    Err(Stop::Undecided) => return Err(Stop::Undecided),
                }
                place.truncate(length);
            }
            if let Some(fault) = faults.pop() {
                let fault = match faults.is_empty() {
                    true => fault,
                    false => format!("{} has none of its allowed forms", named(place)),
                };
                return fail(fault);
            }
        }
        Ok(())
    }
}

fn fail(fault: String) -> Checked {
    Err(Stop::Fault(fault))
}

/// Checks the bounds of a number.
fn range(schema: &Map<String, Value>, number: &Number, place: &Place) -> Checked {
    let Some(found) = number.as_f64() else {
        return Ok(());
    };
    type Breaks = fn(f64, f64) -> bool;
    let bounds: [(&str, &str, Breaks); 4] = [
        ("minimum", "at least", |found, bound| found < bound),
        ("maximum", "at most", |found, bound| found > bound),
        ("exclusiveMinimum", "more than", |found, bound| {
            found <= bound
        }),
        ("exclusiveMaximum", "less than", |found, bound| {
            found >= bound
        }),
    ];
    for (key, words, breaks) in bounds {
        let bound = schema.get(key).filter(|bound| bound.is_number());
        if let Some(bound) = bound
            && bound.as_f64().is_some_and(|bound| breaks(found, bound))
        {
            return fail(format!("{} must be {words} {bound}", named(place)));
        }
    }
    Ok(())
}

/// Checks a length against the bounds under two keys.
fn length(
    schema: &Map<String, Value>,
    [least, most]: [&str; 2],
    found: usize,
    unit: &str,
    place: &Place,
) -> Checked {
    let bound = |key| schema.get(key).and_then(Value::as_u64);
    let found = found as u64;
    if let Some(least) = bound(least).filter(|least| found < *least) {
        return fail(format!(
            "{} must have at least {least} {unit}",
            named(place)
        ));
    }
    match bound(most).filter(|most| found > *most) {
        Some(most) => fail(format!("{} must have at most {most} {unit}", named(place))),
        None => Ok(()),
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        // An unknown type is the server's mistake, not the model's.
        "string" | "boolean" | "null" | "array" | "object" => name == name_of(value),
        _ => true,
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn with_article(name: &str) -> &'static str {
    match name {
        "null" => "null",
        "boolean" => "true or false",
        "number" => "a number",
        "integer" => "a whole number",
        "string" => "a string",
        "array" => "a list",
        _ => "an object",
    }
}

/// Returns a place as a model would write it.
fn named(place: &Place) -> String {
    if place.is_empty() {
        return "the value".to_owned();
    }
    let mut path = String::new();
    for step in place {
        if !path.is_empty() && !step.starts_with('[') {
            path.push('.');
        }
        path.push_str(step);
    }
    format!("`{path}`")
}

fn inner(place: &mut Place, name: &str) -> String {
    place.push(name.to_owned());
    let inner = named(place);
    place.pop();
    inner
}

fn known(properties: Option<&Map<String, Value>>) -> String {
    let names: Vec<String> = properties
        .into_iter()
        .flat_map(Map::keys)
        .take(NAMED)
        .map(|name| format!("`{name}`"))
        .collect();
    match &names[..] {
        [] => "there are none".to_owned(),
        names => format!("there are {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    fn says(schema: &Value, value: &Value) -> String {
        fault(schema, value).unwrap_or_default()
    }

    #[test]
    fn each_fault_is_named_with_its_place() {
        let schema = json!({
            "type": "object",
            "required": ["city"],
            "properties": {
                "city": { "type": "string", "minLength": 2 },
                "unit": { "enum": ["C", "F"] },
                "days": { "type": "integer", "minimum": 1, "maximum": 7 },
                "places": { "type": "array", "maxItems": 2, "items": { "$ref": "#/$defs/place" } },
                "when": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            },
            "additionalProperties": false,
            "$defs": { "place": { "type": "object", "required": ["x"], "properties": { "x": { "type": "number" } } } },
        });
        let good = json!({ "city": "Bonn", "unit": "C", "days": 3.0, "places": [{ "x": 1.5 }], "when": null });
        assert_eq!(says(&schema, &good), "");
        for (value, expected) in [
            (json!([]), "the value must be an object, not a list"),
            (json!({}), "`city` is missing"),
            (
                json!({ "city": 5 }),
                "`city` must be a string, not a number",
            ),
            (
                json!({ "city": "ü" }),
                "`city` must have at least 2 characters",
            ),
            (
                json!({ "city": "Bonn", "unit": "K" }),
                "`unit` must be one of \"C\", \"F\"",
            ),
            (
                json!({ "city": "Bonn", "days": 0 }),
                "`days` must be at least 1",
            ),
            (
                json!({ "city": "Bonn", "days": 8 }),
                "`days` must be at most 7",
            ),
            (
                json!({ "city": "Bonn", "days": 1.5 }),
                "`days` must be a whole number, not 1.5",
            ),
            (
                json!({ "city": "Bonn", "places": [{ "x": 1 }, {}] }),
                "`places[1].x` is missing",
            ),
            (
                json!({ "city": "Bonn", "places": [1, 2, 3] }),
                "`places` must have at most 2 entries",
            ),
            (
                json!({ "city": "Bonn", "when": 4 }),
                "`when` has none of its allowed forms",
            ),
            (
                json!({ "city": "Bonn", "town": 1 }),
                "`town` is unknown; there are `city`, `unit`, `days`, `places`, `when`",
            ),
        ] {
            assert_eq!(says(&schema, &value), expected, "{value}");
        }
    }

    #[test]
    fn what_is_not_decided_is_allowed() {
        for schema in [
            json!({ "$ref": "https://example.org/schema.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
            json!({ "$ref": "#/$defs/missing" }),
            json!({ "type": "date" }),
            json!({ "pattern": "(a+)+$" }),
            json!("no schema"),
        ] {
            assert_eq!(says(&schema, &json!("text")), "", "{schema}");
        }
    }

    #[test]
    fn hostile_schemas_end_quickly() {
        let mut levels = Map::new();
        for level in 1..60 {
            let below = json!({ "$ref": format!("#/$defs/{}", level - 1) });
            levels.insert(
                level.to_string(),
                json!({ "allOf": [below, below], "anyOf": [below, below] }),
            );
        }
        levels.insert("0".to_owned(), json!({}));
        let names: Vec<String> = (0..100_000).map(|at| format!("name{at}")).collect();
        let deep = "[".repeat(120) + &"]".repeat(120);
        let deep: Value = serde_json::from_str(&deep).expect("JSON");
        let began = Instant::now();
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "allOf": [{ "$ref": "#" }], "properties": { "a": { "$ref": "#" } } }),
            json!({ "$ref": "#/$defs/59", "$defs": levels }),
            json!({ "enum": names, "anyOf": names }),
            json!({ "items": { "$ref": "#" }, "not": deep }),
        ] {
            for value in [json!({ "a": {} }), deep.clone()] {
                fault(&schema, &value);
            }
        }
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
    }
}
