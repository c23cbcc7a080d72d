//! Dates for the reader of an export.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// 3 March 2026, 14:05; empty if the number is out of range.
pub(crate) fn moment(seconds: i64, zone: &TimeZone) -> String {
    written(seconds, zone, "%-d %B %Y, %H:%M")
}

/// 3 March 2026.
pub(crate) fn day(seconds: i64, zone: &TimeZone) -> String {
    written(seconds, zone, "%-d %B %Y")
}

fn written(seconds: i64, zone: &TimeZone, format: &str) -> String {
    let moment = Timestamp::from_second(seconds);
    moment.map_or(String::new(), |moment| {
        moment
            .to_zoned_datetime(zone.clone())
            .strftime(format)
            .to_string()
    })
}

/// Unix seconds of an ISO date, with or without its time; UTC if it names no time zone.
pub(crate) fn from_iso(text: &str) -> Option<i64> {
    let timestamp = text.parse::<Timestamp>().ok();
    let timestamp = timestamp.or_else(|| TimeZone::UTC.to_timestamp(text.parse().ok()?).ok());
    timestamp.map(Timestamp::as_second)
}

/// The ISO date of a moment, as in the titles of chats.
pub(crate) fn iso_day(seconds: i64, zone: &TimeZone) -> String {
    written(seconds, zone, "%Y-%m-%d")
}
