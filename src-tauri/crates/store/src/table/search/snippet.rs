//! The hits in a text, and the text around them.

use std::ops::Range;

use super::fold::{Folded, HIT_BEGIN, HIT_END};
use super::query::Term;
use super::words::{WordKind, tokens};

/// Bytes of a text that are searched first, and then: most hits are near the beginning.
const PARTS: [usize; 4] = [500, 4_000, 64_000, usize::MAX];
/// Bytes between the first and the last hit of a snippet.
const WINDOW: usize = 120;
/// Characters that a snippet shows before the first hit, and from there on.
const BEFORE: usize = 40;
const FROM: usize = 120;

/// Patterns to mark in a text.
#[derive(Debug, Clone)]
pub(super) enum Needle {
    /// Consecutive words; the last may be a prefix.
    Words { words: Vec<String>, is_closed: bool },
    /// Folded characters, matched literally.
    Literal(String),
}

impl Needle {
    pub(super) fn words(term: &Term) -> Needle {
        Needle::Words {
            words: term.words.clone(),
            is_closed: term.is_closed,
        }
    }

    pub(super) fn literal(term: &Term) -> Needle {
        Needle::Literal(term.literal.clone())
    }
}

/// Position of a needle, by its number, in folded text.
struct Hit {
    needle: usize,
    at: Range<usize>,
}

/// The needles of a search.
pub(super) struct Marker {
    needles: Vec<Needle>,
}

impl Marker {
    pub(super) fn new(needles: Vec<Needle>) -> Marker {
        Marker { needles }
    }

    /// Returns the whole text with its hits marked.
    pub(super) fn mark(&self, text: &str) -> String {
        let folded = Folded::new(text);
        let hits = self.hits(&folded.text);
        marked(text, 0..text.len(), &folded, &hits)
    }

    /// Returns the text around the hits that are closest together; `None` if it has none.
    pub(super) fn snippet(&self, text: &str) -> Option<String> {
        for most in PARTS {
            let kind = first_part(text, most);
            let folded = Folded::new(kind);
            let hits = self.hits(&folded.text);
            let (window, needles) = best_window(&hits, self.needles.len());
            let is_whole = kind.len() == text.len();
            if (needles == self.needles.len() || is_whole) && needles > 0 {
                return Some(around(text, &folded, &hits[window..]));
            }
            if is_whole {
                break;
            }
        }
        None
    }

    /// Returns the hits in folded text, in order.
    fn hits(&self, folded: &str) -> Vec<Hit> {
        let mut hits = Vec::new();
        let words: Vec<Range<usize>> = tokens(folded)
            .filter(|token| token.kind != WordKind::Sign)
            .map(|token| token.at)
            .collect();
        for (number, needle) in self.needles.iter().enumerate() {
            let hit = |at| Hit { needle: number, at };
            match needle {
                Needle::Literal(literal) => hits.extend(
                    folded
                        .match_indices(literal.as_str())
                        .map(|(at, found)| hit(at..at + found.len())),
                ),
                Needle::Words {
                    words: wanted,
                    is_closed,
                } => hits.extend(
                    words
                        .windows(wanted.len().max(1))
                        .filter(|found| is_phrase(folded, found, wanted, *is_closed))
                        .map(|found| hit(found[0].start..found[found.len() - 1].end)),
                ),
            }
        }
        hits.sort_by_key(|hit| (hit.at.start, hit.at.end));
        hits
    }
}

/// Returns whether these words form the wanted phrase.
fn is_phrase(folded: &str, found: &[Range<usize>], wanted: &[String], is_closed: bool) -> bool {
    let Some((last, before)) = wanted.split_last() else {
        return false;
    };
    let word = |at: usize| &folded[found[at].clone()];
    let end = word(before.len());
    (if is_closed {
        end == last
    } else {
        end.starts_with(last.as_str())
    }) && before
        .iter()
        .enumerate()
        .all(|(at, wanted)| word(at) == wanted)
}

/// Returns the first hit of the window with the most needles, and their number.
fn best_window(hits: &[Hit], needles: usize) -> (usize, usize) {
    let mut best = (0, 0);
    let mut counts = vec![0_usize; needles];
    let mut first = 0;
    for hit in hits {
        counts[hit.needle] += 1;
        while hits[first].at.start + WINDOW < hit.at.end && hits[first].at.start < hit.at.start {
            counts[hits[first].needle] -= 1;
            first += 1;
        }
        let found = counts.iter().filter(|count| **count > 0).count();
        if found > best.1 {
            best = (first, found);
        }
    }
    best
}

/// Returns the text around the first of these hits, with all of them marked.
fn around(text: &str, folded: &Folded, hits: &[Hit]) -> String {
    let Some(first) = hits.first() else {
        return String::new();
    };
    let hit = folded.original(first.at.clone()).start;
    let start = text[..hit]
        .char_indices()
        .rev()
        .nth(BEFORE - 1)
        .map_or(0, |(at, _)| at);
    let end = text[hit..]
        .char_indices()
        .nth(FROM)
        .map_or(text.len(), |(at, _)| hit + at);
    let start = match text[start..hit].find(char::is_whitespace) {
        Some(blank) if start > 0 => start + blank,
        _ => folded.character_start(start),
    };
    let end = match text[hit..end].rfind(char::is_whitespace) {
        Some(blank) if end < text.len() => hit + blank,
        _ => folded.character_start(end),
    };
    let shown = marked(text, start..end, folded, hits);
    let begin = if text[..start].trim().is_empty() {
        ""
    } else {
        "…"
    };
    let rest = if text[end..].trim().is_empty() {
        ""
    } else {
        "…"
    };
    format!("{begin}{}{rest}", shown.trim())
}

