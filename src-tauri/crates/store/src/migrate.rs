//! Forward-only migrations. `PRAGMA user_version` is the number of the last step that was taken.

use rusqlite::{Connection, TransactionBehavior};

/// One step of a table's schema. A released step is never changed; a change is a new step.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Schema version that this step belongs to.
    pub version: u32,
    /// Statements of the step.
    pub sql: &'static str,
}

pub(crate) fn latest(steps: &[Step]) -> u32 {
    steps.iter().map(|step| step.version).max().unwrap_or(0)
}

pub(crate) fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Runs all missing steps in one transaction: all or none.
pub(crate) fn run(db: &mut Connection, steps: &[Step]) -> rusqlite::Result<()> {
    let latest = latest(steps);
    if version(db)? >= latest {
        return Ok(());
    }
    // SQLite alters a table by rebuilding it; rows that refer to it must not be deleted meanwhile.
    db.pragma_update(None, "foreign_keys", false)?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again under the lock: another process may have been faster.
    let found = version(&transaction)?;
    for wanted in found + 1..=latest {
        for step in steps.iter().filter(|step| step.version == wanted) {
            transaction.execute_batch(step.sql)?;
        }
    }
    transaction.pragma_update(None, "user_version", latest)?;
    let broken: bool = transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM pragma_foreign_key_check)",
        [],
        |row| row.get(0),
    )?;
    if broken {
        return Err(rusqlite::Error::InvalidQuery);
    }
    transaction.commit()?;
    db.pragma_update(None, "foreign_keys", true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::in_memory;

    const FIRST: Step = Step {
        version: 1,
        sql: "CREATE TABLE bird (name TEXT); INSERT INTO bird VALUES ('wren')",
    };
    const SECOND: Step = Step {
        version: 2,
        sql: "ALTER TABLE bird ADD COLUMN grams INTEGER NOT NULL DEFAULT 9",
    };
    const THIRD: Step = Step {
        version: 3,
        sql: "UPDATE bird SET grams = 6; INSERT INTO no_such_table VALUES (1)",
    };

    fn grams(db: &Connection) -> rusqlite::Result<i64> {
        db.query_row("SELECT grams FROM bird", [], |row| row.get(0))
    }

    #[test]
    fn steps_are_taken_once_and_in_order() -> rusqlite::Result<()> {
        let mut db = in_memory()?;
        run(&mut db, &[SECOND, FIRST])?;
        run(&mut db, &[SECOND, FIRST])?;
        assert_eq!((version(&db)?, grams(&db)?), (2, 9));
        let rows: i64 = db.query_row("SELECT count(*) FROM bird", [], |row| row.get(0))?;
        assert_eq!(rows, 1);
        Ok(())
    }

    #[test]
    fn a_step_that_leaves_a_reference_to_nothing_is_undone() -> rusqlite::Result<()> {
        let nests = Step {
            version: 1,
            sql: "CREATE TABLE bird (id INTEGER PRIMARY KEY);
                  CREATE TABLE nest (bird INTEGER REFERENCES bird (id));
                  INSERT INTO bird VALUES (1); INSERT INTO nest VALUES (1)",
        };
        let emptied = Step {
            version: 2,
            sql: "DELETE FROM bird",
        };
        let mut db = in_memory()?;
        run(&mut db, &[nests])?;
        assert!(run(&mut db, &[nests, emptied]).is_err());
        let birds: i64 = db.query_row("SELECT count(*) FROM bird", [], |row| row.get(0))?;
        assert_eq!((version(&db)?, birds), (1, 1));
        Ok(())
    }

    #[test]
    fn a_step_that_fails_undoes_all() -> rusqlite::Result<()> {
        let mut db = in_memory()?;
        run(&mut db, &[FIRST])?;
        assert!(run(&mut db, &[FIRST, SECOND, THIRD]).is_err());
        assert_eq!(version(&db)?, 1);
        assert!(grams(&db).is_err(), "the second step was undone too");
        Ok(())
    }
}
