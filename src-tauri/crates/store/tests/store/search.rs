use std::time::{Duration, Instant};

use store::{ChatId, MessageState, PartKind, Parts, Progress, SearchHit, Store};

use crate::{LONG, answer, chat, found, say};

/// Returns the best hit.
fn best(store: &Store, query: &str) -> SearchHit {
    let mut chats = store.search().find(query, 1).unwrap().chats;
    chats.remove(0).hits.remove(0)
}

#[test]
fn words_are_found_without_regard_to_case_and_accents() {
    let store = Store::in_memory().unwrap();
    let (_, message) = chat(
        &store,
        "x",
        "Der Wintergoldhähnchen-Gesang; l’été à Besançon, naïve Ångström",
    );
    for query in [
        "wintergoldhahnchen",
        "GESANG",
        "ete",
        "été",
        "besancon",
        "ANGSTROM",
        "naive l'ete",
    ] {
        assert_eq!(found(&store, query), [Some(message)], "{query}");
    }
    assert!(found(&store, "summer").is_empty());
    assert!(
        found(&store, "gesang summer").is_empty(),
        "all words must be there"
    );
}

#[test]
fn every_word_may_be_unfinished_and_their_order_is_free() {
    let store = Store::in_memory().unwrap();
    let (_, message) = chat(&store, "x", "A goldcrest weighs six grams, in Python");
    for query in ["goldcrest wei", "wei gold", "gra pyth a", "six gold"] {
        assert_eq!(found(&store, query), [Some(message)], "{query}");
    }
    assert!(found(&store, "gold wren").is_empty());
}

#[test]
fn words_are_found_by_what_stands_within_them() {
    let store = Store::in_memory().unwrap();
    let (_, message) = chat(
        &store,
        "x",
        "Of the planets, Wintergoldhähnchen and FizzBuzz: 100 €",
    );
    for query in [
        "lanet",
        "LANETS",
        "goldhahn",
        "goldhähn",
        "izzbuz",
        "buzz lanet",
        "lanet of",
        "of lanet win",
    ] {
        assert_eq!(found(&store, query), [Some(message)], "{query}");
    }
    for query in ["laneta", "lanet wren", "lanet xy", "et"] {
        assert!(found(&store, query).is_empty(), "{query}");
    }
    let (_, titled) = chat(&store, "Exoplanets", "?");
    assert_eq!(found(&store, "lanet"), [None, Some(message)]);
    let _ = titled;
}

#[test]
fn beginnings_come_before_what_is_within_words() {
    let store = Store::in_memory().unwrap();
    let (id, first) = chat(&store, "x", "a planet");
    let second = say(&store, id, Some(first), "an exoplanet");
    let third = say(&store, id, Some(second), "planets");
    assert_eq!(
        found(&store, "planet"),
        [Some(third), Some(first), Some(second)]
    );
    let rows = store.search().find_in_chat("planet", id, 2).unwrap();
    assert_eq!(rows.len(), 2, "no more than were asked for");
}

#[test]
fn quotes_mean_words_that_stand_together() {
    let store = Store::in_memory().unwrap();
    let (id, first) = chat(&store, "x", "the borrow checker refuses");
    let second = say(&store, id, Some(first), "check what you borrow");
    assert_eq!(found(&store, "borrow check"), [Some(second), Some(first)]);
    assert_eq!(found(&store, "\"borrow checker\""), [Some(first)]);
    assert_eq!(
        found(&store, "\"borrow check"),
        [Some(first)],
        "while it is typed"
    );
    assert!(found(&store, "\"borrow check\"").is_empty());
    assert!(
        found(&store, "\"orrow\"").is_empty(),
        "quoted words are whole"
    );
    assert_eq!(found(&store, "\"borrow checker\" efus"), [Some(first)]);
}

