//! The lenient reader for exports of other programs: JSON as values, of which a format uses those with the expected
//! type. A field of another type counts as absent.
//!
//! Unknown fields are dropped, and the rest is counted, so that the limits of a chat bound the memory, whatever the
//! size of the file.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::moment;
use crate::limits::{CHAT_TEXT, CHAT_VALUES, TEXT};

/// Maximum nesting of lists and objects; serde_json allows 128.
const DEEPEST: usize = 100;

/// The keys that the formats read, in order. All keys of a mapping and of a tool's input are kept.
const KEYS: &[&str] = &[
    "arguments",
    "asset_pointer",
    "attachments",
    "author",
    "chat_messages",
    "children",
    "command",
    "comment",
    "comments",
    "content",
    "content_type",
    "conversation_id",
    "create_time",
    "created",
    "createdAt",
    "created_at",
    "current_leaf_message_uuid",
    "current_node",
    "currentlySelected",
    "domain",
    "extracted_content",
    "fileIdentifier",
    "fileType",
    "file_name",
    "files",
    "finish_details",
    "finished_duration_sec",
    "function",
    "id",
    "inline_file_contents",
    "input",
    "is_visually_hidden_from_conversation",
    "language",
    "mapping",
    "message",
    "messages",
    "metadata",
    "name",
    "output",
    "parameters",
    "parent",
    "parent_message_uuid",
    "parts",
    "pattern",
    "reasoning",
    "reasoning_content",
    "recipient",
    "refusal",
    "replacement",
    "result",
    "role",
    "sender",
    "start_timestamp",
    "status",
    "steps",
    "stop_timestamp",
    "style",
    "summary",
    "text",
    "thinking",
    "thoughts",
    "title",
    "tool_calls",
    "tool_name",
    "type",
    "update_time",
    "updated",
    "updated_at",
    "updates",
    "uuid",
    "value",
    "versions",
    "weight",
];

