//! The verbs, but for those that open a model or show a snapshot.

use store::{ChatId, DraftPlace, MessageId, MessageState, NewMessage, Role, WindowRow};

use crate::desk::{CURRENT, Desk};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::title;
use crate::view::{ChatSummary, ChatView, Event, SearchHit};

/// Search hits of each kind.
const HITS: u32 = 50;

impl Desk {
    pub(crate) fn open_chat(&mut self, chat: ChatId) -> Result<ChatView, Failure> {
        let view = self.view(chat)?;
        self.store.settings().set(CURRENT, &chat.0.into())?;
        Ok(view)
    }

    pub(crate) fn send(
        &mut self,
        chat: Option<ChatId>,
        text: &str,
        thinking: bool,
    ) -> Result<ChatView, Failure> {
        let text = not_empty(text)?;
        if let Some(chat) = chat {
            self.refuse_if_writing(chat)?;
        }
        let now = self.clock.now();
        let at = now.timestamp().as_second();
        let (chat, answer) = self.store.transaction(|store| {
            let (place, chat, parent) = match chat {
                Some(chat) => (DraftPlace::Chat(chat), chat, store.chats().get(chat)?.leaf),
                None => {
                    let chat = store.chats().create(
                        &title::from_message(text),
                        &now.date().to_string(),
                        at,
                    )?;
                    store.settings().set(CURRENT, &chat.0.into())?;
                    (DraftPlace::NewChat, chat, None)
                }
            };
            let message = store.messages().add(&NewMessage {
                text,
                thinks: thinking,
                ..user(chat, parent, at)
            })?;
            let answer = store.messages().add(&answer(chat, message, thinking, at))?;
            store.chats().touch(chat, at)?;
            store.drafts().set(place, "")?;
            Ok::<_, Failure>((chat, answer))
        })?;
        self.queue_answer(chat, answer, false)
    }

    pub(crate) fn regenerate(
        &mut self,
        message: MessageId,
        thinking: bool,
    ) -> Result<ChatView, Failure> {
        let row = self.store.messages().get(message)?;
        self.refuse_if_writing(row.chat)?;
        let asked = match row.role {
            Role::User => row.id,
            Role::Assistant => row
                .parent
                .ok_or_else(|| Failure::invalid("There is no message to answer."))?,
        };
        let at = self.now();
        let answer = self.store.transaction(|store| {
            store.chats().touch(row.chat, at)?;
            Ok::<_, Failure>(
                store
                    .messages()
                    .add(&answer(row.chat, asked, thinking, at))?,
            )
        })?;
        self.queue_answer(row.chat, answer, false)
    }

    pub(crate) fn continue_answer(&mut self, message: MessageId) -> Result<ChatView, Failure> {
        let row = self.store.messages().get(message)?;
        self.refuse_if_writing(row.chat)?;
        if row.role != Role::Assistant || row.state == MessageState::Done {
            return Err(Failure::invalid(
                "This message is whole: there is nothing to go on with.",
            ));
        }
        self.store.transaction(|store| {
            store.messages().reopen(message)?;
            Ok::<_, Failure>(store.messages().show(message)?)
        })?;
        self.queue_answer(row.chat, message, true)
    }

    pub(crate) fn edit_message(
        &mut self,
        message: MessageId,
        text: &str,
        answered: bool,
    ) -> Result<ChatView, Failure> {
        let text = not_empty(text)?;
        let row = self.store.messages().get(message)?;
        self.refuse_if_writing(row.chat)?;
        if answered && row.role != Role::User {
            return Err(Failure::invalid("Only a message of yours can be answered."));
        }
        let at = self.now();
        let queued = self.store.transaction(|store| {
            let edited = NewMessage {
                text,
                role: row.role,
                thinks: row.thinks,
                ..user(row.chat, row.parent, at)
            };
            let edited = store.messages().add(&edited)?;
            store.chats().touch(row.chat, at)?;
            let queued = answered.then(|| {
                store
                    .messages()
                    .add(&answer(row.chat, edited, row.thinks, at))
            });
            Ok::<_, Failure>(queued.transpose()?)
        })?;
        match queued {
            Some(answer) => self.queue_answer(row.chat, answer, false),
            None => self.view(row.chat),
        }
    }

