//! The date, the time, and arithmetic with them.

use std::sync::Arc;

use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, ToSpan, Unit, ZonedDateTime};
use serde_json::{Map, Value, json};

use crate::tool::{Effects, Tool, ToolError, ToolInfo, ToolOutput, ToolRun, text_of};

/// The tool that knows the date.
pub struct DateTimeTool {
    info: Arc<ToolInfo>,
    now: fn() -> ZonedDateTime,
}

impl DateTimeTool {
    /// Makes the tool, with a clock.
    pub fn new(now: fn() -> ZonedDateTime) -> DateTimeTool {
        let description = "Tells the date, weekday, time and time zone of now. With `add` it adds a time span to \
            `date`, with `until` it counts the days from `date`. `date` is today if it is missing. \
            Example: {\"date\": \"2026-03-01\", \"add\": \"3 weeks\"}";
        let parameters = json!({
            "type": "object",
            "properties": {
                "date": { "type": "string", "maxLength": 10, "description": "YYYY-MM-DD" },
                "add": { "type": "string", "maxLength": 40, "description": "such as 3 weeks or -10 days" },
                "until": { "type": "string", "maxLength": 10, "description": "YYYY-MM-DD" },
            },
            "additionalProperties": false,
        });
        let effects = Effects::default();
        let info = ToolInfo::built_in(
            "date_time",
            "Date and time",
            description,
            parameters,
            effects,
        );
        DateTimeTool {
            info: Arc::new(info),
            now,
        }
    }

    fn answer(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let now = (self.now)();
        let [date, add, until] = ["date", "add", "until"].map(|name| text_of(arguments, name));
        if date.is_empty() && add.is_empty() && until.is_empty() {
            return Ok(of_now(&now));
        }
        let from = read(date, &now)?;
        let mut lines = Vec::new();
        if !add.is_empty() {
            lines.push(sum(from.unwrap_or(now.datetime()), from.is_none(), add)?);
        }
        let from = from.unwrap_or(now.date().into());
        if !until.is_empty() {
            let to = read(until, &now)?.unwrap_or(now.date().into());
            lines.push(difference(from.date(), to.date())?);
        }
        if lines.is_empty() {
            lines.push(shown(from));
        }
        Ok(lines.join("\n"))
    }
}

impl Tool for DateTimeTool {
    fn info(&self) -> Arc<ToolInfo> {
        Arc::clone(&self.info)
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        _: &ToolRun<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let answer = self.answer(arguments);
        answer.map(ToolOutput::new).map_err(ToolError::Failed)
    }
}

/// Reads a date, with or without a time; `None` if there is none.
fn read(text: &str, now: &ZonedDateTime) -> Result<Option<DateTime>, String> {
    let day = |days: i64| now.date().checked_add(days.days()).ok().map(DateTime::from);
    let read = match text.to_lowercase().as_str() {
        "" => return Ok(None),
        "now" => Some(now.datetime()),
        "today" => day(0),
        "tomorrow" => day(1),
        "yesterday" => day(-1),
        _ => text.parse().ok(),
    };
    let wrong = || format!("date_time: {text:?} is not a date; write it as YYYY-MM-DD.");
    read.map(Some).ok_or_else(wrong)
}

/// Adds a span. `is_now`: the time of day counts only if the span has a time.
fn sum(from: DateTime, is_now: bool, add: &str) -> Result<String, String> {
    let wrong =
        || format!("date_time: {add:?} is not a time span; write it as 3 weeks or -10 days.");
    let span: Span = add.parse().map_err(|_| wrong())?;
    let added = |from: DateTime| {
        let sum = from.checked_add(span);
        sum.map_err(|_| format!("date_time: {add:?} leads out of the calendar."))
    };
    let sum = added(from.date().into())?;
    match is_now && sum.time() == Time::midnight() {
        true => Ok(shown(sum)),
        false => added(from).map(shown),
    }
}

