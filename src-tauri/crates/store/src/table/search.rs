//! Full-text search over titles, texts and thinking.
//!
//! There are two indices: of words, for their beginnings and for phrases; and of every three
//! characters in a row (trigrams), for matches within words. They are external-content tables: triggers
//! keep them in step with the tables. An answer is indexed when it has ended, so that journaling does
//! not index it repeatedly.

mod query;

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::deadline::{self, Deadline};
use crate::error::StoreError;
use crate::migrate::Step;
use crate::table::id::ChatId;
use crate::table::id::MessageId;

use query::{Term, quoted, terms};

pub(crate) const STEPS: &[Step] = &[WORDS, PARTS];

const WORDS: Step = Step {
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
};

// Not by 'rebuild', which would index answers that are still being written.
const PARTS: Step = Step {
    version: 3,
    sql: "CREATE VIRTUAL TABLE chat_part_search USING fts5 (
              title, content = 'chat', content_rowid = 'id', tokenize = 'trigram remove_diacritics 1'
          );
          CREATE TRIGGER chat_part_search_insert AFTER INSERT ON chat BEGIN
              INSERT INTO chat_part_search (rowid, title) VALUES (new.id, new.title);
          END;
          CREATE TRIGGER chat_part_search_update AFTER UPDATE OF title ON chat BEGIN
              INSERT INTO chat_part_search (chat_part_search, rowid, title) VALUES ('delete', old.id, old.title);
              INSERT INTO chat_part_search (rowid, title) VALUES (new.id, new.title);
          END;
          CREATE TRIGGER chat_part_search_delete AFTER DELETE ON chat BEGIN
              INSERT INTO chat_part_search (chat_part_search, rowid, title) VALUES ('delete', old.id, old.title);
          END;
          INSERT INTO chat_part_search (rowid, title) SELECT id, title FROM chat;

          CREATE VIRTUAL TABLE message_part_search USING fts5 (
              text, thinking,
              content = 'message', content_rowid = 'id', tokenize = 'trigram remove_diacritics 1'
          );
          CREATE TRIGGER message_part_search_insert AFTER INSERT ON message WHEN new.state <> 'writing' BEGIN
              INSERT INTO message_part_search (rowid, text, thinking) VALUES (new.id, new.text, new.thinking);
          END;
          CREATE TRIGGER message_part_search_update AFTER UPDATE OF text, thinking, state ON message
          WHEN old.state <> 'writing' OR new.state <> 'writing' BEGIN
              INSERT INTO message_part_search (message_part_search, rowid, text, thinking)
                  SELECT 'delete', old.id, old.text, old.thinking WHERE old.state <> 'writing';
              INSERT INTO message_part_search (rowid, text, thinking)
                  SELECT new.id, new.text, new.thinking WHERE new.state <> 'writing';
          END;
          CREATE TRIGGER message_part_search_delete AFTER DELETE ON message WHEN old.state <> 'writing' BEGIN
              INSERT INTO message_part_search (message_part_search, rowid, text, thinking)
                  VALUES ('delete', old.id, old.text, old.thinking);
          END;
          INSERT INTO message_part_search (rowid, text, thinking)
              SELECT id, text, thinking FROM message WHERE state <> 'writing';",
};

