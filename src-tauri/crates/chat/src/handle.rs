//! The handle to the actor: each verb is a request to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use store::{
    ChatId, ChatPreset, DeletedMessage, FolderId, FolderRecord, LengthWish, MessageId, PresetId,
    PresetRecord, QueuedMessage, SearchAnswer, SearchHit, Store, StoreError, WholeChat, WindowRow,
};

use crate::actor::{self, AtEnd, ChatActor, CopyingChat, Direction, Request, TakenBack, Timing};
use crate::clock::{Clock, SystemClock};
use crate::context::ContextUsage;
use crate::failure::{Failure, FailureCode};
use crate::limits::refuse_too_large_together;
use crate::model_host::{ModelChoice, ModelHost, PromptCounter};
use crate::preset::{Preset, PresetContent};
use crate::settings::Settings;
use crate::view::{ChatEvent, ChatSnapshot, ChatSummary, ChatView, Undone};

/// How long undoing waits for an answer that it stops, and how often it asks.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
const STOP_PAUSE: Duration = Duration::from_millis(10);
/// Pause between two questions whether the store can be left.
const FREE_PAUSE: Duration = Duration::from_millis(100);

/// All that a window can ask for. Clones ask the same actor.
///
/// Each verb waits for the actor, which answers without waiting for the model. What happens later
/// comes as [`ChatEvent`]s. Dropping the last handle is a [`Chat::shutdown`].
#[derive(Clone)]
pub struct Chat {
    mailbox: Sender<Request>,
    _last: Arc<LastHandle>,
}

impl Chat {
    /// Starts the actor and the model thread, and begins to open the model that was used last.
    ///
    /// `on_event` runs on the actor's thread: it must be quick, and must not call a verb.
    pub fn start(
        store: Store,
        host: Box<dyn ModelHost>,
        on_event: Box<dyn Fn(ChatEvent) + Send + Sync>,
    ) -> Result<Chat, Failure> {
        Chat::start_on(None, store, host, on_event)
    }

    /// The same with a model to open instead, which is used from then on. Where it does not open, the
    /// one that was used last is.
    pub fn start_on(
        model: Option<ModelChoice>,
        store: Store,
        host: Box<dyn ModelHost>,
        on_event: Box<dyn Fn(ChatEvent) + Send + Sync>,
    ) -> Result<Chat, Failure> {
        let (clock, timing) = (Box::new(SystemClock), Timing::default());
        let mailbox = actor::start(model, store, host, clock, timing, on_event)?;
        Ok(Chat::of(mailbox))
    }

    /// As [`Chat::start`], with a clock and a timing of the caller's.
    pub fn start_with(
        store: Store,
        host: Box<dyn ModelHost>,
        clock: Box<dyn Clock>,
        timing: Timing,
        on_event: Box<dyn Fn(ChatEvent) + Send + Sync>,
    ) -> Result<Chat, Failure> {
        let mailbox = actor::start(None, store, host, clock, timing, on_event)?;
        Ok(Chat::of(mailbox))
    }

    fn of(mailbox: Sender<Request>) -> Chat {
        Chat {
            _last: Arc::new(LastHandle(mailbox.clone())),
            mailbox,
        }
    }

    /// Everything that a window needs to begin.
    pub fn snapshot(&self) -> Result<ChatSnapshot, Failure> {
        self.ask(|actor| actor.snapshot())
    }

