//! Full-text search over titles, texts and thinking.
//!
//! The index holds no text of its own: triggers keep it true to the tables. An answer enters it
//! when it has ended, so that journaling one does not index it over and over.

use rusqlite::{Connection, Row};

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

/// The search.
pub struct Search<'s> {
    pub(crate) db: &'s Connection,
}

impl Search<'_> {
    /// Finds what has all words of `query`, the last one as a beginning: titles first, then
    /// messages, the latest first, at most `limit` of each. Deleted chats are left out.
    ///
    /// The query is text: nothing in it is syntax.
    pub fn find(&self, query: &str, limit: u32) -> Result<Vec<SearchRow>, StoreError> {
        let Some(phrase) = phrase(query) else {
            return Ok(Vec::new());
        };
        let mut found = self.rows(
            "SELECT chat.id, chat.title, NULL, highlight(chat_search, 0, char(0xE000), char(0xE001)), chat.updated_at
             FROM chat_search JOIN chat ON chat.id = chat_search.rowid
             WHERE chat_search MATCH ?1 AND chat.deleted_at IS NULL
             ORDER BY chat_search.rowid DESC LIMIT ?2",
            &phrase,
            limit,
        )?;
        found.extend(self.rows(
            "SELECT chat.id, chat.title, message.id,
                    snippet(message_search, -1, char(0xE000), char(0xE001), '…', 16), message.created_at
             FROM message_search
             JOIN message ON message.id = message_search.rowid
             JOIN chat ON chat.id = message.chat
             WHERE message_search MATCH ?1 AND chat.deleted_at IS NULL
             ORDER BY message_search.rowid DESC LIMIT ?2",
            &phrase,
            limit,
        )?);
        Ok(found)
    }

    fn rows(&self, sql: &str, phrase: &str, limit: u32) -> Result<Vec<SearchRow>, StoreError> {
        let mut read = self.db.prepare_cached(sql)?;
        let rows = read.query_map((phrase, limit), SearchRow::read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

/// Each word as a quoted FTS5 string. `None` when nothing is asked for.
fn phrase(query: &str) -> Option<String> {
    let words: Vec<String> = query
        .split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
        .collect();
    (!words.is_empty()).then(|| format!("{}*", words.join(" ")))
}
