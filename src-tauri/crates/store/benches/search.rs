//! How long searching and journaling take in a store of 100,000 messages: `cargo bench -p store`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "prints a measurement"
)]

use std::time::{Duration, Instant};

use store::{MessageId, MessageState, NewMessage, Progress, Role, Store, StoreError};

const CHATS: usize = 1_000;
const MESSAGES: usize = 100;
const WORDS: usize = 60;
/// Words of the language. The n-th most common one has a share of about 1/n.
const VOCABULARY: f64 = 50_000.0;
const REPEATS: usize = 21;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let begun = Instant::now();
    let last = fill(&store);
    println!(
        "filled {} messages in {:.1?}",
        CHATS * MESSAGES,
        begun.elapsed()
    );
    println!(
        "file: {} MB",
        std::fs::metadata(&path).unwrap().len() / 1_000_000
    );

    let common = [word(0), word(1), word(2)];
    let queries = [
        common[0][..1].to_owned(),
        common[0][..2].to_owned(),
        common[0][..4].to_owned(),
        common[0].clone(),
        common.join(" "),
        format!("{} {} {}", common[0], word(5_000), &common[1][..3]),
        word(5_000),
        word(49_999),
        "nowhere".to_owned(),
        // Within words.
        common[0][1..4].to_owned(),
        word(5_000)[1..].to_owned(),
        format!("{} {}", &word(49_999)[1..], &word(5_000)[1..]),
        format!("\"{} {}\"", common[0], common[1]),
    ];
    for query in queries {
        let mut hits = 0;
        let time = median(|| hits = store.search().find(&query, 50).unwrap().len());
        println!("search {query:?}: {time:.2?}, {hits} hits");
    }
    let mut progress = Progress {
        text: "word ".repeat(10_000),
        tokens: vec![100_000; 10_000],
        ..Progress::default()
    };
    let time = median(|| {
        progress.text.push_str("word ");
        progress.tokens.push(100_000);
        store.messages().journal(last, &progress).unwrap();
    });
    println!("journal an answer of 10,000 tokens: {time:.2?}");
    println!(
        "list {CHATS} chats: {:.2?}",
        median(|| assert_eq!(store.chats().list().unwrap().len(), CHATS))
    );
    let copied = Instant::now();
    store::daily_copy(&path, "2026-03-05").unwrap();
    println!("the day's copy: {:.1?}", copied.elapsed());
    drop(store);
    let opened = Instant::now();
    drop(Store::open(&path).unwrap());
    println!("open: {:.2?}", opened.elapsed());
}

/// Chats whose words are as unevenly common as those of a language. Returns an answer that is being
/// written.
fn fill(store: &Store) -> MessageId {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let mut sentence = || {
        let words =
            (0..WORDS).map(|_| word(VOCABULARY.powf(next() as f64 / 2_f64.powi(31)) as u64 - 1));
        words.collect::<Vec<_>>().join(" ")
    };
    let made = store.transaction(|store| {
        let mut parent = None;
        for n in 0..CHATS {
            let chat = store
                .chats()
                .create(&format!("Chat {n}"), "2026-03-05", 1)?;
            parent = None;
            for m in 0..MESSAGES {
                let role = if m % 2 == 0 {
                    Role::User
                } else {
                    Role::Assistant
                };
                let last = n + 1 == CHATS && m + 1 == MESSAGES;
                let state = if last {
                    MessageState::Writing
                } else {
                    MessageState::Done
                };
                let text = &sentence();
                let message = NewMessage {
                    chat,
                    parent,
                    role,
                    state,
                    text,
                    thinks: false,
                    created_at: 1,
                };
                parent = Some(store.messages().add(&message)?);
            }
        }
        Ok::<_, StoreError>(parent)
    });
    made.unwrap().unwrap()
}

/// The word of a rank: two to five syllables, the same each time.
fn word(rank: u64) -> String {
    let mut digits = (rank + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let mut word = String::new();
    for _ in 0..2 + digits % 4 {
        word.push(char::from(b"bcdfghjklmnprstvwz"[(digits % 18) as usize]));
        word.push(char::from(b"aeiou"[(digits / 18 % 5) as usize]));
        digits = digits / 90 + rank;
    }
    word
}

fn median(mut act: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..REPEATS {
        let begun = Instant::now();
        act();
        times.push(begun.elapsed());
    }
    times.sort();
    times[REPEATS / 2]
}
