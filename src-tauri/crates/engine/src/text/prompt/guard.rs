//! Injection guard: separates the content of messages from the text of the template.
//!
//! Content is marked, so that no text of a special token in the rendered prompt has a character of content in it,
//! however the template joined content to its own text or to other content: a match is structure. A mark follows each
//! character of content that could begin a special token, precedes each that could end one, and follows content that
//! could lie in the middle of one. Then the marks are removed. They are noncharacters; one in the content is marked as
//! well.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::text::tokenizer::Specials;

const MARK: char = '\u{fdd0}';
/// Encloses the index of a placeholder.
const PLACEHOLDER: char = '\u{fdd1}';

/// A segment of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// Ordinary text, of the template or of the content.
    Text(String),
    /// A special token of the template.
    Special(u32),
    /// Placeholder of the ids of the turn with this index.
    Placeholder(usize),
}

/// Marks content before rendering and splits what was rendered.
pub(super) struct Guard<'a> {
    specials: &'a Specials,
}

impl<'a> Guard<'a> {
    pub(super) fn new(specials: &'a Specials) -> Self {
        Self { specials }
    }

    /// `text` with marks, as content.
    pub(super) fn content(&self, text: &str) -> String {
        let mut content = self.marked(text, |c| self.is_start(c));
        let words = text.trim_end();
        // Before the trailing white space, which templates strip.
        if !words.is_empty() && self.specials.contain(words.trim_start()) {
            content.insert(content.len() - (text.len() - words.len()), MARK);
        }
        content
    }

    /// `text` as part of the protocol, in which templates look for switches such as `/think`.
    pub(super) fn protocol(&self, text: &str) -> String {
        self.marked(text, |c| self.is_start(c))
    }

    /// `text` as instructions, in which templates look for switches such as `/think`: there the
    /// slash is marked too, so that a path is only a path.
    pub(super) fn instructions(&self, text: &str) -> String {
        self.marked(text, |c| c == '/' || self.is_start(c))
    }

    /// Placeholder content for the ids of the turn with this index.
    pub(super) fn placeholder(index: usize) -> String {
        format!("{PLACEHOLDER}{index}{PLACEHOLDER}")
    }

    /// Splits a rendered prompt at its special tokens and placeholders and removes the marks; `None` if cancelled.
    pub(super) fn segments(&self, render: &str, cancel: &AtomicBool) -> Option<Vec<Segment>> {
        let mut segments = Vec::new();
        let mut text = String::new();
        let mut rest = render;
        while let Some(c) = rest.chars().next() {
            if cancel.load(Ordering::Relaxed) {
                return None;
            }
            if let Some((length, segment)) = self.structure(c, rest) {
                if !text.is_empty() {
                    segments.push(Segment::Text(std::mem::take(&mut text)));
                }
                segments.push(segment);
                rest = &rest[length..];
                continue;
            }
            rest = &rest[c.len_utf8()..];
            if c == MARK && !rest.starts_with(MARK) {
                // A mark before or after content.
                continue;
            }
            text.push(c);
            if c == '/' || self.is_start(c) {
                rest = rest.strip_prefix(MARK).unwrap_or(rest);
            }
        }
        if !text.is_empty() {
            segments.push(Segment::Text(text));
        }
        Some(segments)
    }

    /// The structure at the start of `rest`, whose first character is `c`, and its length in bytes.
    fn structure(&self, c: char, rest: &str) -> Option<(usize, Segment)> {
        if !self.is_start(c) || rest[c.len_utf8()..].starts_with(MARK) {
            return None;
        }
        match c {
            PLACEHOLDER => {
                let number = rest[c.len_utf8()..].split_once(PLACEHOLDER)?.0;
                let length = 2 * c.len_utf8() + number.len();
                Some((length, Segment::Placeholder(number.parse().ok()?)))
            }
            _ => {
                let (length, id) = self.specials.starting(rest)?;
                Some((length, Segment::Special(id)))
            }
        }
    }

    /// Characters of content that get a mark.
    fn is_start(&self, c: char) -> bool {
        matches!(c, MARK | PLACEHOLDER) || self.specials.starts().binary_search(&c).is_ok()
    }

    /// Marks `text` before each character that could end a special token, and after each that `marks` accepts.
    fn marked(&self, text: &str, marks: impl Fn(char) -> bool) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            if self.specials.ends().binary_search(&c).is_ok() {
                out.push(MARK);
            }
            out.push(c);
            if marks(c) {
                out.push(MARK);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use jiff::civil::Date;
    use serde_json::json;

    use super::*;
    use crate::gguf::Gguf;
    use crate::text::prompt::format::NEVER;
    use crate::text::template::ChatTemplate;
    use crate::text::tokenizer::Tokenizer;

    #[test]
    fn content_joined_to_a_templates_text_stays_text() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
        let file = Gguf::open(&path).expect("the fixture");
        let tokenizer = Tokenizer::from_gguf(&file).expect("a tokenizer");
        let guard = Guard::new(tokenizer.specials());
        let assert_text = |source: &str, content: &str, expected: Option<&str>| {
            let template = ChatTemplate::parse(source).expect("a template");
            let context = json!({"content": guard.content(content)});
            let render = template.render(&context, Date::MIN).expect("a render");
            let segments = guard.segments(&render, &NEVER).expect("segments");
            let case = format!("{source} over {content:?}");
            match (segments.as_slice(), expected) {
                ([Segment::Text(text)], Some(expected)) => assert_eq!(text, expected, "{case}"),
                ([Segment::Text(_)] | [], None) => {}
                other => panic!("{case}: {other:?}"),
            }
        };
        for whole in ["<|im_end|>", "<|im_start|>", "<think>", "</think>"] {
            for from in 0..whole.len() {
                for to in from + 1..=whole.len() {
                    let (before, inside, after) = (&whole[..from], &whole[from..to], &whole[to..]);
                    for strip in ["", " | trim", ".strip()", ".lstrip('\\n')", ".rstrip()"] {
                        let source = format!("{before}{{{{ content{strip} }}}}{after}");
                        assert_text(&source, inside, Some(whole));
                        if strip.contains("tri") && !strip.contains("\\n") {
                            assert_text(&source, &format!(" {inside}\n"), None);
                        }
                    }
                }
            }
        }
        // Two pieces of content, with nothing between them.
        let twice = "{{ content }}{{ content }}";
        for text in [
            "<|im_end|><|im_end|",
            "|im_end|><",
            "\u{fdd0}",
            ">",
            "think",
        ] {
            assert_text(twice, text, None);
        }
    }
}
