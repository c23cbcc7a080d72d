//! The search indices, and the triggers that keep them in step with the tables.
//!
//! Clearing an index to build it again does not overwrite it: its words stay in free pages until those are used.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};

use super::fold::{self, fold};
use super::words::{indexed_signs, indexed_words};

/// Defines the functions that the schema calls, which produce the indexed text.
pub(crate) fn define_functions(db: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    for (name, indexed) in [
        ("search_words", indexed_words as fn(&str) -> String),
        ("search_fold", fold),
    ] {
        db.create_scalar_function(name, 1, flags, move |values| {
            Ok(text(values, 0)?.map(indexed))
        })?;
    }
    db.create_scalar_function("search_signs", 2, flags, |values| {
        Ok(indexed_signs(
            [text(values, 0)?, text(values, 1)?].into_iter().flatten(),
        ))
    })
}

fn text<'c>(values: &'c Context<'_>, at: usize) -> rusqlite::Result<Option<&'c str>> {
    Ok(values.get_raw(at).as_str_or_null()?)
}

/// Clears indices that other folding rules made, and fills those of titles.
pub(crate) fn refresh(db: &Connection) -> rusqlite::Result<()> {
    let folding: i64 = db.query_row("SELECT folding FROM search_state", [], |row| row.get(0))?;
    if folding == fold::VERSION {
        return Ok(());
    }
    let transaction = db.unchecked_transaction()?;
    transaction.execute_batch(
        "INSERT INTO message_search (message_search) VALUES ('delete-all');
         INSERT INTO message_part_search (message_part_search) VALUES ('delete-all');
         INSERT INTO chat_search (chat_search) VALUES ('rebuild');
         INSERT INTO chat_part_search (chat_part_search) VALUES ('rebuild');",
    )?;
    transaction.execute(
        "UPDATE search_state SET folding = ?1, indexed_from = ?2",
        (fold::VERSION, i64::MAX),
    )?;
    transaction.commit()
}

/// Bytes of text that are indexed in one transaction, which takes some 50 ms.
const SLICE: i64 = 64 << 10;

/// Returns the moment from which all messages are indexed; `i64::MIN`: all are.
pub(super) fn indexed_from(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("SELECT indexed_from FROM search_state")?
        .query_row([], |row| row.get(0))
}

/// Indexes missing messages, the latest first, within the time limit. Returns whether there are more.
pub(super) fn index_older(db: &Connection, within: Duration) -> rusqlite::Result<bool> {
    let end = Instant::now() + within;
    loop {
        let before = indexed_from(db)?;
        if before == i64::MIN {
            return Ok(false);
        }
        let transaction = db.unchecked_transaction()?;
        let from = slice_start(db, before)?;
        // FTS5 writes rows that come out of order piece by piece.
        for sql in [
            "UPDATE search_state SET indexed_from = ?1 WHERE indexed_from = ?2",
            "INSERT INTO message_search (rowid, text, thinking, signs)
             SELECT * FROM message_indexed WHERE moment >= ?1 AND moment < ?2 ORDER BY moment",
            "INSERT INTO message_part_search (rowid, text, thinking)
             SELECT * FROM message_folded WHERE moment >= ?1 AND moment < ?2 ORDER BY moment",
        ] {
            transaction.prepare_cached(sql)?.execute([from, before])?;
        }
        transaction.commit()?;
        if Instant::now() >= end {
            return Ok(from > i64::MIN);
        }
    }
}

/// Returns the first moment of the slice of messages that ends before this one; `i64::MIN` if there are no others.
fn slice_start(db: &Connection, before: i64) -> rusqlite::Result<i64> {
    let mut read = db.prepare_cached(
        "SELECT moment, (SELECT ifnull(sum(octet_length(text)), 0) FROM part WHERE part.message = message.id)
         FROM message WHERE moment < ?1 ORDER BY moment DESC",
    )?;
    let mut rows = read.query([before])?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        bytes += row.get::<_, i64>(1)?;
        if bytes >= SLICE {
            return row.get(0);
        }
    }
    Ok(i64::MIN)
}

