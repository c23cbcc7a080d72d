//! A chat's title.

use crate::failure::Failure;

/// Maximum characters of a title made from a message.
const MADE: usize = 60;
/// Maximum characters of a title that a user gives.
const GIVEN: usize = 200;
/// Maximum words of a title that a model makes. The prompt requests six.
const MOST_WORDS: usize = 8;
/// Maximum characters of a folder's name.
pub(crate) const FOLDER: usize = 100;
/// Maximum characters of a preset's name.
pub(crate) const PRESET: usize = 60;

/// Title of a chat whose message has no visible text.
const UNTITLED: &str = "Untitled";

/// Makes a title of a message; it is always visible.
pub(crate) fn from_message(text: &str) -> String {
    from_words(text).unwrap_or_else(|| UNTITLED.to_owned())
}

/// Returns the first line of words of a message, else of its code, else its symbols, cut at a word; `None` if nothing
/// of it is visible.
pub(crate) fn from_words(text: &str) -> Option<String> {
    let mut fence = None;
    let mut code = None;
    for line in text.lines() {
        match (fence, fence_of(line)) {
            (None, Some(begins)) => fence = Some(begins),
            (Some(open), Some(ends)) if closes(open, ends, line) => fence = None,
            _ => {
                let words = one_line(&without_markup(line));
                if !words.chars().any(|c| c.is_alphanumeric() && is_visible(c)) {
                    continue;
                }
                if fence.is_none() {
                    return Some(shortened(&words));
                }
                code.get_or_insert(words);
            }
        }
    }
    let signs = || Some(one_line(text)).filter(|line| can_be_seen(line));
    code.or_else(signs).map(|line| shortened(&line))
}

/// Shortens a line to at most [`MADE`] characters, cut at a word.
fn shortened(line: &str) -> String {
    let Some((end, _)) = line.char_indices().nth(MADE) else {
        return line.to_owned();
    };
    let cut = match line[..end].rfind(' ') {
        Some(space) if !line[end..].starts_with(' ') && space > 0 => &line[..space],
        _ => &line[..end],
    };
    format!(
        "{}…",
        cut.trim_end_matches([' ', ',', ';', ':', '.', '-', '–'])
    )
}

/// Returns the character and the length of a line that is a code fence, which may be followed by the name of a
/// language.
fn fence_of(line: &str) -> Option<(char, usize)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| "`~".contains(*c))?;
    let behind = line.trim_start_matches(mark);
    let length = line.len() - behind.len();
    // Inline code is no fence.
    (length >= 3 && !(mark == '`' && behind.contains('`'))).then_some((mark, length))
}

fn closes(open: (char, usize), end: (char, usize), line: &str) -> bool {
    end.0 == open.0 && end.1 >= open.1 && line.trim().chars().all(|c| c == end.0)
}

/// HTML elements that people and models write into Markdown.
const ELEMENTS: [&str; 46] = [
    "a",
    "b",
    "big",
    "blockquote",
    "br",
    "center",
    "code",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "font",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "s",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
];

/// Removes the bars of a table and the tags from a line. A tag that is a word of its own stays: the line is about it.
fn without_markup(line: &str) -> String {
    let line = line.trim();
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        text.push_str(before);
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let touched = is_word(text.chars().next_back());
        let markup = element(tag).filter(|(name, length)| {
            // Type arguments, as in `List<a>`.
            let is_type = touched && name.len() == 1 && !tag.starts_with("</");
            let touches = touched || is_word(tag[*length..].chars().next());
            !is_type && (touches || text.trim().is_empty())
        });
        let length = markup.map_or(1, |(_, length)| length);
        match markup {
            Some((name, _)) if !name.eq_ignore_ascii_case("br") => {}
            Some(_) => text.push(' '),
            None => text.push('<'),
        }
        rest = &tag[length..];
    }
    text.push_str(rest);
    if text.starts_with('|') {
        text = text.replace('|', " ");
    }
    text
}

/// Returns the name and the length of the tag at the start of a text.
fn element(text: &str) -> Option<(&str, usize)> {
    let end = text.find('>')?;
    let inner = &text[1..end];
    if inner.contains('<') {
        return None;
    }
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    let name = inner
        .split(|c: char| c.is_whitespace() || c == '/')
        .next()?;
    let is_known = ELEMENTS.iter().any(|it| it.eq_ignore_ascii_case(name));
    is_known.then_some((name, end + 1))
}

/// Returns whether a text has visible characters.
pub(crate) fn can_be_seen(text: &str) -> bool {
    text.chars().any(is_visible)
}

fn is_visible(c: char) -> bool {
    let is_blank = matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    !(is_blank || c.is_whitespace() || c.is_control())
}

/// Normalises a title from the user: one line, not empty, of limited length.
pub(crate) fn from_user(title: &str) -> Result<String, Failure> {
    given(title, "A title", GIVEN)
}

/// Normalises the name of a folder in the same way.
pub(crate) fn of_folder(name: &str) -> Result<String, Failure> {
    given(name, "The name of a folder", FOLDER)
}

/// Normalises the name of a preset in the same way.
pub(crate) fn of_preset(name: &str) -> Result<String, Failure> {
    given(name, "The name of a preset", PRESET)
}

fn given(text: &str, what: &str, most: usize) -> Result<String, Failure> {
    let line = one_line(text);
    match line.chars().count() {
        _ if !can_be_seen(&line) => Err(Failure::other(format!("{what} cannot be empty."))),
        long if long > most => Err(Failure::other(format!(
            "{what} has at most {most} characters; this one has {}.",
            figures::count(long)
        ))),
        _ => Ok(line),
    }
}

