//! What the actor and the model thread say to each other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use inference::{Part, StopReason};
use store::ChatId;

use crate::failure::Failure;
use crate::fit::{Truncation, TurnRequest};
use crate::model_host::{ModelChoice, ModelInfo, ModelOptions, Opening, PromptCounter};
use crate::reading::Reading;
use crate::view::AnswerStats;

pub(crate) enum Job {
    Open {
        choice: ModelChoice,
        options: ModelOptions,
        /// The user asked for it.
        asked: bool,
    },
    Answer {
        chat: ChatId,
        request: TurnRequest,
        cancel: Arc<AtomicBool>,
        /// Ends its thinking.
        answer_now: Arc<AtomicBool>,
    },
    /// Closes the model. Nothing is reported: what follows waits for it in the queue.
    Close,
    /// A message that is not sent yet, to be read while nothing else is to do. A later one replaces it.
    ReadAhead { chat: ChatId, request: TurnRequest },
    /// A question for the title of a chat, to be answered while nothing else is to do. A later one replaces it.
    Title { chat: ChatId, request: TurnRequest },
    /// A chat could not be saved because the disk is full.
    MakeRoom,
    /// A chat goes on as another one.
    Relabel { from: ChatId, to: ChatId },
    /// These chats were deleted.
    Forget(Vec<ChatId>),
    /// There are no chats but these.
    RetainChats(Vec<ChatId>),
}

/// What the model thread tells the actor. It is about the job that runs, but for [`Report::Titled`] and
/// [`Report::IdleWorkPanicked`].
pub(crate) enum Report {
    Progress(Opening),
    /// The job of opening is over; `open` is the model that there is now.
    Opened {
        result: Result<(), Failure>,
        open: Option<Box<ModelInfo>>,
        counter: Option<Arc<dyn PromptCounter>>,
    },
    Truncated(Truncation),
    Reading(Reading),
    Token {
        id: u32,
        text: String,
        part: Part,
        /// When it was made; the actor may come to it later.
        at: Instant,
    },
    /// The job of answering is over. After a panic the model cannot be trusted.
    Ended {
        result: Result<GeneratedAnswer, Failure>,
        panicked: bool,
        /// The model as it is now.
        open: Option<Box<ModelInfo>>,
    },
    /// The answer to [`Job::Title`].
    Titled {
        chat: ChatId,
        title: String,
    },
    /// The model could not be trusted any more and was closed while it had no job.
    IdleWorkPanicked,
}

/// How the model ended an answer.
pub(crate) struct GeneratedAnswer {
    pub reason: StopReason,
    pub stats: AnswerStats,
}
