//! Numbers as the user reads them, and text of unknown origin without the characters that deceive. The page formats
//! numbers in the same way: `ui/src/text/figures.ts`.

#![warn(missing_docs)]

mod foreign;

pub use foreign::{is_obeyed, without_bidi_controls, without_controls};

/// A whole number with its digits in groups of three: `131,072`.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 token`, `1,536 tokens`.
pub fn tokens(number: usize) -> String {
    let unit = if number == 1 { "token" } else { "tokens" };
    format!("{} {unit}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_in_threes() {
        let written = [
            (0, "0"),
            (9, "9"),
            (999, "999"),
            (1_000, "1,000"),
            (40_960, "40,960"),
            (131_072, "131,072"),
            (1_234_567, "1,234,567"),
        ];
        for (number, expected) in written {
            assert_eq!(count(number), expected);
        }
    }

    #[test]
    fn one_token_is_no_tokens() {
        assert_eq!(
            [0, 1, 1_536].map(tokens),
            ["0 tokens", "1 token", "1,536 tokens"]
        );
    }
}