/// Returns a range of the text in which the hits are marked.
fn marked(text: &str, shown: Range<usize>, folded: &Folded, hits: &[Hit]) -> String {
    let mut marked = String::with_capacity(shown.len() + 16);
    let push = |marked: &mut String, kind: Range<usize>| {
        marked.extend(
            text[kind]
                .chars()
                .filter(|c| !matches!(*c, HIT_BEGIN | HIT_END)),
        );
    };
    let mut done = shown.start;
    let mut places = hits
        .iter()
        .map(|hit| folded.original(hit.at.clone()))
        .map(|at| at.start.max(shown.start)..at.end.min(shown.end))
        .filter(|at| !at.is_empty())
        .peekable();
    while let Some(mut place) = places.next() {
        while let Some(next) = places.next_if(|next| next.start < place.end) {
            place.end = place.end.max(next.end);
        }
        push(&mut marked, done..place.start);
        done = place.end;
        marked.push(HIT_BEGIN);
        push(&mut marked, place);
        marked.push(HIT_END);
    }
    push(&mut marked, done..shown.end);
    marked
}

/// Returns the beginning of a text, up to the last blank in its first `most` bytes.
fn first_part(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let kind = &text[..text.floor_char_boundary(most)];
    let blank = kind.rfind(char::is_whitespace);
    &kind[..blank.filter(|at| *at > 0).unwrap_or(kind.len())]
}

#[cfg(test)]
mod tests {
    use super::super::query::terms;
    use super::*;

    fn words(query: &str) -> Marker {
        Marker::new(terms(query).iter().map(Needle::words).collect())
    }

    fn literals(query: &str) -> Marker {
        Marker::new(terms(query).iter().map(Needle::literal).collect())
    }

    /// Hits in brackets.
    fn shown(text: &str) -> String {
        text.replace(HIT_BEGIN, "[").replace(HIT_END, "]")
    }

    #[test]
    fn hits_are_marked_in_the_text_as_it_is() {
        for (query, text, marked) in [
            ("strass", "Die Straße!", "Die [Straße]!"),
            (
                "bar_baz",
                "foo_bar_baz and __init__",
                "foo_[bar_baz] and __init__",
            ),
            ("net", "and .NET", "and .[NET]"),
            ("ete", "l’e\u{301}te\u{301}", "l’[e\u{301}te\u{301}]"),
            ("softhyphen", "a soft\u{AD}hyphen", "a [soft\u{AD}hyphen]"),
            ("full", "ｆｕｌｌ width", "[ｆｕｌｌ] width"),
            ("问题", "水问题。问", "水[问题]。问"),
            ("검색", "문서검색을", "문서[검색]을"),
            ("ab a", "b a ab", "b [a] [ab]"),
            ("\"a b\"", "a b, a-b, b a ab", "[a b], [a-b], b a ab"),
            ("ab abc", "abc", "[abc]"),
        ] {
            assert_eq!(shown(&words(query).mark(text)), marked, "{query} in {text}");
        }
        for (query, text, marked) in [
            ("c++", "C and C++", "C and [C++]"),
            ("👍", "ok 👍🏽.", "ok [👍🏽]."),
            ("lanet", "Exoplanets", "Exop[lanet]s"),
            ("x", "\u{E000}x\u{E001}", "[x]"),
        ] {
            assert_eq!(
                shown(&literals(query).mark(text)),
                marked,
                "{query} in {text}"
            );
        }
    }

    #[test]
    fn the_words_around_a_hit_are_whole() {
        let text = format!("{}planet {}", "before ".repeat(30), "after ".repeat(60));
        let snippet = shown(&words("planet").snippet(&text).unwrap_or_default());
        assert!(snippet.starts_with("…before before"), "{snippet}");
        assert!(snippet.contains("before [planet] after"), "{snippet}");
        assert!(
            snippet.ends_with("after…") && snippet.chars().count() < 170,
            "{snippet}"
        );
        let one = words("planet").snippet(" planets\n").unwrap_or_default();
        assert_eq!(shown(&one), "[planets]");
        let long = format!("{}x{}", "ü".repeat(500), "ü".repeat(500));
        let snippet = literals("x").snippet(&long).unwrap_or_default();
        assert!(snippet.chars().count() < 170, "{snippet}");
        assert_eq!(words("wren").snippet("a planet"), None);
    }

    #[test]
    fn a_snippet_does_not_cut_a_character() {
        let family = "👩\u{200D}👩\u{200D}👧";
        let text = format!("{}x{}", family.repeat(30), family.repeat(80));
        let snippet = shown(&literals("x").snippet(&text).unwrap_or_default());
        let inner = snippet.trim_matches('…');
        assert_eq!(inner.replace(family, ""), "[x]", "{snippet}");
    }

    #[test]
    fn a_snippet_shows_the_place_that_has_the_most_of_the_words() {
        let text = format!(
            "the {} the rare one, {} rare",
            "hay ".repeat(100),
            "hay ".repeat(900)
        );
        let snippet = shown(&words("the rare").snippet(&text).unwrap_or_default());
        assert!(snippet.contains("[the] [rare] one"), "{snippet}");
    }

    #[test]
    fn a_hit_is_found_deep_in_a_text() {
        for hay in ["hay ", "草"] {
            for length in [1_900, 2_000, 33_000, 200_000] {
                let hay = hay.repeat(length / hay.len());
                let snippet = words("nadel").snippet(&format!("{hay} Nadelöhr {hay}"));
                let snippet = shown(&snippet.unwrap_or_default());
                assert!(snippet.contains("[Nadelöhr]"), "{length}: {snippet}");
            }
        }
    }
}
