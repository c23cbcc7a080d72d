//! Removal of characters that change the direction of text.

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

#[cfg(test)]
mod tests {
    use super::*;

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