    /// The shown branch of a chat, which becomes the current one.
    pub fn open_chat(&self, chat: ChatId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.open_chat(chat))
    }

    /// Reads `text` ahead, which is written of the next message of a chat, or of a new one, where that delays nothing. An
    /// empty one: what the chat has.
    pub fn read_ahead(
        &self,
        chat: Option<ChatId>,
        text: impl Into<String>,
        thinking: bool,
    ) -> Result<(), Failure> {
        let text: String = text.into();
        self.ask(move |actor| actor.read_ahead(chat, &text, thinking))
    }

    /// Adds a message to the shown branch, or to a new chat, and queues its answer.
    pub fn send(
        &self,
        chat: Option<ChatId>,
        text: impl Into<String>,
        thinking: bool,
    ) -> Result<ChatView, Failure> {
        let text: String = text.into();
        self.ask(move |actor| actor.send(chat, &text, thinking))
    }

    /// The same with the first message of the chat's queue, as `text`: `rest` is the queue from now on, and the draft
    /// stays.
    pub fn send_queued(
        &self,
        chat: ChatId,
        text: impl Into<String>,
        thinking: bool,
        rest: Vec<QueuedMessage>,
    ) -> Result<ChatView, Failure> {
        let text: String = text.into();
        self.ask(move |actor| actor.send_queued(chat, &text, thinking, &rest))
    }

    /// Queues another answer beside this one; of a user's message: another answer to it. `length`: how long it is to be.
    pub fn regenerate(
        &self,
        message: MessageId,
        thinking: bool,
        length: Option<LengthWish>,
    ) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.regenerate(message, thinking, length))
    }

    /// Goes on with an answer, in the same message.
    pub fn continue_answer(&self, message: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.continue_answer(message))
    }

    /// Makes a sibling of a message with another text, and shows it. `answer`: of a user's message,
    /// answers it, with thinking or without.
    pub fn edit_message(
        &self,
        message: MessageId,
        text: impl Into<String>,
        answer: Option<bool>,
    ) -> Result<ChatView, Failure> {
        let text: String = text.into();
        self.ask(move |actor| actor.edit_message(message, &text, answer))
    }

    /// Shows the branch through this message, down to where it was left.
    pub fn show_sibling(&self, message: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.show_sibling(message))
    }

    /// Deletes a message with what follows it, which can be undone for 30 days. Another version is shown, or the branch ends
    /// before it.
    pub fn delete_message(&self, message: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.delete_message(message))
    }

    /// Deleted messages that can be restored, that deleted last first.
    pub fn deleted_messages(&self) -> Result<Vec<DeletedMessage>, Failure> {
        self.ask(|actor| actor.deleted_messages())
    }

    /// Brings a deleted message back, with what follows it, and shows it. Returns what was done, as undo names it.
    pub fn restore_message(&self, message: MessageId) -> Result<String, Failure> {
        self.ask(move |actor| actor.restore_message(message))
    }

    /// Makes a new chat of the branch from its root to this message.
    pub fn fork(&self, message: MessageId) -> Result<ChatView, Failure> {
        let mut fork = self.ask(move |actor| actor.begin_fork(message))?;
        while !fork.is_whole() {
            fork = self.ask(move |actor| actor.go_on_with_fork(fork))?;
        }
        self.ask(move |actor| actor.end_fork(&fork))
    }

    /// Ends the thinking of the answer that is being written in a chat, and has the answer itself begin. Where nothing is
    /// being thought this is no error.
    pub fn answer_now(&self, chat: ChatId) -> Result<(), Failure> {
        self.ask(move |actor| actor.answer_now(chat))
    }

    /// Stops the answer of a chat, wherever it is. What is written stays. Nothing to stop is no
    /// error.
    pub fn stop(&self, chat: ChatId) -> Result<(), Failure> {
        self.ask(move |actor| actor.stop(chat))
    }

    /// Gives a chat another title.
    pub fn rename(&self, chat: ChatId, title: impl Into<String>) -> Result<ChatSummary, Failure> {
        let title: String = title.into();
        self.ask(move |actor| actor.rename(chat, &title))
    }

    /// Has chats stand at the top of the list, or no more. Returns what was done, as undo names it; so do the others.
    pub fn pin(&self, chats: impl Into<Vec<ChatId>>, pinned: bool) -> Result<String, Failure> {
        let chats: Vec<ChatId> = chats.into();
        self.ask(move |actor| actor.pin(&chats, pinned))
    }

    /// Takes chats out of the list, where they can still be searched and read, or brings them back.
    pub fn archive(
        &self,
        chats: impl Into<Vec<ChatId>>,
        archived: bool,
    ) -> Result<String, Failure> {
        let chats: Vec<ChatId> = chats.into();
        self.ask(move |actor| actor.archive(&chats, archived))
    }

    /// Moves chats into a folder; `None`: out of theirs.
    pub fn move_chats(
        &self,
        chats: impl Into<Vec<ChatId>>,
        folder: Option<FolderId>,
    ) -> Result<String, Failure> {
        let chats: Vec<ChatId> = chats.into();
        self.ask(move |actor| actor.move_chats(&chats, folder))
    }

    /// Deletes chats, which can be restored for 30 days. Their answers are stopped.
    pub fn delete(&self, chats: impl Into<Vec<ChatId>>) -> Result<String, Failure> {
        let chats: Vec<ChatId> = chats.into();
        self.ask(move |actor| actor.delete(&chats))
    }

    /// Brings deleted chats back.
    pub fn restore(&self, chats: impl Into<Vec<ChatId>>) -> Result<String, Failure> {
        let chats: Vec<ChatId> = chats.into();
        self.ask(move |actor| actor.restore(&chats))
    }

    /// The deleted chats that can be restored, that deleted last first.
    pub fn bin(&self) -> Result<Vec<ChatSummary>, Failure> {
        self.ask(|actor| actor.bin())
    }

    /// Removes deleted chats for good.
    pub fn delete_for_good(&self, chats: impl Into<Vec<ChatId>>) -> Result<(), Failure> {
        let chats: Vec<ChatId> = chats.into();
        self.ask(move |actor| actor.delete_for_good(&chats))
    }

    /// Creates a folder behind the others, and moves chats into it.
    pub fn create_folder(
        &self,
        name: impl Into<String>,
        chats: impl Into<Vec<ChatId>>,
    ) -> Result<FolderId, Failure> {
        let (name, chats): (String, Vec<ChatId>) = (name.into(), chats.into());
        self.ask(move |actor| actor.create_folder(&name, &chats))
    }

    /// Gives a folder another name.
    pub fn rename_folder(&self, folder: FolderId, name: impl Into<String>) -> Result<(), Failure> {
        let name: String = name.into();
        self.ask(move |actor| actor.rename_folder(folder, &name))
    }

    /// Deletes a folder. Its chats stay, in no folder.
    pub fn delete_folder(&self, folder: FolderId) -> Result<String, Failure> {
        self.ask(move |actor| actor.delete_folder(folder))
    }

    /// Moves a folder to a place among the others, counted from 0.
    pub fn move_folder(&self, folder: FolderId, to: usize) -> Result<(), Failure> {
        self.ask(move |actor| actor.move_folder(folder, to))
    }

    /// Has the list hide what is in a folder, or show it.
    pub fn collapse_folder(&self, folder: FolderId, collapsed: bool) -> Result<(), Failure> {
        self.ask(move |actor| actor.collapse_folder(folder, collapsed))
    }

    /// A temporary chat in which nothing was said yet: it is in memory alone, with its draft, and ends with the process.
    pub fn new_temporary_chat(&self) -> Result<ChatView, Failure> {
        self.ask(|actor| actor.new_temporary_chat())
    }

    /// Copies a temporary chat to the disk, where it goes on under another id.
    pub fn keep_chat(&self, chat: ChatId) -> Result<ChatSummary, Failure> {
        let copying = self.ask(move |actor| actor.begin_keep(chat))?;
        let copying = self.copy_in_parts(copying)?;
        self.ask(move |actor| actor.end_keep(copying))
    }

    /// Takes the last change back; `None`: there is none.
    pub fn undo(&self) -> Result<Option<Undone>, Failure> {
        self.take_back(Direction::Undo)
    }

    /// Makes the change again that was taken back last; `None`: there is none.
    pub fn redo(&self) -> Result<Option<Undone>, Failure> {
        self.take_back(Direction::Redo)
    }

    /// Finds words in titles, texts and thinking: chats, each with a few of its messages.
    pub fn search(&self, query: impl Into<String>) -> Result<SearchAnswer, Failure> {
        let query: String = query.into();
        self.ask(move |actor| actor.search(&query))
    }

    /// Finds the messages of a chat that [`Chat::search`] counts.
    pub fn search_chat(
        &self,
        query: impl Into<String>,
        chat: ChatId,
    ) -> Result<Vec<SearchHit>, Failure> {
        let query: String = query.into();
        self.ask(move |actor| actor.search_chat(&query, chat))
    }

    /// What the next prompt of a chat, or of a new one, would take of the context, with `draft` and `pasted` tokens of
    /// texts that go with it. Waits for no answer; `None`: no model is open.
    pub fn context_usage(
        &self,
        chat: Option<ChatId>,
        draft: impl Into<String>,
        pasted: u32,
        thinking: bool,
    ) -> Result<Option<ContextUsage>, Failure> {
        let draft: String = draft.into();
        for afresh in [false, true] {
            let draft = draft.clone();
            let count = move |actor: &mut ChatActor| {
                actor.count_context(chat, &draft, pasted, thinking, afresh)
            };
            let Some(counted) = self.ask(count)? else {
                return Ok(None);
            };
            if let Some(usage) = counted.recv().unwrap_or_else(|_| Err(closed()))? {
                return Ok(Some(usage));
            }
        }
        Ok(None)
    }

    /// Begins a new chat with a summary of this one, written by the model from it.
    pub fn start_summary(&self, of: ChatId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.start_summary(of))
    }

    /// Has the next answer read what this one left out, as far as it fits.
    pub fn read_again(&self, answer: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.read_again(answer))
    }

    /// The tokens that each text has, counted on the caller's thread; `None`: no model is open.
    pub fn count_tokens(&self, texts: &[String]) -> Result<Option<Vec<u32>>, Failure> {
        refuse_too_large_together(texts.iter().map(String::len))?;
        let counter = self.ask(|actor| Ok(actor.prompt_counter()))?;
        let count = |text: &String, counter: &dyn PromptCounter| {
            u32::try_from(counter.count(text)).unwrap_or(u32::MAX)
        };
        Ok(counter.map(|counter| texts.iter().map(|text| count(text, &*counter)).collect()))
    }

    /// Keeps what is typed and not sent; `None`: where a new chat begins.
    pub fn save_draft(&self, chat: Option<ChatId>, text: impl Into<String>) -> Result<(), Failure> {
        let text: String = text.into();
        self.ask(move |actor| actor.save_draft(chat, &text))
    }

    /// Keeps what was pasted to be sent with the draft.
    pub fn save_pastes(&self, chat: Option<ChatId>, pastes: Vec<String>) -> Result<(), Failure> {
        self.ask(move |actor| actor.save_pastes(chat, &pastes))
    }

    /// Keeps the messages that are to be sent when the answer that is being written is done. Whoever shows the chat
    /// sends them, by [`Chat::send_queued`].
    pub fn save_queue(&self, chat: ChatId, queue: Vec<QueuedMessage>) -> Result<(), Failure> {
        self.ask(move |actor| actor.save_queue(chat, &queue))
    }

    /// Keeps the settings, or refuses them all when one is out of range. Opens the model again where
    /// that is needed.
    pub fn save_settings(&self, settings: Settings) -> Result<Settings, Failure> {
        self.ask(move |actor| actor.save_settings(settings))
    }

    /// All presets, in the order of their names.
    pub fn presets(&self) -> Result<Vec<Preset>, Failure> {
        self.ask(|actor| actor.presets())
    }

    /// Changes a preset, or adds one. A new one whose name is taken gets a number; one that is there is refused the name
    /// of another.
    pub fn save_preset(
        &self,
        id: Option<PresetId>,
        content: PresetContent,
    ) -> Result<PresetId, Failure> {
        self.ask(move |actor| actor.save_preset(id, content))
    }

    /// Adds several presets, all or none.
    pub fn add_presets(&self, contents: Vec<PresetContent>) -> Result<Vec<PresetId>, Failure> {
        self.ask(move |actor| actor.add_presets(contents))
    }

    /// Deletes a preset. Its chats are answered as the settings say.
    pub fn delete_preset(&self, id: PresetId) -> Result<(), Failure> {
        self.ask(move |actor| actor.delete_preset(id))
    }

    /// Has a chat, or the next new one, be answered with a preset, and with instructions of its own.
    pub fn choose_preset(&self, chat: Option<ChatId>, preset: ChatPreset) -> Result<(), Failure> {
        self.ask(move |actor| actor.choose_preset(chat, preset))
    }

    /// Opens a model in place of the present one. The result comes as [`ChatEvent::Model`].
    pub fn open_model(&self, model: ModelChoice) -> Result<(), Failure> {
        self.ask(move |actor| actor.open_model(model))
    }

    /// Opens the model that the last start was to open, whatever has become of it then.
    pub fn retry_model(&self) -> Result<(), Failure> {
        self.ask(|actor| actor.retry_model())
    }

    /// Unloads the model that is open, which frees its memory. The next message, or [`Chat::reload_model`], opens it again.
    /// Refused while an answer is written or waits, and while a model is being opened.
    pub fn eject_model(&self) -> Result<(), Failure> {
        self.ask(|actor| actor.eject_model())
    }

    /// Opens the model that was unloaded. Without one there is nothing to do.
    pub fn reload_model(&self) -> Result<(), Failure> {
        self.ask(|actor| {
            actor.reload_ejected();
            Ok(())
        })
    }

    /// Where the window of this label stood.
    pub fn window(&self, label: impl Into<String>) -> Result<Option<WindowRow>, Failure> {
        let label: String = label.into();
        self.ask(move |actor| actor.window(&label))
    }

    /// Keeps where the window of this label stands.
    pub fn save_window(&self, label: impl Into<String>, window: WindowRow) -> Result<(), Failure> {
        let label: String = label.into();
        self.ask(move |actor| actor.save_window(&label, &window))
    }

    /// The title of a chat.
    pub fn title(&self, chat: ChatId) -> Result<String, Failure> {
        self.ask(move |actor| Ok(actor.store_of(chat).records().title(chat)?))
    }

    /// A chat as it leaves the store. A temporary one is only there.
    pub fn record(&self, chat: ChatId) -> Result<WholeChat, Failure> {
        self.ask(move |actor| actor.whole_chat(chat))
    }

    /// All folders and presets, as they leave the store.
    pub fn named_records(&self) -> Result<(Vec<FolderRecord>, Vec<PresetRecord>), Failure> {
        self.ask(|actor| {
            let records = actor.store.records();
            Ok((records.folders()?, records.presets()?))
        })
    }

    /// Puts a copy of [`listed_copies`](crate::listed_copies) in the place of the store's file, `database`, and goes on with
    /// it. Returns where the file is kept that was there. Refused while an answer is written.
    pub fn restore_copy(&self, database: &Path, name: &str) -> Result<PathBuf, Failure> {
        // Not only when it was copied.
        self.may_leave_store()?;
        // A large one takes a while, in which others are served.
        store::prepare_copy(database, name).map_err(|error| match error {
            StoreError::NotFound(_) => Failure::other(
                "This copy is damaged or not there any more, so it was not restored. Your chats are as they were.",
            ),
            error => error.into(),
        })?;
        let taken = self.ask(|actor| actor.take_copy());
        if taken.is_err() {
            store::drop_prepared(database);
        }
        taken
    }

    /// Whether another file may take the place of the store's now, or the store go to another place: not while an answer is
    /// written.
    pub fn may_leave_store(&self) -> Result<(), Failure> {
        self.ask(|actor| actor.may_leave_store())
    }

    /// Has `copy` copy the store's file while nobody writes to it. Where that succeeds, later verbs fail: what they would
    /// write belongs to the copy. Waits while an answer is written, as long as `waits` agrees; where it does not any more,
    /// this returns false.
    pub fn leave_store<C>(
        &self,
        mut copy: C,
        waits: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Failure>
    where
        C: FnOnce(&Path) -> Result<(), Failure> + Send + 'static,
    {
        loop {
            let left = self.ask(move |actor| match actor.may_leave_store() {
                Ok(()) => actor.leave_store(copy).map(|()| None),
                Err(_) => Ok(Some(copy)),
            });
            let Some(later) = left? else {
                return Ok(true);
            };
            if !waits() {
                return Ok(false);
            }
            copy = later;
            thread::sleep(FREE_PAUSE);
        }
    }

    /// Stops and saves what is being written, ends both threads and closes the store. Later verbs
    /// fail. Tells what the model was doing at the end.
    pub fn shutdown(&self) -> AtEnd {
        let (ended, wait) = channel();
        let sent = self.mailbox.send(Request::Quit(Some(ended)));
        // An error means that the actor has ended already.
        sent.ok()
            .and_then(|()| wait.recv().ok())
            .unwrap_or(AtEnd::Stopped)
    }

    /// Waits until a change can be taken back.
    fn take_back(&self, direction: Direction) -> Result<Option<Undone>, Failure> {
        let deadline = Instant::now() + STOPS_WITHIN;
        let mut copied = None;
        loop {
            let copying = copied.take();
            match self.ask(move |actor| actor.take_back_with(direction, copying))? {
                TakenBack::Done(undone) => return Ok(undone),
                TakenBack::Copies(copying) => copied = Some(self.copy_in_parts(copying)?),
                TakenBack::Later if Instant::now() < deadline => thread::sleep(STOP_PAUSE),
                TakenBack::Later => return Err(Failure::busy()),
            }
        }
    }

    /// Others are served between the parts.
    fn copy_in_parts(&self, mut copying: CopyingChat) -> Result<CopyingChat, Failure> {
        while !copying.is_whole() {
            copying = self.ask(move |actor| actor.go_on_copying(copying))?;
        }
        Ok(copying)
    }

    pub(crate) fn ask<T: Send + 'static>(
        &self,
        verb: impl FnOnce(&mut ChatActor) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (reply, answer) = channel();
        let request = Request::Verb(Box::new(move |actor| {
            if actor.has_ended {
                let _ = reply.send(Err(closed()));
                return;
            }
            let answer = verb(actor);
            if let Err(failure) = &answer {
                actor.after_failure(failure);
            }
            // An error means that nobody waits for the answer any more.
            let _ = reply.send(answer);
        }));
        self.mailbox.send(request).map_err(|_| closed())?;
        answer.recv().unwrap_or_else(|_| Err(closed()))
    }
}

fn closed() -> Failure {
    Failure::new(
        FailureCode::Store,
        "Goldcrest is closing or has stopped working. The log has details.",
    )
}

/// Dropped with the last handle.
struct LastHandle(Sender<Request>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        // An error means that the actor has ended already.
        let _ = self.0.send(Request::Quit(None));
    }
}
