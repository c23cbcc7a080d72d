//! Choice of a conversation's cut, by the number of tokens that each would leave.

use inference::{Role, Turn};

use crate::failure::Failure;

/// Share of the context, in percent, above which earlier thinking is left out.
const THINKING_SHARE: usize = 70;
/// Share that remains after turns are left out.
const KEPT_SHARE: usize = 60;

/// Start of the history, and of its thinking: indices into the whole history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub messages: usize,
    pub thinking: usize,
}

/// Properties of a message that decide where a history may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CutTurn {
    pub role: Role,
    /// True if its thinking would be in the prompt.
    pub thinks: bool,
}

impl From<&Turn> for CutTurn {
    fn from(turn: &Turn) -> CutTurn {
        CutTurn {
            role: turn.role,
            thinks: turn.thinking.is_some(),
        }
    }
}

/// Limits of the prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Tokens of the context.
    pub context: usize,
    /// Maximum tokens of a prompt: the context less the tokens reserved for the answer.
    pub limit: usize,
    /// True if nothing is left out before it has to be, at the user's request.
    pub whole: bool,
}

impl Room {
    /// Returns the number of tokens above which earlier thinking is left out.
    fn comfortable(self) -> usize {
        if self.whole {
            self.limit
        } else {
            (self.context * THINKING_SHARE / 100).min(self.limit)
        }
    }
}

/// Cuts a history as little as possible, and returns the remaining tokens, which may still be too many. `before`: the
/// parts that the last answer left out. `tokens` counts the tokens after a cut.
pub(crate) fn choose(
    history: &[CutTurn],
    before: Cut,
    room: Room,
    tokens: &mut dyn FnMut(Cut) -> Result<usize, Failure>,
) -> Result<(Cut, usize), Failure> {
    let comfortable = room.comfortable();
    let mut cut = Cut::default();
    let mut left = tokens(cut)?;
    if left > comfortable && before != cut {
        cut = before;
        left = tokens(cut)?;
    }
    if left > comfortable {
        let last_answer = history
            .iter()
            .rposition(|message| message.role == Role::Assistant)
            .unwrap_or(0);
        if history[cut.thinking.min(last_answer)..last_answer]
            .iter()
            .any(|message| message.thinks)
        {
            cut.thinking = last_answer;
            left = tokens(cut)?;
        }
    }
    if left > room.limit {
        cut.messages = oldest_kept(history, cut, room.context * KEPT_SHARE / 100, tokens)?;
        left = tokens(cut)?;
    }
    Ok((cut, left))
}

/// Returns the first turn from which the rest has at most `target` tokens, or else the last turn.
fn oldest_kept(
    history: &[CutTurn],
    cut: Cut,
    target: usize,
    tokens: &mut dyn FnMut(Cut) -> Result<usize, Failure>,
) -> Result<usize, Failure> {
    let users = history
        .iter()
        .enumerate()
        .skip(cut.messages)
        .filter(|(_, message)| message.role == Role::User);
    let starts: Vec<usize> = users.map(|(at, _)| at).collect();
    let (mut low, mut high) = (0, starts.len().saturating_sub(1));
    while low < high {
        let middle = (low + high) / 2;
        let messages = starts[middle];
        if tokens(Cut { messages, ..cut })? <= target {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(starts.get(low).copied().unwrap_or(cut.messages))
}
