//! The parts of the messages. The table is made with that of the messages.

use inference::{Part, Parts, ToolOutcome};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, Row};

use crate::table::id::MessageId;

/// Columns of a part without its message and place.
const COLUMNS: &str = "kind, text, call, name, outcome, server";

/// Returns the parts of a message in their order.
pub(crate) fn of_message(db: &Connection, message: MessageId) -> rusqlite::Result<Parts> {
    let sql = format!("SELECT {COLUMNS} FROM part WHERE message = ?1 ORDER BY place");
    let mut query = db.prepare_cached(&sql)?;
    let parts = query.query_map([message.0], read)?;
    Ok(Parts(parts.collect::<rusqlite::Result<_>>()?))
}

/// Sets the parts of a message in progress. Parts that are the same are not written again.
pub(crate) fn set(db: &Connection, message: MessageId, parts: &Parts) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO part (message, place, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (message, place) DO UPDATE
         SET kind = excluded.kind, text = excluded.text, call = excluded.call, name = excluded.name,
             outcome = excluded.outcome, server = excluded.server
         WHERE (text, kind, call, name, outcome, server) IS NOT
             (excluded.text, excluded.kind, excluded.call, excluded.name, excluded.outcome, excluded.server)"
    );
    let mut write = db.prepare_cached(&sql)?;
    for (place, part) in (0_u32..).zip(&parts.0) {
        let columns = Columns::of(part);
        write.execute((
            message.0,
            place,
            columns.kind,
            columns.text,
            columns.call,
            columns.name,
            columns.outcome,
            columns.server,
        ))?;
    }
    db.prepare_cached("DELETE FROM part WHERE message = ?1 AND place >= ?2")?
        .execute((message.0, u32::try_from(parts.0.len()).unwrap_or(u32::MAX)))?;
    Ok(())
}

#[derive(Default)]
struct Columns<'a> {
    kind: &'static str,
    text: &'a str,
    call: Option<&'a str>,
    name: Option<&'a str>,
    outcome: Option<&'static str>,
    server: Option<&'a str>,
}

impl Columns<'_> {
    fn of(part: &Part) -> Columns<'_> {
        match part {
            Part::Text { text } => Columns {
                kind: "text",
                text,
                ..Columns::default()
            },
            Part::Thinking { text } => Columns {
                kind: "thinking",
                text,
                ..Columns::default()
            },
            Part::ToolCall {
                id,
                name,
                arguments,
            } => Columns {
                kind: "tool-call",
                text: arguments,
                call: Some(id),
                name: Some(name),
                ..Columns::default()
            },
            Part::ToolResult {
                id,
                text,
                outcome,
                server,
            } => Columns {
                kind: "tool-result",
                text,
                call: Some(id),
                name: None,
                outcome: Some(outcome.name()),
                server: server.as_deref(),
            },
        }
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Part> {
    let text = row.get(1)?;
    Ok(match row.get_ref(0)?.as_str()? {
        "text" => Part::Text { text },
        "thinking" => Part::Thinking { text },
        "tool-call" => Part::ToolCall {
            id: row.get(2)?,
            name: row.get(3)?,
            arguments: text,
        },
        "tool-result" => Part::ToolResult {
            id: row.get(2)?,
            text,
            // Earlier versions stored none.
            outcome: match row.get_ref(4)?.as_str_or_null()? {
                Some(name) => ToolOutcome::from_name(name).ok_or(FromSqlError::InvalidType)?,
                None => ToolOutcome::Done,
            },
            server: row.get(5)?,
        },
        _ => return Err(FromSqlError::InvalidType.into()),
    })
}
