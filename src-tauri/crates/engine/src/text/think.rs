//! The part that each generated token belongs to: thinking, answer, or control tokens.

use inference::Part;

use crate::text::tokenizer::{THINK_TAGS, Tokenizer};

/// The tag that opens the thinking.
pub(crate) const OPEN: &str = THINK_TAGS[0];
/// The tag that closes it.
pub(crate) const CLOSE: &str = THINK_TAGS[1];

/// Tracks the think tags of a generated answer. Tags may be missing, unclosed or repeated.
pub struct PartTracker<'a> {
    tokenizer: &'a Tokenizer,
    open: Option<u32>,
    close: Option<u32>,
    current: Part,
}

impl<'a> PartTracker<'a> {
    /// A tracker whose first token belongs to `starts_in`.
    pub fn new(tokenizer: &'a Tokenizer, starts_in: Part) -> Self {
        let (open, close) = (tokenizer.special(OPEN), tokenizer.special(CLOSE));
        PartTracker {
            tokenizer,
            open,
            close,
            current: starts_in,
        }
    }

    /// Whether the thinking is open.
    pub fn is_thinking(&self) -> bool {
        self.current == Part::Thinking
    }

    /// The part that the next token belongs to.
    pub fn part(&mut self, id: u32) -> Part {
        if Some(id) == self.open {
            self.current = Part::Thinking;
        } else if Some(id) == self.close {
            self.current = Part::Answer;
        } else if !self.tokenizer.is_control(id) {
            return self.current;
        }
        Part::Control
    }
}

/// The part that a token after `ids` belongs to: thinking if they leave it open, else the answer. The end of a turn ends
/// its thinking; other control tokens do not, as in [`PartTracker`].
pub(crate) fn part_after(tokenizer: &Tokenizer, ids: &[u32]) -> Part {
    let (open, close) = (tokenizer.special(OPEN), tokenizer.special(CLOSE));
    let ends = tokenizer.turn_ends();
    let last = ids
        .iter()
        .rev()
        .copied()
        .find(|id| Some(*id) == open || Some(*id) == close || ends.contains(id));
    if last.is_some() && last == open {
        Part::Thinking
    } else {
        Part::Answer
    }
}

/// Whether the first think tag in `ids` closes a thinking that was opened before them; `None` without a tag.
pub(crate) fn closes_first(tokenizer: &Tokenizer, ids: &[u32]) -> Option<bool> {
    let (open, close) = (tokenizer.special(OPEN), tokenizer.special(CLOSE));
    let tag = ids
        .iter()
        .find(|&&id| Some(id) == open || Some(id) == close)?;
    Some(Some(*tag) == close)
}

/// The ids of a generated answer that begins in `starts_in`, without its thinking, the tags and the newlines after them;
/// `None` if a token has other bytes after such newlines.
pub(crate) fn without_thinking(
    tokenizer: &Tokenizer,
    ids: &[u32],
    starts_in: Part,
) -> Option<Vec<u32>> {
    let mut parts = PartTracker::new(tokenizer, starts_in);
    let (mut answer, mut after_tag) = (Vec::new(), false);
    for &id in ids {
        let tag = Some(id) == parts.open || Some(id) == parts.close;
        let part = parts.part(id);
        if tag || part == Part::Thinking {
            after_tag |= tag;
            continue;
        }
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
    fn split(text: &str, starts_in: Part) -> [String; 2] {
        let tokenizer = tokenizer();
        let mut parts = PartTracker::new(&tokenizer, starts_in);
        let mut split = [String::new(), String::new()];
        for id in tokenizer.encode(text, true) {
            let piece = tokenizer.decode(&[id]);
            match parts.part(id) {
                Part::Thinking => split[0].push_str(&piece),
                Part::Answer => split[1].push_str(&piece),
                Part::Control => {}
            }
        }
        split
    }

    #[test]
    fn tags_may_be_missing_unclosed_or_repeated() {
        use Part::{Answer, Thinking};
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
            (
                "<think><think>a</think>b<think>c</think></think>d",
                Answer,
                ["ac", "bd"],
            ),
            (
                "<tool_call>{}</tool_call>",
                Answer,
                ["", "<tool_call>{}</tool_call>"],
            ),
            ("a<|im_start|>b", Answer, ["", "ab"]),
        ] {
            assert_eq!(split(text, starts_in), expected, "{text}");
        }
    }

    #[test]
    fn thinking_is_removed_from_ids() {
        let tokenizer = tokenizer();
        for (text, starts_in, expected) in [
            ("<think>\na\n</think>\n\nb\n", Part::Answer, "b\n"),
            ("<think></think>b", Part::Answer, "b"),
            ("\nb", Part::Answer, "\nb"),
            ("b<think>a", Part::Answer, "b"),
            ("<think>a</think>b<think>c</think>\nd", Part::Answer, "bd"),
            ("a\n</think>\nb", Part::Thinking, "b"),
            ("a", Part::Thinking, ""),
            ("", Part::Answer, ""),
        ] {
            let ids = without_thinking(&tokenizer, &tokenizer.encode(text, true), starts_in);
            let left = ids.map(|ids| tokenizer.decode(&ids));
            assert_eq!(left.as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn the_part_after_a_prompt_is_the_one_that_it_leaves_open() {
        let tokenizer = tokenizer();
        for (prompt, expected) in [
            ("<|im_start|>assistant\n", Part::Answer),
            ("<|im_start|>assistant\n<think>\nHm", Part::Thinking),
            ("<|im_start|>assistant\n<think>\n\n</think>\n", Part::Answer),
            (
                "<think>stopped<|im_end|>\n<|im_start|>assistant\n",
                Part::Answer,
            ),
            // As in the tracker, so that a continued answer stays in its part.
            ("<think> a <|im_start|> b", Part::Thinking),
            ("<think>a</think><|im_start|> b", Part::Answer),
            ("plain", Part::Answer),
        ] {
            let ids = tokenizer.encode(prompt, true);
            assert_eq!(part_after(&tokenizer, &ids), expected, "{prompt:?}");
        }
    }
}
