//! Messages between the actor and the model thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;

use inference::{Opening, Signals, StopReason, TokenKind};
use store::{ChatId, MessageId};
use tools::{ToolError, ToolOutput};

use crate::api::ApiJob;
use crate::failure::Failure;
use crate::fit::{Truncation, TurnRequest};
use crate::model_host::{ModelChoice, ModelInfo, ModelOptions, PromptCounter};
use crate::reading::Reading;
use crate::view::AnswerStats;

/// An answer that was begun. A message that is begun again has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerRun {
    pub message: MessageId,
    pub number: u64,
}

/// A call that is run, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallRun {
    pub message: MessageId,
    pub number: u64,
}

pub(crate) enum Job {
    Open {
        choice: ModelChoice,
        options: ModelOptions,
        /// True if the user asked for it.
        asked: bool,
    },
    Answer {
        chat: ChatId,
        run: AnswerRun,
        request: TurnRequest,
        signals: Signals,
    },
    /// Answers another program.
    Api(ApiJob),
    /// Closes the model. Nothing is reported: later jobs wait in the queue.
    Close,
    /// Prefills an unsent message in idle time. A later one replaces it.
    ReadAhead { chat: ChatId, request: TurnRequest },
    /// Asks for the title of a chat in idle time. A later one of the chat replaces it.
    Title { chat: ChatId, request: TurnRequest },
    /// Frees disk space: a chat could not be saved because the disk is full.
    MakeRoom,
    /// Transfers the caches of a chat to another id.
    Relabel { from: ChatId, to: ChatId },
    /// Drops the caches of these chats, which were deleted.
    Forget(Vec<ChatId>),
    /// Erases the caches of all other chats.
    RetainChats(Vec<ChatId>),
}

/// The sender of jobs to the model thread.
pub(crate) struct JobQueue {
    jobs: Sender<Job>,
    /// Flag that ends a pass of idle work, or of several answers.
    preempt: Arc<AtomicBool>,
}

impl JobQueue {
    pub fn new(jobs: Sender<Job>, preempt: Arc<AtomicBool>) -> JobQueue {
        JobQueue { jobs, preempt }
    }

    /// Submits a job, for which idle work ends.
    pub fn submit(&self, job: Job) {
        self.queue(job);
        // Set after the job was sent: the model thread clears the flag before it looks for a job.
        self.preempt();
    }

    /// Ends the pass that is running, unless it serves a single answer.
    pub fn preempt(&self) {
        self.preempt.store(true, Ordering::SeqCst);
    }

    /// Submits a job for which idle work is not interrupted.
    pub fn queue(&self, job: Job) {
        if self.jobs.send(job).is_err() {
            tracing::error!("the model thread has ended");
        }
    }

    /// Ends the queue, and with it the model thread.
    pub fn close(self) {
        drop(self.jobs);
        // After the queue: the model thread clears the flag before it looks for a job.
        self.preempt.store(true, Ordering::SeqCst);
    }
}

/// Reports of the model thread.
pub(crate) enum Report {
    Progress(Opening),
    /// The model was opened, or failed to open; `open` is the model that is open now.
    Opened {
        result: Result<(), Failure>,
        open: Option<Box<ModelInfo>>,
        counter: Option<Arc<dyn PromptCounter>>,
    },
    Truncated(AnswerRun, Truncation),
    Reading(AnswerRun, Reading),
    Token {
        run: AnswerRun,
        id: u32,
        text: String,
        kind: TokenKind,
        /// Time of the token; the actor may handle it later.
        at: Instant,
    },
    /// A call is complete.
    Call {
        run: AnswerRun,
        name: String,
        arguments: String,
        at: Instant,
    },
    /// A tool has run.
    Called {
        run: CallRun,
        result: Result<ToolOutput, ToolError>,
    },
    /// An answer has ended; with the failure of a panic if one ended it.
    Ended {
        run: AnswerRun,
        result: Result<GeneratedAnswer, Failure>,
        panicked: bool,
        /// The model in its present state.
        open: Option<Box<ModelInfo>>,
    },
    /// A request of another program has ended.
    ApiEnded,
    /// Answer to [`Job::Title`].
    Titled {
        chat: ChatId,
        title: String,
    },
    /// The model panicked, cannot be trusted and was closed.
    Panicked,
}

/// End of an answer, as the model reports it.
pub(crate) struct GeneratedAnswer {
    pub reason: StopReason,
    pub stats: AnswerStats,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_submitted_job_ends_idle_work_and_a_queued_one_waits() {
        let (sender, jobs) = channel();
        let interrupt = Arc::new(AtomicBool::new(false));
        let queue = JobQueue::new(sender, Arc::clone(&interrupt));
        queue.queue(Job::MakeRoom);
        assert!(!interrupt.swap(false, Ordering::SeqCst));
        queue.submit(Job::Close);
        assert!(interrupt.swap(false, Ordering::SeqCst));
        queue.close();
        assert!(interrupt.load(Ordering::SeqCst));
        assert!(matches!(jobs.recv(), Ok(Job::MakeRoom)));
        assert!(matches!(jobs.recv(), Ok(Job::Close)));
        assert!(jobs.recv().is_err(), "the model thread ends");
    }
}
