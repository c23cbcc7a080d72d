//! Steps of the schema of the search indices, and the triggers that keep them in step with the tables.

use crate::migrate::Step;

pub(crate) const STEPS: &[Step] = &[WORDS, TRIGRAMS, LETTERS, MOMENTS, FOLDED, PARTS];

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
const TRIGRAMS: Step = Step {
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

// A message enters the indices when it ends, and leaves them when it is continued or deleted: its parts do not change in
// between. The column of the thinking holds calls of tools and their results, too: what comes before an answer.
const PARTS: Step = Step {
    version: 7,
    sql: "CREATE VIEW message_content AS
              SELECT moment,
                     (SELECT group_concat(text, char(10) ORDER BY place) FROM part
                      WHERE part.message = message.id AND kind = 'text') AS text,
                     (SELECT group_concat(concat_ws(' ', name, text), char(10) ORDER BY place) FROM part
                      WHERE part.message = message.id AND kind <> 'text') AS thinking
              FROM message
              WHERE state <> 'writing' AND moment >= (SELECT indexed_from FROM search_state);
          CREATE VIEW message_indexed AS
              SELECT moment, search_words(coalesce(text, '')) AS text, search_words(thinking) AS thinking,
                     search_signs(coalesce(text, ''), thinking) AS signs
              FROM message_content;
          CREATE VIEW message_folded AS
              SELECT moment, search_fold(coalesce(text, '')) AS text, search_fold(thinking) AS thinking
              FROM message_content;
          CREATE TRIGGER message_ends AFTER UPDATE OF state ON message
          WHEN old.state = 'writing' AND new.state <> 'writing' BEGIN
              INSERT INTO message_search (rowid, text, thinking, signs)
                  SELECT * FROM message_indexed WHERE moment = new.moment;
              INSERT INTO message_part_search (rowid, text, thinking)
                  SELECT * FROM message_folded WHERE moment = new.moment;
          END;
          CREATE TRIGGER message_goes_on BEFORE UPDATE OF state ON message
          WHEN old.state <> 'writing' AND new.state = 'writing' BEGIN
              INSERT INTO message_search (message_search, rowid, text, thinking, signs)
                  SELECT 'delete', * FROM message_indexed WHERE moment = old.moment;
              INSERT INTO message_part_search (message_part_search, rowid, text, thinking)
                  SELECT 'delete', * FROM message_folded WHERE moment = old.moment;
          END;
          CREATE TRIGGER message_goes BEFORE DELETE ON message WHEN old.state <> 'writing' BEGIN
              INSERT INTO message_search (message_search, rowid, text, thinking, signs)
                  SELECT 'delete', * FROM message_indexed WHERE moment = old.moment;
              INSERT INTO message_part_search (message_part_search, rowid, text, thinking)
                  SELECT 'delete', * FROM message_folded WHERE moment = old.moment;
          END;",
};
