//! The thread that counts the usage of the context, beside the model: it waits for no answer and delays none.
//!
//! It caches the tokens of the branch that was counted last, so that one more word costs no more in a long chat. Over
//! these counts the next answer's cut is chosen by the same code as for the answer itself ([`crate::fit`]).

mod branch;
mod request;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use inference::{EncodedMessage, PromptFrame, Role, Turn};

use self::branch::Branch;
pub(crate) use self::request::CountRequest;
use crate::context::ContextUsage;
use crate::failure::{Failure, FailureCode};
use crate::fit;
use crate::fit::cut::{self, Cut, CutTurn, Room};
use crate::panics::catch_panic;
use crate::view::Omitted;

/// Runs until the actor drops the sender of `requests`.
pub(crate) fn run(requests: &Receiver<CountRequest>) {
    let mut branch = Branch::default();
    while let Ok(request) = requests.recv() {
        let (counted, panicked) = catch_panic(FailureCode::Other, || count(&request, &mut branch));
        if panicked {
            // It may hold half of a message.
            branch = Branch::default();
        }
        // An error means that the receiver is gone.
        let _ = request.reply.send(counted);
    }
}

fn count(request: &CountRequest, branch: &mut Branch) -> Result<Option<ContextUsage>, Failure> {
    branch.extend(request)?;
    let Some(frame) = branch.frame() else {
        return Ok(None);
    };
    let message = |text: &str| {
        let turn = Turn::new(Role::User, text);
        request.counter.message(frame, &turn)
    };
    let is_drafted = !request.draft.is_empty() || request.pasted > 0;
    let counted = NextPrompt {
        request,
        branch,
        frame,
        draft: is_drafted.then(|| message(&request.draft)),
        around: message("").ids.len(),
    };
    counted.usage().map(Some)
}

/// A branch with the draft of the next message.
struct NextPrompt<'a> {
    request: &'a CountRequest,
    branch: &'a Branch,
    frame: &'a PromptFrame,
    draft: Option<Arc<EncodedMessage>>,
    /// Tokens of the template around a user's message.
    around: usize,
}

impl NextPrompt<'_> {
    fn usage(&self) -> Result<ContextUsage, Failure> {
        let CountRequest {
            limits,
            max_tokens,
            before,
            whole,
            pasted,
            written,
            ..
        } = self.request;
        let context = limits.context;
        let reserved = fit::reserved_for_answer(*max_tokens, context);
        let room = Room {
            context,
            limit: context - reserved,
            whole: *whole,
        };
        let mut history: Vec<CutTurn> = self.branch.turns().collect();
        let last_answer = history
            .iter()
            .rposition(|turn| turn.role == Role::Assistant);
        if self.draft.is_some() {
            let role = Role::User;
            history.push(CutTurn {
                role,
                thinks: false,
            });
        }
        let before = fit::cut_of(before, &self.branch.ids());
        let cut = match written {
            Some(_) => before,
            None => cut::choose(&history, before, room, &mut |cut| Ok(self.tokens(cut)))?.0,
        };
        let parts = self.branch.parts(cut, self.request);
        let draft = self.draft_ids().len();
        let around = self.around.min(draft);
        let definitions = self.branch.definitions();
        let frame = self.frame.head.len() + self.frame.tail.len();
        let thoughtless = Cut {
            thinking: last_answer.unwrap_or(0),
            ..Cut::default()
        };
        let all = frame + parts.all() + draft + pasted;
        let cached = match written {
            Some(_) => all,
            None => self.request.counter.cached(&self.prompt(cut)),
        };
        let omitted = self.branch.omitted(cut);
        Ok(ContextUsage {
            context: tokens(context),
            reserved: tokens(reserved),
            instructions: tokens(frame - definitions),
            definitions: tokens(definitions),
            results: tokens(parts.results),
            chat: tokens(parts.chat + around),
            thinking: tokens(parts.thinking),
            pasted: tokens(*pasted),
            message: tokens(draft - around),
            cached: tokens(cached.min(all)),
            omitted: (omitted != Omitted::default()).then_some(omitted),
            written: *written,
            whole: tokens(self.tokens(Cut::default())),
            without_thinking: tokens(self.tokens(thoughtless)),
            message_room: tokens(room.limit.saturating_sub(frame + self.around)),
        })
    }

    /// Returns the tokens of the prompt after this cut.
    fn tokens(&self, cut: Cut) -> usize {
        let parts = self.branch.parts(cut, self.request);
        let frame = self.frame.head.len() + self.frame.tail.len();
        let draft = self.draft_ids().len() + self.request.pasted;
        frame + parts.all() + draft
    }

    fn draft_ids(&self) -> &[u32] {
        self.draft.as_ref().map_or(&[], |draft| &draft.ids)
    }

    /// Returns the ids of the prompt after this cut, without pasted texts.
    fn prompt(&self, cut: Cut) -> Vec<u32> {
        let mut ids = self.frame.head.clone();
        self.branch.append(cut, self.request, &mut ids);
        ids.extend(self.draft_ids());
        if self.request.pasted == 0 {
            ids.extend(&self.frame.tail);
        }
        ids
    }
}

fn tokens(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
