//! Dates as other programs write them.

use serde::Deserialize;

use crate::dates::from_iso;

/// A date as text or number; others are none.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Moment {
    Text(String),
    Number(f64),
    Other(serde::de::IgnoredAny),
}

impl Moment {
    pub fn seconds(&self) -> Option<i64> {
        match self {
            Moment::Text(text) => from_iso(text),
            Moment::Number(number) => seconds(*number),
            Moment::Other(_) => None,
        }
    }
}

/// Seconds, of a number that may be milliseconds.
pub(crate) fn seconds(number: f64) -> Option<i64> {
    const LATEST_SECOND: f64 = 1e11;
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    let seconds = if number > LATEST_SECOND {
        number / 1000.0
    } else {
        number
    };
    Some(seconds as i64)
}
