//! Full-text search over titles, texts, thinking, calls of tools and their results.
//!
//! There are two indices: of words, for prefixes and phrases; and of trigrams, for matches within words. Both hold
//! folded text (`fold.rs`). In the index of words each character of Chinese, Japanese and Korean is a word, so that a
//! phrase of them is found within a sentence, and a column holds the symbols of a text, which are no words. Triggers
//! keep the indices in step with the tables. An answer is indexed when it has ended, so that journaling does not index
//! it repeatedly.

mod answer;
mod fold;
mod index;
mod pass;
mod query;
mod snippet;
mod steps;
mod words;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use inference::{Part, Role};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension};

use crate::deadline::{self, Deadline};
use crate::error::StoreError;
use crate::table::id::ChatId;
use crate::table::id::MessageId;
use crate::table::message::IS_DELETED;
use crate::table::part;

pub use answer::{ChatHits, PartKind, SearchAnswer, SearchHit};
pub(crate) use index::{define_functions, delete_securely, refresh};
use pass::SearchPass;
use query::terms;
use snippet::Marker;
pub(crate) use steps::STEPS;

/// Time limit of a search, during which other requests to the store wait.
const LIMIT: Duration = Duration::from_millis(250);
/// Maximum messages that one pass over an index scans, and the minimum that it counts for the hit numbers once enough
/// chats are found.
const SCANNED: u32 = 20_000;
const COUNTED: usize = 2_000;
/// Number of first chats that come with several of their hits; the others come with one.
const DETAILED_CHATS: usize = 30;
const DETAILED_HITS: usize = 3;
/// Characters of a text that replace its snippet if there is no time to look for it.
const BEGINNING: usize = 160;

/// The search.
pub struct Search<'s> {
    pub(crate) db: &'s Connection,
    pub(crate) deadline: &'s Deadline,
}

