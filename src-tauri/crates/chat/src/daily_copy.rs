//! The daily copy of the database.

use std::path::Path;

use jiff::civil::Date;
use store::{Copy, DatabaseCopy, StoreError};

use crate::failure::{Failure, FailureCode};

/// Makes the copy of a day. Returns the reason if that fails.
pub(crate) fn make(database: &Path, day: Date) -> Option<Failure> {
    let problem = match store::daily_copy(database, &day.to_string()) {
        Ok(Copy::Refused(cause)) => damaged(database, &cause),
        Ok(copy) => {
            tracing::debug!(?copy, "the day's copy");
            return None;
        }
        Err(error) => not_copied(&error),
    };
    tracing::error!(%problem, "the day's copy was not made");
    Some(problem)
}

fn damaged(database: &Path, cause: &str) -> Failure {
    tracing::error!(cause, "the database is damaged");
    let offer = match store::good_copies(database).into_iter().next() {
        Some(copy) => format!("it offers to restore {}", name_of(&copy)),
        None => "there is no earlier copy, and it offers to begin with an empty file".to_owned(),
    };
    Failure::new(
        FailureCode::Store,
        format!(
            "The file with your chats is damaged, so no copy of it was made today. Save what you need from \
             the chats that still open, then start Goldcrest again: {offer}. The damaged file is {}.",
            database.display()
        ),
    )
}

/// Returns the name under which the window offers it.
fn name_of(copy: &DatabaseCopy) -> String {
    let day = copy.day.as_deref().and_then(|day| day.parse::<Date>().ok());
    match day {
        Some(day) => format!("the copy of {}", day.strftime("%-d %B %Y")),
        None => "the copy made before the last update".to_owned(),
    }
}

fn not_copied(error: &StoreError) -> Failure {
    let cause = match error {
        StoreError::DiskFull => {
            "the disk is full. Make some room; it will be tried again tomorrow".to_owned()
        }
        error => error.to_string(),
    };
    Failure::new(
        FailureCode::Store,
        format!(
            "Today’s copy of your chats could not be made: {}.",
            cause.trim_end_matches('.')
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_was_not_made_says_why_and_what_comes() {
        let full = not_copied(&StoreError::DiskFull).message;
        assert_eq!(
            full,
            "Today’s copy of your chats could not be made: the disk is full. Make some room; it will be tried again \
             tomorrow."
        );
        let missing = not_copied(&StoreError::NotFound("chat")).message;
        assert!(missing.ends_with("does not exist any more."), "{missing}");
    }
}