/// Makes deleted content leave the index at once; otherwise FTS5 would keep its words until it merges. The option is
/// stored in the file.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreError;
    use crate::{ChatId, MessageId, MessageState, NewMessage, Parts, Progress, Role, Store};

    fn add(
        store: &Store,
        chat: ChatId,
        state: MessageState,
        text: &str,
    ) -> Result<MessageId, StoreError> {
        store.messages().add(&NewMessage {
            chat,
            parent: None,
            role: Role::User,
            state,
            parts: Parts::of_text(text),
            thinks: false,
            created_at: 100,
        })
    }

    /// Compares the indices with the texts.
    fn check(store: &Store) -> rusqlite::Result<()> {
        for index in [
            "chat_search",
            "chat_part_search",
            "message_search",
            "message_part_search",
        ] {
            store.db.execute_batch(&format!(
                "INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)"
            ))?;
        }
        Ok(())
    }

    fn forget_index(store: &Store) -> rusqlite::Result<()> {
        store
            .db
            .execute_batch("UPDATE search_state SET folding = 0")?;
        refresh(&store.db)
    }

    /// Does every kind of write that changes the index, some in a chat that an index may lack.
    fn write(store: &Store, old: &[MessageId], chat: ChatId) -> Result<(), StoreError> {
        let progress = Progress {
            parts: Parts::of_answer(Some("ｆｕｌｌ".into()), "Straße, C++ 🦅 水问题"),
            ..Progress::default()
        };
        let new = add(store, chat, MessageState::Writing, "")?;
        for message in [new, old[0], old[1]] {
            store.messages().reopen(message)?;
            store.messages().journal(message, &progress)?;
            store
                .messages()
                .end(message, MessageState::Done, None, None)?;
        }
        store.messages().reopen(old[1])?;
        store.messages().delete(old[2], 1)?;
        store.messages().purge(2, Duration::from_secs(3600))?;
        store.chats().rename(chat, "Größe 水")
    }

    #[test]
    fn the_indices_follow_the_tables_while_they_are_made() -> Result<(), StoreError> {
        let store = Store::in_memory()?;
        let mut old = Vec::new();
        let mut chats = Vec::new();
        for n in 0..6 {
            let chat = store.chats().create("Vögel", "2026-03-05", n)?;
            chats.push(chat);
            for _ in 0..3 {
                old.push(add(
                    &store,
                    chat,
                    MessageState::Done,
                    &"wört, ".repeat(4_000),
                )?);
            }
        }
        check(&store)?;
        forget_index(&store)?;
        let mut steps = 0;
        for (chat, messages) in chats.iter().zip(old.chunks(3)) {
            check(&store)?;
            write(&store, messages, *chat)?;
            check(&store)?;
            let before = indexed_from(&store.db)?;
            store.search().index_older(Duration::from_nanos(1))?;
            steps += usize::from(indexed_from(&store.db)? < before);
        }
        assert!(steps > 3, "{steps}: it was made before all was written");
        store.search().index_older(Duration::from_secs(3600))?;
        check(&store)?;
        assert_eq!(store.search().find("größe", 9)?.chats.len(), chats.len());
        let found = store.search().find("strasse full", 9)?;
        assert_eq!((found.chats.len(), found.indexing), (chats.len(), false));
        Ok(())
    }

    #[test]
    fn a_search_says_that_the_index_is_being_made() -> Result<(), StoreError> {
        let store = Store::in_memory()?;
        let chat = store.chats().create("x", "2026-03-05", 1)?;
        add(&store, chat, MessageState::Done, "a goldcrest")?;
        forget_index(&store)?;
        let found = || store.search().find("goldcrest", 9);
        assert_eq!((found()?.chats.len(), found()?.indexing), (0, true));
        assert!(!store.search().index_older(Duration::from_secs(3600))?);
        assert_eq!((found()?.chats.len(), found()?.indexing), (1, false));
        Ok(())
    }
}
