//! The fields of a JSON object. A wrong one is an error with its name; unknown ones are ignored, and null counts as absent.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::error::HttpError;

/// An object, and its name in the request.
#[derive(Clone)]
pub struct JsonFields<'a> {
    object: &'a Map<String, Value>,
    path: String,
}

impl<'a> JsonFields<'a> {
    /// Returns the fields of a value; `path` is its name in the request, empty for the whole.
    pub fn of(value: &'a Value, path: &str) -> Result<JsonFields<'a>, HttpError> {
        let Some(object) = value.as_object() else {
            let name = if path.is_empty() { "body" } else { path };
            return Err(HttpError::field(name, "This has to be an object."));
        };
        Ok(JsonFields {
            object,
            path: path.to_owned(),
        })
    }

    /// Returns a field.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|it| !it.is_null())
    }

    /// Returns the name of a field in the request.
    pub fn name(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// Makes the error of a field.
    pub fn wrong(&self, field: &str, problem: &str) -> HttpError {
        HttpError::field(self.name(field), problem)
    }

    /// Returns a text.
    pub fn text(&self, field: &str) -> Result<Option<&'a str>, HttpError> {
        let text = self.get(field).map(|it| it.as_str());
        text.map(|it| it.ok_or_else(|| self.wrong(field, "This has to be a text.")))
            .transpose()
    }

    /// Returns a text that has to be there.
    pub fn needed_text(&self, field: &str) -> Result<&'a str, HttpError> {
        let text = self.text(field)?;
        text.ok_or_else(|| self.wrong(field, "This is missing."))
    }

    /// Returns true or false.
    pub fn flag(&self, field: &str) -> Result<Option<bool>, HttpError> {
        let flag = self.get(field).map(Value::as_bool);
        flag.map(|it| it.ok_or_else(|| self.wrong(field, "This has to be true or false.")))
            .transpose()
    }

    /// Returns a number in a range.
    pub fn number(
        &self,
        field: &str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, HttpError> {
        let number = self.get(field).map(Value::as_f64);
        number
            .map(|it| {
                it.filter(|it| range.contains(it)).ok_or_else(|| {
                    let (least, most) = (range.start(), range.end());
                    self.wrong(
                        field,
                        &format!("This has to be a number from {least} to {most}."),
                    )
                })
            })
            .transpose()
    }

    /// Returns a whole number in a range.
    pub fn count(&self, field: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, HttpError> {
        let number = self.get(field).map(Value::as_u64);
        number
            .map(|it| {
                it.filter(|it| range.contains(it)).ok_or_else(|| {
                    let (least, most) = (range.start(), range.end());
                    let problem = format!("This has to be a whole number from {least} to {most}.");
                    self.wrong(field, &problem)
                })
            })
            .transpose()
    }

    /// Returns a list.
    pub fn list(&self, field: &str) -> Result<Option<&'a [Value]>, HttpError> {
        let list = self.get(field).map(Value::as_array);
        let list = list.map(|it| it.ok_or_else(|| self.wrong(field, "This has to be a list.")));
        Ok(list.transpose()?.map(Vec::as_slice))
    }

    /// Returns the objects of a list.
    pub fn objects(&self, field: &str) -> Result<Vec<JsonFields<'a>>, HttpError> {
        let list = self.list(field)?.unwrap_or_default();
        let objects = list.iter().enumerate().map(|(at, value)| {
            let path = format!("{}[{at}]", self.name(field));
            JsonFields::of(value, &path)
        });
        objects.collect()
    }

    /// Returns an object.
    pub fn object(&self, field: &str) -> Result<Option<JsonFields<'a>>, HttpError> {
        let object = self.get(field);
        object
            .map(|it| JsonFields::of(it, &self.name(field)))
            .transpose()
    }

    /// Returns an object that has to be there.
    pub fn needed_object(&self, field: &str) -> Result<JsonFields<'a>, HttpError> {
        let object = self.object(field)?;
        object.ok_or_else(|| self.wrong(field, "This is missing."))
    }

    /// Returns the object as a value.
    pub fn value(&self) -> Value {
        Value::Object(self.object.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_field_is_named_with_its_place() {
        let body = json!({ "a": { "list": [{ "n": "x", "t": 5, "f": 1 }] }, "none": null });
        let fields = JsonFields::of(&body, "").expect("an object");
        assert!(fields.text("none").expect("absent").is_none());
        let inner = fields.needed_object("a").expect("an object");
        let [first] = &inner.objects("list").expect("a list")[..] else {
            panic!("one")
        };
        for (error, named) in [
            (first.number("n", 0.0..=1.0).map(drop), "a.list[0].n"),
            (first.count("t", 0..=4).map(drop), "a.list[0].t"),
            (first.text("t").map(drop), "a.list[0].t"),
            (first.flag("f").map(drop), "a.list[0].f"),
            (first.needed_text("none").map(drop), "a.list[0].none"),
            (fields.objects("a").map(drop), "a"),
            (fields.needed_object("none").map(drop), "none"),
            (JsonFields::of(&json!([]), "").map(drop), "body"),
        ] {
            let error = error.expect_err(named);
            assert_eq!(error.param.as_deref(), Some(named));
            assert!(error.message.starts_with(named), "{}", error.message);
        }
    }
}
