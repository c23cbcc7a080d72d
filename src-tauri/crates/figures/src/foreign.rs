//! Characters that deceive in a text of unknown origin.

/// Removes the characters that set the direction of the text behind them: "a<RLO>cod.exe" would read "aexe.doc". Those
/// that emoji and scripts need stay.
#[must_use]
pub fn without_bidi_controls(text: &str) -> String {
    let is_control = |character: char| {
        matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.replace(is_control, "")
}

/// Returns whether a terminal obeys a character: control characters, and those that embed, override or isolate a
/// direction of writing. The marks of Arabic and Hebrew texts, which move no other letters, are not among them.
#[must_use]
pub fn is_obeyed(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Removes the characters that a terminal obeys, except for tabs and the ends of lines, those that set a direction, and
/// the invisible tag characters, in which instructions for a model can be hidden.
#[must_use]
pub fn without_controls(text: &str) -> String {
    let is_hidden = |character: char| {
        let is_tag = matches!(character, '\u{e0000}'..='\u{e007f}');
        is_tag || is_obeyed(character) && !matches!(character, '\n' | '\t')
    };
    without_bidi_controls(&text.replace(is_hidden, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_hidden_characters_go_and_text_stays() {
        let hidden: String = "ignore"
            .chars()
            .filter_map(|c| char::from_u32(0xe0000 + c as u32))
            .collect();
        let text = format!(
            "a\u{1b}[2J\r\n\tb\u{9b}\u{7f}{hidden}\u{202e}c\u{61c} Grüße 你好 👩\u{200d}👧"
        );
        assert_eq!(
            without_controls(&text),
            "a[2J\n\tbc Grüße 你好 👩\u{200d}👧"
        );
    }

    const OF_THE_WINDOW: &str = include_str!("../../../../ui/src/text/bidi.ts");

    #[test]
    fn what_sets_a_direction_goes_as_in_the_window() {
        assert!(OF_THE_WINDOW.contains(r"[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]"));
        for character in '\0'..='\u{ffff}' {
            let text = format!("a{character}b");
            let stays = without_bidi_controls(&text) == text;
            let sets_direction = matches!(u32::from(character),
                0x61c | 0x200e | 0x200f | 0x202a..=0x202e | 0x2066..=0x2069);
            assert_eq!(stays, !sets_direction, "{character:?}");
        }
        let family = "👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم";
        assert_eq!(without_bidi_controls(family), family);
    }
}
