//! Full-text search over titles, texts and thinking.
//!
//! The index holds no text of its own: triggers keep it true to the tables. An answer enters it
//! when it has ended, so that journaling one does not index it over and over.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};

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

/// Makes the table in which the text around a hit is looked for, in memory and for this connection.
pub(crate) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.execute_batch(
        "CREATE VIRTUAL TABLE temp.excerpt USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')",
    )
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
/// Characters of a text that FTS5's `snippet` gets at a time. Its time grows with the square of the
/// hits, and nothing interrupts it: a text of 15 KB with 5,000 hits takes a third of a second.
const PART: usize = 2000;

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
    /// count. What is not found within 250 ms is left out, and what is found last may come with the
    /// beginning of its text instead of its hit.
    pub fn find(&self, query: &str, limit: u32) -> Result<Vec<SearchRow>, StoreError> {
        self.find_within(LIMIT, query, limit)
    }

    fn find_within(
        &self,
        time: Duration,
        query: &str,
        limit: u32,
    ) -> Result<Vec<SearchRow>, StoreError> {
        let words = words(query);
        let mut found = Vec::new();
        if words.is_empty() {
            return Ok(found);
        }
        let search = || self.gather(&mut found, &words, limit);
        match self.deadline.within(time, search) {
            Err(error) if !deadline::is_over(&error) => Err(error.into()),
            _ => Ok(found),
        }
    }

    fn gather(
        &self,
        found: &mut Vec<SearchRow>,
        words: &[String],
        limit: u32,
    ) -> rusqlite::Result<()> {
        let all = words.join(" ");
        self.rows(
            found,
            "SELECT chat.id, chat.title, NULL, highlight(chat_search, 0, char(0xE000), char(0xE001)), chat.updated_at
             FROM chat_search JOIN chat ON chat.id = chat_search.rowid
             WHERE chat_search MATCH ?1 AND chat.deleted_at IS NULL
             ORDER BY chat_search.rowid DESC LIMIT ?2",
            &all,
            limit,
        )?;
        // The beginning of the text, in case that the time is over before its hit is known.
        self.rows(
            found,
            "SELECT chat.id, chat.title, message.id,
                    substr(coalesce(nullif(message.text, ''), message.thinking, ''), 1, 160), message.created_at
             FROM message_search
             JOIN message ON message.id = message_search.rowid
             JOIN chat ON chat.id = message.chat
             WHERE message_search MATCH ?1 AND chat.deleted_at IS NULL
             ORDER BY message_search.rowid DESC LIMIT ?2",
            &all,
            limit,
        )?;
        let any = words.join(" OR ");
        for row in found {
            if let Some(message) = row.message
                && let Some(snippet) = self.snippet_of(message, &any)?
            {
                row.snippet = snippet;
            }
        }
        Ok(())
    }

    fn rows(
        &self,
        found: &mut Vec<SearchRow>,
        sql: &str,
        phrases: &str,
        limit: u32,
    ) -> rusqlite::Result<()> {
        let mut read = self.db.prepare_cached(sql)?;
        for row in read.query_map((phrases, limit), SearchRow::read)? {
            found.push(row?);
        }
        Ok(())
    }

    /// Text around the first hit in a message; `None`: there is no time to look for it.
    fn snippet_of(&self, message: MessageId, any: &str) -> rusqlite::Result<Option<String>> {
        let (text, thinking) = self
            .db
            .prepare_cached("SELECT text, thinking FROM message WHERE id = ?1")?
            .query_row([message.0], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?))
            })?;
        for whole in [Some(text), thinking].into_iter().flatten() {
            let mut rest = whole.as_str();
            while !rest.is_empty() && !self.deadline.has_passed() {
                let is_first = rest.len() == whole.len();
                let part = first_part(rest);
                rest = &rest[part.len()..];
                if let Some(snippet) = self.snippet(part, any)? {
                    return Ok(Some(with_ellipses(snippet, is_first, rest.is_empty())));
                }
            }
        }
        Ok(None)
    }

    /// Text around the hits in this text; `None`: it has none.
    fn snippet(&self, text: &str, any: &str) -> rusqlite::Result<Option<String>> {
        self.db
            .prepare_cached("INSERT OR REPLACE INTO temp.excerpt (rowid, text) VALUES (1, ?1)")?
            .execute([text])?;
        self.db
            .prepare_cached(
                "SELECT snippet(excerpt, 0, char(0xE000), char(0xE001), '…', 16)
                 FROM temp.excerpt WHERE excerpt MATCH ?1",
            )?
            .query_row([any], |row| row.get(0))
            .optional()
    }
}

/// What is left of a text up to the last blank in its first [`PART`] characters.
fn first_part(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(PART) else {
        return text;
    };
    let blank = text[..end].rfind(char::is_whitespace);
    &text[..blank.filter(|at| *at > 0).unwrap_or(end)]
}

/// Marks where text was left out, beside where FTS5 has done so.
fn with_ellipses(snippet: String, is_first: bool, is_last: bool) -> String {
    let begin = if is_first || snippet.starts_with('…') {
        ""
    } else {
        "…"
    };
    let end = if is_last || snippet.ends_with('…') {
        ""
    } else {
        "…"
    };
    format!("{begin}{snippet}{end}")
}

/// Each word as a quoted FTS5 string, the last one as a beginning. Empty when nothing is asked for.
fn words(query: &str) -> Vec<String> {
    let end = query
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(query.len(), |(end, _)| end);
    let mut words: Vec<String> = query[..end]
        .split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .take(MAX_WORDS)
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
        .collect();
    if let Some(last) = words.last_mut() {
        last.push('*');
    }
    words
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
        let chat = store.chats().list()?[0].id;
        let tree = store.messages().tree(chat)?;
        assert_eq!(tree.len(), 400, "no deadline is left behind");
        let whole = search.find_within(Duration::from_secs(3600), "goldcrest", 400)?;
        assert_eq!(whole.len(), 400);
        Ok(())
    }

    #[test]
    fn what_is_found_late_has_no_snippet() -> Result<(), StoreError> {
        let store = filled(1)?;
        let chat = store.chats().list()?[0].id;
        let (message, _) = store.messages().tree(chat)?[0];
        let snippet = || store.search().snippet_of(message, "\"goldcrest\"");
        assert!(snippet()?.is_some_and(|text| text.contains('\u{E000}')));
        assert_eq!(store.deadline.within(Duration::ZERO, snippet)?, None);
        Ok(())
    }

    #[test]
    fn a_query_is_cut_at_its_limits() {
        assert_eq!(words(&"ab ".repeat(32)).len(), 32);
        assert_eq!(words(&"ab ".repeat(33)).len(), 32);
        let longest = |query: &str| words(query).remove(0).chars().count();
        assert_eq!(longest(&"ü".repeat(512)), 512 + 3);
        assert_eq!(longest(&"ü".repeat(513)), 512 + 3);
    }

    #[test]
    fn a_text_is_looked_through_in_parts_that_end_at_a_blank() {
        let parts = |mut text: &str| {
            let mut parts = Vec::new();
            while !text.is_empty() {
                parts.push(first_part(text).chars().count());
                text = &text[first_part(text).len()..];
            }
            parts
        };
        assert_eq!(parts(&"ü".repeat(2000)), [2000]);
        assert_eq!(parts(&"ü".repeat(2001)), [2000, 1]);
        assert_eq!(parts(&format!("ab {}", "ü".repeat(2000))), [2, 2000, 1]);
        assert_eq!(parts(&"abc ".repeat(600)), [1999, 401]);
    }
}
