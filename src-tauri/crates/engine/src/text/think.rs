//! The part that each generated token belongs to: thinking, answer, or control tokens.

use inference::TokenKind;

use crate::text::tokenizer::Tokenizer;

/// Tracks the think tags of a generated answer. A tag counts where a thinking can begin or end; elsewhere it is text, as in
/// an answer about such tags:
///
/// | so far | `<think>` | `</think>` |
/// |---|---|---|
/// | white space alone | opens the thinking | is dropped |
/// | a thinking | is text of it | ends it |
/// | words of the answer | is text of it | is text of it |
///
/// Tags may be missing or unclosed, and repeated as long as no words follow.
pub struct PartTracker {
    open: Option<u32>,
    close: Option<u32>,
    current: TokenKind,
    begun: bool,
}

impl PartTracker {
    /// A tracker whose first token belongs to `starts_in`, of which there are words already if it has `begun`.
    pub fn new(tokenizer: &Tokenizer, starts_in: TokenKind, begun: bool) -> Self {
        let [open, close] = tokenizer.think_tags();
        PartTracker {
            open,
            close,
            current: starts_in,
            begun,
        }
    }

    /// Returns true while the thinking is open.
    pub fn is_thinking(&self) -> bool {
        self.current == TokenKind::Thinking
    }

    /// The part of the next word; true if it has words already.
    pub fn position(&self) -> (TokenKind, bool) {
        (self.current, self.begun)
    }

    /// The part that the next token belongs to.
    pub fn kind(&mut self, tokenizer: &Tokenizer, id: u32) -> TokenKind {
        let next = match Some(id) {
            tag if tag == self.open => Some(TokenKind::Thinking),
            tag if tag == self.close => Some(TokenKind::Answer),
            _ => None,
        };
        match next {
            Some(next) if !self.begun || (self.is_thinking() && next == TokenKind::Answer) => {
                (self.current, self.begun) = (next, false);
                TokenKind::Control
            }
            None if tokenizer.is_control(id) => TokenKind::Control,
            _ => {
                self.begun |= !is_blank(tokenizer.piece(id));
                self.current
            }
        }
    }
}

fn is_blank(piece: &[u8]) -> bool {
    std::str::from_utf8(piece).is_ok_and(|text| text.trim().is_empty())
}

/// The first think tag in `ids`: its position; true if it is the closing one.
pub(crate) fn first_tag(tokenizer: &Tokenizer, ids: &[u32]) -> Option<(usize, bool)> {
    let [open, close] = tokenizer.think_tags();
    let tags = ids.iter().map(|&id| Some(id));
    tags.enumerate()
        .find(|(_, id)| *id == open || *id == close)
        .map(|(at, id)| (at, id == close))
}

