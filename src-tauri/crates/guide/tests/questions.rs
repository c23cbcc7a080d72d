//! The matcher against questions that are not among the wordings, and against requests that are not about the app.
//!
//! By the development sets the constants of the matcher were chosen, and wordings were added. The held-out sets were not
//! looked at before. `cargo test -p guide --test questions -- --nocapture` prints the figures and each wrong answer.

#![expect(clippy::print_stdout, reason = "the figures are for a person")]

use std::collections::BTreeSet;
use std::path::Path;

use guide::{Guide, Match};

const DEVELOPMENT: &str = include_str!("development.txt");
const HELD_OUT: &str = include_str!("held_out.txt");
const GENERAL: &str = include_str!("general.txt");
const HELD_OUT_GENERAL: &str = include_str!("held_out_general.txt");

/// Questions about the app, each with the ids of the topics that answer it.
fn questions(text: &'static str) -> Vec<(Vec<&'static str>, &'static str)> {
    let mut ids = Vec::new();
    let mut questions = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("## ") {
            Some(heading) => ids = heading.split(' ').collect(),
            None => questions.push((ids.clone(), line)),
        }
    }
    questions
}

/// Shares of a set, in percent.
#[derive(Debug)]
struct Shares {
    right: f64,
    sure_and_right: f64,
    sure_and_wrong: f64,
}

/// Returns the shares of a set, and prints the wrong answers if they may be seen.
fn shares(set: &'static str, is_seen: bool) -> Shares {
    let questions = questions(set);
    let (mut right, mut sure_and_right, mut sure_and_wrong) = (0, 0, 0);
    for (ids, question) in &questions {
        let (topic, is_sure) = match Guide::shared().answer(question) {
            Match::Sure(topic) => (Some(topic), true),
            Match::Unsure(topic) => (Some(topic), false),
            Match::None => (None, false),
        };
        let is_right = topic.is_some_and(|topic| ids.contains(&topic.id.as_str()));
        right += u32::from(is_right);
        sure_and_right += u32::from(is_right && is_sure);
        sure_and_wrong += u32::from(!is_right && is_sure);
        if !is_right && is_seen {
            let topic = topic.map_or("none", |topic| topic.id.as_str());
            let sure = if is_sure { "surely " } else { "" };
            println!("{question:?}: {sure}{topic}, not {}", ids.join(" or "));
        }
    }
    let share = |count| 100.0 * f64::from(count) / questions.len() as f64;
    let shares = Shares {
        right: share(right),
        sure_and_right: share(sure_and_right),
        sure_and_wrong: share(sure_and_wrong),
    };
    println!("{} questions: {shares:.1?}", questions.len());
    shares
}

/// Returns the shares of general requests that are taken for questions about the app, surely and unsurely.
fn taken(requests: &str, is_seen: bool) -> (f64, f64) {
    let (mut sure, mut unsure) = (0, 0);
    for request in requests.lines() {
        match Guide::shared().answer(request) {
            Match::Sure(topic) => {
                sure += 1;
                if is_seen {
                    println!("{request:?}: surely {}", topic.id);
                }
            }
            Match::Unsure(_) => unsure += 1,
            Match::None => {}
        }
    }
    let all = requests.lines().count();
    let share = |count| 100.0 * f64::from(count) / all as f64;
    let shares = (share(sure), share(unsure));
    println!(
        "{all} general requests: {:.1} % surely taken, {:.1} % unsurely",
        shares.0, shares.1
    );
    shares
}

/// The figures that were reached, with a margin of one percent.
#[test]
fn questions_find_their_topics() {
    let seen = shares(DEVELOPMENT, true);
    assert!(seen.right >= 94.0 && seen.sure_and_wrong <= 2.0, "{seen:?}");
    let held_out = shares(HELD_OUT, false);
    assert!(held_out.right >= 92.0, "{held_out:?}");
    assert!(held_out.sure_and_right >= 75.0, "{held_out:?}");
    assert!(held_out.sure_and_wrong <= 2.0, "{held_out:?}");
}

#[test]
fn general_requests_are_left_to_the_model() {
    for (requests, is_seen) in [(GENERAL, true), (HELD_OUT_GENERAL, false)] {
        let (sure, unsure) = taken(requests, is_seen);
        assert!(sure <= 1.0, "{sure}");
        assert!(unsure <= 12.0, "{unsure}");
    }
}

#[test]
fn the_sets_are_apart_from_the_wordings() {
    let plain = |text: &str| -> String {
        let kept = text
            .chars()
            .filter(|character| !matches!(character, '\'' | '’'));
        let kept = kept.map(|it| if it.is_alphanumeric() { it } else { ' ' });
        let text: String = kept.collect::<String>().to_lowercase();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/wordings");
    let mut wordings = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the wordings") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("UTF-8");
        wordings.extend(text.lines().map(plain));
    }
    let questions = [DEVELOPMENT, HELD_OUT].into_iter().flat_map(questions);
    let questions = questions.map(|(_, question)| question);
    for text in questions
        .chain(GENERAL.lines())
        .chain(HELD_OUT_GENERAL.lines())
    {
        assert!(!wordings.contains(&plain(text)), "{text:?} is a wording");
    }
}

#[test]
fn unusual_input_has_no_answer_and_takes_no_time() {
    let long = "how do I delete a chat ".repeat(50_000);
    let signs = "\u{0}\u{1b}[31m\u{202e}\u{feff}\n\t";
    let foreign = [
        "今日の天気はどうですか",
        "Как дела?",
        "مرحبا كيف حالك",
        "Wie wird das Wetter?",
    ];
    let start = std::time::Instant::now();
    for text in [&*long, "", " ", "?", "\u{300}", "🙂🙂🙂", signs]
        .into_iter()
        .chain(foreign)
    {
        assert_eq!(
            Guide::shared().answer(text),
            Match::None,
            "{}",
            text.escape_debug()
        );
        let _ = Guide::shared().search(text);
    }
    assert!(start.elapsed().as_secs() < 2);
    let escaped = "\u{1b}how do I delete a chat\u{0}";
    assert!(
        matches!(Guide::shared().answer(escaped), Match::Sure(topic) if topic.id == "delete-a-chat")
    );
}

#[test]
fn a_search_shows_what_begins_as_was_typed() {
    let first = |typed| {
        Guide::shared()
            .search(typed)
            .first()
            .map(|topic| topic.id.as_str())
    };
    assert_eq!(first("zo"), Some("zoom"));
    assert_eq!(first("del chat"), Some("delete-a-chat"));
    assert_eq!(first("dark mode"), Some("theme"));
    assert_eq!(first(""), None);
}
