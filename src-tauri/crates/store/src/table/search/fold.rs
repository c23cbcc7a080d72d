//! Folding: text without regard to case, accents, width and invisible characters, with a map back to the original.
//!
//! Both indices hold folded text, queries are folded before the comparison, and a snippet is cut from the original at
//! the positions that the spans give.

use std::ops::Range;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use unicode_segmentation::UnicodeSegmentation;

/// Version of these rules. An index made by other rules is rebuilt: FTS5 removes a text by its tokens, which must be
/// those that it was added with.
pub(super) const VERSION: i64 = 2;

const NFKD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizerBorrowed::new_nfkd();
const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();

/// The beginning and the end of a hit in a snippet. Neither is indexed, nor shown from a text.
pub(super) const HIT_BEGIN: char = '\u{E000}';
pub(super) const HIT_END: char = '\u{E001}';

/// Folds a text.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    pieces(text, |piece, _| piece.fold_into(&mut folded));
    folded
}

/// A folded text, with the origin of each of its characters.
pub(super) struct Folded {
    pub(super) text: String,
    spans: Vec<Span>,
}

/// Folded bytes from `at` on, up to the next span, and the bytes of the original that they come from.
struct Span {
    at: usize,
    original: Range<usize>,
    is_plain: bool,
}

impl Folded {
    pub(super) fn new(original: &str) -> Folded {
        let mut text = String::with_capacity(original.len());
        let mut spans = Vec::new();
        pieces(original, |piece, original| {
            spans.push(Span {
                at: text.len(),
                original,
                is_plain: matches!(piece, Piece::Plain(_)),
            });
            piece.fold_into(&mut text);
        });
        Folded { text, spans }
    }

    /// Returns the bytes of the original that these folded bytes come from: whole grapheme clusters.
    pub(super) fn original(&self, folded: Range<usize>) -> Range<usize> {
        let start = self.before(folded.start, |span| span.at);
        let end = self.before(folded.end.saturating_sub(1), |span| span.at);
        let place = |span: &Span, at: usize| span.original.start + (at - span.at);
        match (start, end) {
            (Some(start), Some(end)) => {
                let from = match start.is_plain {
                    true => place(start, folded.start),
                    false => start.original.start,
                };
                let to = match end.is_plain {
                    true => place(end, folded.end),
                    false => end.original.end,
                };
                from..to
            }
            _ => 0..0,
        }
    }

    /// Returns the beginning of the grapheme cluster that contains this byte of the original.
    pub(super) fn character_start(&self, at: usize) -> usize {
        match self.before(at, |span| span.original.start) {
            Some(span) if !span.is_plain && span.original.contains(&at) => span.original.start,
            _ => at,
        }
    }

    /// Returns the last span that begins at `place` or before.
    fn before(&self, place: usize, start: impl Fn(&Span) -> usize) -> Option<&Span> {
        let after = self.spans.partition_point(|span| start(span) <= place);
        self.spans[..after].last()
    }
}

/// A part of a text that is folded by itself.
enum Piece<'t> {
    /// Characters that are each folded to one of the same length.
    Plain(&'t str),
    /// A grapheme cluster.
    Cluster(&'t str),
}

impl Piece<'_> {
    fn fold_into(&self, folded: &mut String) {
        match self {
            Piece::Plain(text) => folded.extend(text.chars().filter_map(plain)),
            Piece::Cluster(text) => fold_cluster(text, folded),
        }
    }
}

/// Splits a text into pieces, each with its bytes.
fn pieces<'t>(text: &'t str, mut each: impl FnMut(Piece<'t>, Range<usize>)) {
    let mut at = 0;
    while at < text.len() {
        let (length, ends) = plain_length(&text[at..]);
        if length > 0 {
            each(Piece::Plain(&text[at..at + length]), at..at + length);
            at += length;
        }
        if ends {
            break;
        }
        let end = at + other_length(&text[at..]);
        for (start, cluster) in text[at..end].grapheme_indices(true) {
            let start = at + start;
            each(Piece::Cluster(cluster), start..start + cluster.len());
        }
        at = end;
    }
}

/// Returns the bytes of plain characters that a text begins with, and whether those are all. Marks may follow the last
/// one, so it is left out if others come.
fn plain_length(text: &str) -> (usize, bool) {
    let mut last = 0;
    for (at, c) in text.char_indices() {
        if plain(c).is_none() {
            return (last, false);
        }
        last = at;
    }
    (text.len(), true)
}

/// Returns the bytes up to the next two plain characters, between which there is a cluster boundary.
fn other_length(text: &str) -> usize {
    let mut is_after_plain = false;
    for (at, c) in text.char_indices() {
        let is_plain = plain(c).is_some();
        if is_plain && is_after_plain {
            return at;
        }
        is_after_plain = is_plain;
    }
    text.len()
}

/// Folds a common character that composes only with marks, and keeps its length.
fn plain(c: char) -> Option<char> {
    match c {
        '\0'..='\u{7F}' => Some(c.to_ascii_lowercase()),
        'Й' | 'й' => None,
        'а'..='я' => Some(c),
        'А'..='Я' => char::from_u32(u32::from(c) + 32),
        '‘' | '’' | '“' | '”' | '–' | '—' | '、' | '。' | '「' | '」' => Some(c),
        // Kana, ideographs and syllables.
        '\u{3041}'..='\u{3096}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}' => Some(c),
        _ => None,
    }
}

