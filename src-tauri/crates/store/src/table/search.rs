//! Full-text search over titles, texts and thinking.
//!
//! There are two indices: of words, for their beginnings and for phrases; and of every three
//! characters in a row (trigrams), for matches within words. They are external-content tables: triggers
//! keep them in step with the tables. An answer is indexed when it has ended, so that journaling does
//! not index it repeatedly.

mod index;
mod query;
mod snippet;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::Duration;

use rusqlite::{Connection, Row};

use crate::deadline::{self, Deadline};
use crate::error::StoreError;
use crate::table::id::ChatId;
use crate::table::id::MessageId;
use crate::table::message::IS_DELETED;

pub(crate) use index::{STEPS, delete_securely};
use query::{Term, quoted, terms};
use snippet::Snippets;
pub(crate) use snippet::prepare;

/// A place where something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRow {
    /// The chat.
    pub chat: ChatId,
    /// The chat's title.
    pub title: String,
    /// The message; `None`: it is in the title.
    pub message: Option<MessageId>,
    /// Whether the snippet is from the message's thinking.
    pub in_thinking: bool,
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
            in_thinking: false,
            snippet: row.get(3)?,
            at: row.get(4)?,
        })
    }
}

/// How long a search may take: other requests to the store wait meanwhile.
const LIMIT: Duration = Duration::from_millis(250);
/// The search.
pub struct Search<'s> {
    pub(crate) db: &'s Connection,
    pub(crate) deadline: &'s Deadline,
}

impl Search<'_> {
    /// Finds what has all words of `query`, in any order and each as the beginning of a word, then
    /// what has them within words; in quotes, words stand together as they are. Titles come first,
    /// those of the chats that were written in last before others, then messages, the latest first, at
    /// most `limit` of each. Deleted chats and messages are excluded.
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
        let index = matching.title_index;
        if !self.has_others(matching, "chat_search")? {
            return Ok(());
        }
        let also = matching.also(index, "chat_search");
        // Only those that are shown are highlighted: a letter is in most of the titles.
        let sql = format!(
            "SELECT chat.id, chat.title, NULL, highlight({index}, 0, char(0xE000), char(0xE001)), chat.updated_at
             FROM {index} JOIN chat ON chat.id = {index}.rowid
             WHERE {index} MATCH ?1 AND {index}.rowid IN (
                 SELECT chat.id FROM {index} JOIN chat ON chat.id = {index}.rowid
                 WHERE {index} MATCH ?1 AND chat.deleted_at IS NULL AND {also}
                 ORDER BY chat.updated_at DESC, chat.id DESC LIMIT ?2
             )
             ORDER BY chat.updated_at DESC, chat.id DESC"
        );
        self.rows(found, &sql, matching, limit)
    }

    fn messages(
        &self,
        found: &mut Vec<SearchRow>,
        matching: &Matching,
        limit: u32,
    ) -> rusqlite::Result<()> {
        let index = matching.message_index;
        if !self.has_others(matching, "message_search")? {
            return Ok(());
        }
        let also = matching.also(index, "message_search");
        let before = found.len();
        // The beginning of the text, in case that the time is over before its hit is known.
        let sql = format!(
            "SELECT chat.id, chat.title, message.id,
                    substr(coalesce(nullif(message.text, ''), message.thinking, ''), 1, 160), message.created_at
             FROM {index}
             JOIN message ON message.moment = {index}.rowid
             JOIN chat ON chat.id = message.chat
             WHERE {index} MATCH ?1 AND chat.deleted_at IS NULL AND NOT {IS_DELETED} AND {also}
             ORDER BY {index}.rowid DESC LIMIT ?2"
        );
        self.rows(found, &sql, matching, limit)?;
        // Those of a few seconds stand as they were written.
        found[before..].sort_by_key(|row| Reverse(row.at));
        for row in &mut found[before..] {
            if let Some(message) = row.message
                && let Some((snippet, in_thinking)) =
                    matching
                        .snippets
                        .of_message(self.db, self.deadline, message)?
            {
                row.snippet = snippet;
                row.in_thinking = in_thinking;
            }
        }
        Ok(())
    }

    /// False where what has to match in the index of words besides is nowhere: to find that out is much faster than to look
    /// for the rest first.
    fn has_others(&self, matching: &Matching, words: &str) -> rusqlite::Result<bool> {
        let Some(others) = &matching.others else {
            return Ok(true);
        };
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {words} WHERE {words} MATCH ?1)");
        self.db
            .prepare_cached(&sql)?
            .query_row([others], |row| row.get(0))
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
    snippets: Snippets,
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
            snippets: Snippets::of_words(terms),
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
            snippets: Snippets::of_parts(&parts),
        })
    }

    /// The condition that the others match the index of words, too.
    fn also(&self, index: &str, words: &str) -> String {
        match self.others {
            // The parameter has to stand in each statement.
            None => "?3 IS NULL".to_owned(),
            // The plus has SQLite look each hit up in the list, and not ask the index for each of the list.
            Some(_) => {
                format!("+{index}.rowid IN (SELECT rowid FROM {words} WHERE {words} MATCH ?3)")
            }
        }
    }
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
        let snippets = Snippets::of_words(&terms("goldcrest"));
        let snippet = || snippets.of_message(&store.db, &store.deadline, message);
        assert!(snippet()?.is_some_and(|(text, _)| text.contains('\u{E000}')));
        assert_eq!(store.deadline.within(Duration::ZERO, snippet)?, None);
        Ok(())
    }
}
