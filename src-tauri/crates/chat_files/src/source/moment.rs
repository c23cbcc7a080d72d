//! Dates as other programs write them.

use super::value::ForeignValue;
use crate::dates::from_iso;

/// Unix seconds of a date as text or number.
pub(crate) fn moment(date: &ForeignValue) -> Option<i64> {
    match date {
        ForeignValue::Text(text) => {
            from_iso(text.trim()).or_else(|| seconds(text.trim().parse().ok()?))
        }
        ForeignValue::Number(number) => seconds(*number),
        _ => None,
    }
}

/// Seconds, of a number that may be milliseconds.
fn seconds(number: f64) -> Option<i64> {
    const LATEST_SECOND: f64 = 1e11;
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    let seconds = if number > LATEST_SECOND {
        number / 1000.0
    } else {
        number
    };
    // Beyond the year 9999 is no date.
    (seconds < 2.5e11).then_some(seconds as i64)
}