fn fold_cluster(cluster: &str, folded: &mut String) {
    let visible = |c: &char| !is_ignorable(*c) && !is_diacritic(*c);
    let lower: String = NFKD
        .normalize(cluster)
        .chars()
        .filter(visible)
        // Via upper case: ß and ẞ are ss, ς is σ, ı is i.
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .filter(visible)
        .collect();
    // Composes the syllables of Hangul, and kana with their marks, again.
    folded.push_str(&NFC.normalize(&lower));
}

/// Returns whether a character is an accent, or a point of Hebrew or Arabic.
fn is_diacritic(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36F}'
            | '\u{483}'..='\u{487}'
            | '\u{591}'..='\u{5BD}'
            | '\u{5BF}'
            | '\u{5C1}'..='\u{5C2}'
            | '\u{5C4}'..='\u{5C5}'
            | '\u{5C7}'
            | '\u{610}'..='\u{61A}'
            | '\u{640}'
            | '\u{64B}'..='\u{65F}'
            | '\u{670}'
            | '\u{1AB0}'..='\u{1AFF}'
            | '\u{1DC0}'..='\u{1DFF}'
            | '\u{20D0}'..='\u{20FF}'
            | '\u{FE20}'..='\u{FE2F}'
    )
}

/// Returns whether a character is invisible: Unicode's `Default_Ignorable_Code_Point`, and the marks of a hit.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | HIT_BEGIN
            | HIT_END
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFF8}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_the_same_is_folded_to_the_same() {
        for (text, folded) in [
            ("Straße STRASSE ẞ", "strasse strasse ss"),
            ("ﬀ ﬁnal", "ff final"),
            ("ｆｕｌｌ Ｗ１", "full w1"),
            (
                "soft\u{AD}hyphen zero\u{200B}width wo\u{2060}rd",
                "softhyphen zerowidth word",
            ),
            ("İstanbul ISTANBUL ı", "istanbul istanbul i"),
            ("e\u{301}te\u{301} été ÉTÉ", "ete ete ete"),
            ("Ångström naïve Ё ё", "angstrom naive е е"),
            ("ΣΑΣ σας", "σασ σασ"),
            ("\u{1112}\u{1161}\u{11AB}글 한글", "한글 한글"),
            ("か\u{3099} が ｶﾞ ガ", "が が ガ ガ"),
            ("👩\u{200D}👩\u{200D}👧 ❤\u{FE0F} ❤", "👩👩👧 ❤ ❤"),
            ("שָׁלוֹם مُحَمَّد", "שלום محمد"),
            ("C++ .NET a_b", "c++ .net a_b"),
            ("\u{E000}hit\u{E001}", "hit"),
            ("", ""),
        ] {
            assert_eq!(fold(text), folded, "{text}");
            assert_eq!(Folded::new(text).text, folded, "{text}");
        }
    }

    /// Characters of the planes in which folding changes any.
    fn characters() -> impl Iterator<Item = char> {
        ('\0'..='\u{1FFFF}').chain('\u{2F800}'..='\u{2FA1F}')
    }

    #[test]
    fn folding_twice_is_folding_once() {
        for c in characters() {
            let once = fold(&c.to_string());
            assert_eq!(fold(&once), once, "{c:?}");
            let mut cluster = String::new();
            fold_cluster(&c.to_string(), &mut cluster);
            assert_eq!(once, cluster, "{c:?}");
        }
    }

    /// Fails if newer Unicode tables fold a character differently: then the index must be rebuilt.
    #[test]
    fn the_version_stands_for_these_very_rules() {
        // FNV-1a.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for c in characters() {
            for byte in fold(&format!("a{c}b")).bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        assert_eq!(
            (VERSION, hash),
            (2, 15_041_095_043_514_876_093),
            "folding has changed: count VERSION up"
        );
    }

    #[test]
    fn marks_belong_to_the_character_before_them() {
        for (text, folded) in [
            ("и\u{306}й", "ии"),
            ("жи\u{306}ж", "жиж"),
            ("かか\u{3099}か", "かがか"),
            ("가가\u{11A8}가", "가각가"),
            ("水e\u{301}水x\u{301}", "水e水x"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn a_place_in_folded_text_leads_to_whole_characters_of_the_original() {
        let original = |text: &str, wanted: &str| {
            let folded = Folded::new(text);
            let at = folded
                .text
                .find(wanted)
                .unwrap_or_else(|| panic!("{wanted} in {}", folded.text));
            text[folded.original(at..at + wanted.len())].to_owned()
        };
        for (text, wanted, shown) in [
            ("the Straße is", "strasse", "Straße"),
            ("a e\u{301}te\u{301} b", "ete", "e\u{301}te\u{301}"),
            ("x soft\u{AD}hyphen y", "softhyphen", "soft\u{AD}hyphen"),
            ("plain text", "in te", "in te"),
            ("ﬀ", "f", "ﬀ"),
            ("👍🏽!", "👍", "👍🏽"),
            ("水の問題", "の問", "の問"),
        ] {
            assert_eq!(original(text, wanted), shown, "{text}");
        }
        let folded = Folded::new("a👍🏽b");
        let starts: Vec<_> = [0, 1, 5, 9].map(|at| folded.character_start(at)).into();
        assert_eq!(starts, [0, 1, 1, 9]);
    }
}