#[test]
fn a_snippet_shows_what_was_found_within_a_word() {
    let store = Store::in_memory().unwrap();
    let hay = "hay ".repeat(5000);
    chat(&store, "x", &format!("{hay}exoplanets {hay}"));
    let snippet = best(&store, "lanet").snippet;
    assert!(
        snippet.contains("hay exop\u{E000}lanet\u{E001}s hay"),
        "{snippet}"
    );
    assert!(snippet.starts_with('…') && snippet.ends_with('…') && snippet.len() < 250);
}

#[test]
fn nothing_in_a_query_is_syntax() {
    let store = Store::in_memory().unwrap();
    let (_, message) = chat(
        &store,
        "x",
        "NOT the C++ code: \"a AND b\" (title:x) 50% ^up -down *star*",
    );
    let queries = [
        "\"",
        "\"\"",
        "a\"b",
        "(",
        ")",
        "()",
        "*",
        "^",
        "-",
        "+",
        ":",
        "NEAR(",
        "NEAR(a b",
        "AND",
        "OR",
        "NOT",
        "a AND",
        "title:",
        "title:x",
        "text:foo",
        "{a b}:c",
        "'",
        "''; DROP TABLE chat",
        "%",
        "_",
        "\\",
        "\0",
        "a\0b",
        "?",
        "?1",
        ":name",
        "🐦",
        "\u{E000}",
        "a*b",
        "--",
        "/*",
        ";",
    ];
    for query in queries {
        assert!(store.search().find(query, 50).is_ok(), "{query:?}");
    }
    for query in [
        "c++",
        "not",
        "\"a and b\"",
        "50%",
        "^up",
        "-down",
        "*star*",
        "c++ \" code",
    ] {
        assert_eq!(found(&store, query), [Some(message)], "{query}");
    }
    assert!(found(&store, "").is_empty());
    assert!(found(&store, "  \n ").is_empty());
    assert!(found(&store, "near").is_empty());
}

#[test]
fn titles_come_first_and_then_the_latest_messages() {
    let store = Store::in_memory().unwrap();
    let (first, one) = chat(&store, "Birds", "a goldcrest");
    let two = say(&store, first, Some(one), "another goldcrest");
    let (titled, three) = chat(&store, "The goldcrest", "goldcrest!");
    assert_eq!(
        found(&store, "goldcrest"),
        [None, Some(three), Some(two), Some(one)]
    );
    let chats = store.search().find("goldcrest", 2).unwrap().chats;
    let listed: Vec<_> = chats
        .iter()
        .map(|chat| (chat.chat, chat.in_title, chat.count))
        .collect();
    assert_eq!(listed, [(titled, true, 1), (first, false, 2)]);
    assert_eq!(chats[0].title, "The \u{E000}goldcrest\u{E001}");
    assert_eq!(chats[0].hits[0].snippet, "\u{E000}goldcrest\u{E001}!");
    assert_eq!((chats[0].at, chats[0].hits[0].at), (100, 100));
    assert_eq!(chats[1].title, "Birds");
}

#[test]
fn the_chat_that_was_written_in_last_comes_first() {
    let store = Store::in_memory().unwrap();
    let chats = ["Goldcrest one", "Goldcrest two", "Goldcrest three"].map(|title| {
        let (id, _) = chat(&store, title, "?");
        id
    });
    store.chats().touch(chats[1], 200).unwrap();
    let titles = |query: &str, limit: u32| -> Vec<String> {
        let found = store.search().find(query, limit).unwrap().chats;
        let unmarked = |title: String| title.replace(['\u{E000}', '\u{E001}'], "");
        found.into_iter().map(|chat| unmarked(chat.title)).collect()
    };
    let all = ["Goldcrest two", "Goldcrest three", "Goldcrest one"];
    assert_eq!(titles("gold", 9), all);
    assert_eq!(titles("oldcrest", 9), all, "within words, too");
    assert_eq!(titles("g", 2), all[..2], "no more than were asked for");
}

