//! Chats as Markdown.

use std::io::{self, Write};

use figures::without_bidi_controls;
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag};
use store::{Part, Role, WholeChat};

use crate::options::WriteOptions;
use crate::shown::{Shown, author, branch, called, days, ending, thought};

/// Levels by which the headings of a message move down, below those of the chat and its messages.
const BELOW: usize = 2;

pub(crate) fn chat(
    out: &mut dyn Write,
    whole: &WholeChat,
    options: &WriteOptions,
) -> io::Result<()> {
    let days = days(whole, &options.zone);
    writeln!(
        out,
        "# {}\n\n*{days}*",
        one_line(&without_bidi_controls(&whole.chat.title))
    )?;
    for shown in branch(whole) {
        message(out, &shown, options)?;
    }
    Ok(())
}

fn message(out: &mut dyn Write, shown: &Shown<'_>, options: &WriteOptions) -> io::Result<()> {
    let message = shown.message;
    let when = shown.when(&options.zone);
    writeln!(out, "\n## {}\n\n*{when}*", author(message.role))?;
    for (at, part) in message.parts.0.iter().enumerate() {
        match part {
            Part::Thinking { text } if options.thinking => {
                // A quotation ends with its marks, whatever it contains.
                writeln!(out, "\n> **{}**\n>", thought(message, at))?;
                for line in contained(&without_bidi_controls(text.trim())).lines() {
                    writeln!(out, "{}", format!("> {line}").trim_end())?;
                }
            }
            Part::Thinking { .. } => {}
            Part::Text { text } if message.role == Role::User => {
                writeln!(out, "\n{}", contained(&without_bidi_controls(text)))?;
            }
            Part::Text { text } => writeln!(out, "\n{}", contained(text))?,
            Part::ToolCall {
                name, arguments, ..
            } => {
                let call = one_line(&without_bidi_controls(&called(name)));
                let arguments = fenced(&without_bidi_controls(arguments), "json");
                writeln!(out, "\n**{call}**\n\n{arguments}")?;
            }
            Part::ToolResult { text, .. } => {
                let result = fenced(&without_bidi_controls(text), "text");
                writeln!(out, "\n**Result**\n\n{result}")?;
            }
        }
    }
    if let Some(words) = ending(message) {
        writeln!(out, "\n*{}*", one_line(words))?;
    }
    Ok(())
}

/// A title in a heading or a sentence in italics: one line without markup.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        for character in word.chars() {
            if matches!(
                character,
                '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '$' | '~' | '|'
            ) {
                line.push('\\');
            }
            line.push(character);
        }
    }
    line
}

/// Contains a text, so that it does not affect the text behind it: an open fence is closed, its headings are below
/// those of the message, and a text that would swallow the next one, such as the beginning of an HTML comment, becomes
/// a block of code.
fn contained(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let written = fence_closed(&headings_below(&text));
    if ends(&written) {
        return written;
    }
    fenced(&text, "text")
}

