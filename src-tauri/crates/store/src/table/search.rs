//! Full-text search over titles, texts and thinking.
//!
//! The index holds no text of its own: triggers keep it true to the tables. An answer enters it
//! when it has ended, so that journaling one does not index it over and over.

use std::time::Duration;

use rusqlite::{Connection, Row};

use crate::deadline::{self, Deadline};
use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::chat::ChatId;
use crate::table::message::MessageId;

pub(crate) const STEPS: &[Step] = &[Step {
    version: 1,
    sql: "CREATE VIRTUAL TABLE chat_search USING fts5 (
              title, content = 'chat', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
          );
          CREATE TRIGGER chat_search_insert AFTER INSERT ON chat BEGIN
              INSERT INTO chat_search (rowid, title) VALUES (new.id, new.title);
          END;
          CREATE TRIGGER chat_search_update AFTER UPDATE OF title ON chat BEGIN
              INSERT INTO chat_search (chat_search, rowid, title) VALUES ('delete', old.id, old.title);
              INSERT INTO chat_search (rowid, title) VALUES (new.id, new.title);
          END;
          CREATE TRIGGER chat_search_delete AFTER DELETE ON chat BEGIN
              INSERT INTO chat_search (chat_search, rowid, title) VALUES ('delete', old.id, old.title);
          END;

          CREATE VIRTUAL TABLE message_search USING fts5 (
              text, thinking,
              content = 'message', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
          );
          CREATE TRIGGER message_search_insert AFTER INSERT ON message WHEN new.state <> 'writing' BEGIN
              INSERT INTO message_search (rowid, text, thinking) VALUES (new.id, new.text, new.thinking);
          END;
          CREATE TRIGGER message_search_update AFTER UPDATE OF text, thinking, state ON message
          WHEN old.state <> 'writing' OR new.state <> 'writing' BEGIN
              INSERT INTO message_search (message_search, rowid, text, thinking)
                  SELECT 'delete', old.id, old.text, old.thinking WHERE old.state <> 'writing';
              INSERT INTO message_search (rowid, text, thinking)
                  SELECT new.id, new.text, new.thinking WHERE new.state <> 'writing';
          END;
          CREATE TRIGGER message_search_delete AFTER DELETE ON message WHEN old.state <> 'writing' BEGIN
              INSERT INTO message_search (message_search, rowid, text, thinking)
                  VALUES ('delete', old.id, old.text, old.thinking);
          END;",
}];

/// Has what is deleted leave the index at once, where FTS5 would keep its words until it merges.
/// Written once: the file remembers it.
pub(crate) fn delete_securely(db: &Connection) -> rusqlite::Result<()> {
    for index in ["chat_search", "message_search"] {
        let is_set: bool = db.query_row(
            &format!(
                "SELECT EXISTS (SELECT 1 FROM {index}_config WHERE k = 'secure-delete' AND v = 1)"
            ),
            [],
            |row| row.get(0),
        )?;
        if !is_set {
            db.execute(
                &format!("INSERT INTO {index} ({index}, rank) VALUES ('secure-delete', 1)"),
                [],
            )?;
        }
    }
    Ok(())
}

/// A place where something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRow {
    /// The chat.
    pub chat: ChatId,
    /// The chat's title.
    pub title: String,
    /// The message; `None`: it is in the title.
    pub message: Option<MessageId>,
    /// Text around the hit; the hits stand between U+E000 and U+E001.
    pub snippet: String,
    /// Unix seconds of the message, or of the chat's last one.
    pub at: i64,
}

impl SearchRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<SearchRow> {
        Ok(SearchRow {
            chat: ChatId(row.get(0)?),
            title: row.get(1)?,
            message: row.get::<_, Option<i64>>(2)?.map(MessageId),
            snippet: row.get(3)?,
            at: row.get(4)?,
        })
    }
}

/// How long a search may take: whoever asks the store for something else waits meanwhile.
const LIMIT: Duration = Duration::from_millis(250);
/// What of a query is looked for.
const MAX_CHARS: usize = 512;
const MAX_WORDS: usize = 32;

/// The search.
pub struct Search<'s> {
    pub(crate) db: &'s Connection,
    pub(crate) deadline: &'s Deadline,
}

