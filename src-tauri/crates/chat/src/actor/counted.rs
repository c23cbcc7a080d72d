//! What is known of a branch between two counts of it.

use inference::Role;
use store::{MessageId, MessageRow, OmittedRow};

use crate::counting::CountedPlace;

/// What the counting thread has: the messages of a branch.
pub(crate) struct CountedBranch {
    pub(super) place: CountedPlace,
    /// The message before the last one, which may grow.
    pub(super) up_to: Option<MessageId>,
    /// What the answers up to there have left out.
    pub(super) cut: LastCut,
}

/// What the next answer of a branch begins with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastCut {
    /// What the last answer left out.
    pub(super) omitted: OmittedRow,
    /// The user wants it read again: nothing is left out before it has to be.
    pub(super) whole: bool,
}

impl LastCut {
    pub(super) fn of(path: &[MessageRow]) -> LastCut {
        let mut cut = LastCut::default();
        path.iter().for_each(|row| cut.pass(row));
        cut
    }

    /// The next message of the branch is this one.
    pub(super) fn pass(&mut self, row: &MessageRow) {
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
