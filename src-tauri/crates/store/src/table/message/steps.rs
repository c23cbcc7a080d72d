//! Steps of the schema of messages and their parts.

use crate::migrate::Step;

// No cascade along `parent`: SQLite would recurse once per message, and only up to 1,000 times. Messages are deleted
// with their chat, and the key is checked then.
pub(crate) const STEPS: &[Step] = &[CREATE, CONTEXT, LENGTH, MOMENT, GUIDE, PARTS, RESULTS];

const CREATE: Step = Step {
    version: 1,
    sql: "CREATE TABLE message (
              id               INTEGER PRIMARY KEY AUTOINCREMENT,
              chat             INTEGER NOT NULL REFERENCES chat (id) ON DELETE CASCADE,
              parent           INTEGER REFERENCES message (id) DEFERRABLE INITIALLY DEFERRED,
              shown            INTEGER REFERENCES message (id) DEFERRABLE INITIALLY DEFERRED,
              role             TEXT    NOT NULL CHECK (role IN ('user', 'assistant')),
              state            TEXT    NOT NULL CHECK (state IN
                                   ('writing', 'done', 'stopped', 'interrupted', 'limit', 'failed')),
              text             TEXT    NOT NULL,
              thinks           INTEGER NOT NULL,
              thinking         TEXT,
              thinking_ms      INTEGER,
              tokens           BLOB    NOT NULL DEFAULT x'',
              model            TEXT,
              stats            TEXT,
              error_code       TEXT,
              error_message    TEXT,
              kept_from        INTEGER,
              thinking_from    INTEGER,
              omitted_messages INTEGER NOT NULL DEFAULT 0,
              omitted_thinking INTEGER NOT NULL DEFAULT 0,
              created_at       INTEGER NOT NULL
          ) STRICT;
          CREATE INDEX message_of_chat ON message (chat, parent);
          CREATE INDEX message_parent ON message (parent);
          CREATE INDEX message_shown ON message (shown);
          CREATE INDEX chat_leaf ON chat (leaf);
          CREATE INDEX message_writing ON message (id) WHERE state = 'writing';",
};

// `prompt_leaf` refers to another chat, which may be purged: an id is never given twice.
const CONTEXT: Step = Step {
    version: 4,
    sql: "ALTER TABLE message ADD COLUMN prompt_leaf INTEGER;
          ALTER TABLE message ADD COLUMN read_again INTEGER NOT NULL DEFAULT 0;",
};

const LENGTH: Step = Step {
    version: 4,
    sql: "ALTER TABLE message ADD COLUMN length_wish TEXT CHECK (length_wish IN ('shorter', 'longer'));",
};

const GUIDE: Step = Step {
    version: 6,
    sql: "ALTER TABLE message ADD COLUMN guide TEXT;",
};

/// Position of a message in time among all others, whatever the order of writing: imports and copies bring old ones.
/// The indices of the search name messages by it, because they give the last first without sorting.
///
/// It is a number for 16 seconds, or the next free one: close numbers keep the indices small. A message without a free
/// number nearby comes before all others.
const MOMENT: Step = Step {
    version: 4,
    sql: "ALTER TABLE message ADD COLUMN moment INTEGER;
          UPDATE message SET moment = placed.moment FROM (
              SELECT id, place + max((created_at >> 4) - place) OVER (ORDER BY place) AS moment
              FROM (SELECT id, created_at, row_number() OVER (ORDER BY created_at, id) AS place FROM message)
          ) AS placed WHERE placed.id = message.id;
          CREATE UNIQUE INDEX message_moment ON message (moment);
          CREATE TRIGGER message_gets_moment AFTER INSERT ON message BEGIN
              UPDATE message SET moment = (
                  SELECT coalesce(min(next), (SELECT min(moment) - 1 FROM message)) FROM (
                      SELECT time + width AS beyond, coalesce(
                          (SELECT max(moment) + 1 FROM message WHERE moment >= time AND moment < time + width), time
                      ) AS next
                      FROM (SELECT new.created_at >> 4 AS time),
                           (SELECT column1 AS width FROM (VALUES (1), (16), (256), (4096), (65536), (1048576)))
                  ) WHERE next < beyond
              ) WHERE id = new.id;
          END;",
};