impl Search<'_> {
    /// Finds the chats with a title or a message that has all words of `query`, in any order.
    ///
    /// Exact matches with the symbols come first, then prefix matches of the words, then matches within words;
    /// characters of Chinese, Japanese and Korean are found everywhere. In quotes, words form a phrase. Titles come
    /// before messages, and later ones first: at most `limit` chats, and a third of it more if titles alone would take
    /// all. Deleted chats and messages are excluded.
    ///
    /// The query is text: except for quotes, nothing in it is syntax. Its first 32 words in its first 512 characters
    /// count; words of one or two letters match as prefixes only. Results that are not found within 250 ms are left
    /// out, and the last ones may come with the beginning of their text instead of the hit.
    pub fn find(&self, query: &str, limit: u32) -> Result<SearchAnswer, StoreError> {
        self.find_within(LIMIT, query, limit)
    }

    /// Finds all messages of a chat that [`Search::find`] counts, the best first, at most `limit`.
    pub fn find_in_chat(
        &self,
        query: &str,
        chat: ChatId,
        limit: u32,
    ) -> Result<Vec<SearchHit>, StoreError> {
        let end = Instant::now() + LIMIT;
        let passes = SearchPass::all(&terms(query));
        let mut found = Vec::new();
        let mut known = HashSet::new();
        let scanned = self.deadline.within(LIMIT, || {
            for (number, pass) in passes.iter().enumerate() {
                self.scan(pass, Some(chat), limit, |message, _| {
                    if known.insert(message) {
                        found.push((number, message));
                    }
                    Ok(true)
                })?;
            }
            Ok(())
        });
        is_in_time(scanned)?;
        found.truncate(limit as usize);
        Ok(self.hits(&passes, &found, end)?)
    }

    /// Indexes messages that the index lacks, within the time limit. Returns whether there are more.
    ///
    /// The index of an older version's file is built in the background this way.
    pub fn index_older(&self, within: Duration) -> Result<bool, StoreError> {
        Ok(index::index_older(self.db, within)?)
    }

    fn find_within(
        &self,
        time: Duration,
        query: &str,
        limit: u32,
    ) -> Result<SearchAnswer, StoreError> {
        let end = Instant::now() + time;
        let passes = SearchPass::all(&terms(query));
        let mut found = Found::new(limit);
        let gathered = self
            .deadline
            .within(time, || self.gather(&mut found, &passes));
        let more = !is_in_time(gathered)? || found.more;
        Ok(SearchAnswer {
            chats: self.chats(&passes, found, end)?,
            more,
            indexing: index::indexed_from(self.db)? > i64::MIN,
        })
    }

    fn gather(&self, found: &mut Found, passes: &[SearchPass]) -> rusqlite::Result<()> {
        // Matches with symbols first; then titles before messages.
        let (literal, others): (Vec<usize>, Vec<usize>) =
            (0..passes.len()).partition(|number| passes[*number].is_literal);
        for numbers in [literal, others] {
            for number in &numbers {
                self.titles(found, passes, *number)?;
            }
            for number in &numbers {
                if !found.is_full() {
                    self.messages(found, passes, *number)?;
                }
            }
        }
        Ok(())
    }

    fn titles(
        &self,
        found: &mut Found,
        passes: &[SearchPass],
        number: usize,
    ) -> rusqlite::Result<()> {
        let pass = &passes[number];
        let index = pass.index.titles();
        if found.order.len() >= found.limit || !self.has_others(pass, "chat_search")? {
            return Ok(());
        }
        let also = pass.also(index, "chat_search");
        let mut read = self.db.prepare_cached(&format!(
            "SELECT chat.id, chat.title, chat.updated_at FROM {index} JOIN chat ON chat.id = {index}.rowid
             WHERE {index} MATCH ?1 AND chat.deleted_at IS NULL AND {also}
             ORDER BY chat.updated_at DESC, chat.id DESC"
        ))?;
        let mut rows = read.query((&pass.all, &pass.others))?;
        while let Some(row) = rows.next()? {
            let chat = ChatId(row.get(0)?);
            if let Some(Some(known)) = found.chats.get_mut(&chat) {
                known.in_title = true;
                continue;
            }
            if found.order.len() >= found.limit {
                found.more = true;
                break;
            }
            found.titled += 1;
            found.order.push(chat);
            let chat_found = FoundChat {
                title: row.get(1)?,
                in_title: true,
                at: row.get(2)?,
                pass: number,
                messages: Vec::new(),
                count: 0,
            };
            found.chats.insert(chat, Some(chat_found));
        }
        Ok(())
    }

    fn messages(
        &self,
        found: &mut Found,
        passes: &[SearchPass],
        number: usize,
    ) -> rusqlite::Result<()> {
        let mut scanned = 0;
        self.scan(&passes[number], None, SCANNED, |message, chat| {
            scanned += 1;
            found.more |= scanned == SCANNED as usize;
            let is_full = found.is_full();
            if !found.messages.insert(message) {
                return Ok(true);
            }
            let known = match found.chats.entry(chat) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(_) if is_full => {
                    found.more = true;
                    return Ok(scanned < COUNTED);
                }
                Entry::Vacant(new) => {
                    let read = self.found_chat(chat, number)?;
                    if read.is_some() {
                        found.others += 1;
                        found.order.push(chat);
                    }
                    new.insert(read)
                }
            };
            if let Some(known) = known {
                known.count += 1;
                if known.messages.len() < DETAILED_HITS {
                    known.messages.push((number, message));
                }
            }
            Ok(true)
        })
    }

    /// Scans the matching messages, the latest first, as long as `each` wants more; with `chat` only its messages.
    fn scan(
        &self,
        pass: &SearchPass,
        chat: Option<ChatId>,
        limit: u32,
        mut each: impl FnMut(MessageId, ChatId) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<()> {
        let index = pass.index.messages();
        if !self.has_others(pass, "message_search")? {
            return Ok(());
        }
        let also = pass.also(index, "message_search");
        let mut read = self.db.prepare_cached(&format!(
            "SELECT message.id, message.chat FROM {index} JOIN message ON message.moment = {index}.rowid
             WHERE {index} MATCH ?1 AND (?3 IS NULL OR message.chat = ?3) AND NOT {IS_DELETED} AND {also}
             ORDER BY {index}.rowid DESC LIMIT ?4"
        ))?;
        let parameters = (&pass.all, &pass.others, chat.map(|chat| chat.0), limit);
        let mut rows = read.query(parameters)?;
        while let Some(row) = rows.next()? {
            if !each(MessageId(row.get(0)?), ChatId(row.get(1)?))? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the chat of a message that was found; `None` if it is deleted.
    fn found_chat(&self, chat: ChatId, pass: usize) -> rusqlite::Result<Option<FoundChat>> {
        self.db
            .prepare_cached(
                "SELECT title, updated_at FROM chat WHERE id = ?1 AND deleted_at IS NULL",
            )?
            .query_row([chat.0], |row| {
                Ok(FoundChat {
                    title: row.get(0)?,
                    in_title: false,
                    at: row.get(1)?,
                    pass,
                    messages: Vec::new(),
                    count: 0,
                })
            })
            .optional()
    }

    /// Returns whether the pass's other condition matches anything in the index of words. Checking that up front is
    /// faster than hit by hit.
    fn has_others(&self, pass: &SearchPass, words: &str) -> rusqlite::Result<bool> {
        let Some(others) = &pass.others else {
            return Ok(true);
        };
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {words} WHERE {words} MATCH ?1)");
        self.db
            .prepare_cached(&sql)?
            .query_row([others], |row| row.get(0))
    }

    /// Returns the chats with their hits, as they are listed.
    fn chats(
        &self,
        passes: &[SearchPass],
        mut found: Found,
        end: Instant,
    ) -> rusqlite::Result<Vec<ChatHits>> {
        let mut chats = Vec::with_capacity(found.order.len());
        for (place, chat) in found.order.iter().enumerate() {
            let Some(found) = found.chats.remove(chat).flatten() else {
                continue;
            };
            let shown = if place < DETAILED_CHATS {
                DETAILED_HITS
            } else {
                1
            };
            let shown = shown.min(found.messages.len());
            let hits = self.hits(passes, &found.messages[..shown], end)?;
            chats.push(ChatHits {
                chat: *chat,
                title: passes[found.pass].marker.mark(&found.title),
                in_title: found.in_title,
                at: hits.first().map_or(found.at, |hit| hit.at),
                hits,
                count: found.count,
            });
        }
        Ok(chats)
    }

    /// Returns these messages with their snippets, each with the pass that has found it.
    fn hits(
        &self,
        passes: &[SearchPass],
        messages: &[(usize, MessageId)],
        end: Instant,
    ) -> rusqlite::Result<Vec<SearchHit>> {
        let mut hits = Vec::with_capacity(messages.len());
        for (number, message) in messages {
            let marker = (Instant::now() < end).then_some(&passes[*number].marker);
            hits.push((*number, self.hit(*message, marker)?));
        }
        // Within a few seconds the index has the order of writing.
        hits.sort_by_key(|(number, hit)| (*number, Reverse(hit.at)));
        Ok(hits.into_iter().map(|(_, hit)| hit).collect())
    }

    fn hit(&self, message: MessageId, marker: Option<&Marker>) -> rusqlite::Result<SearchHit> {
        let parts = part::of_message(self.db, message)?;
        let (texts, others): (Vec<_>, Vec<_>) = parts.0.iter().partition(|part| part.is_text());
        let parts: Vec<_> = (texts.into_iter().chain(others))
            .map(|part| (PartKind::from(part), indexed_text(part)))
            .collect();
        let found = marker.and_then(|marker| {
            let mut parts = parts.iter();
            parts.find_map(|(kind, text)| Some((*kind, marker.snippet(text)?)))
        });
        let (kind, snippet) = found.unwrap_or_else(|| {
            let first = parts.first();
            first.map_or((PartKind::Text, String::new()), |(kind, text)| {
                (*kind, text.chars().take(BEGINNING).collect())
            })
        });
        let mut read = self
            .db
            .prepare_cached("SELECT created_at, role FROM message WHERE id = ?1")?;
        read.query_row([message.0], |row| {
            Ok(SearchHit {
                message,
                role: Role::from_name(row.get_ref(1)?.as_str()?)
                    .ok_or(FromSqlError::InvalidType)?,
                kind,
                snippet,
                at: row.get(0)?,
            })
        })
    }
}

/// Returns the text of a part in the index: a call begins with the name of its tool.
fn indexed_text(part: &Part) -> Cow<'_, str> {
    match part {
        Part::ToolCall {
            name, arguments, ..
        } => format!("{name} {arguments}").into(),
        part => part.content().into(),
    }
}