#[test]
fn what_is_found_in_the_thinking_says_so() {
    let store = Store::in_memory().unwrap();
    let (id, asked) = chat(&store, "x", "regulus?");
    let message = answer(&store, id, asked);
    let progress = Progress {
        parts: Parts::of_answer(Some("The regulus is a goldcrest.".into()), "A bird."),
        ..Progress::default()
    };
    store.messages().journal(message, &progress).unwrap();
    store
        .messages()
        .end(message, MessageState::Done, None, None)
        .unwrap();
    let found = store.search().find("regulus", 9).unwrap().chats.remove(0);
    let places: Vec<_> = found
        .hits
        .iter()
        .map(|hit| (hit.message, hit.kind))
        .collect();
    assert_eq!(
        places,
        [(message, PartKind::Thinking), (asked, PartKind::Text)]
    );
    assert!(found.hits[0].snippet.contains("\u{E000}regulus\u{E001} is"));
}

#[test]
fn one_letter_finds_all_that_begins_with_it() {
    let store = Store::in_memory().unwrap();
    let (id, first) = chat(&store, "x", "Zebra und Öl");
    let second = say(&store, id, Some(first), "ζέβρα, 水の問題, 7 zoos");
    for (query, messages) in [
        ("z", vec![Some(second), Some(first)]),
        ("o", vec![Some(first)]),
        ("ζ", vec![Some(second)]),
        ("水", vec![Some(second)]),
        ("7", vec![Some(second)]),
        ("q", vec![]),
    ] {
        assert_eq!(found(&store, query), messages, "{query}");
    }
}

#[test]
fn a_snippet_shows_the_hit_in_a_long_text() {
    let store = Store::in_memory().unwrap();
    let text = format!("{} needle {}", "hay ".repeat(500), "hay ".repeat(500));
    chat(&store, "x", &text);
    let snippet = best(&store, "needle").snippet;
    assert!(snippet.contains("\u{E000}needle\u{E001}"));
    assert!(
        snippet.starts_with('…') && snippet.ends_with('…') && snippet.len() < 200,
        "{snippet}"
    );
}

#[test]
fn a_snippet_is_found_deep_in_a_text_and_in_the_thinking() {
    let store = Store::in_memory().unwrap();
    let hay = "hay ".repeat(5000);
    let (id, first) = chat(&store, "x", &format!("{hay}Nadelöhr {hay}"));
    let snippet = |query: &str| best(&store, query).snippet;
    let shown = snippet("nadelohr");
    assert!(shown.contains("\u{E000}Nadelöhr\u{E001}"), "{shown}");
    assert!(
        shown.starts_with('…') && shown.ends_with('…') && shown.len() < 200,
        "{shown}"
    );
    say(&store, id, Some(first), &format!("thread {hay} eye"));
    assert!(snippet("eye thread").starts_with("\u{E000}thread\u{E001} hay"));
    let message = answer(&store, id, first);
    let progress = Progress {
        parts: Parts::of_answer(Some("Regulus regulus".into()), hay),
        ..Progress::default()
    };
    store.messages().journal(message, &progress).unwrap();
    store
        .messages()
        .end(message, MessageState::Done, None, None)
        .unwrap();
    assert_eq!(
        snippet("regul"),
        "\u{E000}Regulus\u{E001} \u{E000}regulus\u{E001}"
    );
}

/// FTS5 takes minutes for these texts at once, and nothing interrupts it.
#[test]
fn texts_that_are_nothing_but_hits_do_not_hold_a_search_up() {
    let store = Store::in_memory().unwrap();
    let text = "ab ".repeat(300_000);
    for _ in 0..3 {
        chat(&store, "x", &text);
    }
    let begun = Instant::now();
    let found = store.search().find("ab ab a", 50).unwrap().chats;
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|chat| chat.hits[0].snippet.len() < 1000));
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn an_answer_is_found_once_it_has_ended_with_its_thinking() {
    let store = Store::in_memory().unwrap();
    let (id, asked) = chat(&store, "x", "?");
    let message = answer(&store, id, asked);
    let thinking = Some("regulus".to_owned());
    let write = |text: &str| {
        let progress = Progress {
            parts: Parts::of_answer(thinking.clone(), text),
            ..Progress::default()
        };
        store.messages().journal(message, &progress)
    };
    write("six").unwrap();
    write("six grams").unwrap();
    assert!(found(&store, "grams").is_empty());
    store
        .messages()
        .end(message, MessageState::Stopped, None, None)
        .unwrap();
    assert_eq!(found(&store, "grams"), [Some(message)]);
    assert_eq!(found(&store, "regulus"), [Some(message)]);

    store.messages().reopen(message).unwrap();
    assert!(found(&store, "grams").is_empty());
    write("six grams, or five").unwrap();
    store
        .messages()
        .end(message, MessageState::Done, None, None)
        .unwrap();
    assert_eq!(found(&store, "grams five"), [Some(message)]);
    assert!(write("changed").is_err(), "it has ended");
    assert!(found(&store, "changed").is_empty());
}

