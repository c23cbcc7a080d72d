//! The search indices, and the triggers that keep them in step with the tables.
//!
//! Clearing an index to build it again does not overwrite it: its words stay in free pages until those are used.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};

use super::fold::{self, fold};
use super::words::{indexed_signs, indexed_words};
use crate::migrate::Step;

pub(crate) const STEPS: &[Step] = &[WORDS, PARTS, LETTERS, MOMENTS, FOLDED];

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

// Without 'rebuild', which would index answers that are still in progress.
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

// Prefixes of one letter are indexed, too: gathering all words with this prefix takes longer the more words there are.
// FTS5 cannot add that to an existing index.
const LETTERS: Step = Step {
    version: 4,
    sql: "DROP TABLE chat_search;
          CREATE VIRTUAL TABLE chat_search USING fts5 (
              title, content = 'chat', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3'
          );
          INSERT INTO chat_search (rowid, title) SELECT id, title FROM chat;
",
};

// A message is identified by its moment, so that the latest are found first without sorting. It has one once it was
// inserted.
const MOMENTS: Step = Step {
    version: 4,
    sql: "DROP TABLE message_search;
          DROP TRIGGER message_search_insert;
          DROP TRIGGER message_search_update;
          DROP TRIGGER message_search_delete;
          CREATE VIRTUAL TABLE message_search USING fts5 (
              text, thinking,
              content = 'message', content_rowid = 'moment', tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3'
          );
          CREATE TRIGGER message_search_insert AFTER UPDATE OF moment ON message WHEN new.state <> 'writing' BEGIN
              INSERT INTO message_search (rowid, text, thinking) VALUES (new.moment, new.text, new.thinking);
          END;
          CREATE TRIGGER message_search_update AFTER UPDATE OF text, thinking, state ON message
          WHEN old.state <> 'writing' OR new.state <> 'writing' BEGIN
              INSERT INTO message_search (message_search, rowid, text, thinking)
                  SELECT 'delete', old.moment, old.text, old.thinking WHERE old.state <> 'writing';
              INSERT INTO message_search (rowid, text, thinking)
                  SELECT new.moment, new.text, new.thinking WHERE new.state <> 'writing';
          END;
          CREATE TRIGGER message_search_delete AFTER DELETE ON message WHEN old.state <> 'writing' BEGIN
              INSERT INTO message_search (message_search, rowid, text, thinking)
                  VALUES ('delete', old.moment, old.text, old.thinking);
          END;
          INSERT INTO message_search (rowid, text, thinking)
              SELECT moment, text, thinking FROM message WHERE state <> 'writing' ORDER BY moment;

          DROP TABLE message_part_search;
          DROP TRIGGER message_part_search_insert;
          DROP TRIGGER message_part_search_update;
          DROP TRIGGER message_part_search_delete;
          CREATE VIRTUAL TABLE message_part_search USING fts5 (
              text, thinking,
              content = 'message', content_rowid = 'moment', tokenize = 'trigram remove_diacritics 1'
          );
          CREATE TRIGGER message_part_search_insert AFTER UPDATE OF moment ON message WHEN new.state <> 'writing' BEGIN
              INSERT INTO message_part_search (rowid, text, thinking) VALUES (new.moment, new.text, new.thinking);
          END;
          CREATE TRIGGER message_part_search_update AFTER UPDATE OF text, thinking, state ON message
          WHEN old.state <> 'writing' OR new.state <> 'writing' BEGIN
              INSERT INTO message_part_search (message_part_search, rowid, text, thinking)
                  SELECT 'delete', old.moment, old.text, old.thinking WHERE old.state <> 'writing';
              INSERT INTO message_part_search (rowid, text, thinking)
                  SELECT new.moment, new.text, new.thinking WHERE new.state <> 'writing';
          END;
          CREATE TRIGGER message_part_search_delete AFTER DELETE ON message WHEN old.state <> 'writing' BEGIN
              INSERT INTO message_part_search (message_part_search, rowid, text, thinking)
                  VALUES ('delete', old.moment, old.text, old.thinking);
          END;
          INSERT INTO message_part_search (rowid, text, thinking)
              SELECT moment, text, thinking FROM message WHERE state <> 'writing' ORDER BY moment;",
};

