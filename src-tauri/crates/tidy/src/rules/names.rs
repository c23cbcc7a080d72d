use crate::{Finding, Tree};

/// Names that do not describe the contents, or that mark a second version.
const VAGUE_NAMES: [&str; 11] = [
    "common", "enhanced", "helper", "helpers", "manager", "misc", "new", "old", "util", "utils",
    "v2",
];

/// Lines that are neither empty nor comment; a file above it holds more than one thing.
const MOST_LINES: usize = 500;

/// Longer files, each with the reason why it is still one thing.
const LONGER: [(&str, usize, &str); 2] = [
    ("ui/src/host/bindings.ts", 2_000, "it is generated"),
    (
        "src-tauri/src/commands.rs",
        1_000,
        "a list of requests of some five lines each, which grows with what the page may ask for",
    ),
];

/// Checks that a file is named after its content.
pub fn file_names(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter_map(|file| {
            let mut words = file.path.split(['/', '.', '-', '_']).map(str::to_lowercase);
            let word = words.find(|word| VAGUE_NAMES.contains(&word.as_str()))?;
            Some(Finding::in_file(
                &file.path,
                format!("{word:?} does not describe the contents"),
            ))
        })
        .collect()
}

/// Checks that a source file is short, as it holds one thing.
pub fn file_lengths(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.has_extension(&["rs", "ts", "js", "mjs", "svelte", "css"]))
        .filter_map(|file| {
            let lines = file.text.lines().map(str::trim);
            let length = lines
                .filter(|line| !line.is_empty() && !is_comment(line))
                .count();
            let longer = LONGER.iter().find(|(path, _, _)| *path == file.path);
            let most = longer.map_or(MOST_LINES, |(_, most, _)| *most);
            (length > most).then(|| {
                Finding::in_file(
                    &file.path,
                    format!("{length} lines of code, {most} at most: split it by what it does"),
                )
            })
        })
        .collect()
}

/// Returns whether a line is a comment. The generated bindings have the comments of the Rust code as blocks.
fn is_comment(line: &str) -> bool {
    line.starts_with("//") || line.starts_with("/*") || line.starts_with("* ") || line == "*/"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_found_in_any_part_of_the_path() {
        let tree = Tree::sample(&[
            ("ui/src/utils/a.ts", ""),
            ("src/chat_manager.rs", ""),
            ("src/renew.rs", ""),
        ]);
        let paths: Vec<_> = file_names(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["ui/src/utils/a.ts", "src/chat_manager.rs"]);
    }

    #[test]
    fn a_long_file_is_found_and_its_comments_do_not_count() {
        let long = "code();\n".repeat(MOST_LINES + 1);
        let commented = format!(
            "{}{}",
            "code();\n".repeat(MOST_LINES),
            "\n// why\n".repeat(400)
        );
        let tree = Tree::sample(&[("a.rs", &long), ("b.rs", &commented), ("c.json", &long)]);
        let paths: Vec<_> = file_lengths(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["a.rs"]);
    }
}
