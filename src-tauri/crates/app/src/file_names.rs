//! Names of files, derived from a person's text.

/// Maximum characters and bytes: file systems allow 255 bytes, which include an extension and a number.
const MOST_CHARS: usize = 80;
const MOST_BYTES: usize = 200;

/// Removes the characters that file names cannot have on every system; empty if nothing is left.
pub fn as_file_name(text: &str) -> String {
    let is_forbidden = |c: char| c.is_control() || r#"/\:*?"<>|"#.contains(c);
    let cleaned: String = text
        .chars()
        .take(MOST_CHARS)
        .map(|c| if is_forbidden(c) { ' ' } else { c })
        .collect();
    let words: Vec<&str> = cleaned.split_whitespace().collect();
    let name = words.join(" ");
    let name = &name[..name.floor_char_boundary(MOST_BYTES)];
    let name = name.trim_matches(['.', ' ']);
    if is_device(name) {
        return format!("_{name}");
    }
    name.to_owned()
}

/// Returns whether Windows takes a name for that of a device, whatever its extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let stem = stem.to_ascii_lowercase();
    if ["con", "prn", "aux", "nul"].contains(&stem.as_str()) {
        return true;
    }
    let port = stem.strip_prefix("com").or(stem.strip_prefix("lpt"));
    port.is_some_and(|number| matches!(number.as_bytes(), [b'1'..=b'9']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_every_system_takes() {
        for (text, name) in [
            ("How heavy?", "How heavy"),
            ("a/b\\c: d\n", "a b c d"),
            ("../a\\b:c*?", "a b c"),
            ("..", ""),
            ("Ä ñ 日本", "Ä ñ 日本"),
            ("Coder (Rust)", "Coder (Rust)"),
            ("con", "_con"),
            ("Aux.md", "_Aux.md"),
            ("COM7", "_COM7"),
            ("com0", "com0"),
            ("console", "console"),
        ] {
            assert_eq!(as_file_name(text), name, "{text:?}");
        }
        assert_eq!(as_file_name(&"x".repeat(500)).len(), MOST_CHARS);
        let long = as_file_name(&"日".repeat(500));
        assert!((190..=MOST_BYTES).contains(&long.len()), "{}", long.len());
    }
}