impl Search<'_> {
    /// Finds what has all words of `query`, the last one as a beginning: titles first, then
    /// messages, the latest first, at most `limit` of each. Deleted chats are left out.
    ///
    /// The query is text: nothing in it is syntax. Its first 32 words in its first 512 characters
    /// count. What is not found within 250 ms is left out.
    pub fn find(&self, query: &str, limit: u32) -> Result<Vec<SearchRow>, StoreError> {
        self.find_within(LIMIT, query, limit)
    }

    fn find_within(
        &self,
        time: Duration,
        query: &str,
        limit: u32,
    ) -> Result<Vec<SearchRow>, StoreError> {
        let Some(phrase) = phrase(query) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        let search = || self.gather(&mut found, &phrase, limit);
        match self.deadline.within(time, search) {
            Err(error) if !deadline::is_over(&error) => Err(error.into()),
            _ => Ok(found),
        }
    }

    fn gather(&self, found: &mut Vec<SearchRow>, phrase: &str, limit: u32) -> rusqlite::Result<()> {
        self.rows(
            found,
            "SELECT chat.id, chat.title, NULL, highlight(chat_search, 0, char(0xE000), char(0xE001)), chat.updated_at
             FROM chat_search JOIN chat ON chat.id = chat_search.rowid
             WHERE chat_search MATCH ?1 AND chat.deleted_at IS NULL
             ORDER BY chat_search.rowid DESC LIMIT ?2",
            phrase,
            limit,
        )?;
        self.rows(
            found,
            "SELECT chat.id, chat.title, message.id,
                    snippet(message_search, -1, char(0xE000), char(0xE001), '…', 16), message.created_at
             FROM message_search
             JOIN message ON message.id = message_search.rowid
             JOIN chat ON chat.id = message.chat
             WHERE message_search MATCH ?1 AND chat.deleted_at IS NULL
             ORDER BY message_search.rowid DESC LIMIT ?2",
            phrase,
            limit,
        )
    }

    fn rows(
        &self,
        found: &mut Vec<SearchRow>,
        sql: &str,
        phrase: &str,
        limit: u32,
    ) -> rusqlite::Result<()> {
        let mut read = self.db.prepare_cached(sql)?;
        for row in read.query_map((phrase, limit), SearchRow::read)? {
            found.push(row?);
        }
        Ok(())
    }
}

/// Each word as a quoted FTS5 string. `None` when nothing is asked for.
fn phrase(query: &str) -> Option<String> {
    let end = query
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(query.len(), |(end, _)| end);
    let words: Vec<String> = query[..end]
        .split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .take(MAX_WORDS)
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
        .collect();
    (!words.is_empty()).then(|| format!("{}*", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatId, MessageState, NewMessage, Role, Store};

    fn filled(messages: usize) -> Result<Store, StoreError> {
        let store = Store::in_memory()?;
        let chat: ChatId = store.chats().create("x", "2026-03-05", 1)?;
        store.transaction(|store| {
            for n in 0..messages {
                store.messages().add(&NewMessage {
                    chat,
                    parent: None,
                    role: Role::User,
                    state: MessageState::Done,
                    text: &format!("goldcrest {n}"),
                    thinks: false,
                    created_at: 1,
                })?;
            }
            Ok::<_, StoreError>(())
        })?;
        Ok(store)
    }

    #[test]
    fn a_search_ends_at_its_deadline_and_the_next_one_is_whole() -> Result<(), StoreError> {
        let store = filled(400)?;
        let search = store.search();
        let late = search.find_within(Duration::ZERO, "goldcrest", 400)?;
        assert!(late.len() < 400, "{} were found in no time", late.len());
        let whole = search.find_within(Duration::from_secs(3600), "goldcrest", 400)?;
        assert_eq!(whole.len(), 400);
        assert_eq!(store.chats().list()?.len(), 1, "no deadline is left behind");
        Ok(())
    }

    #[test]
    fn a_query_is_cut_at_its_limits() {
        let words = |query: &str| phrase(query).unwrap_or_default().matches('"').count() / 2;
        assert_eq!(words(&"ab ".repeat(32)), 32);
        assert_eq!(words(&"ab ".repeat(33)), 32);
        let longest = |query: &str| phrase(query).unwrap_or_default().chars().count();
        assert_eq!(longest(&"ü".repeat(512)), 512 + 3);
        assert_eq!(longest(&"ü".repeat(513)), 512 + 3);
    }
}
