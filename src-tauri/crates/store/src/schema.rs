//! The application id, an empty database, and the check for foreign parts of a schema: a trigger in a backup from
//! somebody else would act on everything that is written after it is restored.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use system::private;

use crate::connect::{connect, in_memory};
use crate::error::StoreError;
use crate::{migrate, table};

/// "GLDC": distinguishes Goldcrest's files from those of other programs.
pub(crate) const APPLICATION_ID: i32 = 0x474c_4443;

/// Creates an empty database, with no other file beside it.
pub(crate) fn create(path: &Path) -> Result<(), StoreError> {
    private::file(path).map_err(StoreError::io(path))?;
    let mut db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.pragma_update(None, "journal_mode", "MEMORY")?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    Ok(migrate::run(&mut db, &table::steps())?)
}

/// Returns the first part of a schema that the steps up to its version do not create, such as `trigger "x"`.
pub(crate) fn altered_part(db: &Connection) -> Result<Option<String>, StoreError> {
    let found = migrate::version(db)?;
    let mut steps = table::steps();
    steps.retain(|step| step.version <= found);
    let mut made = in_memory()?;
    migrate::run(&mut made, &steps)?;
    let (found, made) = (parts(db)?, parts(&made)?);
    let altered = found.symmetric_difference(&made).next();
    Ok(altered.map(|part| format!("{} {:?}", part.kind, part.name)))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SchemaPart {
    kind: String,
    name: String,
    sql: Option<String>,
}

/// Returns the parts of a schema without FTS5's own tables, whose form depends on SQLite's version.
fn parts(db: &Connection) -> rusqlite::Result<BTreeSet<SchemaPart>> {
    let mut read = db.prepare(
        "SELECT type, name, sql FROM sqlite_schema
         WHERE type <> 'table' OR name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')",
    )?;
    let parts = read.query_map([], |row| {
        let sql: Option<String> = row.get(2)?;
        Ok(SchemaPart {
            kind: row.get(0)?,
            name: row.get(1)?,
            sql: sql.as_deref().map(words),
        })
    })?;
    parts.collect()
}

/// Normalises a statement: removes comments, which a later version may reword, and white space outside quotes.
fn words(sql: &str) -> String {
    let mut words = String::new();
    let (mut quote, mut rest) = (None, sql.chars().peekable());
    while let Some(c) = rest.next() {
        match quote {
            Some(end) => quote = Some(end).filter(|end| *end != c),
            None if c == '-' && rest.peek() == Some(&'-') => {
                while rest.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            None if c.is_ascii_whitespace() => {
                // Keeps one between two words.
                if !words.ends_with(' ') {
                    words.push(' ');
                }
                continue;
            }
            None => quote = Some(c).filter(|c| matches!(c, '\'' | '"' | '`')),
        }
        words.push(c);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn comments_and_white_space_are_no_words_and_what_is_quoted_stays() {
        let of = "CREATE TABLE a (\n  -- One, 'as it were'.\n  b TEXT\n)";
        assert_eq!(words(of), "CREATE TABLE a ( b TEXT )");
        for (one, other) in [
            ("b = 'x'", "b = 'x--'; DROP TABLE c; '\n'"),
            ("b = 'x'", "b = 'x '"),
            ("b = \"x\"", "b = \"x--\"; DROP TABLE c; \"\n\""),
            ("b = `x`", "b = `x--`; DROP TABLE c; `\n`"),
            ("ab", "a b"),
        ] {
            assert_ne!(words(one), words(other), "{other}");
        }
    }
}