/// Moves the content into the table of parts. The table is rebuilt, because SQLite cannot change the conditions of a
/// column: any role is stored. The indices of the search hold the same words as before; their views and triggers are
/// created again in `search/steps.rs`.
///
/// A message is added in progress, and its parts do not change once it has ended: it is indexed then.
const PARTS: Step = Step {
    version: 7,
    sql: "DROP VIEW message_indexed;
          DROP VIEW message_folded;
          CREATE TABLE part (
              id      INTEGER PRIMARY KEY,
              message INTEGER NOT NULL REFERENCES message (id) ON DELETE CASCADE,
              place   INTEGER NOT NULL,
              kind    TEXT    NOT NULL,
              text    TEXT    NOT NULL,
              call    TEXT,
              name    TEXT
          ) STRICT;
          INSERT INTO part (message, place, kind, text)
              SELECT id, 0, 'thinking', thinking FROM message WHERE thinking IS NOT NULL
              UNION ALL
              SELECT id, 1, 'text', text FROM message WHERE text <> ''
              ORDER BY 1, 2;
          CREATE UNIQUE INDEX part_of_message ON part (message, place);

          CREATE TABLE message_with_parts (
              id               INTEGER PRIMARY KEY AUTOINCREMENT,
              chat             INTEGER NOT NULL REFERENCES chat (id) ON DELETE CASCADE,
              parent           INTEGER REFERENCES message (id) DEFERRABLE INITIALLY DEFERRED,
              shown            INTEGER REFERENCES message (id) DEFERRABLE INITIALLY DEFERRED,
              role             TEXT    NOT NULL,
              state            TEXT    NOT NULL CHECK (state IN
                                   ('writing', 'done', 'stopped', 'interrupted', 'limit', 'failed')),
              thinks           INTEGER NOT NULL,
              thinking_ms      INTEGER,
              tokens           BLOB    NOT NULL DEFAULT x'',
              model            TEXT,
              stats            TEXT,
              error_code       TEXT,
              error_message    TEXT,
              kept_from        INTEGER,
              thinking_from    INTEGER,
              omitted_messages INTEGER NOT NULL DEFAULT 0,
              omitted_thinking INTEGER NOT NULL DEFAULT 0,
              created_at       INTEGER NOT NULL,
              prompt_leaf      INTEGER,
              read_again       INTEGER NOT NULL DEFAULT 0,
              length_wish      TEXT CHECK (length_wish IN ('shorter', 'longer')),
              moment           INTEGER,
              guide            TEXT
          ) STRICT;
          INSERT INTO message_with_parts
              SELECT id, chat, parent, shown, role, state, thinks, thinking_ms, tokens, model, stats, error_code,
                     error_message, kept_from, thinking_from, omitted_messages, omitted_thinking, created_at, prompt_leaf,
                     read_again, length_wish, moment, guide
              FROM message;
          -- No id is given twice.
          DELETE FROM sqlite_sequence WHERE name = 'message_with_parts';
          UPDATE sqlite_sequence SET name = 'message_with_parts' WHERE name = 'message';
          DROP TABLE message;
          ALTER TABLE message_with_parts RENAME TO message;
          CREATE INDEX message_of_chat ON message (chat, parent);
          CREATE INDEX message_parent ON message (parent);
          CREATE INDEX message_shown ON message (shown);
          CREATE INDEX message_writing ON message (id) WHERE state = 'writing';
          CREATE UNIQUE INDEX message_moment ON message (moment);
          CREATE TRIGGER message_gets_moment AFTER INSERT ON message BEGIN
              UPDATE message SET moment = (
                  SELECT coalesce(min(next), (SELECT min(moment) - 1 FROM message)) FROM (
                      SELECT time + width AS beyond, coalesce(
                          (SELECT max(moment) + 1 FROM message WHERE moment >= time AND moment < time + width), time
                      ) AS next
                      FROM (SELECT new.created_at >> 4 AS time),
                           (SELECT column1 AS width FROM (VALUES (1), (16), (256), (4096), (65536), (1048576)))
                  ) WHERE next < beyond
              ) WHERE id = new.id;
          END;
          CREATE TRIGGER message_begins BEFORE INSERT ON message WHEN new.state <> 'writing' BEGIN
              SELECT raise(ABORT, 'a message is added in progress');
          END;
          CREATE TRIGGER part_is_added BEFORE INSERT ON part
          WHEN (SELECT state FROM message WHERE id = new.message) <> 'writing' BEGIN
              SELECT raise(ABORT, 'the message has ended');
          END;
          CREATE TRIGGER part_changes BEFORE UPDATE ON part
          WHEN (SELECT state FROM message WHERE id = old.message) <> 'writing' BEGIN
              SELECT raise(ABORT, 'the message has ended');
          END;
          CREATE TRIGGER part_is_removed BEFORE DELETE ON part
          WHEN (SELECT state FROM message WHERE id = old.message) <> 'writing' BEGIN
              SELECT raise(ABORT, 'the message has ended');
          END;",
};

const RESULTS: Step = Step {
    version: 8,
    sql: "ALTER TABLE part ADD COLUMN outcome TEXT;
          ALTER TABLE part ADD COLUMN server TEXT;",
};
