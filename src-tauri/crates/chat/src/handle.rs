//! The handle to the desk.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use store::{ChatId, MessageId, QueuedMessage, Store, WindowRow};

use crate::actor::{self, AtEnd, Desk, Letter, Timing};
use crate::clock::{Clock, SystemClock};
use crate::failure::{Failure, FailureCode};
use crate::model_host::{Generate, ModelChoice};
use crate::settings::Settings;
use crate::view::{ChatSummary, ChatView, Event, SearchHit, Snapshot};

/// All that a window can ask for. Clones ask the same desk.
///
/// Each verb waits for the desk, which answers without waiting for the model. What happens later
/// comes as [`Event`]s. Dropping the last handle is a [`Chat::shutdown`].
#[derive(Clone)]
pub struct Chat {
    letters: Sender<Letter>,
    _last: Arc<LastHandle>,
}

impl Chat {
    /// Starts the desk and the model thread, and begins to open the model that was used last.
    ///
    /// `on_event` runs on the desk's thread: it must be quick, and must not call a verb.
    pub fn start(
        store: Store,
        generate: Box<dyn Generate>,
        on_event: Box<dyn Fn(Event) + Send + Sync>,
    ) -> Result<Chat, Failure> {
        Chat::start_on(None, store, generate, on_event)
    }

    /// The same with a model to open instead, which is used from then on. Where it does not open, the
    /// one that was used last is.
    pub fn start_on(
        model: Option<ModelChoice>,
        store: Store,
        generate: Box<dyn Generate>,
        on_event: Box<dyn Fn(Event) + Send + Sync>,
    ) -> Result<Chat, Failure> {
        let (clock, timing) = (Box::new(SystemClock), Timing::default());
        let requests = actor::start(model, store, generate, clock, timing, on_event)?;
        Ok(Chat::of(requests))
    }

    /// As [`Chat::start`], with a clock and a timing of the caller's.
    pub fn start_with(
        store: Store,
        generate: Box<dyn Generate>,
        clock: Box<dyn Clock>,
        timing: Timing,
        on_event: Box<dyn Fn(Event) + Send + Sync>,
    ) -> Result<Chat, Failure> {
        let requests = actor::start(None, store, generate, clock, timing, on_event)?;
        Ok(Chat::of(requests))
    }

    fn of(letters: Sender<Letter>) -> Chat {
        Chat {
            _last: Arc::new(LastHandle(letters.clone())),
            letters,
        }
    }

    /// Everything that a window needs to begin.
    pub fn snapshot(&self) -> Result<Snapshot, Failure> {
        self.ask(|desk| desk.snapshot())
    }

    /// The shown branch of a chat, which becomes the current one.
    pub fn open_chat(&self, chat: ChatId) -> Result<ChatView, Failure> {
        self.ask(move |desk| desk.open_chat(chat))
    }

    /// Adds a message to the shown branch, or to a new chat, and queues its answer.
    pub fn send(
        &self,
        chat: Option<ChatId>,
        text: &str,
        thinking: bool,
    ) -> Result<ChatView, Failure> {
        let text = text.to_owned();
        self.ask(move |desk| desk.send(chat, &text, thinking))
    }

    /// The same with the first message of the chat's queue, as `text`: `rest` is the queue from now on, and the draft
    /// stays.
    pub fn send_queued(
        &self,
        chat: ChatId,
        text: &str,
        thinking: bool,
        rest: Vec<QueuedMessage>,
    ) -> Result<ChatView, Failure> {
        let text = text.to_owned();
        self.ask(move |desk| desk.send_queued(chat, &text, thinking, &rest))
    }

    /// Queues another answer beside this one; of a user's message: another answer to it.
    pub fn regenerate(&self, message: MessageId, thinking: bool) -> Result<ChatView, Failure> {
        self.ask(move |desk| desk.regenerate(message, thinking))
    }