/// Returns false if the time is over.
fn is_in_time(result: rusqlite::Result<()>) -> rusqlite::Result<bool> {
    match result {
        Err(error) if deadline::is_over(&error) => Ok(false),
        result => result.map(|()| true),
    }
}

/// Results so far.
struct Found {
    /// Maximum chats that are listed.
    limit: usize,
    titled: usize,
    others: usize,
    order: Vec<ChatId>,
    /// Chats that are not deleted.
    chats: HashMap<ChatId, Option<FoundChat>>,
    messages: HashSet<MessageId>,
    more: bool,
}

impl Found {
    fn new(limit: u32) -> Found {
        Found {
            limit: limit as usize,
            titled: 0,
            others: 0,
            order: Vec::new(),
            chats: HashMap::new(),
            messages: HashSet::new(),
            more: false,
        }
    }

    /// Returns whether no other chat is listed for its messages.
    fn is_full(&self) -> bool {
        let left = self.limit.saturating_sub(self.titled);
        self.others >= left.max(self.limit.div_ceil(3))
    }
}

struct FoundChat {
    title: String,
    in_title: bool,
    at: i64,
    /// Pass that found it first.
    pass: usize,
    /// First of its messages, each with the pass that has found it.
    messages: Vec<(usize, MessageId)>,
    count: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageState, NewMessage, Parts, Role, Store};

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
                    parts: Parts::of_text(format!("goldcrest {n}")),
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
        let found = |time| -> Result<(u32, bool), StoreError> {
            let answer = search.find_within(time, "goldcrest", 400)?;
            let found = answer.chats.iter().map(|chat| chat.count).sum();
            Ok((found, answer.more))
        };
        let (late, more) = found(Duration::ZERO)?;
        assert!(late < 400 && more, "{late} were found in no time");
        let chat = store.chats().list()?[0].id;
        let tree = store.messages().tree(chat)?;
        assert_eq!(tree.len(), 400, "no deadline is left behind");
        assert_eq!(found(Duration::from_secs(3600))?, (400, false));
        Ok(())
    }

    #[test]
    fn what_is_found_late_has_no_snippet() -> Result<(), StoreError> {
        let store = filled(1)?;
        let chat = store.chats().list()?[0].id;
        let (message, _) = store.messages().tree(chat)?[0];
        let passes = SearchPass::all(&terms("goldcrest"));
        let snippet = |end| -> rusqlite::Result<String> {
            let mut hits = store.search().hits(&passes, &[(0, message)], end)?;
            Ok(hits.remove(0).snippet)
        };
        let now = Instant::now();
        let later = now + Duration::from_secs(3600);
        assert_eq!(snippet(later)?, "\u{E000}goldcrest\u{E001} 0");
        assert_eq!(snippet(now)?, "goldcrest 0");
        Ok(())
    }
}
