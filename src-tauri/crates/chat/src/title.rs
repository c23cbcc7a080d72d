//! A chat's title.

use crate::failure::Failure;

/// Characters of a title made from a message.
const MADE: usize = 60;
/// Characters of a title that a user gives.
const GIVEN: usize = 200;

/// The first line of a message that says something, cut at a word.
pub(crate) fn from_message(text: &str) -> String {
    let line = text
        .lines()
        .map(one_line)
        .find(|line| line.chars().any(char::is_alphanumeric));
    let line = line.unwrap_or_else(|| one_line(text));
    if line.chars().count() <= MADE {
        return line;
    }
    let end = line
        .char_indices()
        .nth(MADE)
        .map_or(line.len(), |(at, _)| at);
    let cut = match line[..end].rfind(' ') {
        Some(space) if !line[end..].starts_with(' ') && space > 0 => &line[..space],
        _ => &line[..end],
    };
    format!(
        "{}…",
        cut.trim_end_matches([' ', ',', ';', ':', '.', '-', '–'])
    )
}

/// A title as the user gave it: one line, not empty, not endless.
pub(crate) fn from_user(title: &str) -> Result<String, Failure> {
    let title = one_line(title);
    match title.chars().count() {
        0 => Err(Failure::other("A title cannot be empty.")),
        1..=GIVEN => Ok(title),
        long => Err(Failure::other(format!(
            "A title has at most {GIVEN} characters; this one has {long}."
        ))),
    }
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_first_line_that_says_something() {
        assert_eq!(
            from_message("\n  ---\n  What is   a goldcrest?\nTell me."),
            "What is a goldcrest?"
        );
        assert_eq!(from_message("?!"), "?!");
    }

    #[test]
    fn cuts_at_a_word() {
        let long = "Why does the smallest European songbird, the goldcrest, weigh only six grams?";
        assert_eq!(
            from_message(long),
            "Why does the smallest European songbird, the goldcrest…"
        );
        let exact = format!("{} tail", "x".repeat(60));
        assert_eq!(from_message(&exact), format!("{}…", "x".repeat(60)));
        let word = "ü".repeat(80);
        assert_eq!(from_message(&word), format!("{}…", "ü".repeat(60)));
    }

    #[test]
    fn refuses_empty_and_endless_titles() {
        assert_eq!(
            from_user("  Birds\nof Europe ").as_deref(),
            Ok("Birds of Europe")
        );
        assert!(from_user(" \n\t ").is_err());
        assert!(from_user(&"x".repeat(201)).is_err());
        assert!(from_user(&"ü".repeat(200)).is_ok());
    }
}
