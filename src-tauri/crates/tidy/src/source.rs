//! Rust source with everything blanked that is not code.

/// Blanks the comments and the contents of string and character literals; lines and columns stay.
pub fn code_only(text: &str) -> String {
    let source: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < source.len() {
        let end = match source[at] {
            '/' if source.get(at + 1) == Some(&'/') => line_end(&source, at),
            '/' if source.get(at + 1) == Some(&'*') => block_comment_end(&source, at),
            '"' => string_end(&source, at),
            'r' if !follows_word(&source, at) => raw_string_end(&source, at).unwrap_or(at),
            '\'' => character_end(&source, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(source[at]);
            at += 1;
        } else {
            out.extend(
                source[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { c } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

fn follows_word(source: &[char], at: usize) -> bool {
    // `br"…"` is a raw string too.
    let before = at.checked_sub(1).map(|i| source[i]);
    before.is_some_and(|c| (c.is_alphanumeric() || c == '_') && c != 'b')
}

fn line_end(source: &[char], at: usize) -> usize {
    source[at..]
        .iter()
        .position(|&c| c == '\n')
        .map_or(source.len(), |length| at + length)
}

fn block_comment_end(source: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
    while i + 1 < source.len() {
        match (source[i], source[i + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                i += 1;
                continue;
            }
        }
        i += 2;
        if depth == 0 {
            return i;
        }
    }
    source.len()
}

fn string_end(source: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < source.len() {
        match source[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    source.len()
}

/// Returns the end of a raw string; `None` if the `r` at this place begins none.
fn raw_string_end(source: &[char], at: usize) -> Option<usize> {
    let hashes = source[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if source.get(open) != Some(&'"') {
        return None;
    }
    let closes = |i: usize| {
        source[i] == '"'
            && source
                .get(i + 1..i + 1 + hashes)
                .is_some_and(|s| s.iter().all(|&c| c == '#'))
    };
    let close = (open + 1..source.len()).find(|&i| closes(i));
    Some(close.map_or(source.len(), |i| i + 1 + hashes))
}

/// Returns the end of a character literal; `None` if the quote at this place begins a lifetime.
fn character_end(source: &[char], at: usize) -> Option<usize> {
    match source.get(at + 1)? {
        '\\' => source[at + 3..]
            .iter()
            .position(|&c| c == '\'')
            .map(|length| at + 4 + length),
        _ => (source.get(at + 2) == Some(&'\'')).then_some(at + 3),
    }
}

#[cfg(test)]
mod tests {
    use super::code_only;

    #[test]
    fn blanks_what_is_not_code_and_keeps_lines() {
        let source = "let a = \"unsafe \\\" x\"; // unsafe\n/* unsafe /* deep */ */ let b = 'u';\nfn f<'a>() {}";
        let code = code_only(source);
        assert!(!code.contains("unsafe"), "{code}");
        assert!(!code.contains("'u'"), "{code}");
        assert!(code.contains("fn f<'a>() {}"), "{code}");
        assert_eq!(code.lines().count(), 3);
    }

    #[test]
    fn knows_raw_strings_and_escaped_characters() {
        let code = code_only(
            "let a = r#\"unsafe \"quoted\" \"#; let b = '\\''; let c = br\"unsafe\"; unsafe {}",
        );
        assert_eq!(code.matches("unsafe").count(), 1, "{code}");
        assert!(code.ends_with("unsafe {}"), "{code}");
    }
}