/// Has deleted content leave the index at once, where FTS5 would keep its words until it merges.
/// The option is stored in the file.
pub(crate) fn delete_securely(db: &Connection) -> rusqlite::Result<()> {
    for index in [
        "chat_search",
        "message_search",
        "chat_part_search",
        "message_part_search",
    ] {
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

/// Makes the tables in which the text around a hit is looked for, in memory and for this connection.
pub(crate) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.execute_batch(
        "CREATE VIRTUAL TABLE temp.excerpt USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
         CREATE VIRTUAL TABLE temp.part_excerpt USING fts5 (text, tokenize = 'trigram remove_diacritics 1')",
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

/// How long a search may take: other requests to the store wait meanwhile.
const LIMIT: Duration = Duration::from_millis(250);
/// Characters of a text that FTS5's `snippet` gets at a time. Its time grows with the square of the
/// hits, and nothing interrupts it: a text of 15 KB with 5,000 hits takes a third of a second.
const PART: usize = 2000;

/// The search.
pub struct Search<'s> {
    pub(crate) db: &'s Connection,
    pub(crate) deadline: &'s Deadline,
}

impl Search<'_> {
    /// Finds what has all words of `query`, in any order and each as the beginning of a word, then
    /// what has them within words; in quotes, words stand together as they are. Titles come first,
    /// then messages, the latest first, at most `limit` of each. Deleted chats are excluded.
    ///
    /// The query is text: but for quotes, nothing in it is syntax. Its first 32 words in its first
    /// 512 characters count; those of one or two characters are beginnings only. What is not found
    /// within 250 ms is left out, and what is found last may come with the beginning of its text
    /// instead of its hit.
    pub fn find(&self, query: &str, limit: u32) -> Result<Vec<SearchRow>, StoreError> {
        self.find_within(LIMIT, query, limit)
    }

    fn find_within(
        &self,
        time: Duration,
        query: &str,
        limit: u32,
    ) -> Result<Vec<SearchRow>, StoreError> {
        let terms = terms(query);
        let mut found = Found::default();
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let search = || self.gather(&mut found, &terms, limit);
        match self.deadline.within(time, search) {
            Err(error) if !deadline::is_over(&error) => Err(error.into()),
            _ => {
                found.titles.append(&mut found.messages);
                Ok(found.titles)
            }
        }
    }

    fn gather(&self, found: &mut Found, terms: &[Term], limit: u32) -> rusqlite::Result<()> {
        let words = Matching::words(terms);
        let parts = Matching::parts(terms);
        self.titles(&mut found.titles, &words, limit)?;
        if let Some(parts) = &parts {
            self.titles(&mut found.titles, parts, limit)?;
        }
        self.messages(&mut found.messages, &words, limit)?;
        if let Some(parts) = &parts {
            self.messages(&mut found.messages, parts, limit)?;
        }
        Ok(())
    }

    fn titles(
        &self,
        found: &mut Vec<SearchRow>,
        matching: &Matching,
        limit: u32,
    ) -> rusqlite::Result<()> {
        let (index, also) = (matching.title_index, matching.also("chat_search"));
        let sql = format!(
            "SELECT chat.id, chat.title, NULL, highlight({index}, 0, char(0xE000), char(0xE001)), chat.updated_at
             FROM {index} JOIN chat ON chat.id = {index}.rowid
             WHERE {index} MATCH ?1 AND chat.deleted_at IS NULL AND {also}
             ORDER BY {index}.rowid DESC LIMIT ?2"
        );
        self.rows(found, &sql, matching, limit)
    }

    fn messages(
        &self,
        found: &mut Vec<SearchRow>,
        matching: &Matching,
        limit: u32,
    ) -> rusqlite::Result<()> {
        let (index, also) = (matching.message_index, matching.also("message_search"));
        let before = found.len();
        // The beginning of the text, in case that the time is over before its hit is known.
        let sql = format!(
            "SELECT chat.id, chat.title, message.id,
                    substr(coalesce(nullif(message.text, ''), message.thinking, ''), 1, 160), message.created_at
             FROM {index}
             JOIN message ON message.id = {index}.rowid
             JOIN chat ON chat.id = message.chat
             WHERE {index} MATCH ?1 AND chat.deleted_at IS NULL AND {also}
             ORDER BY {index}.rowid DESC LIMIT ?2"
        );
        self.rows(found, &sql, matching, limit)?;
        for row in &mut found[before..] {
            if let Some(message) = row.message
                && let Some(snippet) = self.snippet_of(message, matching)?
            {
                row.snippet = snippet;
            }
        }
        Ok(())
    }

    /// Adds the rows that are not there yet, until there are `limit`.
    fn rows(
        &self,
        found: &mut Vec<SearchRow>,
        sql: &str,
        matching: &Matching,
        limit: u32,
    ) -> rusqlite::Result<()> {
        let most = limit as usize;
        if found.len() >= most {
            return Ok(());
        }
        let known: HashSet<_> = found.iter().map(|row| (row.chat, row.message)).collect();
        let mut read = self.db.prepare_cached(sql)?;
        // Those that are known may come first; they are fewer than the limit.
        let parameters = (&matching.all, limit.saturating_mul(2), &matching.others);
        for row in read.query_map(parameters, SearchRow::read)? {
            let row = row?;
            if found.len() < most && !known.contains(&(row.chat, row.message)) {
                found.push(row);
            }
        }
        Ok(())
    }

    /// Text around the first hit in a message; `None`: there is no time to look for it.
    fn snippet_of(
        &self,
        message: MessageId,
        matching: &Matching,
    ) -> rusqlite::Result<Option<String>> {
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
                if let Some(snippet) = self.snippet(part, matching)? {
                    return Ok(Some(with_ellipses(snippet, is_first, rest.is_empty())));
                }
            }
        }
        Ok(None)
    }

    /// Text around the hits in this text; `None`: it has none.
    fn snippet(&self, text: &str, matching: &Matching) -> rusqlite::Result<Option<String>> {
        let table = matching.excerpt;
        let insert = format!("INSERT OR REPLACE INTO temp.{table} (rowid, text) VALUES (1, ?1)");
        self.db.prepare_cached(&insert)?.execute([text])?;
        let shown = matching.shown;
        let read = format!("SELECT {shown} FROM temp.{table} WHERE {table} MATCH ?1");
        let shown: Option<String> = self
            .db
            .prepare_cached(&read)?
            .query_row([&matching.any], |row| row.get(0))
            .optional()?;
        Ok(shown.map(|shown| {
            matching
                .cut
                .map_or_else(|| shown.clone(), |cut| cut(&shown))
        }))
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    titles: Vec<SearchRow>,
    messages: Vec<SearchRow>,
}