#[test]
fn renamed_deleted_and_purged_chats_are_found_as_they_are() {
    let store = Store::in_memory().unwrap();
    let (id, message): (ChatId, _) = chat(&store, "Goldcrests", "six grams");
    store
        .chats()
        .rename(id, "Firecrests, Sommergoldhähnchen")
        .unwrap();
    assert!(found(&store, "goldcrests").is_empty());
    assert_eq!(found(&store, "firecrests sommergoldhahnchen"), [None]);
    store.chats().delete(id, 1).unwrap();
    assert!(found(&store, "firecrests").is_empty());
    assert!(found(&store, "six").is_empty());
    store.chats().restore(id).unwrap();
    assert_eq!(found(&store, "six"), [Some(message)]);
    store.chats().delete(id, 1).unwrap();
    store.chats().purge(2, LONG).unwrap();
    assert!(found(&store, "six").is_empty());
}

#[test]
fn what_has_the_signs_comes_first() {
    let store = Store::in_memory().unwrap();
    let (_, sharp) = chat(&store, "x", "C# or c#");
    let (_, plus) = chat(&store, "x", "is C++ fast");
    let (_, cats) = chat(&store, "Cats", "cats");
    let others = |first| vec![Some(first), None, Some(cats)];
    assert_eq!(found(&store, "c++")[..3], others(plus));
    assert_eq!(found(&store, "C#")[..3], others(sharp));
    assert_eq!(found(&store, "++"), [Some(plus)]);
    let (_, asks) = chat(&store, "x", "是水？");
    let (_, states) = chat(&store, "x", "是水。");
    assert_eq!(found(&store, "水？"), [Some(asks), Some(states)]);
    assert_eq!(found(&store, "水。"), [Some(states), Some(asks)]);
    let (_, eagle) = chat(&store, "x", "fast 🦅");
    assert_eq!(found(&store, "fast"), [Some(eagle), Some(plus)]);
    assert_eq!(found(&store, "fast C++"), [Some(plus)]);
    assert_eq!(
        found(&store, "fast +"),
        [Some(plus), Some(eagle)],
        "signs beside words are a wish"
    );
}

#[test]
fn a_chat_is_listed_once_with_its_latest_hits_and_their_number() {
    let store = Store::in_memory().unwrap();
    let (long, first) = chat(&store, "long", "the moon");
    let mut last = first;
    store
        .transaction(|store| {
            for _ in 0..400 {
                last = say(store, long, Some(last), "the moon again");
            }
            for n in 0..299 {
                chat(store, &format!("other {n}"), "a moon");
            }
            Ok::<_, store::StoreError>(())
        })
        .unwrap();
    let answer = store.search().find("moon", 300).unwrap();
    assert_eq!((answer.chats.len(), answer.more), (300, false));
    let found = answer.chats.iter().find(|chat| chat.chat == long).unwrap();
    assert_eq!((found.count, found.hits.len() <= 3), (401, true));
    assert_eq!(found.hits[0].message, last);
    let hits = store.search().find_in_chat("moon", long, 1000).unwrap();
    assert_eq!((hits.len(), hits[400].message), (401, first));
    let few = store.search().find("moon", 100).unwrap();
    assert_eq!((few.chats.len(), few.more), (100, true));
}