    pub(crate) fn show_sibling(&mut self, message: MessageId) -> Result<ChatView, Failure> {
        let row = self.store.messages().get(message)?;
        self.store.messages().show(message)?;
        self.view(row.chat)
    }

    pub(crate) fn rename(&mut self, chat: ChatId, title: &str) -> Result<ChatSummary, Failure> {
        self.store.chats().rename(chat, &title::from_user(title)?)?;
        self.tell_changed(chat)
    }

    pub(crate) fn delete(&mut self, chat: ChatId) -> Result<(), Failure> {
        self.store.chats().get(chat)?;
        self.stop(chat)?;
        self.store.chats().delete(chat, self.now())?;
        self.tell(Event::ChatRemoved(chat));
        Ok(())
    }

    pub(crate) fn restore(&mut self, chat: ChatId) -> Result<ChatSummary, Failure> {
        self.store.chats().restore(chat)?;
        self.tell_changed(chat)
    }

    pub(crate) fn search(&self, query: &str) -> Result<Vec<SearchHit>, Failure> {
        let rows = self.store.search().find(query, HITS)?;
        let hit = |row: store::SearchRow| SearchHit {
            chat: row.chat,
            title: row.title,
            message: row.message,
            snippet: row.snippet,
            at: row.at,
        };
        Ok(rows.into_iter().map(hit).collect())
    }

    pub(crate) fn save_draft(&self, chat: Option<ChatId>, text: &str) -> Result<(), Failure> {
        let place = match chat {
            Some(chat) => DraftPlace::Chat(self.store.chats().get(chat)?.id),
            None => DraftPlace::NewChat,
        };
        Ok(self.store.drafts().set(place, text)?)
    }

    pub(crate) fn save_settings(&mut self, settings: Settings) -> Result<Settings, Failure> {
        settings.validate()?;
        settings.write(&self.store)?;
        let before = std::mem::replace(&mut self.settings, settings);
        if before.load_options() != self.settings.load_options() {
            self.reopen_model();
        }
        Ok(self.settings.clone())
    }

    pub(crate) fn window(&self, label: &str) -> Result<Option<WindowRow>, Failure> {
        Ok(self.store.windows().get(label)?)
    }

    pub(crate) fn save_window(&self, label: &str, window: &WindowRow) -> Result<(), Failure> {
        Ok(self.store.windows().set(label, window)?)
    }

    pub(super) fn tell_changed(&self, chat: ChatId) -> Result<ChatSummary, Failure> {
        let summary = self.summary(self.store.chats().get(chat)?);
        self.tell(Event::ChatChanged(summary.clone()));
        Ok(summary)
    }

    fn refuse_if_writing(&self, chat: ChatId) -> Result<(), Failure> {
        match self.answers.of_chat(chat) {
            Some(_) => Err(Failure::busy()),
            None => Ok(()),
        }
    }
}

fn not_empty(text: &str) -> Result<&str, Failure> {
    match text.trim_start_matches(['\n', '\r']).trim_end() {
        text if text.trim().is_empty() => Err(Failure::invalid("The message is empty.")),
        text => Ok(text),
    }
}

fn user<'a>(chat: ChatId, parent: Option<MessageId>, created_at: i64) -> NewMessage<'a> {
    NewMessage {
        chat,
        parent,
        role: Role::User,
        state: MessageState::Done,
        text: "",
        thinks: false,
        created_at,
    }
}

fn answer<'a>(chat: ChatId, question: MessageId, thinks: bool, created_at: i64) -> NewMessage<'a> {
    let parent = Some(question);
    NewMessage {
        chat,
        parent,
        role: Role::Assistant,
        state: MessageState::Writing,
        text: "",
        thinks,
        created_at,
    }
}
