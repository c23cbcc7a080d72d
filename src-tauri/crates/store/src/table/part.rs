//! The parts of the messages. The table is made with that of the messages.

use inference::{Part, Parts};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, Row};

use crate::table::id::MessageId;

/// Columns of a part without its message and place.
const COLUMNS: &str = "kind, text, call, name";

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
        "INSERT INTO part (message, place, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (message, place) DO UPDATE
         SET kind = excluded.kind, text = excluded.text, call = excluded.call, name = excluded.name
         WHERE (text, kind, call, name) IS NOT (excluded.text, excluded.kind, excluded.call, excluded.name)"
    );
    let mut write = db.prepare_cached(&sql)?;
    for (place, part) in (0_u32..).zip(&parts.0) {
        let (kind, text, call, name) = columns(part);
        write.execute((message.0, place, kind, text, call, name))?;
    }
    db.prepare_cached("DELETE FROM part WHERE message = ?1 AND place >= ?2")?
        .execute((message.0, u32::try_from(parts.0.len()).unwrap_or(u32::MAX)))?;
    Ok(())
}

fn columns(part: &Part) -> (&str, &str, Option<&str>, Option<&str>) {
    match part {
        Part::Text { text } => ("text", text, None, None),
        Part::Thinking { text } => ("thinking", text, None, None),
        Part::ToolCall {
            id,
            name,
            arguments,
        } => ("tool-call", arguments, Some(id), Some(name)),
        Part::ToolResult { id, text } => ("tool-result", text, Some(id), None),
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
        },
        _ => return Err(FromSqlError::InvalidType.into()),
    })
}