/// The ids of a generated answer that begins in `starts_in`, without its thinking, the tags around it and the newlines
/// after them; `None` if a token has other bytes after such newlines.
pub(crate) fn without_thinking(
    tokenizer: &Tokenizer,
    ids: &[u32],
    starts_in: TokenKind,
) -> Option<Vec<u32>> {
    let mut parts = PartTracker::new(tokenizer, starts_in, false);
    let (mut answer, mut after_tag) = (Vec::new(), false);
    for &id in ids {
        let is_tag = Some(id) == parts.open || Some(id) == parts.close;
        match parts.kind(tokenizer, id) {
            TokenKind::Control if is_tag => after_tag = true,
            TokenKind::Thinking => {}
            _ => {
                let piece = tokenizer.piece(id);
                if after_tag && piece.first() == Some(&b'\n') {
                    if piece.iter().any(|&byte| byte != b'\n') {
                        return None;
                    }
                    continue;
                }
                after_tag = false;
                answer.push(id);
            }
        }
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::gguf::Gguf;

    fn tokenizer() -> Tokenizer {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer.gguf");
        Tokenizer::from_gguf(&Gguf::open(&fixture).expect("fixture")).expect("tokenizer")
    }

    /// The thinking and the answer in `text`, generated token by token.
    fn split(text: &str, starts_in: TokenKind) -> [String; 2] {
        let tokenizer = tokenizer();
        let mut parts = PartTracker::new(&tokenizer, starts_in, false);
        let mut split = [String::new(), String::new()];
        for id in tokenizer.encode(text, true) {
            let piece = tokenizer.decode(&[id]);
            match parts.kind(&tokenizer, id) {
                TokenKind::Thinking => split[0].push_str(&piece),
                TokenKind::Answer => split[1].push_str(&piece),
                TokenKind::Call | TokenKind::Control => {}
            }
        }
        split
    }

    #[test]
    fn tags_count_where_a_thinking_can_begin_and_end_and_are_text_elsewhere() {
        use TokenKind::{Answer, Thinking};
        for (text, starts_in, expected) in [
            (
                "<think>\na\n</think>\nb<|im_end|>",
                Answer,
                ["\na\n", "\nb"],
            ),
            ("b", Answer, ["", "b"]),
            ("<think>a", Answer, ["a", ""]),
            ("a</think>b", Thinking, ["a", "b"]),
            ("</think>b", Answer, ["", "b"]),
            ("</think>b", Thinking, ["", "b"]),
            // Repeated before any word.
            ("<think><think>a</think></think>b", Answer, ["a", "b"]),
            ("<think>\n<think>a</think>b", Thinking, ["\na", "b"]),
            ("</think>\n<think>a</think>b", Answer, ["a", "\nb"]),
            // White space is no word.
            (" \n\t<think>a</think>b", Answer, ["a", " \n\tb"]),
            // An answer about the tags,
            ("b<think>c", Answer, ["", "b<think>c"]),
            ("b</think>c", Answer, ["", "b</think>c"]),
            (
                "b <think>c</think></think><think> d",
                Answer,
                ["", "b <think>c</think></think><think> d"],
            ),
            (
                "<think>a</think>\nb<think>c</think>d",
                Answer,
                ["a", "\nb<think>c</think>d"],
            ),
            ("a</think>b</think>c", Thinking, ["a", "b</think>c"]),
            // and a thinking about the opening one.
            ("<think>a<think>b</think>c", Answer, ["a<think>b", "c"]),
            ("a<think>b</think>c", Thinking, ["a<think>b", "c"]),
            (
                "<tool_call>{}</tool_call>",
                Answer,
                ["", "<tool_call>{}</tool_call>"],
            ),
            ("a<|im_start|>b", Answer, ["", "ab"]),
            ("<|im_start|><think>a</think>b", Answer, ["a", "b"]),
        ] {
            assert_eq!(split(text, starts_in), expected, "{text}");
        }
    }

    /// An answer that is cut anywhere continues as if it had not been cut.
    #[test]
    fn a_tracker_that_begins_where_another_one_ends_goes_on_as_it_would() {
        let tokenizer = tokenizer();
        for text in [
            " <think>a<think>b</think>\n</think>c<think>d</think>e",
            "\n</think>\n<think>\n<think>a</think>b</think>",
            "a<think>b</think>c",
        ] {
            let ids = tokenizer.encode(text, true);
            for starts_in in [TokenKind::Answer, TokenKind::Thinking] {
                let mut whole = PartTracker::new(&tokenizer, starts_in, false);
                let whole: Vec<TokenKind> =
                    ids.iter().map(|id| whole.kind(&tokenizer, *id)).collect();
                for cut in 0..=ids.len() {
                    let mut first = PartTracker::new(&tokenizer, starts_in, false);
                    let mut parts: Vec<TokenKind> = ids[..cut]
                        .iter()
                        .map(|id| first.kind(&tokenizer, *id))
                        .collect();
                    let (kind, begun) = first.position();
                    let mut second = PartTracker::new(&tokenizer, kind, begun);
                    parts.extend(ids[cut..].iter().map(|id| second.kind(&tokenizer, *id)));
                    assert_eq!(parts, whole, "{text:?} cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn thinking_is_removed_from_ids() {
        let tokenizer = tokenizer();
        for (text, starts_in, expected) in [
            ("<think>\na\n</think>\n\nb\n", TokenKind::Answer, "b\n"),
            ("<think></think>b", TokenKind::Answer, "b"),
            ("\nb", TokenKind::Answer, "\nb"),
            ("b<think>a", TokenKind::Answer, "b<think>a"),
            ("b</think>\na", TokenKind::Answer, "b</think>\na"),
            (
                "<think>a</think>\nb<think>c</think>\nd",
                TokenKind::Answer,
                "b<think>c</think>\nd",
            ),
            ("a\n</think>\nb", TokenKind::Thinking, "b"),
            (
                "a<think>\n</think>\nb</think>",
                TokenKind::Thinking,
                "b</think>",
            ),
            ("a", TokenKind::Thinking, ""),
            ("", TokenKind::Answer, ""),
        ] {
            let ids = without_thinking(&tokenizer, &tokenizer.encode(text, true), starts_in);
            let left = ids.map(|ids| tokenizer.decode(&ids));
            assert_eq!(left.as_deref(), Some(expected), "{text:?}");
        }
    }
}
