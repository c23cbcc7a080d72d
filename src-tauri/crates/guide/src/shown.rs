//! Texts of the guide as a chat shows them.

/// Returns Markdown without line breaks within paragraphs and list items, which a chat would show, and with links to
/// other topics as their words.
pub(crate) fn shown(markdown: &str) -> String {
    let mut shown = String::new();
    let mut is_code = false;
    for line in markdown.lines() {
        let is_fence = line.starts_with("```");
        let begins =
            is_code || is_fence || line.is_empty() || is_item(line) || line.starts_with('|');
        let follows_code = shown.ends_with("```");
        if begins || follows_code || shown.ends_with('\n') {
            shown.push('\n');
        } else if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(if is_code { line } else { line.trim_start() });
        is_code ^= is_fence;
    }
    // A chat has topics, not pages.
    replace_links(shown.trim(), |words, target| {
        if target.contains(':') {
            format!("[{words}]({target})")
        } else {
            words.to_owned()
        }
    })
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || number.len() < line.len() && number.starts_with(". ")
}

/// Replaces each link of Markdown, by its words and its target.
pub fn replace_links(markdown: &str, with: impl Fn(&str, &str) -> String) -> String {
    let mut out = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once("](") {
        let (Some((text, words)), Some((target, after))) =
            (before.rsplit_once('['), after.split_once(')'))
        else {
            break;
        };
        out.push_str(text);
        out.push_str(&with(words, target));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn lines_are_joined_except_those_that_mean_something() {
        let text = "One\ntwo.\n\n- an item\n  that goes on\n- another\n\n1. first\n2. second\n\n\
                    ```\na\nb\n```\nAfter.\n\n| a | b |\n|---|---|\n| 1 | 2 |";
        let expected = "One two.\n\n- an item that goes on\n- another\n\n1. first\n2. second\n\n\
                        ```\na\nb\n```\nAfter.\n\n| a | b |\n|---|---|\n| 1 | 2 |";
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn links_to_pages_are_words_and_others_stay() {
        let text = "See [Answers](answers.md#stop), [the\nbin](chats.md) and [candle](https://example.org).";
        assert_eq!(
            shown(text),
            "See Answers, the bin and [candle](https://example.org)."
        );
        assert_eq!(shown("a[0] and f](x"), "a[0] and f](x");
    }
}
