//! What is left out of a conversation: decided by the number of tokens that each choice would leave.

use inference::{Role, Turn};

use crate::failure::Failure;

/// The share of the context, in percent, from which on earlier thinking is left out.
const THINKING_SHARE: usize = 70;
/// The share that is left when turns are left out.
const KEPT_SHARE: usize = 60;

/// Where the history begins, and where its thinking begins: indices into the whole history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub messages: usize,
    pub thinking: usize,
}

/// What of a message decides where a history may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CutTurn {
    pub role: Role,
    /// Whether its thinking would be in the prompt.
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

/// What the prompt may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Tokens of the context.
    pub context: usize,
    /// Tokens of the longest prompt: the context without what is kept free for the answer.
    pub limit: usize,
    /// Nothing is left out before it has to be: the user asked for it.
    pub whole: bool,
}

impl Room {
    /// Above this number of tokens earlier thinking is left out.
    fn comfortable(self) -> usize {
        if self.whole {
            self.limit
        } else {
            (self.context * THINKING_SHARE / 100).min(self.limit)
        }
    }
}

/// Cuts a history as little as the room allows, and tells the tokens that are left, which may still be too many.
/// `before`: what the last answer left out. `tokens` counts what a cut leaves.
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

/// The first turn from which on all the rest has at most `target` tokens, or else the last turn.
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
