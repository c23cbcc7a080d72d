//! Durations of search, journaling and purging in a store of 100,000 messages: `cargo bench -p store`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "prints a measurement"
)]

#[path = "search/texts.rs"]
mod texts;

use std::time::{Duration, Instant};

use store::{
    ChatId, MessageId, MessageState, NewMessage, Parts, Progress, Role, Store, StoreError,
};
use texts::{Language, Random};

const CHATS: usize = 10_000;
const MESSAGES: usize = 10;
const REPEATS: usize = 21;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let begun = Instant::now();
    let last = fill(&store);
    let filled = begun.elapsed();
    println!(
        "filled {CHATS} chats with {} messages in {filled:.1?}, {:.2} ms a message",
        CHATS * MESSAGES,
        filled.as_secs_f64() * 1e3 / (CHATS * MESSAGES) as f64
    );
    println!(
        "file: {} MB",
        std::fs::metadata(&path).unwrap().len() / 1_000_000
    );

    println!("\n| query | | median | longest | chats | messages |\n|---|---|---|---|---|---|");
    for (what, query) in queries() {
        let (mut chats, mut messages) = (0, 0);
        let (median, longest) = times(|| {
            let found = store.search().find(&query, 300).unwrap().chats;
            chats = found.len();
            messages = found.iter().map(|chat| chat.count).sum();
        });
        let (median, longest) = (milliseconds(median), milliseconds(longest));
        println!("| {what} | `{query}` | {median} | {longest} | {chats} | {messages} |");
    }
    let chat = store.search().find("question", 1).unwrap().chats[0].chat;
    let (time, _) = times(|| {
        store.search().find_in_chat("question", chat, 500).unwrap();
    });
    println!("\nall of one chat: {}", milliseconds(time));

    let mut progress = Progress {
        parts: Parts::of_text("word ".repeat(10_000)),
        tokens: vec![100_000; 10_000],
        ..Progress::default()
    };
    let (time, _) = times(|| {
        progress.parts.push_text("word ");
        progress.tokens.push(100_000);
        store.messages().journal(last, &progress).unwrap();
    });
    println!("\njournal an answer of 10,000 tokens: {time:.2?}");
    let (time, _) = times(|| assert_eq!(store.chats().list().unwrap().len(), CHATS));
    println!("list {CHATS} chats: {time:.2?}");
    purge(&store);
    let copied = Instant::now();
    store::daily_copy(&path, "2026-03-05").unwrap();
    println!("the day's copy: {:.1?}", copied.elapsed());
    drop(store);
    let opened = Instant::now();
    drop(Store::open(&path).unwrap());
    println!("open: {:.2?}", opened.elapsed());
}

/// Returns the queries, by length: of a common word, of a rare one, and of other kinds.
fn queries() -> Vec<(String, String)> {
    let mut queries: Vec<(String, String)> = Vec::new();
    for (what, word) in [("common", "question"), ("rare", &texts::rare_word())] {
        for length in [1, 2, 3, 5, 8] {
            let typed: String = word.chars().take(length).collect();
            queries.push((format!("{what}, {length}"), typed));
        }
    }
    for letter in ["e", "z", "п", "水", "7"] {
        queries.push(("one letter".to_owned(), letter.to_owned()));
    }
    for (what, query) in [
        ("two common words", "question answer"),
        ("common and rare", &format!("the {}", texts::rare_word())),
        ("the second word begins", "question a"),
        ("three words, one begins", "water because w"),
        ("within common words", "estio"),
        ("within words, rarely", "quen"),
        ("within two words", "estio nswe"),
        ("in quotes", "\"question answer\""),
        ("no hit", "nowherever"),
        ("no hit of common parts", "ingthe"),
        ("no hit of two words", "question nowherever"),
        ("no hit of one letter", "ж"),
        ("Cyrillic", "вопрос"),
        ("Chinese, 1", "题"),
        ("Chinese, 2", "问题"),
        ("Chinese, 2 that are never together", "𠮷水"),
        ("Chinese, 3", "水问题"),
        ("Chinese, 5", "水问题答世"),
        ("signs", "C++"),
        ("a letter and a sign", "C#"),
        ("a sign", "+"),
        ("a common sign", "."),
        ("emoji", "🦅"),
        ("signs beside a common word", "question C++"),
        (
            "a sentence",
            "how do I answer the question about water in the world",
        ),
    ] {
        queries.push((what.to_owned(), query.to_owned()));
    }
    queries
}

/// Fills the store with chats in several languages. Returns an answer that is being written.
fn fill(store: &Store) -> MessageId {
    let mut random = Random::default();
    let mut last = None;
    // A hundred messages share a transaction, to save time; in the app each has its own.
    for some in (0..CHATS).collect::<Vec<_>>().chunks(100) {
        let made = store.transaction(|store| {
            for n in some {
                let language = Language::of(*n);
                let title = language.sentence(&mut random, 5);
                let chat = store.chats().create(&title, "2026-03-05", *n as i64)?;
                last = Some(fill_chat(
                    store,
                    chat,
                    language,
                    &mut random,
                    n + 1 == CHATS,
                )?);
            }
            Ok::<_, StoreError>(())
        });
        made.unwrap();
    }
    last.unwrap()
}

/// Questions of 20 words and answers of 120, every second one with 150 words of thinking.
fn fill_chat(
    store: &Store,
    chat: ChatId,
    language: Language,
    random: &mut Random,
    is_last: bool,
) -> Result<MessageId, StoreError> {
    let mut parent = None;
    for m in 0..MESSAGES {
        let asks = m % 2 == 0;
        let writes = is_last && m + 1 == MESSAGES;
        let mut text = language.sentence(random, if asks { 20 } else { 120 });
        if m == 0 && chat.0 % 20 == 0 {
            text += " C++ 🦅";
        }
        let message = store.messages().add(&NewMessage {
            chat,
            parent,
            role: if asks { Role::User } else { Role::Assistant },
            state: if asks {
                MessageState::Done
            } else {
                MessageState::Writing
            },
            parts: Parts::of_text(if asks { &text } else { "" }),
            thinks: false,
            // Ten minutes apart.
            created_at: (chat.0 * MESSAGES as i64 + m as i64) * 600,
        })?;
        if !asks && !writes {
            let progress = Progress {
                parts: Parts::of_answer((m % 4 == 1).then(|| language.sentence(random, 150)), text),
                ..Progress::default()
            };
            store.messages().journal(message, &progress)?;
            store
                .messages()
                .end(message, MessageState::Done, None, None)?;
        }
        parent = Some(message);
    }
    Ok(parent.unwrap())
}

/// Measures how much the index slows a purge of the oldest chats, for a second.
fn purge(store: &Store) {
    let chats = store.chats().list().unwrap();
    let oldest: Vec<ChatId> = chats.iter().rev().take(50).map(|chat| chat.id).collect();
    for chat in &oldest {
        store.chats().delete(*chat, 1).unwrap();
    }
    let begun = Instant::now();
    while store.chats().purge(2, Duration::from_millis(50)).unwrap() {}
    let each = begun.elapsed() / (oldest.len() * MESSAGES) as u32;
    println!("purge a message: {each:.2?}");
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Returns the median and the longest time.
fn times(mut act: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..REPEATS {
        let begun = Instant::now();
        act();
        times.push(begun.elapsed());
    }
    times.sort();
    (times[REPEATS / 2], times[REPEATS - 1])
}
