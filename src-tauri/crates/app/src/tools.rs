//! The tools of the app, for the window and the command line.

use std::io;
use std::sync::Arc;

use ::tools::{ChatHit, ChatSearch, Registry};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use store::{ChatHits, PartKind, SearchAnswer, SearchHit};

use crate::worker::program_of;

/// Makes the registry of the built-in tools, which search chats by `search`.
///
/// # Errors
/// Fails if the program of the app is not known, which children run.
pub fn built_in(search: Arc<dyn ChatSearch>) -> io::Result<Registry> {
    let program = program_of("tool-process")?;
    Ok(Registry::new(::tools::built_in(&program, search)))
}

/// Returns the hits that a model reads: at most `limit`, the best first. Calls of tools and their results are left out,
/// since an earlier search would be found again, and so is the chat `except`.
#[must_use]
pub fn chat_hits(answer: SearchAnswer, limit: usize, except: Option<i64>) -> Vec<ChatHit> {
    let zone = TimeZone::system();
    let others = answer
        .chats
        .iter()
        .filter(|chat| Some(chat.chat.0) != except);
    let hits = others.flat_map(|chat| hits_of(chat, &zone));
    hits.take(limit).collect()
}

fn hits_of(chat: &ChatHits, zone: &TimeZone) -> Vec<ChatHit> {
    let hit = |at: i64, hit: Option<&SearchHit>| ChatHit {
        title: unmarked(&chat.title),
        date: day(at, zone),
        who: hit.map(|hit| hit.role),
        excerpt: hit.map_or(String::new(), |hit| unmarked(&hit.snippet)),
    };
    let written = |hit: &&SearchHit| matches!(hit.kind, PartKind::Text | PartKind::Thinking);
    let found = chat.hits.iter().filter(written);
    let found: Vec<ChatHit> = found.map(|found| hit(found.at, Some(found))).collect();
    match found.is_empty() && chat.in_title {
        true => vec![hit(chat.at, None)],
        false => found,
    }
}

/// Removes the marks around hits.
fn unmarked(text: &str) -> String {
    text.replace(['\u{e000}', '\u{e001}'], "")
}

fn day(at: i64, zone: &TimeZone) -> String {
    let at = Timestamp::from_second(at);
    at.map_or(String::new(), |at| {
        at.to_zoned_datetime(zone.clone()).date().to_string()
    })
}

#[cfg(test)]
mod tests {
    use store::{ChatId, MessageId, Role};

    use super::*;

    fn chat(title: &str, in_title: bool, kinds: &[PartKind]) -> ChatHits {
        let hits = kinds.iter().map(|&kind| SearchHit {
            message: MessageId(1),
            role: Role::User,
            kind,
            snippet: "a \u{e000}loaf\u{e001}".to_owned(),
            at: 86_400 * 30,
        });
        ChatHits {
            chat: ChatId(1),
            title: title.to_owned(),
            in_title,
            at: 86_400 * 60,
            hits: hits.collect(),
            count: 1,
        }
    }

    #[test]
    fn hits_are_unmarked_and_results_of_tools_are_left_out() {
        let answer = SearchAnswer {
            chats: vec![
                chat(
                    "\u{e000}Bread\u{e001}",
                    false,
                    &[PartKind::ToolResult, PartKind::Text],
                ),
                chat("Title", true, &[]),
                chat("Tool", false, &[PartKind::ToolCall]),
                chat("Last", false, &[PartKind::Thinking]),
            ],
            ..SearchAnswer::default()
        };
        let hits = chat_hits(answer.clone(), 8, None);
        let found: Vec<(&str, &str, bool)> = hits
            .iter()
            .map(|hit| (&*hit.title, &*hit.excerpt, hit.who.is_some()))
            .collect();
        let expected = [
            ("Bread", "a loaf", true),
            ("Title", "", false),
            ("Last", "a loaf", true),
        ];
        assert_eq!(found, expected);
        assert!(hits[0].date.starts_with("1970-01-3"), "{:?}", hits[0]);
        assert_eq!(chat_hits(answer, 1, None).len(), 1);
    }
}
