//! A chat's title.

use crate::failure::Failure;

/// Characters of a title made from a message.
const MADE: usize = 60;
/// Characters of a title that a user gives.
const GIVEN: usize = 200;
/// Words of a title that a model makes. It is asked for six.
const MOST_WORDS: usize = 8;
/// Characters of a folder's name.
pub(crate) const FOLDER: usize = 100;
/// Characters of a preset's name.
pub(crate) const PRESET: usize = 60;

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
    given(title, "A title", GIVEN)
}

/// The name of a folder, in the same way.
pub(crate) fn of_folder(name: &str) -> Result<String, Failure> {
    given(name, "The name of a folder", FOLDER)
}

/// The name of a preset, in the same way.
pub(crate) fn of_preset(name: &str) -> Result<String, Failure> {
    given(name, "The name of a preset", PRESET)
}

fn given(text: &str, what: &str, most: usize) -> Result<String, Failure> {
    let line = one_line(text);
    match line.chars().count() {
        0 => Err(Failure::other(format!("{what} cannot be empty."))),
        long if long > most => Err(Failure::other(format!(
            "{what} has at most {most} characters; this one has {}.",
            figures::count(long)
        ))),
        _ => Ok(line),
    }
}

/// What a copy of a chat is called.
pub(crate) fn of_copy(title: &str) -> String {
    const MARK: &str = " (copy)";
    let title = title.strip_suffix(MARK).unwrap_or(title);
    let title: String = title.chars().take(GIVEN - MARK.len()).collect();
    format!("{title}{MARK}")
}

/// The title in a model's answer; `None` where it has none.
pub(crate) fn from_model(answer: &str) -> Option<String> {
    let line = answer.lines().map(one_line).find(|line| !line.is_empty())?;
    let line = match without_marks(&line).split_once(':') {
        Some((label, rest)) if label.eq_ignore_ascii_case("title") => without_marks(rest),
        _ => without_marks(&line),
    };
    let words: Vec<&str> = line.split_whitespace().take(MOST_WORDS).collect();
    let title = from_message(&words.join(" "));
    title.chars().any(char::is_alphanumeric).then_some(title)
}

/// Without quotes and Markdown around it, and without a full stop.
fn without_marks(line: &str) -> &str {
    let is_mark = |c: char| "*_`\"'“”„«»‘’ ".contains(c);
    line.trim_start_matches(['#', '>', '-', ' '])
        .trim_start_matches(is_mark)
        .trim_end_matches(|c| is_mark(c) || c == '.')
}

/// Without line breaks and control characters.
pub(crate) fn one_line(text: &str) -> String {
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
    fn a_model_s_title_is_one_short_plain_line() {
        for (answer, title) in [
            ("Weight of the Goldcrest", Some("Weight of the Goldcrest")),
            (
                "\n**Title:** \"Small birds.\"\n\nIt is",
                Some("Small birds"),
            ),
            ("„Kleine Vögel“", Some("Kleine Vögel")),
            ("# What's up?", Some("What's up?")),
            ("C#: a first program", Some("C#: a first program")),
            (
                "one two three four five six seven eight nine ten",
                Some("one two three four five six seven eight"),
            ),
            ("\u{7}Bell\u{0} and\tTab", Some("Bell and Tab")),
            ("\"…\"", None),
            ("", None),
        ] {
            assert_eq!(from_model(answer).as_deref(), title, "{answer:?}");
        }
        let endless = from_model(&"x".repeat(1_000_000));
        assert_eq!(endless.map(|title| title.chars().count()), Some(61));
    }

    #[test]
    fn a_copy_is_called_one() {
        assert_eq!(of_copy("Birds"), "Birds (copy)");
        assert_eq!(of_copy("Birds (copy)"), "Birds (copy)");
        assert!(from_user(&of_copy(&"ü".repeat(200))).is_ok());
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
