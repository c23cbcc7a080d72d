//! A schema without the parts that cannot be enforced. The rest is enforced, so an answer may be looser than the schema.

use serde_json::{Map, Value, json};

use super::probe::is_pattern_usable;

/// Keywords that are not enforced.
const UNENFORCED: [&str; 17] = [
    "$dynamicRef",
    "$recursiveRef",
    "contains",
    "contentSchema",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Formats that are enforced.
const FORMATS: [&str; 10] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uri",
    "uuid",
];

/// Largest bound of a length or a count.
const MAX_COUNT: u64 = 4096;

/// Properties of an object, at most.
const MAX_PROPERTIES: usize = 300;

/// Loosens one schema.
pub(super) struct Loosening<'a> {
    root: &'a Value,
    keeps_patterns: bool,
    /// True if objects have no properties but those that the schema names. Schemas that are combined cannot be closed.
    closes: bool,
    /// Parts that are left out, as sentences.
    pub left_out: Vec<String>,
}

impl<'a> Loosening<'a> {
    pub fn new(root: &'a Value) -> Self {
        Loosening {
            root,
            keeps_patterns: true,
            closes: !combines(root),
            left_out: Vec::new(),
        }
    }

    pub fn without_patterns(root: &'a Value) -> Self {
        Loosening {
            keeps_patterns: false,
            ..Self::new(root)
        }
    }

    pub fn loosened(&mut self) -> Value {
        self.schema(self.root, "")
    }

    /// Loosens the schema at a path.
    fn schema(&mut self, schema: &Value, path: &str) -> Value {
        let Value::Object(fields) = schema else {
            return schema.clone();
        };
        if let Some(target) = fields.get("$ref")
            && !target.as_str().is_some_and(|target| self.resolves(target))
        {
            self.leave_out("$ref", path);
            return true.into();
        }
        let mut out = Map::new();
        for (key, value) in fields {
            if let Some(value) = self.keyword(key, value, path) {
                out.insert(key.clone(), value);
            }
        }
        let lost = ["properties", "patternProperties"];
        let is_lost = |key: &&str| fields.contains_key(*key) && !out.contains_key(*key);
        if lost.iter().any(is_lost) {
            // Their names are additional ones now.
            out.shift_remove("additionalProperties");
        } else if self.closes && is_closable(&out) {
            out.insert("additionalProperties".to_owned(), false.into());
        }
        out.into()
    }

    /// Loosens the value of a keyword; `None` if it is left out.
    fn keyword(&mut self, key: &str, value: &Value, path: &str) -> Option<Value> {
        let path = format!("{path}/{key}");
        match key {
            "title" | "description" | "default" | "examples" | "$comment" | "x-guidance" => None,
            // Forms of more of them take seconds to compile.
            "properties" | "required" if length(value) > MAX_PROPERTIES => {
                self.left_out(&path);
                None
            }
            "properties" | "$defs" | "definitions" => Some(self.each(value, &path)),
            "patternProperties" => {
                let patterns = value.as_object().into_iter().flatten();
                let is_usable = |(pattern, _): (&String, _)| is_pattern_usable(pattern);
                if !self.keeps_patterns || !patterns.map(|it| (it.0, it.1)).all(is_usable) {
                    self.left_out(&path);
                    return None;
                }
                Some(self.each(value, &path))
            }
            "items" | "prefixItems" | "allOf" | "anyOf" | "oneOf" if value.is_array() => {
                let items = value.as_array().into_iter().flatten().enumerate();
                let items = items.map(|(at, item)| self.schema(item, &format!("{path}/{at}")));
                Some(items.collect())
            }
            "items" | "additionalItems" | "additionalProperties" => Some(self.schema(value, &path)),
            "pattern" => {
                let pattern = value.as_str().filter(|_| self.keeps_patterns);
                if !pattern.is_some_and(is_pattern_usable) {
                    self.left_out(&path);
                    return None;
                }
                Some(value.clone())
            }
            "format" => {
                let is_known = value.as_str().is_some_and(|it| FORMATS.contains(&it));
                if !is_known || !self.keeps_patterns {
                    self.left_out(&format!("{path} ({})", value.as_str().unwrap_or_default()));
                    return None;
                }
                Some(value.clone())
            }
            "minLength" | "minItems" | "minProperties" if is_above_limit(value) => {
                self.left_out
                    .push(format!("`{path}` is enforced up to {MAX_COUNT}"));
                Some(json!(MAX_COUNT))
            }
            "maxLength" | "maxItems" | "maxProperties" if is_above_limit(value) => {
                self.left_out(&path);
                None
            }
            "uniqueItems" | "unevaluatedItems" | "unevaluatedProperties"
                if *value == Value::Bool(key != "uniqueItems") =>
            {
                None
            }
            _ if UNENFORCED.contains(&key) => {
                self.left_out(&path);
                None
            }
            _ => Some(value.clone()),
        }
    }

    /// Loosens each value of an object.
    fn each(&mut self, value: &Value, path: &str) -> Value {
        let Value::Object(fields) = value else {
            return value.clone();
        };
        let fields = fields
            .iter()
            .map(|(key, value)| (key.clone(), self.schema(value, &format!("{path}/{key}"))));
        Value::Object(fields.collect())
    }

    fn leave_out(&mut self, key: &str, path: &str) {
        self.left_out(&format!("{path}/{key}"));
    }

    fn left_out(&mut self, path: &str) {
        /// Sentences, at most.
        const MOST: usize = 50;
        /// Characters of a path.
        const LONGEST: usize = 200;
        if self.left_out.len() < MOST {
            let path: String = path.chars().take(LONGEST).collect();
            self.left_out.push(format!("`{path}` is not enforced"));
        }
    }

    /// Returns true if a reference leads to a part of this schema other than itself.
    fn resolves(&self, target: &str) -> bool {
        let Some(pointer) = target.strip_prefix('#') else {
            return false;
        };
        let is_plain = !pointer.contains(['~', '%']);
        let found = self.root.pointer(pointer);
        is_plain && found.is_some_and(|it| it.get("$ref").is_none_or(|next| next != target))
    }
}

/// Number of the items or fields of a value.
fn length(value: &Value) -> usize {
    let items = value.as_array().map(Vec::len);
    items.or(value.as_object().map(Map::len)).unwrap_or(0)
}

fn is_above_limit(value: &Value) -> bool {
    value.as_f64().is_some_and(|count| count > MAX_COUNT as f64)
}

/// Returns true if an object's unnamed properties can be forbidden.
fn is_closable(schema: &Map<String, Value>) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return false;
    };
    let required = schema.get("required").and_then(Value::as_array);
    let are_named = required.into_iter().flatten().all(|name| {
        let name = name.as_str();
        name.is_some_and(|name| properties.contains_key(name))
    });
    let decides = ["additionalProperties", "patternProperties", "minProperties"];
    are_named && !decides.iter().any(|key| schema.contains_key(*key))
}

/// Returns true if a value in it combines schemas of an object: each of them allows what the others name.
fn combines(root: &Value) -> bool {
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                let others = ["allOf", "anyOf", "oneOf", "$ref"];
                let others = others.iter().filter(|key| fields.contains_key(**key));
                let all = fields.get("allOf").and_then(Value::as_array);
                let several = all.is_some_and(|all| all.len() > 1);
                if several || others.count() + usize::from(fields.contains_key("properties")) > 1 {
                    return true;
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    false
}
