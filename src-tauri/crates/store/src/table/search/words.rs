//! The words, characters and symbols of folded text.

use std::collections::BTreeSet;
use std::ops::Range;

use super::fold::fold;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKind {
    /// Consecutive letters and digits.
    Word,
    /// One character of Chinese, Japanese or Korean, which write words without spaces or with endings.
    Character,
    /// One symbol, emoji included.
    Sign,
}

/// A word, a character or a symbol, and its bytes in the folded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: WordKind,
    pub(super) at: Range<usize>,
}

/// Returns the kind of token that a character belongs to; `None` for a separator.
pub(super) fn kind(c: char) -> Option<WordKind> {
    match c {
        c if c.is_whitespace() || c.is_control() => None,
        '\u{1100}'..='\u{11FF}'
        | '\u{2E80}'..='\u{2FDF}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{3029}'
        | '\u{3031}'..='\u{3035}'
        | '\u{3041}'..='\u{3096}'
        | '\u{309D}'..='\u{309F}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{30FC}'..='\u{30FF}'
        | '\u{3105}'..='\u{318E}'
        | '\u{31A0}'..='\u{31BF}'
        | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{A4CF}'
        | '\u{A960}'..='\u{A97F}'
        | '\u{AC00}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{1AFF0}'..='\u{1B16F}'
        | '\u{20000}'..='\u{3FFFF}' => Some(WordKind::Character),
        c if c.is_alphanumeric() => Some(WordKind::Word),
        _ => Some(WordKind::Sign),
    }
}

/// Returns the tokens of folded text.
pub(super) fn tokens(folded: &str) -> impl Iterator<Item = Token> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (skipped, first) = folded[at..]
            .char_indices()
            .find(|(_, c)| kind(*c).is_some())?;
        let kind_of_first = kind(first)?;
        let start = at + skipped;
        let length = match kind_of_first {
            WordKind::Word => folded[start..]
                .find(|c| kind(c) != Some(WordKind::Word))
                .unwrap_or(folded.len() - start),
            WordKind::Character | WordKind::Sign => first.len_utf8(),
        };
        at = start + length;
        Some(Token {
            kind: kind_of_first,
            at: start..at,
        })
    })
}

/// Returns the words and characters of folded text.
pub(super) fn words(folded: &str) -> impl Iterator<Item = &str> {
    tokens(folded)
        .filter(|token| token.kind != WordKind::Sign)
        .map(|token| &folded[token.at])
}

/// Returns a text for the index of words: its words and characters, folded, with spaces between.
pub(super) fn indexed_words(text: &str) -> String {
    let folded = fold(text);
    let mut indexed = String::with_capacity(folded.len() + folded.len() / 4);
    for word in words(&folded) {
        if !indexed.is_empty() {
            indexed.push(' ');
        }
        indexed.push_str(word);
    }
    indexed
}

/// Returns the symbols of texts, each once: single, in pairs, and each beside a word of one letter, or a character of
/// Chinese, Japanese or Korean. The trigram index has longer sequences.
pub(super) fn indexed_signs<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut signs = BTreeSet::new();
    for text in texts {
        let folded = fold(text);
        let mut before: Option<Token> = None;
        for token in tokens(&folded) {
            if token.kind == WordKind::Sign {
                signs.insert(folded[token.at.clone()].to_owned());
            }
            if let Some(before) = before
                && before.at.end == token.at.start
                && is_sign_pair(&folded, &before, &token)
            {
                signs.insert(folded[before.at.start..token.at.end].to_owned());
            }
            before = Some(token);
        }
    }
    signs.into_iter().collect::<Vec<_>>().join(" ")
}

fn is_sign_pair(folded: &str, left: &Token, right: &Token) -> bool {
    let is_single = |token: &Token| folded[token.at.clone()].chars().nth(1).is_none();
    let has_sign = [left, right].iter().any(|it| it.kind == WordKind::Sign);
    has_sign && is_single(left) && is_single(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_characters_and_signs_are_apart() {
        for (text, words) in [
            ("The goldcrest's 6 grams: C++!", "the goldcrest s 6 grams c"),
            ("GPU加速の テスト", "gpu 加 速 の テ ス ト"),
            ("검색어를 x", "검 색 어 를 x"),
            ("über-Straße\0y", "uber strasse y"),
            ("foo_bar 🦅 𠮷野家", "foo bar 𠮷 野 家"),
            ("…🦅", ""),
        ] {
            assert_eq!(indexed_words(text), words, "{text}");
        }
    }

    #[test]
    fn signs_are_indexed_once_alone_in_twos_and_beside_a_letter() {
        let signs = |text: &str| indexed_signs([text]);
        assert_eq!(signs("C# and C++, C#"), "# + ++ +, , c# c+");
        assert_eq!(signs("a long word, 10 %"), "% ,");
        assert_eq!(signs("水。🦅"), "。 。🦅 水。 🦅");
        assert_eq!(signs("「水問題」"), "「 「水 」 題」");
        assert_eq!(signs("words alone"), "");
        assert_eq!(indexed_signs(["a+", "+"]), "+ a+");
    }
}