    /// Goes on with an answer that did not come to its end, in the same message.
    pub fn continue_answer(&self, message: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |desk| desk.continue_answer(message))
    }

    /// Makes a sibling of a message with another text, and shows it. `answer`: of a user's message,
    /// answers it, with thinking or without.
    pub fn edit_message(
        &self,
        message: MessageId,
        text: &str,
        answer: Option<bool>,
    ) -> Result<ChatView, Failure> {
        let text = text.to_owned();
        self.ask(move |desk| desk.edit_message(message, &text, answer))
    }

    /// Shows the branch through this message, down to where it was left.
    pub fn show_sibling(&self, message: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |desk| desk.show_sibling(message))
    }

    /// Stops the answer of a chat, wherever it is. What is written stays. Nothing to stop is no
    /// error.
    pub fn stop(&self, chat: ChatId) -> Result<(), Failure> {
        self.ask(move |desk| desk.stop(chat))
    }

    /// Gives a chat another title.
    pub fn rename(&self, chat: ChatId, title: &str) -> Result<ChatSummary, Failure> {
        let title = title.to_owned();
        self.ask(move |desk| desk.rename(chat, &title))
    }

    /// Deletes a chat, which can be restored for 30 days. Its answer is stopped.
    pub fn delete(&self, chat: ChatId) -> Result<(), Failure> {
        self.ask(move |desk| desk.delete(chat))
    }

    /// Brings a deleted chat back.
    pub fn restore(&self, chat: ChatId) -> Result<ChatSummary, Failure> {
        self.ask(move |desk| desk.restore(chat))
    }

    /// Finds words in titles, texts and thinking.
    pub fn search(&self, query: &str) -> Result<Vec<SearchHit>, Failure> {
        let query = query.to_owned();
        self.ask(move |desk| desk.search(&query))
    }

    /// Keeps what is typed and not sent; `None`: where a new chat begins.
    pub fn save_draft(&self, chat: Option<ChatId>, text: &str) -> Result<(), Failure> {
        let text = text.to_owned();
        self.ask(move |desk| desk.save_draft(chat, &text))
    }

    /// Keeps what was pasted to be sent with the draft.
    pub fn save_pastes(&self, chat: Option<ChatId>, pastes: Vec<String>) -> Result<(), Failure> {
        self.ask(move |desk| desk.save_pastes(chat, &pastes))
    }

    /// Keeps the messages that are to be sent when the answer that is being written is done. Whoever shows the chat
    /// sends them, by [`Chat::send_queued`].
    pub fn save_queue(&self, chat: ChatId, queue: Vec<QueuedMessage>) -> Result<(), Failure> {
        self.ask(move |desk| desk.save_queue(chat, &queue))
    }

    /// Keeps the settings, or refuses them all when one is out of range. Opens the model anew where
    /// that is needed.
    pub fn save_settings(&self, settings: Settings) -> Result<Settings, Failure> {
        self.ask(move |desk| desk.save_settings(settings))
    }

    /// Opens a model in place of the present one. The result comes as [`Event::Model`].
    pub fn open_model(&self, model: ModelChoice) -> Result<(), Failure> {
        self.ask(move |desk| desk.open_model(model))
    }

    /// Opens the model that the last start was to open, whatever has become of it then.
    pub fn retry_model(&self) -> Result<(), Failure> {
        self.ask(|desk| desk.retry_model())
    }

    /// Where the window of this label stood.
    pub fn window(&self, label: &str) -> Result<Option<WindowRow>, Failure> {
        let label = label.to_owned();
        self.ask(move |desk| desk.window(&label))
    }

    /// Keeps where the window of this label stands.
    pub fn save_window(&self, label: &str, window: WindowRow) -> Result<(), Failure> {
        let label = label.to_owned();
        self.ask(move |desk| desk.save_window(&label, &window))
    }

    /// Stops and saves what is being written, ends both threads and closes the store. Later verbs
    /// fail. Tells what the model was doing at the end.
    pub fn shutdown(&self) -> AtEnd {
        let (ended, wait) = channel();
        let sent = self.letters.send(Letter::Quit(Some(ended)));
        // An error means that the desk has ended already.
        sent.ok()
            .and_then(|()| wait.recv().ok())
            .unwrap_or(AtEnd::Stopped)
    }

    fn ask<T: Send + 'static>(
        &self,
        verb: impl FnOnce(&mut Desk) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (reply, answer) = channel();
        let letter = Letter::Verb(Box::new(move |desk| {
            let answer = verb(desk);
            if let Err(failure) = &answer {
                actor::check_if_failed(&desk.store, failure);
            }
            // An error means that nobody waits for the answer any more.
            let _ = reply.send(answer);
        }));
        let closed = || {
            Failure::new(
                FailureCode::Store,
                "Goldcrest is closing or has stopped working. The log has details.",
            )
        };
        self.letters.send(letter).map_err(|_| closed())?;
        answer.recv().unwrap_or_else(|_| Err(closed()))
    }
}

/// Dropped with the last handle.
struct LastHandle(Sender<Letter>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        // An error means that the desk has ended already.
        let _ = self.0.send(Letter::Quit(None));
    }
}
