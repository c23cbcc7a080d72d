//! Length limit of names that come from files and drivers.

/// Maximum characters of a name that comes from a file or a driver.
pub(crate) const MAX_NAME: usize = 200;

/// Returns the first `max` characters, with an ellipsis if there are more.
pub(crate) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_its_limit() {
        assert_eq!(cut("Grüße", 5), "Grüße");
        assert_eq!(cut("Grüße!", 5), "Grüße…");
        assert_eq!(cut("", 0), "");
    }
}
