use crate::{File, Finding, Tree};

/// Words that begin a clause, in place of a noun or a verb.
const CLAUSE_WORDS: [&str; 11] = [
    "As", "How", "Of", "That", "What", "When", "Where", "Whether", "Which", "Who", "Why",
];

/// Returns the text of a comment that begins on a line, given the line before it and the line.
type FindOpening = for<'t> fn(&str, &'t str) -> Option<&'t str>;

/// Checks that comments begin with a noun or a verb: doc comments and their sections in Rust, all comments in the page
/// and the scripts.
pub fn comments_begin_with_a_noun_or_a_verb(tree: &Tree) -> Vec<Finding> {
    let rust = tree.rust().flat_map(|file| findings(file, rust_opening));
    let scripts = tree.files.iter().filter(|file| is_script(file));
    rust.chain(scripts.flat_map(|file| findings(file, script_opening)))
        .collect()
}

fn is_script(file: &File) -> bool {
    let is_in_folder = file.path.starts_with("ui/") || file.path.starts_with(".scripts/");
    is_in_folder && file.has_extension(&["ts", "js", "mjs", "cjs", "svelte"])
}

fn findings(file: &File, opening: FindOpening) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let before = std::iter::once("").chain(lines.iter().copied());
    let pairs = before.zip(&lines).enumerate();
    pairs
        .filter_map(|(index, (before, line))| {
            let text = opening(before, line)?;
            let word = text.split(|c: char| !c.is_alphabetic()).next()?;
            CLAUSE_WORDS.contains(&word).then(|| {
                let what = format!("begin a comment with a noun or a verb, not with {word:?}");
                Finding::at(&file.path, index, what)
            })
        })
        .collect()
}

fn rust_opening<'t>(before: &str, line: &'t str) -> Option<&'t str> {
    ["///", "//!"].into_iter().find_map(|marker| {
        let begins = match before.strip_prefix(marker) {
            None => true,
            Some(before) => before.starts_with(" # "),
        };
        line.strip_prefix(marker)
            .filter(|_| begins)
            .map(str::trim_start)
    })
}

fn script_opening<'t>(before: &str, line: &'t str) -> Option<&'t str> {
    if let Some(text) = line.strip_prefix("/*") {
        return Some(text.trim_start_matches('*').trim_start());
    }
    if let Some(text) = line.strip_prefix("//") {
        return (!before.starts_with("//")).then(|| text.trim_start());
    }
    let begins = before == "/**" || before == "/*";
    begins.then(|| line.trim_start_matches('*').trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let tree = Tree::sample(&[(path, text)]);
        let found = comments_begin_with_a_noun_or_a_verb(&tree);
        found.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_doc_comment_and_a_section_that_begin_with_a_clause_are_found() {
        let text = "//! What it is.\n\n/// Whether it is so,\n/// As it wraps.\n// What for\nfn a();\n\
                    /// Asks once.\n///\n/// When it is late, again.\n///\n/// # Errors\n/// When it fails.\n";
        assert_eq!(lines("a.rs", text), [1, 3, 12]);
    }

    #[test]
    fn every_comment_of_the_page_and_the_scripts_is_looked_at() {
        let text = "/** What it is. */\n/**\n * How it is,\n * As it wraps.\n */\n// Where it is,\n// As it wraps.\n\
                    const which = 1; // Which\nWhat;\n";
        for path in ["ui/src/a.svelte.ts", "ui/src/A.svelte", ".scripts/a.mjs"] {
            assert_eq!(lines(path, text), [1, 3, 6], "{path}");
        }
        for path in ["models/a.js", "ui/src/a.css"] {
            assert_eq!(lines(path, text), [0; 0], "{path}");
        }
    }
}
