//! Export of chats from a database, and import into one.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use inference::Role;
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::value::RawValue;

use crate::chat_copy::NO_MESSAGE;
use crate::error::StoreError;
use crate::record::{
    ChatRecord, ChosenPreset, FolderRecord, MessagePlace, MessageRecord, PresetRecord, WholeChat,
};
use crate::table::chat::{ChatRow, ChatTable, HIDDEN};
use crate::table::draft::DraftPlace;
use crate::table::folder::{FolderRow, FolderTable};
use crate::table::id::{ChatId, FolderId, MessageId, PresetId};
use crate::table::json::json;
use crate::table::message::{ErrorRow, IS_DELETED, MessageState, pack, set_state};
use crate::table::part;
use crate::table::preset::{ChatPreset, PresetTable, names};

/// A chat that is partly written into a database.
#[derive(Debug)]
pub struct IncomingChat {
    whole: WholeChat,
    chat: Option<ChatId>,
    /// Ids of the messages that are written.
    ids: Vec<MessageId>,
    /// Number of messages with their pointer to the next one.
    linked: usize,
}

/// A written chat with its references to others, which are resolved when all are there.
#[derive(Debug)]
pub struct WrittenChat {
    /// The chat.
    pub id: ChatId,
    folder: Option<String>,
    continues: Option<String>,
    chosen_preset: Option<ChosenPreset>,
    prompt_leaves: Vec<(MessageId, MessagePlace)>,
}

/// Names of an import, resolved in this database.
pub struct ImportedNames<'a> {
    /// Its folders, by name.
    pub folders: &'a HashMap<String, FolderId>,
    /// Its presets, by name.
    pub presets: &'a HashMap<String, PresetId>,
    /// Lookup of the chat that another one refers to by this uid, by the number of that one among the published chats;
    /// `None` if none of this uid came.
    pub chats: &'a dyn Fn(usize, &str) -> Option<&'a ChatHere>,
}

/// A chat of an import in this database.
#[derive(Debug)]
pub struct ChatHere {
    /// The chat.
    pub id: ChatId,
    /// Positions of its messages, by those in the import; `None` if they are the same.
    pub places: Option<Vec<u32>>,
}

impl ChatHere {
    fn place(&self, place: u32) -> Option<u32> {
        match &self.places {
            Some(places) => places.get(place.checked_sub(1)? as usize).copied(),
            None => Some(place),
        }
    }
}

impl IncomingChat {
    /// Makes a chat without [`WholeChat::fault`].
    pub fn new(whole: WholeChat) -> IncomingChat {
        IncomingChat {
            whole,
            chat: None,
            ids: Vec::new(),
            linked: 0,
        }
    }

    fn written(self) -> Option<WrittenChat> {
        let leaves = self.ids.into_iter().zip(self.whole.messages);
        Some(WrittenChat {
            id: self.chat?,
            folder: self.whole.chat.folder,
            continues: self.whole.chat.continues,
            chosen_preset: self.whole.chat.chosen_preset,
            prompt_leaves: leaves
                .filter_map(|(id, message)| Some((id, message.prompt_leaf?)))
                .collect(),
        })
    }

    fn id_of(&self, place: Option<u32>) -> Option<i64> {
        let id = self.ids.get(place?.checked_sub(1)? as usize)?;
        Some(id.0)
    }
}

/// Chats in the form in which they are exported and imported.
pub struct ChatRecords<'s> {
    pub(crate) db: &'s Connection,
}

/// Upper bound of a write's time limit.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

const CHAT: &str = "uid, title, today, created_at, updated_at, leaf, \
     (SELECT name FROM folder WHERE folder.id = chat.folder) AS folder_name, pinned_at, archived_at, \
     (SELECT uid FROM chat AS other WHERE other.id = chat.continues AND other.deleted_at IS NULL) AS continues_uid, \
     (SELECT name FROM preset WHERE preset.id = chosen.preset) AS preset_name, chosen.instructions AS instructions, \
     chosen.tools AS chosen_tools";
const MESSAGE: &str = "id, parent, shown, role, state, thinks, thinking_ms, length_wish, model, stats, \
     error_code, error_message, kept_from, thinking_from, omitted_messages, omitted_thinking, created_at, prompt_leaf, read_again, \
     guide";

