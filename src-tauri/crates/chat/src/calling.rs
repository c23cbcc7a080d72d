//! Answers whose calls are run, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::{ChatId, MessageId};

use crate::job::CallRun;
use crate::view::{CallStatus, CallView};

/// Answers between two rounds.
#[derive(Default)]
pub(crate) struct Calling {
    answers: Vec<CallingAnswer>,
    /// Number of the call that was run last.
    last_run: u64,
}

struct CallingAnswer {
    chat: ChatId,
    message: MessageId,
    /// The call that waits or runs.
    call: Option<CurrentCall>,
}

struct CurrentCall {
    view: CallView,
    /// See [`tools::ToolInfo::fingerprint`].
    fingerprint: String,
    /// Number of its run; `None` if it waits.
    number: Option<u64>,
    cancel: Arc<AtomicBool>,
}

impl Calling {
    pub fn begin(&mut self, chat: ChatId, message: MessageId) {
        self.answers.push(CallingAnswer {
            chat,
            message,
            call: None,
        });
    }

    /// Lets a call wait for consent.
    pub fn ask(&mut self, message: MessageId, view: CallView, fingerprint: String) {
        self.set(message, view, fingerprint, None);
    }

    /// Notes that a call is run. Returns its run, and the flag that ends it.
    pub fn run(&mut self, message: MessageId, view: CallView) -> (CallRun, Arc<AtomicBool>) {
        self.last_run += 1;
        let number = self.last_run;
        let cancel = self.set(message, view, String::new(), Some(number));
        (CallRun { message, number }, cancel)
    }

    fn set(
        &mut self,
        message: MessageId,
        view: CallView,
        fingerprint: String,
        number: Option<u64>,
    ) -> Arc<AtomicBool> {
        let cancel = Arc::new(AtomicBool::new(false));
        if let Some(answer) = self.answers.iter_mut().find(|it| it.message == message) {
            answer.call = Some(CurrentCall {
                view,
                fingerprint,
                number,
                cancel: Arc::clone(&cancel),
            });
        }
        cancel
    }

    /// Returns the chat of an answer whose call `id` waits for consent, and the fingerprint of the tool.
    pub fn asking(&self, message: MessageId, id: &str) -> Option<(ChatId, String)> {
        let answer = self.answers.iter().find(|it| it.message == message)?;
        let call = answer.call.as_ref()?;
        let asks = call.view.id == id && call.view.status == CallStatus::Asks;
        asks.then(|| (answer.chat, call.fingerprint.clone()))
    }

    /// Returns the calls of these chats that run.
    pub fn running(&self, of: impl Fn(ChatId) -> bool) -> Vec<(MessageId, CallView)> {
        let answers = self.answers.iter().filter(|answer| of(answer.chat));
        let running = answers.filter_map(|answer| {
            let call = answer.call.as_ref().filter(|call| call.number.is_some())?;
            Some((answer.message, call.view.clone()))
        });
        running.collect()
    }

    /// Ends a call that was run. Returns its chat and the call; `None` if nobody waits for it.
    pub fn ended(&mut self, run: CallRun) -> Option<(ChatId, CallView)> {
        let mut answers = self.answers.iter_mut();
        let answer = answers.find(|it| it.message == run.message)?;
        let is_this = |call: &mut CurrentCall| call.number == Some(run.number);
        let call = answer.call.take_if(is_this)?;
        Some((answer.chat, call.view))
    }

    /// Returns the call of an answer that waits or runs.
    pub fn view(&self, message: MessageId) -> Option<CallView> {
        let answer = self.answers.iter().find(|it| it.message == message)?;
        answer.call.as_ref().map(|call| call.view.clone())
    }

    /// Removes the answers of these chats, and ends their calls.
    pub fn remove(&mut self, is_removed: impl Fn(ChatId) -> bool) -> Vec<(ChatId, MessageId)> {
        let removed = self
            .answers
            .extract_if(.., |answer| is_removed(answer.chat));
        let removed = removed.map(|answer| {
            if let Some(call) = answer.call {
                call.cancel.store(true, Ordering::Relaxed);
            }
            (answer.chat, answer.message)
        });
        removed.collect()
    }

    /// Removes an answer whose calls have results.
    pub fn end(&mut self, message: MessageId) {
        self.answers.retain(|answer| answer.message != message);
    }

    pub fn all(&self) -> impl Iterator<Item = (ChatId, MessageId)> {
        self.answers
            .iter()
            .map(|answer| (answer.chat, answer.message))
    }
}
