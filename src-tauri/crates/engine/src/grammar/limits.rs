//! Limits of llguidance, and its messages.

use llguidance::api::ParserLimits;

/// Limits of llguidance, so that hostile schemas take milliseconds: about 20 ms to compile, and 4 ms for a token.
pub(super) fn limits() -> ParserLimits {
    ParserLimits {
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 60_000,
        step_max_items: 20_000,
        max_lexer_states: 20_000,
        max_grammar_size: 200_000,
        precompute_large_lexemes: false,
        verbose_errors: false,
        ..ParserLimits::default()
    }
}

/// The first line of a message of llguidance, shortened.
pub(crate) fn reason_of(message: &str) -> String {
    const LONGEST: usize = 200;
    let line = message.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or_default()
        .trim()
        .chars()
        .take(LONGEST)
        .collect()
}