/// Returns the title of a copy of a chat.
pub(crate) fn of_copy(title: &str) -> String {
    const MARK: &str = " (copy)";
    let title = title.strip_suffix(MARK).unwrap_or(title);
    let title: String = title.chars().take(GIVEN - MARK.len()).collect();
    format!("{title}{MARK}")
}

/// Extracts the title from a model's answer; `None` if it has none.
pub(crate) fn from_model(answer: &str) -> Option<String> {
    let line = answer.lines().map(one_line).find(|line| !line.is_empty())?;
    let line = match without_marks(&line).split_once(':') {
        Some((label, rest)) if label.eq_ignore_ascii_case("title") => without_marks(rest),
        _ => without_marks(&line),
    };
    let words: Vec<&str> = line.split_whitespace().take(MOST_WORDS).collect();
    let title = shortened(&words.join(" "));
    title.chars().any(char::is_alphanumeric).then_some(title)
}

/// Removes surrounding quotes and Markdown, and a full stop.
fn without_marks(line: &str) -> &str {
    let is_mark = |c: char| "*_`\"'“”„«»‘’ ".contains(c);
    line.trim_start_matches(['#', '>', '-', ' '])
        .trim_start_matches(is_mark)
        .trim_end_matches(|c| is_mark(c) || c == '.')
}

/// Removes line breaks and control characters.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_first_line_that_says_something() {
        assert_eq!(
            from_message("\n  ---\n  What is   a goldcrest?\nTell me."),
            "What is a goldcrest?"
        );
        assert_eq!(from_message("?!"), "?!");
    }

    #[test]
    fn marks_are_no_words() {
        for (text, title) in [
            (
                "```python\nprint(1)\n```\nWhat does it print?",
                "What does it print?",
            ),
            ("  ~~~~ rust\nfn main() {}\n~~~\n~~~~\nWhy?", "Why?"),
            ("```python\nprint(1)\n```", "print(1)"),
            ("```text\n```\n", "```text ```"),
            ("```print(1)``` fails", "```print(1)``` fails"),
            ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a b"),
            ("|---|\n|**x**|", "**x**"),
            ("cat x | grep y", "cat x | grep y"),
            ("<br>\nHello", "Hello"),
            ("<BR/><br />Hello<br>there", "Hello there"),
            ("<p class=\"x\">Hello <b>you</b></p>", "Hello you"),
            ("H<sub>2</sub>O?", "H2O?"),
            ("What does <br> do?", "What does <br> do?"),
            ("What is a <div>?", "What is a <div>?"),
            (
                "Vec<String>, List<a>, Map<A, B>",
                "Vec<String>, List<a>, Map<A, B>",
            ),
            ("#include <stdio.h>", "#include <stdio.h>"),
            ("a < b and c > d", "a < b and c > d"),
            ("< br", "< br"),
            ("<div", "<div"),
            ("\u{200b}\n\u{3164}\nHello", "Hello"),
            ("\u{200b}", "Untitled"),
            ("\u{feff} \u{3164}\u{2800}\n\u{e0001}", "Untitled"),
            ("\u{1f426}", "\u{1f426}"),
            ("", "Untitled"),
        ] {
            assert_eq!(from_message(text), title, "{text:?}");
        }
        assert_eq!(from_words("\u{200b}"), None);
    }

    #[test]
    fn a_name_that_cannot_be_seen_is_empty() {
        for name in ["\u{200b}", "\u{3164}\u{ad}", " \u{feff}\n"] {
            for given in [from_user(name), of_folder(name), of_preset(name)] {
                assert!(given.is_err_and(|failure| failure.message.contains("cannot be empty")));
            }
        }
        assert!(from_user("\u{1f468}\u{200d}\u{1f469}").is_ok());
    }

    #[test]
    fn cuts_at_a_word() {
        let long = "Why does the smallest European songbird, the goldcrest, weigh only six grams?";
        assert_eq!(
            from_message(long),
            "Why does the smallest European songbird, the goldcrest…"
        );
        let exact = format!("{} tail", "x".repeat(60));
        assert_eq!(from_message(&exact), format!("{}…", "x".repeat(60)));
        let word = "ü".repeat(80);
        assert_eq!(from_message(&word), format!("{}…", "ü".repeat(60)));
    }

    #[test]
    fn a_model_s_title_is_one_short_plain_line() {
        for (answer, title) in [
            ("Weight of the Goldcrest", Some("Weight of the Goldcrest")),
            (
                "\n**Title:** \"Small birds.\"\n\nIt is",
                Some("Small birds"),
            ),
            ("„Kleine Vögel“", Some("Kleine Vögel")),
            ("# What's up?", Some("What's up?")),
            ("C#: a first program", Some("C#: a first program")),
            (
                "one two three four five six seven eight nine ten",
                Some("one two three four five six seven eight"),
            ),
            ("\u{7}Bell\u{0} and\tTab", Some("Bell and Tab")),
            ("\"…\"", None),
            ("", None),
        ] {
            assert_eq!(from_model(answer).as_deref(), title, "{answer:?}");
        }
        let endless = from_model(&"x".repeat(1_000_000));
        assert_eq!(endless.map(|title| title.chars().count()), Some(61));
    }

    #[test]
    fn a_copy_is_called_one() {
        assert_eq!(of_copy("Birds"), "Birds (copy)");
        assert_eq!(of_copy("Birds (copy)"), "Birds (copy)");
        assert!(from_user(&of_copy(&"ü".repeat(200))).is_ok());
    }

    #[test]
    fn refuses_empty_and_endless_titles() {
        assert_eq!(
            from_user("  Birds\nof Europe ").as_deref(),
            Ok("Birds of Europe")
        );
        assert!(from_user(" \n\t ").is_err());
        assert!(from_user(&"x".repeat(201)).is_err());
        assert!(from_user(&"ü".repeat(200)).is_ok());
    }
}