/// JSON, restricted to the keys that formats read.
pub(crate) enum ForeignValue {
    /// Null, or a dropped value.
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<ForeignValue>),
    Object(Vec<(Cow<'static, str>, ForeignValue)>),
}

/// The items of an absent list.
const NONE: &[ForeignValue] = &[];

impl ForeignValue {
    /// A field; `None` if it is missing or null.
    pub fn get(&self, key: &str) -> Option<&ForeignValue> {
        let ForeignValue::Object(fields) = self else {
            return None;
        };
        let field = fields.iter().rfind(|(name, _)| name == key)?;
        Some(&field.1).filter(|value| !matches!(value, ForeignValue::Null))
    }

    /// Returns true if there is such a field, with any value.
    pub fn has(&self, key: &str) -> bool {
        matches!(self, ForeignValue::Object(fields) if fields.iter().any(|(name, _)| name == key))
    }

    /// A text field.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }

    /// The value as text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            ForeignValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A field that is an id: text, or a number instead.
    pub fn label(&self, key: &str) -> Option<String> {
        match self.get(key)? {
            ForeignValue::Text(text) => Some(text.clone()),
            ForeignValue::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// A number field.
    pub fn number(&self, key: &str) -> Option<f64> {
        match self.get(key)? {
            ForeignValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// A date field.
    pub fn moment(&self, key: &str) -> Option<i64> {
        match self.get(key)? {
            ForeignValue::Text(text) => moment::from_text(text),
            ForeignValue::Number(number) => moment::from_number(*number),
            _ => None,
        }
    }

    /// The items of a field. A text or an object in place of a list is its only item.
    pub fn items(&self, key: &str) -> &[ForeignValue] {
        self.get(key).map_or(NONE, ForeignValue::as_items)
    }

    /// The items of this value, like those of a field.
    pub fn as_items(&self) -> &[ForeignValue] {
        match self {
            ForeignValue::List(items) => items,
            ForeignValue::Text(_) | ForeignValue::Object(_) => std::slice::from_ref(self),
            _ => NONE,
        }
    }

    /// Returns true if this cannot be content of any kind.
    pub fn is_bare(&self) -> bool {
        matches!(self, ForeignValue::Bool(_) | ForeignValue::Number(_))
    }

    pub fn is_object(&self) -> bool {
        matches!(self, ForeignValue::Object(_))
    }

    /// The value as indented JSON, for readers.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Parses a text as JSON; `None` if it is not.
    pub fn parse(text: &str) -> Option<ForeignValue> {
        let budget = Budget::default();
        let mut json = serde_json::Deserializer::from_str(text);
        let value = ValueSeed::new(&budget).deserialize(&mut json).ok()?;
        json.end().ok()?;
        Some(value).filter(|_| !budget.is_spent())
    }
}

impl Serialize for ForeignValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ForeignValue::Null => serializer.serialize_unit(),
            ForeignValue::Bool(value) => serializer.serialize_bool(*value),
            ForeignValue::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                serializer.serialize_i64(*number as i64)
            }
            ForeignValue::Number(number) => serializer.serialize_f64(*number),
            ForeignValue::Text(text) => serializer.serialize_str(text),
            ForeignValue::List(items) => serializer.collect_seq(items),
            ForeignValue::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

/// The remaining budget of a chat.
pub(crate) struct Budget {
    values: Cell<usize>,
    text: Cell<usize>,
    is_spent: Cell<bool>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            values: Cell::new(CHAT_VALUES),
            text: Cell::new(CHAT_TEXT),
            is_spent: Cell::new(false),
        }
    }
}

impl Budget {
    /// Returns true if something was dropped because the budget was spent.
    pub fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    fn take(&self, values: usize, text: usize) -> bool {
        let left = self.values.get().checked_sub(values);
        let text_left = self.text.get().checked_sub(text);
        match (left, text_left, self.is_spent()) {
            (Some(left), Some(text_left), false) => {
                self.values.set(left);
                self.text.set(text_left);
                true
            }
            _ => {
                self.is_spent.set(true);
                false
            }
        }
    }
}

/// The keys of an object that are kept.
#[derive(Clone, Copy)]
enum KeptKeys {
    Known,
    /// All keys of this object, the known ones below it.
    Ids,
    All,
}

impl KeptKeys {
    /// The keys that are kept of the value of a key.
    fn below(self, key: &str) -> KeptKeys {
        match (self, key) {
            (KeptKeys::All, _) => KeptKeys::All,
            (KeptKeys::Ids, _) => KeptKeys::Known,
            (KeptKeys::Known, "mapping") => KeptKeys::Ids,
            (KeptKeys::Known, "input" | "parameters") => KeptKeys::All,
            (KeptKeys::Known, _) => KeptKeys::Known,
        }
    }
}

/// Reads a value within a budget. Once it is spent, the rest is skipped.
#[derive(Clone, Copy)]
pub(crate) struct ValueSeed<'b> {
    budget: &'b Budget,
    keys: KeptKeys,
    depth: usize,
}

impl<'b> ValueSeed<'b> {
    pub fn new(budget: &'b Budget) -> ValueSeed<'b> {
        ValueSeed {
            budget,
            keys: KeptKeys::Known,
            depth: 0,
        }
    }

    fn below(self, key: &str) -> ValueSeed<'b> {
        ValueSeed {
            keys: self.keys.below(key),
            depth: self.depth + 1,
            ..self
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ForeignValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ForeignValue, D::Error> {
        if self.depth > DEEPEST || !self.budget.take(1, 0) {
            IgnoredAny::deserialize(deserializer)?;
            return Ok(ForeignValue::Null);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = ForeignValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<ForeignValue, E> {
        Ok(ForeignValue::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<ForeignValue, E> {
        Ok(ForeignValue::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<ForeignValue, E> {
        Ok(ForeignValue::Number(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<ForeignValue, E> {
        Ok(ForeignValue::Number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<ForeignValue, E> {
        Ok(ForeignValue::Number(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ForeignValue, E> {
        // Some bytes more than a message can have: the truncation is counted later.
        let text = &text[..text.floor_char_boundary(TEXT + 4)];
        if self.budget.take(0, text.len()) {
            Ok(ForeignValue::Text(text.to_owned()))
        } else {
            Ok(ForeignValue::Null)
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ForeignValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self.below(""))? {
            if self.budget.is_spent() {
                items = Vec::new();
            } else {
                items.push(item);
            }
        }
        items.shrink_to_fit();
        Ok(ForeignValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ForeignValue, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = map.next_key_seed(KeySeed(self))? {
            let Some(key) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value_seed(self.below(&key))?;
            if !self.budget.is_spent() {
                fields.push((key, value));
            } else if !matches!(self.keys, KeptKeys::Known) {
                fields = Vec::new();
            } else if fields.iter().all(|(name, _)| *name != key) {
                // The keys identify the program.
                fields.push((key, ForeignValue::Null));
            }
        }
        fields.shrink_to_fit();
        Ok(ForeignValue::Object(fields))
    }
}

/// Reads a key; `None` if its value is dropped.
struct KeySeed<'b>(ValueSeed<'b>);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Option<Cow<'static, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Option<Cow<'static, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        let seed = self.0;
        if let (KeptKeys::Known, Ok(known)) = (seed.keys, KEYS.binary_search(&key)) {
            return Ok(Some(Cow::Borrowed(KEYS[known])));
        }
        let is_kept = matches!(seed.keys, KeptKeys::Ids | KeptKeys::All);
        let is_kept = is_kept && key.len() <= TEXT && seed.budget.take(0, key.len());
        Ok(is_kept.then(|| Cow::Owned(key.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_in_order() {
        assert!(KEYS.is_sorted());
    }

    #[test]
    fn values_are_read_as_they_are_needed() {
        let json = r#"{ "title": 7, "text": "a", "other": [1], "input": { "other": [1, null, 2.5] }, "parts": "one" }"#;
        let value = ForeignValue::parse(json).expect("JSON");
        assert_eq!(value.label("title").as_deref(), Some("7"));
        assert_eq!(value.text("title"), None);
        assert!(value.get("other").is_none());
        assert_eq!(value.items("parts").len(), 1);
        let input = value.get("input").expect("kept").to_json();
        assert_eq!(
            input.split_whitespace().collect::<String>(),
            r#"{"other":[1,null,2.5]}"#
        );
    }

    #[test]
    fn a_nest_is_read_as_deep_as_it_may_be() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(ForeignValue::parse(&deep).is_some());
    }
}