/// How one of the two indices is asked.
struct Matching {
    title_index: &'static str,
    message_index: &'static str,
    /// What has to match there.
    all: String,
    /// What has to match in the index of words besides.
    others: Option<String>,
    /// What is marked in a snippet.
    any: String,
    /// The table that makes the snippets, and how.
    excerpt: &'static str,
    shown: &'static str,
    cut: Option<fn(&str) -> String>,
}

impl Matching {
    /// All terms as beginnings of words, or as words where they are quoted.
    fn words(terms: &[Term]) -> Matching {
        let each: Vec<String> = terms.iter().map(Term::as_word).collect();
        Matching {
            title_index: "chat_search",
            message_index: "message_search",
            all: each.join(" "),
            others: None,
            any: each.join(" OR "),
            excerpt: "excerpt",
            shown: "snippet(excerpt, 0, char(0xE000), char(0xE001), '…', 16)",
            cut: None,
        }
    }

    /// Terms within words, as far as they can be; `None` where none can.
    fn parts(terms: &[Term]) -> Option<Matching> {
        let (parts, others): (Vec<_>, Vec<_>) = terms.iter().partition(|term| term.has_parts());
        if parts.is_empty() {
            return None;
        }
        let each: Vec<String> = parts.iter().map(|term| quoted(&term.text)).collect();
        let others: Vec<String> = others.iter().map(|term| term.as_word()).collect();
        Some(Matching {
            title_index: "chat_part_search",
            message_index: "message_part_search",
            all: each.join(" "),
            others: (!others.is_empty()).then(|| others.join(" ")),
            any: each.join(" OR "),
            excerpt: "part_excerpt",
            shown: "highlight(part_excerpt, 0, char(0xE000), char(0xE001))",
            cut: Some(around_first_hit),
        })
    }

    /// The condition that the others match, too.
    fn also(&self, words: &str) -> String {
        match self.others {
            // The parameter has to stand in each statement.
            None => "?3 IS NULL".to_owned(),
            Some(_) => format!(
                "{} IN (SELECT rowid FROM {words} WHERE {words} MATCH ?3)",
                if words == "chat_search" {
                    "chat.id"
                } else {
                    "message.id"
                }
            ),
        }
    }
}

/// Characters before the first hit, and from there on, that are shown of a text.
const BEFORE: usize = 40;
const FROM: usize = 120;

/// The words around the first hit of a text whose hits are marked.
fn around_first_hit(marked: &str) -> String {
    let hit = marked.find('\u{E000}').unwrap_or(0);
    let start = marked[..hit]
        .char_indices()
        .rev()
        .nth(BEFORE)
        .map_or(0, |(at, _)| at);
    let end = marked[hit..]
        .char_indices()
        .nth(FROM)
        .map_or(marked.len(), |(at, _)| hit + at);
    let start = match marked[start..hit].find(char::is_whitespace) {
        Some(blank) if start > 0 => start + blank,
        _ => start,
    };
    let end = match marked[hit..end].rfind(char::is_whitespace) {
        Some(blank) if end < marked.len() => hit + blank,
        _ => end,
    };
    let begin = if start > 0 { "…" } else { "" };
    let rest = if end < marked.len() { "…" } else { "" };
    format!("{begin}{}{rest}", marked[start..end].trim())
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
        let matching = Matching::words(&terms("goldcrest"));
        let snippet = || store.search().snippet_of(message, &matching);
        assert!(snippet()?.is_some_and(|text| text.contains('\u{E000}')));
        assert_eq!(store.deadline.within(Duration::ZERO, snippet)?, None);
        Ok(())
    }

    #[test]
    fn the_words_around_a_hit_are_whole() {
        let text = format!(
            "{}p\u{E000}lanet\u{E001} {}",
            "before ".repeat(30),
            "after ".repeat(60)
        );
        let shown = around_first_hit(&text);
        assert!(shown.starts_with("…before before"), "{shown}");
        assert!(
            shown.contains("before p\u{E000}lanet\u{E001} after"),
            "{shown}"
        );
        assert!(
            shown.ends_with("after…") && shown.chars().count() < 170,
            "{shown}"
        );
        assert_eq!(
            around_first_hit("p\u{E000}lanet\u{E001}s"),
            "p\u{E000}lanet\u{E001}s"
        );
        let long = format!("{}\u{E000}x\u{E001}{}", "ü".repeat(500), "ü".repeat(500));
        assert!(around_first_hit(&long).chars().count() < 170);
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