fn difference(from: Date, to: Date) -> Result<String, String> {
    let error = |error: jiff::Error| format!("date_time: {error}.");
    let days = from.until(to).map_err(error)?.get_days();
    let parts = from.until((Unit::Year, to)).map_err(error)?;
    let [from, to] = [from, to].map(|date| shown(date.into()));
    let days = match days {
        1 | -1 => format!("{days} day"),
        days => format!("{days} days"),
    };
    let parts = match parts.get_years() == 0 && parts.get_months() == 0 {
        true => String::new(),
        false => format!(" ({parts:#})"),
    };
    Ok(format!("{days}{parts} from {from} to {to}"))
}

/// Returns a date with its weekday, and the time unless it is midnight.
fn shown(at: DateTime) -> String {
    let day = at.strftime("%Y-%m-%d (%A)").to_string();
    match at.time() == Time::midnight() {
        true => day,
        false => format!("{day} {}", at.strftime("%H:%M")),
    }
}

fn of_now(now: &ZonedDateTime) -> String {
    let zone = now.time_zone().iana_name().unwrap_or_default();
    let at = now.strftime("%Y-%m-%d (%A), %H:%M, time zone UTC%:z");
    let week = now.date().iso_week_date().week();
    match zone {
        "" => format!("{at}, week {week}"),
        zone => format!("{at} ({zone}), week {week}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::process::tests::within;

    fn clock() -> ZonedDateTime {
        "2026-11-28T23:30:00+01:00[Europe/Berlin]"
            .parse()
            .expect("a time")
    }

    fn answer(arguments: Value) -> Result<String, String> {
        let arguments = arguments.as_object().expect("an object");
        let output = within(Duration::from_secs(1), |run| {
            DateTimeTool::new(clock).run(arguments, run)
        });
        output
            .map(|output| output.text)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn dates_come_with_their_weekdays_and_are_added_and_subtracted() {
        for (arguments, expected) in [
            (
                json!({}),
                "2026-11-28 (Saturday), 23:30, time zone UTC+01:00 (Europe/Berlin), week 48",
            ),
            (json!({ "date": "2024-02-29" }), "2024-02-29 (Thursday)"),
            (json!({ "date": "tomorrow" }), "2026-11-29 (Sunday)"),
            (json!({ "add": "3 weeks" }), "2026-12-19 (Saturday)"),
            (json!({ "add": "45 minutes" }), "2026-11-29 (Sunday) 00:15"),
            (
                json!({ "date": "2024-01-31", "add": "1 month" }),
                "2024-02-29 (Thursday)",
            ),
            (
                json!({ "date": "2024-01-31", "add": "-10 days" }),
                "2024-01-21 (Sunday)",
            ),
            (
                json!({ "date": "2024-01-31T09:00", "add": "36h" }),
                "2024-02-01 (Thursday) 21:00",
            ),
            (
                json!({ "until": "2026-12-24" }),
                "26 days from 2026-11-28 (Saturday) to 2026-12-24 (Thursday)",
            ),
            (
                json!({ "date": "2024-02-28", "until": "2026-03-01" }),
                "732 days (2y 1d) from 2024-02-28 (Wednesday) to 2026-03-01 (Sunday)",
            ),
        ] {
            assert_eq!(
                answer(arguments.clone()).as_deref(),
                Ok(expected),
                "{arguments}"
            );
        }
    }

    #[test]
    fn what_is_no_date_or_span_is_said() {
        for (arguments, says) in [
            (
                json!({ "date": "31.1.2024" }),
                "\"31.1.2024\" is not a date",
            ),
            (
                json!({ "date": "2023-02-29" }),
                "\"2023-02-29\" is not a date",
            ),
            (json!({ "add": "soon" }), "\"soon\" is not a time span"),
            (json!({ "add": "9000 years" }), "leads out of the calendar"),
        ] {
            let answer = answer(arguments).expect_err(says);
            assert!(answer.contains(says), "{answer}");
        }
    }
}
