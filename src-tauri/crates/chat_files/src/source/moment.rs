//! Dates in the forms of other programs.

use crate::dates::from_iso;

/// Unix seconds of a date as text: in ISO form, or a number.
pub(crate) fn from_text(text: &str) -> Option<i64> {
    let text = text.trim();
    from_iso(text).or_else(|| from_number(text.parse().ok()?))
}

/// Unix seconds of a date as a number, which may be milliseconds.
pub(crate) fn from_number(number: f64) -> Option<i64> {
    const LATEST_SECOND: f64 = 1e11;
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    let seconds = if number > LATEST_SECOND {
        number / 1000.0
    } else {
        number
    };
    // Numbers beyond the year 9999 are not dates.
    (seconds < 2.5e11).then_some(seconds as i64)
}
