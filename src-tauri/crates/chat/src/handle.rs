//! The handle to the actor: each verb is a request to it.

mod programs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use store::{
    ChatId, ChatPreset, DeletedMessage, FolderId, FolderRecord, LengthWish, MessageId, PresetId,
    PresetRecord, QueuedMessage, SearchAnswer, SearchHit, Store, StoreError, WholeChat, WindowRow,
};
use tools::Registry;

use crate::actor::{self, AtEnd, ChatActor, Request, TakenBack};
use crate::app_row::AppRow;
use crate::clock::{Clock, SystemClock};
use crate::context::ContextUsage;
use crate::context_counter::NextMessage;
use crate::copies::CopyingChat;
use crate::failure::{Failure, FailureCode};
use crate::limits::refuse_too_large_together;
use crate::model_host::{ModelChoice, ModelHost, PromptCounter};
use crate::preset::{Preset, PresetContent, stored};
use crate::settings::Settings;
use crate::timing::Timing;
use crate::undo_stack::Direction;
use crate::view::{ChatEvent, ChatSnapshot, ChatSummary, ChatView, Consent, ToolView, Undone};

/// Time limit for an answer that undo stops, and the polling interval.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
const STOP_PAUSE: Duration = Duration::from_millis(10);
/// Polling interval while waiting until the store can be left.
const FREE_PAUSE: Duration = Duration::from_millis(100);

/// Maximum chats that a search lists.
const FOUND_CHATS: u32 = 300;
/// Maximum messages of one chat that a search lists.
const FOUND_IN_CHAT: u32 = 500;
/// Maximum deleted messages that are listed, the last deleted first.
const LISTED: u32 = 200;