impl ChatRecords<'_> {
    /// Returns all chats that are not deleted, in an order that does not depend on the database.
    pub fn all(&self) -> Result<Vec<ChatId>, StoreError> {
        self.ids(
            "SELECT id FROM chat WHERE deleted_at IS NULL ORDER BY created_at, uid, id",
            [],
        )
    }

    /// Returns the candidates for this uid: the chats that have it, some of which an import with this mark may have
    /// written, and those that were imported as later states of it, under [`later_uid`].
    pub fn of_uid(&self, uid: &str, mark: i64) -> Result<Vec<ChatId>, StoreError> {
        let sql = "SELECT id FROM chat WHERE uid = ?1 AND (deleted_at IS NULL OR deleted_at = ?2)
                   UNION ALL
                   SELECT id FROM chat WHERE uid > ?1 || '#' AND uid < ?1 || '$'
                       AND (deleted_at IS NULL OR deleted_at = ?2)";
        self.ids(sql, (uid, mark))
    }

    /// Returns a mark that no chat has: below all others, so that the rest of one import is never published by another,
    /// whatever the clock shows.
    pub fn free_mark(&self) -> Result<i64, StoreError> {
        let sql = "SELECT min(coalesce(min(deleted_at), 0), ?1) - 1 FROM chat";
        Ok(self.db.query_row(sql, [HIDDEN], |row| row.get(0))?)
    }

    /// Returns whether a chat, even a deleted one, has this uid.
    pub fn has_uid(&self, uid: &str) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM chat WHERE uid = ?1)";
        Ok(self
            .db
            .prepare_cached(sql)?
            .query_row([uid], |row| row.get(0))?)
    }

    /// Returns all chats that are not deleted, the latest first, each with the number of its messages.
    pub fn list(&self) -> Result<Vec<(ChatRow, u32)>, StoreError> {
        let mut count = self.db.prepare_cached(&format!(
            "SELECT count(*) FROM message WHERE chat = ?1 AND NOT {IS_DELETED}"
        ))?;
        let rows = ChatTable { db: self.db }.list()?.into_iter();
        let counted = rows.map(|row| {
            let messages = count.query_row([row.id.0], |row| row.get(0))?;
            Ok((row, messages))
        });
        counted.collect()
    }

    /// Returns the title of a chat that is not deleted.
    pub fn title(&self, chat: ChatId) -> Result<String, StoreError> {
        let sql = "SELECT title FROM chat WHERE id = ?1 AND deleted_at IS NULL";
        let mut read = self.db.prepare_cached(sql)?;
        let title = read.query_row([chat.0], |row| row.get(0)).optional()?;
        title.ok_or(StoreError::NotFound("chat"))
    }

    fn ids(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<Vec<ChatId>, StoreError> {
        let mut query = self.db.prepare_cached(sql)?;
        let ids = query.query_map(parameters, |row| row.get(0).map(ChatId))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Returns a chat, even a deleted one, with all its messages that are not deleted.
    pub fn read(&self, chat: ChatId) -> Result<WholeChat, StoreError> {
        let sql = format!(
            "SELECT {MESSAGE} FROM message WHERE chat = ?1 AND NOT {IS_DELETED} ORDER BY id"
        );
        let mut read = self.db.prepare_cached(&sql)?;
        let mut ids: Vec<i64> = Vec::new();
        let mut rows = read.query([chat.0])?;
        let mut messages = Vec::new();
        while let Some(row) = rows.next()? {
            ids.push(row.get("id")?);
            let leaf: Option<i64> = row.get("prompt_leaf")?;
            let (links, mut message) = message(self.db, row)?;
            message.prompt_leaf = leaf.map_or(Ok(None), |leaf| self.place_of(leaf))?;
            messages.push((links, message));
        }
        // Converts ids to positions. A deleted message has none.
        let place = |id: Option<i64>| {
            let at = ids.binary_search(&id?).ok()?;
            u32::try_from(at + 1).ok()
        };
        let messages = (1..).zip(messages).map(|(id, (links, message))| {
            let [parent, shown, kept_from, thinking_from] = links.map(place);
            MessageRecord {
                id,
                parent,
                shown,
                kept_from,
                thinking_from,
                ..message
            }
        });
        let messages = messages.collect();
        let sql = format!(
            "SELECT {CHAT} FROM chat LEFT JOIN chat_preset AS chosen ON chosen.chat = chat.id WHERE chat.id = ?1"
        );
        let chat = self.db.prepare_cached(&sql)?.query_row([chat.0], |row| {
            Ok(ChatRecord {
                uid: row.get("uid")?,
                title: row.get("title")?,
                today: row.get("today")?,
                created_at: row.get("created_at")?,
                updated_at: row.get("updated_at")?,
                leaf: place(row.get("leaf")?),
                folder: row.get("folder_name")?,
                pinned_at: row.get("pinned_at")?,
                archived_at: row.get("archived_at")?,
                continues: row.get("continues_uid")?,
                chosen_preset: chosen_preset(row)?,
            })
        });
        let chat = chat.optional()?.ok_or(StoreError::NotFound("chat"))?;
        Ok(WholeChat { chat, messages })
    }

    /// Returns the position of a message, if neither it nor its chat is deleted.
    fn place_of(&self, message: i64) -> Result<Option<MessagePlace>, StoreError> {
        let sql = format!(
            "SELECT chat.uid AS chat,
                    (SELECT count(*) FROM message
                     WHERE message.chat = named.chat AND message.id <= named.id AND NOT {IS_DELETED}) AS place
             FROM message AS named JOIN chat ON chat.id = named.chat
             WHERE named.id = ?1 AND chat.deleted_at IS NULL
                 AND named.id NOT IN (SELECT message FROM deleted_message)"
        );
        let mut read = self.db.prepare_cached(&sql)?;
        let place = read.query_row([message], |row| {
            Ok(MessagePlace {
                chat: row.get("chat")?,
                message: row.get("place")?,
            })
        });
        Ok(place.optional()?)
    }

    /// Writes as much of `chats` as it can in the given time, in one transaction; complete ones are removed from the
    /// front. They are hidden, as deleted at `mark`, until [`ChatRecords::publish`]. A `mark` below 0 is no time, and
    /// differs from that of any other import: the rest of a crash is purged with the expired chats.
    ///
    /// Returns the complete ones. A text is indexed in one go, so that a long one may take longer.
    pub fn write(
        &self,
        chats: &mut VecDeque<IncomingChat>,
        mark: i64,
        within: Duration,
    ) -> Result<Vec<WrittenChat>, StoreError> {
        // Clamped, so that an unlimited time does not overflow.
        let end = Instant::now() + within.min(LONGEST);
        let transaction = self.db.unchecked_transaction()?;
        let mut whole = Vec::new();
        while let Some(incoming) = chats.front_mut() {
            if !self.write_one(incoming, mark, end)? {
                break;
            }
            whole.extend(chats.pop_front().and_then(IncomingChat::written));
        }
        transaction.commit()?;
        Ok(whole)
    }

    /// Returns whether the chat is complete now.
    fn write_one(
        &self,
        incoming: &mut IncomingChat,
        mark: i64,
        end: Instant,
    ) -> Result<bool, StoreError> {
        let is_over = || Instant::now() >= end;
        let chat = match incoming.chat {
            Some(chat) => chat,
            None => self.create(&incoming.whole.chat, mark)?,
        };
        incoming.chat = Some(chat);
        while let Some(message) = incoming.whole.messages.get(incoming.ids.len()) {
            let id = self.add(chat, message, incoming)?;
            incoming.ids.push(id);
            if is_over() {
                return Ok(false);
            }
        }
        while let Some(message) = incoming.whole.messages.get(incoming.linked) {
            if let Some(shown) = incoming.id_of(message.shown) {
                let id = incoming.ids[incoming.linked];
                self.db
                    .prepare_cached("UPDATE message SET shown = ?2 WHERE id = ?1")?
                    .execute((id.0, shown))?;
            }
            incoming.linked += 1;
            if incoming.linked.is_multiple_of(64) && is_over() {
                return Ok(false);
            }
        }
        let leaf = incoming.id_of(incoming.whole.chat.leaf);
        self.db
            .prepare_cached("UPDATE chat SET leaf = ?2 WHERE id = ?1")?
            .execute((chat.0, leaf))?;
        Ok(true)
    }

    fn create(&self, chat: &ChatRecord, mark: i64) -> Result<ChatId, StoreError> {
        let ChatRecord {
            uid,
            title,
            today,
            created_at,
            updated_at,
            pinned_at,
            archived_at,
            // Set once their targets exist.
            leaf: _,
            folder: _,
            continues: _,
            chosen_preset: _,
        } = chat;
        self.db
            .prepare_cached(
                "INSERT INTO chat (uid, title, today, created_at, updated_at, pinned_at, archived_at, deleted_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute((
                uid,
                title,
                today,
                created_at,
                updated_at,
                pinned_at,
                archived_at,
                mark,
            ))?;
        Ok(ChatId(self.db.last_insert_rowid()))
    }

    fn add(
        &self,
        chat: ChatId,
        message: &MessageRecord,
        incoming: &IncomingChat,
    ) -> Result<MessageId, StoreError> {
        let state = match message.state {
            MessageState::Writing => MessageState::Interrupted,
            state => state,
        };
        self.db
            .prepare_cached(
                "INSERT INTO message (chat, parent, role, state, thinks, thinking_ms, tokens, model, stats, error_code,
                     error_message, kept_from, thinking_from, omitted_messages, omitted_thinking, read_again,
                     length_wish, created_at, guide)
                 VALUES (?1, ?2, ?3, 'writing', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
            )?
            .execute(rusqlite::params![
                chat.0,
                incoming.id_of(message.parent),
                message.role.name(),
                message.thinks,
                message.thinking_ms,
                pack(&[]),
                message.model,
                message.stats.as_deref().map(RawValue::get),
                message.error.as_ref().map(|error| &error.code),
                message.error.as_ref().map(|error| &error.message),
                incoming.id_of(message.kept_from),
                incoming.id_of(message.thinking_from),
                message.omitted_messages,
                message.omitted_thinking,
                message.read_again,
                message.length_wish,
                message.created_at,
                message.guide,
            ])?;
        let id = MessageId(self.db.last_insert_rowid());
        part::set(self.db, id, &message.parts)?;
        set_state(self.db, id, state)?;
        Ok(id)
    }

    /// Publishes everything that was written with this mark, and resolves the chats' references. In a transaction, with
    /// the creation of their folders and presets.
    pub fn publish(
        &self,
        mark: i64,
        names: &ImportedNames<'_>,
        chats: &[WrittenChat],
    ) -> Result<(), StoreError> {
        for (at, chat) in chats.iter().enumerate() {
            if let Some(chosen) = &chat.chosen_preset {
                let preset = chosen.preset.as_ref();
                let preset = preset.and_then(|name| names.presets.get(name));
                let table = PresetTable { db: self.db };
                let chosen = ChatPreset {
                    preset: preset.copied(),
                    instructions: chosen.instructions.clone(),
                    tools: chosen.tools.clone(),
                };
                table.choose(DraftPlace::Chat(chat.id), Some(&chosen))?;
            }
            let folder = chat.folder.as_ref();
            if let Some(folder) = folder.and_then(|name| names.folders.get(name)) {
                self.db
                    .prepare_cached("UPDATE chat SET folder = ?2 WHERE id = ?1")?
                    .execute((chat.id.0, folder.0))?;
            }
            self.link(chat, mark, &|uid| (names.chats)(at, uid))?;
        }
        self.db.execute(
            "UPDATE chat SET deleted_at = NULL WHERE deleted_at = ?1",
            [mark],
        )?;
        Ok(())
    }

    /// Adds a preset as it is.
    pub fn add_preset(&self, preset: &PresetRecord) -> Result<PresetId, StoreError> {
        self.db
            .prepare_cached("INSERT INTO preset VALUES (NULL, ?1, ?2, ?3, ?4, ?5)")?
            .execute((
                &preset.name,
                &preset.instructions,
                preset.thinking,
                preset.sampling.get(),
                preset.tools.as_ref().map(json).transpose()?,
            ))?;
        Ok(PresetId(self.db.last_insert_rowid()))
    }

    /// Returns all presets, in an order that does not depend on the database.
    pub fn presets(&self) -> Result<Vec<PresetRecord>, StoreError> {
        let sql =
            "SELECT name, instructions, thinking, sampling, tools FROM preset ORDER BY name, id";
        let mut read = self.db.prepare_cached(sql)?;
        let rows = read.query_map([], |row| {
            let sampling = RawValue::from_string(row.get("sampling")?);
            Ok(PresetRecord {
                name: row.get("name")?,
                instructions: row.get("instructions")?,
                thinking: row.get("thinking")?,
                sampling: sampling.map_err(|_| FromSqlError::InvalidType)?,
                tools: names(row.get("tools")?)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Resolves a chat's references to other chats. A missing one stays empty; a question that is answered from it then
    /// has no source, and is refused another answer.
    fn link<'a>(
        &self,
        chat: &WrittenChat,
        mark: i64,
        came: &dyn Fn(&str) -> Option<&'a ChatHere>,
    ) -> Result<(), StoreError> {
        if let Some(uid) = &chat.continues {
            let id = match came(uid) {
                Some(other) => Some(other.id.0),
                None => self.with_uid(uid, mark)?,
            };
            self.db
                .prepare_cached("UPDATE chat SET continues = ?2 WHERE id = ?1")?
                .execute((chat.id.0, id))?;
        }
        for (message, leaf) in &chat.prompt_leaves {
            let (id, place) = match came(&leaf.chat) {
                Some(other) => (Some(other.id.0), other.place(leaf.message)),
                None => (self.with_uid(&leaf.chat, mark)?, Some(leaf.message)),
            };
            let sql = format!(
                "UPDATE message SET prompt_leaf = coalesce(
                     (SELECT other.id FROM message AS other
                      WHERE other.chat = ?2 AND other.id NOT IN (SELECT message FROM deleted_message)
                      ORDER BY other.id LIMIT 1 OFFSET ?3 - 1), {NO_MESSAGE}
                 ) WHERE id = ?1"
            );
            self.db.prepare_cached(&sql)?.execute((
                message.0,
                id.filter(|_| place.is_some()),
                place.unwrap_or(1),
            ))?;
        }
        Ok(())
    }

    /// Finds a chat of this uid: one that was written with this mark, else one that is not deleted.
    fn with_uid(&self, uid: &str, mark: i64) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT id FROM chat WHERE uid = ?1 AND (deleted_at IS NULL OR deleted_at = ?2)
                   ORDER BY deleted_at IS NULL LIMIT 1";
        let mut read = self.db.prepare_cached(sql)?;
        Ok(read.query_row((uid, mark), |row| row.get(0)).optional()?)
    }

    /// Returns all folders in the user's order.
    pub fn folders(&self) -> Result<Vec<FolderRecord>, StoreError> {
        let rows = FolderTable { db: self.db }.list()?.into_iter();
        let record = |row: FolderRow| FolderRecord {
            name: row.name,
            collapsed: row.collapsed,
            created_at: row.created_at,
        };
        Ok(rows.map(record).collect())
    }

    /// Returns the names of a chat's folder and preset.
    pub fn names_of(&self, chat: ChatId) -> Result<[Option<String>; 2], StoreError> {
        let sql = "SELECT (SELECT name FROM folder WHERE folder.id = chat.folder),
                       (SELECT name FROM preset WHERE preset.id =
                           (SELECT preset FROM chat_preset WHERE chat_preset.chat = chat.id))
                   FROM chat WHERE id = ?1";
        let mut read = self.db.prepare_cached(sql)?;
        Ok(read.query_row([chat.0], |row| Ok([row.get(0)?, row.get(1)?]))?)
    }
}

fn chosen_preset(row: &Row<'_>) -> rusqlite::Result<Option<ChosenPreset>> {
    let instructions: Option<String> = row.get("instructions")?;
    let preset = row.get("preset_name")?;
    let tools = names(row.get("chosen_tools")?)?;
    Ok(instructions.map(|instructions| ChosenPreset {
        preset,
        instructions,
        tools,
    }))
}

/// Converts a row, with the messages that it refers to by id: parent, shown, kept from, thinking from.
fn message(db: &Connection, row: &Row<'_>) -> rusqlite::Result<([Option<i64>; 4], MessageRecord)> {
    let links = [
        row.get("parent")?,
        row.get("shown")?,
        row.get("kept_from")?,
        row.get("thinking_from")?,
    ];
    let code: Option<String> = row.get("error_code")?;
    let message: Option<String> = row.get("error_message")?;
    let state = match row.get("state")? {
        MessageState::Writing => MessageState::Interrupted,
        state => state,
    };
    let role = Role::from_name(row.get_ref("role")?.as_str()?).ok_or(FromSqlError::InvalidType)?;
    let record = MessageRecord {
        state,
        thinks: row.get("thinks")?,
        length_wish: row.get("length_wish")?,
        parts: part::of_message(db, MessageId(row.get("id")?))?,
        thinking_ms: row.get("thinking_ms")?,
        model: row.get("model")?,
        stats: row
            .get::<_, Option<String>>("stats")?
            .and_then(|json| RawValue::from_string(json).ok()),
        error: code
            .zip(message)
            .map(|(code, message)| ErrorRow { code, message }),
        omitted_messages: row.get("omitted_messages")?,
        omitted_thinking: row.get("omitted_thinking")?,
        read_again: row.get("read_again")?,
        guide: row.get("guide")?,
        ..MessageRecord::new(0, role, String::new(), row.get("created_at")?)
    };
    Ok((links, record))
}