/// Makes a block of code that nothing in the text ends.
fn fenced(text: &str, language: &str) -> String {
    let longest = text
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Returns true if a text does not swallow the text behind it, by the CommonMark parser.
fn ends(text: &str) -> bool {
    let followed = format!("{text}\n\n# end");
    let mut depth = 0_usize;
    let mut last = None;
    for event in Parser::new(&followed) {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    last = Some(matches!(
                        tag,
                        Tag::Heading {
                            level: HeadingLevel::H1,
                            ..
                        }
                    ));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    last == Some(true)
}

/// Moves the headings down. Underlined headings, which have only two levels, become one line with marks in front.
fn headings_below(text: &str) -> String {
    let mut written = String::new();
    let mut done = 0;
    for (event, place) in Parser::new(text).into_offset_iter() {
        let Event::Start(Tag::Heading { level, .. }) = event else {
            continue;
        };
        let level = level as usize;
        written.push_str(&text[done..place.start]);
        done = place.start;
        let heading = text[place].trim_end();
        if heading.starts_with('#') {
            written.push_str(&"#".repeat(BELOW.min(6 - level)));
            continue;
        }
        // The marks of the enclosing quotation or list come behind the first line.
        let within = |line: &str| {
            line.trim_start_matches([' ', '\t', '>'])
                .trim_end()
                .to_owned()
        };
        let mut lines: Vec<String> = heading.lines().map(within).collect();
        lines.pop();
        let mut line = lines.join(" ");
        if line.ends_with('#') {
            // Marks at the end would not belong to it.
            line.insert(line.len() - 1, '\\');
        }
        written.push_str(&"#".repeat(level + BELOW));
        written.push(' ');
        written.push_str(&line);
        done += heading.len();
    }
    written.push_str(&text[done..]);
    written
}

/// The opening of a fenced block of code.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
    /// Spaces before it: in a list, the closing fence has the same indentation.
    indent: usize,
}

/// Closes a fence that is open at the end.
fn fence_closed(text: &str) -> String {
    let mut open: Option<Fence> = None;
    for line in text.lines() {
        let bare = line.trim_start_matches(' ');
        let indent = line.len() - bare.len();
        let fence = (indent <= 3).then(|| fence_of(bare, indent)).flatten();
        match (open, fence) {
            (Some(begun), Some((found, true)))
                if found.mark == begun.mark && found.length >= begun.length =>
            {
                open = None;
            }
            (None, Some((found, _))) => open = Some(found),
            _ => {}
        }
    }
    let mut written = text.strip_suffix('\n').unwrap_or(text).to_owned();
    if let Some(Fence {
        mark,
        length,
        indent,
    }) = open
    {
        written.push('\n');
        written.extend(std::iter::repeat_n(' ', indent));
        written.extend(std::iter::repeat_n(mark, length));
    }
    written
}

/// The fence of a line behind its indentation; true if it may close one.
fn fence_of(line: &str, indent: usize) -> Option<(Fence, bool)> {
    let mark = line
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    let rest = &line[length..];
    let is_fence = length >= 3 && !(mark == '`' && rest.contains('`'));
    let fence = Fence {
        mark,
        length,
        indent,
    };
    is_fence.then(|| (fence, rest.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_where_it_ends() {
        for (text, written) in [
            ("plain", "plain"),
            ("# One\n###### Six\n#hash", "### One\n###### Six\n#hash"),
            ("```rust\n# not a heading", "```rust\n# not a heading\n```"),
            ("~~~~\n~~~\n```", "~~~~\n~~~\n```\n~~~~"),
            ("```\na\n```\n# After", "```\na\n```\n### After"),
            ("<!-- never closed", "```text\n<!-- never closed\n```"),
            ("<script>\n````", "`````text\n<script>\n````\n`````"),
            (
                "- a list\n\n  ```\n  open",
                "- a list\n\n  ```\n  open\n  ```",
            ),
        ] {
            let found = contained(text);
            assert_eq!(found, written);
            assert!(ends(&found), "{found}");
        }
        assert!(!ends("<!-- never closed"));
        assert!(!ends("```\nopen"));
    }

    #[test]
    fn headings_are_moved_down_however_they_are_written() {
        for (text, written) in [
            ("Big title\n====", "### Big title"),
            ("Title\n--\nText", "#### Title\nText"),
            ("  Two\n  lines  \n===\n\nText", "  ### Two lines\n\nText"),
            ("Before\n\nA\n=\n\nB\n-\n", "Before\n\n### A\n\n#### B"),
            (
                "> Quoted\n> title\n> ===\n> text",
                "> ### Quoted title\n> text",
            ),
            ("- Item\n  ===", "- ### Item"),
            ("- a\n  > b\n  > ---", "- a\n  > #### b"),
            ("C #\n===", "### C \\#"),
            ("A ##\n===", "### A #\\#"),
            ("`a\nb`\n===", "### `a b`"),
            ("Grüße\n===\nÄ", "### Grüße\nÄ"),
            ("```\nTitle\n===\n```", "```\nTitle\n===\n```"),
            ("    Title\n    ===", "    Title\n    ==="),
            ("Text\n\n---\n\n===", "Text\n\n---\n\n==="),
            ("# One\nTwo\n===", "### One\n### Two"),
            ("> # One\n>\n> - ## Two", "> ### One\n>\n> - #### Two"),
            (" ## One ##\n##### Five", " #### One ##\n###### Five"),
            ("#\n\n##", "###\n\n####"),
        ] {
            let found = contained(text);
            assert_eq!(found, written, "{text}");
            let levels = Parser::new(&found).filter_map(|event| match event {
                Event::Start(Tag::Heading { level, .. }) => Some(level as usize),
                _ => None,
            });
            assert!(levels.into_iter().all(|level| level > BELOW), "{found}");
        }
    }

    #[test]
    fn a_title_is_one_line_without_markup() {
        assert_eq!(one_line("# *a*\n`b` <i>"), "\\# \\*a\\* \\`b\\` \\<i\\>");
    }
}