/// Every verb of a window. Clones share the same actor.
///
/// Each verb waits for the actor, which answers without waiting for the model. Later results come as [`ChatEvent`]s.
/// Dropping the last handle is a [`Chat::shutdown`].
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

    /// Like [`Chat::start`], with another model, which becomes the remembered one. If it does not open, the last model
    /// does.
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

    /// Like [`Chat::start_on`], with these settings, and with everything in memory: nothing is written to the disk.
    pub fn start_in_memory(
        model: ModelChoice,
        settings: &Settings,
        host: Box<dyn ModelHost>,
        on_event: Box<dyn Fn(ChatEvent) + Send + Sync>,
    ) -> Result<Chat, Failure> {
        settings.validate()?;
        let store = Store::in_memory()?;
        settings.write(&store)?;
        Chat::start_on(Some(model), store, host, on_event)
    }

    /// Like [`Chat::start`], with a clock and a timing of the caller's.
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

    /// Sets the tools that chats can have on.
    pub fn set_tools(&self, tools: Arc<Registry>) -> Result<(), Failure> {
        self.ask(move |actor| {
            actor.tools = tools;
            Ok(())
        })
    }

    /// Returns the tools that chats can have on.
    pub fn tools(&self) -> Result<Vec<ToolView>, Failure> {
        self.ask(|actor| {
            let tools = actor.tools.tools().into_iter();
            Ok(tools.map(|tool| ToolView::from(&*tool.info())).collect())
        })
    }

    /// Tells the window that the tools have changed. Does not wait.
    pub fn tools_changed(&self) {
        self.post(ChatActor::tools_changed);
    }

    fn post(&self, verb: impl FnOnce(&mut ChatActor) + Send + 'static) {
        // An error means that the actor has ended.
        let _ = self.mailbox.send(Request::Verb(Box::new(verb)));
    }

    /// Returns a stored row of the app's own.
    pub fn row(&self, row: AppRow) -> Result<Option<Value>, Failure> {
        self.ask(move |actor| Ok(actor.stores.disk.settings().get(row.key())?))
    }

    /// Stores a row of the app's own.
    pub fn save_row(&self, row: AppRow, value: Value) -> Result<(), Failure> {
        self.ask(move |actor| Ok(actor.stores.disk.settings().set(row.key(), &value)?))
    }

    /// Applies the user's decision about a call that waits.
    pub fn answer_call(
        &self,
        message: MessageId,
        call: impl Into<String>,
        consent: Consent,
    ) -> Result<(), Failure> {
        let call: String = call.into();
        self.ask(move |actor| actor.answer_call(message, &call, consent))
    }

    /// Returns the initial state of a window.
    pub fn snapshot(&self) -> Result<ChatSnapshot, Failure> {
        self.ask(|actor| actor.snapshot())
    }

    /// Returns the shown branch of a chat, which becomes the current one.
    pub fn open_chat(&self, chat: ChatId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.open_chat(chat))
    }

    /// Prefills the draft of a chat's next message, or of a new chat, in idle time. An empty draft prefills the chat.
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

    /// Sends the first message of the chat's queue, as `text`; `rest` becomes the queue, and the draft stays.
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

    /// Queues another answer beside this one, or, for a user's message, another answer to it. `length`: its requested
    /// length.
    pub fn regenerate(
        &self,
        message: MessageId,
        thinking: bool,
        length: Option<LengthWish>,
    ) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.regenerate(message, thinking, length))
    }

    /// Continues an answer in the same message.
    pub fn continue_answer(&self, message: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.continue_answer(message))
    }

    /// Adds a sibling of a message with another text, and shows it. `answer`: for a user's message, answers it, with
    /// thinking or without.
    pub fn edit_message(
        &self,
        message: MessageId,
        text: impl Into<String>,
        answer: Option<bool>,
    ) -> Result<ChatView, Failure> {
        let text: String = text.into();
        self.ask(move |actor| actor.edit_message(message, &text, answer))
    }

    /// Shows the branch through this message, down to the leaf that was shown last.
    pub fn show_sibling(&self, message: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.show_sibling(message))
    }

    /// Deletes a message with its descendants, which can be undone for 30 days. Another version is shown, or the branch
    /// ends before it.
    pub fn delete_message(&self, message: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.delete_message(message))
    }

    /// Returns the deleted messages that can be restored, the last deleted first.
    pub fn deleted_messages(&self) -> Result<Vec<DeletedMessage>, Failure> {
        self.ask(|actor| Ok(actor.stores.disk.messages().deleted(LISTED)?))
    }

    /// Restores a deleted message with its descendants, and shows it. Returns the label for undo.
    pub fn restore_message(&self, message: MessageId) -> Result<String, Failure> {
        self.ask(move |actor| actor.restore_message(message))
    }

    /// Makes a new chat of the branch from its root to this message.
    pub fn fork(&self, message: MessageId) -> Result<ChatView, Failure> {
        let mut fork = self.ask(move |actor| actor.begin_fork(message))?;
        while !fork.is_whole() {
            fork = self.ask(move |actor| Ok(fork.go_on(&actor.stores)?))?;
        }
        self.ask(move |actor| actor.end_fork(&fork))
    }

    /// Ends the thinking of a chat's answer, so that the answer itself begins. It is no error if nothing is being
    /// thought.
    pub fn answer_now(&self, chat: ChatId) -> Result<(), Failure> {
        self.ask(move |actor| {
            actor.answers.answer_now(chat);
            Ok(())
        })
    }

    /// Stops the answer of a chat, whatever its stage. Text that was written stays. It is no error if there is nothing
    /// to stop.
    pub fn stop(&self, chat: ChatId) -> Result<(), Failure> {
        self.ask(move |actor| actor.stop(chat))
    }

    /// Renames a chat.
    pub fn rename(&self, chat: ChatId, title: impl Into<String>) -> Result<ChatSummary, Failure> {
        let title: String = title.into();
        self.ask(move |actor| actor.rename(chat, &title))
    }

    /// Pins chats to the top of the list, or unpins them. Returns the label for undo, like the verbs below.
    pub fn pin(&self, chats: impl Into<Vec<ChatId>>, pinned: bool) -> Result<String, Failure> {
        let chats: Vec<ChatId> = chats.into();
        self.ask(move |actor| actor.pin(&chats, pinned))
    }

    /// Archives chats, which can still be searched and read, or unarchives them.
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

    /// Restores deleted chats.
    pub fn restore(&self, chats: impl Into<Vec<ChatId>>) -> Result<String, Failure> {
        let chats: Vec<ChatId> = chats.into();
        self.ask(move |actor| actor.restore(&chats))
    }

    /// Returns the deleted chats that can be restored, the last deleted first.
    pub fn bin(&self) -> Result<Vec<ChatSummary>, Failure> {
        self.ask(|actor| actor.bin())
    }

    /// Purges deleted chats.
    pub fn delete_for_good(&self, chats: impl Into<Vec<ChatId>>) -> Result<(), Failure> {
        let chats: Vec<ChatId> = chats.into();
        self.ask(move |actor| actor.delete_for_good(&chats))
    }

    /// Creates a folder after the others, and moves chats into it.
    pub fn create_folder(
        &self,
        name: impl Into<String>,
        chats: impl Into<Vec<ChatId>>,
    ) -> Result<FolderId, Failure> {
        let (name, chats): (String, Vec<ChatId>) = (name.into(), chats.into());
        self.ask(move |actor| actor.create_folder(&name, &chats))
    }

    /// Renames a folder.
    pub fn rename_folder(&self, folder: FolderId, name: impl Into<String>) -> Result<(), Failure> {
        let name: String = name.into();
        self.ask(move |actor| actor.rename_folder(folder, &name))
    }

    /// Deletes a folder. Its chats stay, in no folder.
    pub fn delete_folder(&self, folder: FolderId) -> Result<String, Failure> {
        self.ask(move |actor| actor.delete_folder(folder))
    }

    /// Moves a folder to a position among the others, from 0.
    pub fn move_folder(&self, folder: FolderId, to: usize) -> Result<(), Failure> {
        self.ask(move |actor| actor.move_folder(folder, to))
    }

    /// Collapses or expands a folder in the list.
    pub fn collapse_folder(&self, folder: FolderId, collapsed: bool) -> Result<(), Failure> {
        self.ask(move |actor| actor.collapse_folder(folder, collapsed))
    }

    /// Creates an empty temporary chat: it is in memory only, with its draft, and ends with the process.
    pub fn new_temporary_chat(&self) -> Result<ChatView, Failure> {
        self.ask(|actor| actor.new_temporary_chat())
    }

    /// Copies a temporary chat to the disk, where it continues under another id.
    pub fn keep_chat(&self, chat: ChatId) -> Result<ChatSummary, Failure> {
        let copying = self.ask(move |actor| actor.begin_keep(chat))?;
        let copying = self.copy_in_parts(copying)?;
        self.ask(move |actor| actor.end_keep(copying))
    }

    /// Undoes the last change; `None` if there is none.
    pub fn undo(&self) -> Result<Option<Undone>, Failure> {
        self.take_back(Direction::Undo)
    }

    /// Redoes the change that was undone last; `None` if there is none.
    pub fn redo(&self) -> Result<Option<Undone>, Failure> {
        self.take_back(Direction::Redo)
    }

    /// Searches titles, texts and thinking. Returns chats, each with a few of its messages.
    pub fn search(&self, query: impl Into<String>) -> Result<SearchAnswer, Failure> {
        let query: String = query.into();
        self.ask(move |actor| Ok(actor.stores.disk.search().find(&query, FOUND_CHATS)?))
    }

    /// Finds the messages of a chat that [`Chat::search`] counts.
    pub fn search_chat(
        &self,
        query: impl Into<String>,
        chat: ChatId,
    ) -> Result<Vec<SearchHit>, Failure> {
        let query: String = query.into();
        self.ask(move |actor| {
            let search = actor.stores.disk.search();
            Ok(search.find_in_chat(&query, chat, FOUND_IN_CHAT)?)
        })
    }

    /// Returns the tokens that the next prompt of a chat, or of a new one, would take of the context, with `draft` and
    /// `pasted` tokens of attached texts. Waits for no answer; `None` if no model is open.
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
                let next = NextMessage {
                    chat,
                    draft: &draft,
                    pasted,
                    thinking,
                };
                actor.count_context(&next, afresh)
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

    /// Begins a new chat with a summary of this one, which the model writes.
    pub fn start_summary(&self, of: ChatId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.start_summary(of))
    }

    /// Lets the next answer read what this one left out, as far as it fits.
    pub fn read_again(&self, answer: MessageId) -> Result<ChatView, Failure> {
        self.ask(move |actor| actor.read_again(answer))
    }

    /// Counts the tokens of each text on the caller's thread; `None` if no model is open.
    pub fn count_tokens(&self, texts: &[String]) -> Result<Option<Vec<u32>>, Failure> {
        refuse_too_large_together(texts.iter().map(String::len))?;
        let counter = self.ask(|actor| Ok(actor.model.counter().cloned()))?;
        let count = |text: &String, counter: &dyn PromptCounter| {
            u32::try_from(counter.count(text)).unwrap_or(u32::MAX)
        };
        Ok(counter.map(|counter| texts.iter().map(|text| count(text, &*counter)).collect()))
    }

    /// Saves a draft; `None`: the draft of a new chat.
    pub fn save_draft(&self, chat: Option<ChatId>, text: impl Into<String>) -> Result<(), Failure> {
        let text: String = text.into();
        self.ask(move |actor| actor.save_draft(chat, &text))
    }

    /// Saves the texts that were pasted into the draft.
    pub fn save_pastes(&self, chat: Option<ChatId>, pastes: Vec<String>) -> Result<(), Failure> {
        self.ask(move |actor| actor.save_pastes(chat, &pastes))
    }

    /// Saves the messages to be sent when the answer in progress has ended. The window that shows the chat sends them,
    /// by [`Chat::send_queued`].
    pub fn save_queue(&self, chat: ChatId, queue: Vec<QueuedMessage>) -> Result<(), Failure> {
        self.ask(move |actor| actor.save_queue(chat, &queue))
    }

    /// Saves the settings, or refuses them all if one is out of range. Reopens the model if necessary.
    pub fn save_settings(&self, settings: Settings) -> Result<Settings, Failure> {
        self.ask(move |actor| actor.save_settings(settings))
    }

    /// Returns all presets, in the order of their names.
    pub fn presets(&self) -> Result<Vec<Preset>, Failure> {
        self.ask(|actor| Ok(stored::list(&actor.stores.disk)?))
    }

    /// Changes a preset, or adds one. A new one whose name is taken gets a number; an existing preset cannot take
    /// another's name.
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

    /// Deletes a preset. The settings then apply to its chats.
    pub fn delete_preset(&self, id: PresetId) -> Result<(), Failure> {
        self.ask(move |actor| actor.delete_preset(id))
    }

    /// Chooses a preset and instructions for a chat, or for the next new one.
    pub fn choose_preset(&self, chat: Option<ChatId>, preset: ChatPreset) -> Result<(), Failure> {
        self.ask(move |actor| actor.choose_preset(chat, preset))
    }

    /// Opens a model in place of the present one. The result comes as [`ChatEvent::Model`].
    pub fn open_model(&self, model: ModelChoice) -> Result<(), Failure> {
        self.ask(move |actor| actor.open_model(model))
    }

    /// Opens the model that the last start was to open, whatever became of it.
    pub fn retry_model(&self) -> Result<(), Failure> {
        self.ask(|actor| actor.retry_model())
    }

    /// Unloads the open model, which frees its memory. The next message, or [`Chat::reload_model`], opens it again.
    /// Refused while an answer is written or queued, and while a model is being opened.
    pub fn eject_model(&self) -> Result<(), Failure> {
        self.ask(|actor| actor.eject_model())
    }

    /// Reopens the unloaded model. Does nothing if there is none.
    pub fn reload_model(&self) -> Result<(), Failure> {
        self.ask(|actor| {
            actor.reload_ejected();
            Ok(())
        })
    }

    /// Returns the saved position of the window with this label.
    pub fn window(&self, label: impl Into<String>) -> Result<Option<WindowRow>, Failure> {
        let label: String = label.into();
        self.ask(move |actor| Ok(actor.stores.disk.windows().get(&label)?))
    }

    /// Saves the position of the window with this label.
    pub fn save_window(&self, label: impl Into<String>, window: WindowRow) -> Result<(), Failure> {
        let label: String = label.into();
        self.ask(move |actor| Ok(actor.stores.disk.windows().set(&label, &window)?))
    }

    /// Returns the title of a chat.
    pub fn title(&self, chat: ChatId) -> Result<String, Failure> {
        self.ask(move |actor| Ok(actor.stores.of(chat).records().title(chat)?))
    }

    /// Returns a chat in the form in which it leaves the store. A temporary one is only there.
    pub fn record(&self, chat: ChatId) -> Result<WholeChat, Failure> {
        self.ask(move |actor| actor.whole_chat(chat))
    }

    /// Returns all folders and presets in the form in which they leave the store.
    pub fn named_records(&self) -> Result<(Vec<FolderRecord>, Vec<PresetRecord>), Failure> {
        self.ask(|actor| {
            let records = actor.stores.disk.records();
            Ok((records.folders()?, records.presets()?))
        })
    }

    /// Replaces the store's file, `database`, with a copy from [`listed_copies`](crate::listed_copies), and continues
    /// with it. Returns the path to which the former file was moved. Refused while an answer is written.
    pub fn restore_copy(&self, database: &Path, name: &str) -> Result<PathBuf, Failure> {
        // Checked before the copy too, not only after it.
        self.may_leave_store()?;
        // A large copy takes a while, in which others are served.
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

    /// Returns an error while an answer is written: the store's file cannot be replaced or moved then.
    pub fn may_leave_store(&self) -> Result<(), Failure> {
        self.ask(|actor| actor.may_leave_store())
    }

    /// Has `copy` copy the store's file while nobody writes to it. If that succeeds, later verbs fail: their writes
    /// would belong to the copy. Waits while an answer is written, as long as `waits` returns true; otherwise this
    /// returns false.
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

    /// Stops and saves the answer in progress, ends both threads and closes the store. Later verbs fail. Returns what
    /// the model was doing at the end.
    pub fn shutdown(&self) -> AtEnd {
        let (ended, wait) = channel();
        let sent = self.mailbox.send(Request::Quit(Some(ended)));
        // An error means that the actor has ended already.
        sent.ok()
            .and_then(|()| wait.recv().ok())
            .unwrap_or(AtEnd::Stopped)
    }

    /// Undoes or redoes a change, waiting until that is possible.
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

    /// Copies a chat in parts, between which others are served.
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
            // An error means that the receiver is gone.
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

/// Closes the chat when the last handle is dropped.
struct LastHandle(Sender<Request>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        // An error means that the actor has ended already.
        let _ = self.0.send(Request::Quit(None));
    }
}
