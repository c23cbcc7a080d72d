//! Values of Python as JSON, and back.

use monty_types::{DictPairs, MontyObject};
use serde_json::{Map, Number, Value};

/// Maximum nesting of a value that is passed. JSON is read to a depth of 128.
const DEPTH: usize = 100;

/// Converts a value for a function.
///
/// # Errors
/// Fails if JSON has no such value, with the message of an exception.
pub fn to_json(value: &MontyObject) -> Result<Value, String> {
    json_of(value, DEPTH)
}

fn json_of(value: &MontyObject, depth: usize) -> Result<Value, String> {
    let depth = depth
        .checked_sub(1)
        .ok_or("an argument is nested too deeply")?;
    let list = |items: &[MontyObject]| -> Result<Value, String> {
        items.iter().map(|item| json_of(item, depth)).collect()
    };
    Ok(match value {
        MontyObject::None => Value::Null,
        MontyObject::Bool(value) => Value::Bool(*value),
        MontyObject::Int(number) => Value::from(*number),
        MontyObject::Float(number) => {
            let number = Number::from_f64(*number);
            Value::Number(number.ok_or("an argument is not a finite number")?)
        }
        MontyObject::String(text) => Value::String(text.clone()),
        MontyObject::List(items)
        | MontyObject::Tuple(items)
        | MontyObject::Set(items)
        | MontyObject::FrozenSet(items)
        | MontyObject::NamedTuple { values: items, .. } => list(items)?,
        MontyObject::Dict(pairs) => {
            let mut object = Map::new();
            for (key, value) in pairs {
                let MontyObject::String(key) = key else {
                    return Err("the keys of an argument must be strings".to_owned());
                };
                object.insert(key.clone(), json_of(value, depth)?);
            }
            Value::Object(object)
        }
        MontyObject::BigInt(number) => Value::String(number.to_string()),
        MontyObject::Date(date) => Value::String(date_text(date.year, date.month, date.day)),
        other => return Err(format!("an argument cannot be {}", other.py_repr())),
    })
}

fn date_text(year: i32, month: u8, day: u8) -> String {
    format!("{year:04}-{month:02}-{day:02}")
}

/// Converts the value of a function.
pub fn from_json(value: Value) -> MontyObject {
    match value {
        Value::Null => MontyObject::None,
        Value::Bool(value) => MontyObject::Bool(value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => MontyObject::Int(number),
            (None, Some(number)) => MontyObject::BigInt(number.into()),
            (None, None) => MontyObject::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => MontyObject::String(text),
        Value::Array(items) => MontyObject::List(items.into_iter().map(from_json).collect()),
        Value::Object(object) => {
            let pairs = object.into_iter();
            let pairs = pairs.map(|(key, value)| (MontyObject::String(key), from_json(value)));
            MontyObject::Dict(pairs.collect::<DictPairs>())
        }
    }
}