// The functions of `define_functions` produce the indexed text; the tokenizers only split it. So the indices begin
// empty: `refresh` fills those of titles, and `index_older` that of messages, from the latest on. Messages before
// `indexed_from` are not in them yet, and nothing may remove them from there.
const FOLDED: Step = Step {
    version: 5,
    sql: r##"CREATE TABLE search_state (
              id           INTEGER PRIMARY KEY CHECK (id = 1),
              folding      INTEGER NOT NULL,
              indexed_from INTEGER NOT NULL
          ) STRICT;
          INSERT INTO search_state VALUES (1, 0, 9223372036854775807);

          DROP TABLE chat_search;
          DROP TRIGGER chat_search_insert;
          DROP TRIGGER chat_search_update;
          DROP TRIGGER chat_search_delete;
          CREATE VIEW chat_indexed AS
              SELECT id, search_words(title) AS title, search_signs(title, NULL) AS signs FROM chat;
          CREATE VIRTUAL TABLE chat_search USING fts5 (
              title, signs, content = 'chat_indexed', content_rowid = 'id',
              tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\]^_`{|}~'", prefix = '1 2 3'
          );
          CREATE TRIGGER chat_search_insert AFTER INSERT ON chat BEGIN
              INSERT INTO chat_search (rowid, title, signs)
                  VALUES (new.id, search_words(new.title), search_signs(new.title, NULL));
          END;
          CREATE TRIGGER chat_search_update AFTER UPDATE OF title ON chat BEGIN
              INSERT INTO chat_search (chat_search, rowid, title, signs)
                  VALUES ('delete', old.id, search_words(old.title), search_signs(old.title, NULL));
              INSERT INTO chat_search (rowid, title, signs)
                  VALUES (new.id, search_words(new.title), search_signs(new.title, NULL));
          END;
          CREATE TRIGGER chat_search_delete AFTER DELETE ON chat BEGIN
              INSERT INTO chat_search (chat_search, rowid, title, signs)
                  VALUES ('delete', old.id, search_words(old.title), search_signs(old.title, NULL));
          END;

          DROP TABLE chat_part_search;
          DROP TRIGGER chat_part_search_insert;
          DROP TRIGGER chat_part_search_update;
          DROP TRIGGER chat_part_search_delete;
          CREATE VIEW chat_folded AS SELECT id, search_fold(title) AS title FROM chat;
          CREATE VIRTUAL TABLE chat_part_search USING fts5 (
              title, content = 'chat_folded', content_rowid = 'id', tokenize = 'trigram case_sensitive 1'
          );
          CREATE TRIGGER chat_part_search_insert AFTER INSERT ON chat BEGIN
              INSERT INTO chat_part_search (rowid, title) VALUES (new.id, search_fold(new.title));
          END;
          CREATE TRIGGER chat_part_search_update AFTER UPDATE OF title ON chat BEGIN
              INSERT INTO chat_part_search (chat_part_search, rowid, title)
                  VALUES ('delete', old.id, search_fold(old.title));
              INSERT INTO chat_part_search (rowid, title) VALUES (new.id, search_fold(new.title));
          END;
          CREATE TRIGGER chat_part_search_delete AFTER DELETE ON chat BEGIN
              INSERT INTO chat_part_search (chat_part_search, rowid, title)
                  VALUES ('delete', old.id, search_fold(old.title));
          END;

          DROP TABLE message_search;
          DROP TRIGGER message_search_insert;
          DROP TRIGGER message_search_update;
          DROP TRIGGER message_search_delete;
          CREATE VIEW message_indexed AS
              SELECT moment, search_words(text) AS text, search_words(thinking) AS thinking,
                     search_signs(text, thinking) AS signs
              FROM message
              WHERE state <> 'writing' AND moment >= (SELECT indexed_from FROM search_state);
          CREATE VIRTUAL TABLE message_search USING fts5 (
              text, thinking, signs, content = 'message_indexed', content_rowid = 'moment',
              tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\]^_`{|}~'", prefix = '1 2 3'
          );
          CREATE TRIGGER message_search_insert AFTER UPDATE OF moment ON message
          WHEN new.state <> 'writing' AND new.moment >= (SELECT indexed_from FROM search_state) BEGIN
              INSERT INTO message_search (rowid, text, thinking, signs) VALUES (
                  new.moment, search_words(new.text), search_words(new.thinking), search_signs(new.text, new.thinking)
              );
          END;
          CREATE TRIGGER message_search_update AFTER UPDATE OF text, thinking, state ON message
          WHEN (old.state <> 'writing' OR new.state <> 'writing')
              AND new.moment >= (SELECT indexed_from FROM search_state) BEGIN
              INSERT INTO message_search (message_search, rowid, text, thinking, signs)
                  SELECT 'delete', old.moment, search_words(old.text), search_words(old.thinking),
                         search_signs(old.text, old.thinking)
                  WHERE old.state <> 'writing';
              INSERT INTO message_search (rowid, text, thinking, signs)
                  SELECT new.moment, search_words(new.text), search_words(new.thinking),
                         search_signs(new.text, new.thinking)
                  WHERE new.state <> 'writing';
          END;
          CREATE TRIGGER message_search_delete AFTER DELETE ON message
          WHEN old.state <> 'writing' AND old.moment >= (SELECT indexed_from FROM search_state) BEGIN
              INSERT INTO message_search (message_search, rowid, text, thinking, signs) VALUES (
                  'delete', old.moment, search_words(old.text), search_words(old.thinking),
                  search_signs(old.text, old.thinking)
              );
          END;

          DROP TABLE message_part_search;
          DROP TRIGGER message_part_search_insert;
          DROP TRIGGER message_part_search_update;
          DROP TRIGGER message_part_search_delete;
          CREATE VIEW message_folded AS
              SELECT moment, search_fold(text) AS text, search_fold(thinking) AS thinking
              FROM message
              WHERE state <> 'writing' AND moment >= (SELECT indexed_from FROM search_state);
          CREATE VIRTUAL TABLE message_part_search USING fts5 (
              text, thinking, content = 'message_folded', content_rowid = 'moment', tokenize = 'trigram case_sensitive 1'
          );
          CREATE TRIGGER message_part_search_insert AFTER UPDATE OF moment ON message
          WHEN new.state <> 'writing' AND new.moment >= (SELECT indexed_from FROM search_state) BEGIN
              INSERT INTO message_part_search (rowid, text, thinking)
                  VALUES (new.moment, search_fold(new.text), search_fold(new.thinking));
          END;
          CREATE TRIGGER message_part_search_update AFTER UPDATE OF text, thinking, state ON message
          WHEN (old.state <> 'writing' OR new.state <> 'writing')
              AND new.moment >= (SELECT indexed_from FROM search_state) BEGIN
              INSERT INTO message_part_search (message_part_search, rowid, text, thinking)
                  SELECT 'delete', old.moment, search_fold(old.text), search_fold(old.thinking)
                  WHERE old.state <> 'writing';
              INSERT INTO message_part_search (rowid, text, thinking)
                  SELECT new.moment, search_fold(new.text), search_fold(new.thinking) WHERE new.state <> 'writing';
          END;
          CREATE TRIGGER message_part_search_delete AFTER DELETE ON message
          WHEN old.state <> 'writing' AND old.moment >= (SELECT indexed_from FROM search_state) BEGIN
              INSERT INTO message_part_search (message_part_search, rowid, text, thinking)
                  VALUES ('delete', old.moment, search_fold(old.text), search_fold(old.thinking));
          END;"##,
};

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
        "SELECT moment, octet_length(text) + ifnull(octet_length(thinking), 0)
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
    use crate::{ChatId, MessageId, MessageState, NewMessage, Progress, Role, Store};

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
            text,
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
            text: "Straße, C++ 🦅 水问题".into(),
            thinking: Some("ｆｕｌｌ".into()),
            ..Progress::default()
        };
        let new = add(store, chat, MessageState::Writing, "")?;
        for message in [new, old[0], old[1]] {
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
