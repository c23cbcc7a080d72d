//! State of a branch between two counts of it.

use inference::Role;
use store::{MessageId, MessageRow, OmittedRow};

use crate::counting::CountedPlace;

/// Messages of a branch that the counting thread holds.
pub(crate) struct CountedBranch {
    pub(super) place: CountedPlace,
    /// Message before the last one, which may grow.
    pub(super) up_to: Option<MessageId>,
    /// Cut of the answers up to there.
    pub(super) cut: LastCut,
}

/// Cut with which the next answer of a branch begins.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastCut {
    /// Parts that the last answer left out.
    pub(super) omitted: OmittedRow,
    /// True if the user wants them read again: nothing is left out before it has to be.
    pub(super) whole: bool,
}

impl LastCut {
    pub(super) fn of(path: &[MessageRow]) -> LastCut {
        let mut cut = LastCut::default();
        path.iter().for_each(|row| cut.pass(row));
        cut
    }

    /// Advances to the next message of the branch.
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
