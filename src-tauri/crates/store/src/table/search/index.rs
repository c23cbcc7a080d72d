//! The two indices, and what keeps them in step with the tables.

use rusqlite::Connection;

use crate::migrate::Step;

pub(crate) const STEPS: &[Step] = &[WORDS, PARTS, LETTERS, MOMENTS];

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

// The beginnings of one letter are indexed, too: to gather all words that begin with a letter takes longer the more words
// there are. FTS5 has no way to add that to an index.
const LETTERS: Step = Step {
    version: 4,
    sql: "DROP TABLE chat_search;
          CREATE VIRTUAL TABLE chat_search USING fts5 (
              title, content = 'chat', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3'
          );
          INSERT INTO chat_search (rowid, title) SELECT id, title FROM chat;
",
};

// A message is named by its moment, so that the latest are found first without sorting. It has one when it was inserted.
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
