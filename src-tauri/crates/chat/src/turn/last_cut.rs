//! The cut with which the next answer of a branch begins.

use inference::Role;
use store::{MessageRow, OmittedRow};

/// Cut with which the next answer of a branch begins.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LastCut {
    /// Parts that the last answer left out.
    pub omitted: OmittedRow,
    /// True if the user wants them read again: nothing is left out before it has to be.
    pub whole: bool,
}

impl LastCut {
    pub fn of(path: &[MessageRow]) -> LastCut {
        let mut cut = LastCut::default();
        path.iter().for_each(|row| cut.pass(row));
        cut
    }

    /// Advances to the next message of the branch.
    pub fn pass(&mut self, row: &MessageRow) {
        if row.role != Role::Assistant {
            return;
        }
        if row.omitted != OmittedRow::default() {
            self.whole = row.read_again;
        }
        self.omitted = if row.read_again {
            OmittedRow::default()
        } else {
            row.omitted
        };
    }
}

#[cfg(test)]
mod tests {
    use store::{MessageId, Store, StoreError};

    use super::*;
    use crate::stores::tests::add_answer;

    #[test]
    fn the_last_answer_decides_until_all_is_read_again() -> Result<(), StoreError> {
        let store = Store::in_memory()?;
        let (_, message) = add_answer(&store)?;
        let row = store.messages().get(message)?;
        let omitted = OmittedRow {
            kept_from: Some(MessageId(7)),
            messages: 6,
            ..OmittedRow::default()
        };
        let cut = MessageRow {
            omitted,
            ..row.clone()
        };
        let again = MessageRow {
            read_again: true,
            ..cut.clone()
        };
        let of = |path: &[&MessageRow]| {
            let path: Vec<_> = path.iter().map(|row| (*row).clone()).collect();
            let cut = LastCut::of(&path);
            (cut.omitted.messages, cut.whole)
        };
        assert_eq!(of(&[&row]), (0, false));
        assert_eq!(of(&[&cut]), (6, false));
        assert_eq!(of(&[&cut, &again]), (0, true));
        assert_eq!(of(&[&cut, &again, &row]), (0, true), "it still has room");
        assert_eq!(of(&[&again, &cut]), (6, false));
        Ok(())
    }
}
