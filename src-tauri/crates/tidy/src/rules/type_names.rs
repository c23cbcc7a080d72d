use std::collections::BTreeMap;

use crate::modules::packages;
use crate::{Finding, Tree};

/// Checks that a name of a type stands for one type in all packages, so that a search for it leads to one place.
///
/// Types of tests do not count, nor associated types, nor one type under several `cfg`s in one file.
pub fn type_names(tree: &Tree) -> Vec<Finding> {
    let mut declared: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for package in packages(tree) {
        for module in package.modules {
            for (index, name) in types(&module.code) {
                let places = declared.entry(name).or_default();
                if !places.iter().any(|(path, _)| *path == module.file.path) {
                    places.push((&module.file.path, index));
                }
            }
        }
    }
    let mut findings = Vec::new();
    for (name, places) in &declared {
        // A name of one character is an alias within a few functions, like a type parameter.
        let is_free = name.len() == 1;
        if let [(first, _), others @ ..] = places.as_slice()
            && !is_free
        {
            findings.extend(others.iter().map(|(path, index)| {
                Finding::at(path, *index, format!("{name} is a type of {first} too"))
            }));
        }
    }
    findings
}

/// Returns the declared types with their lines, as indices.
fn types(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // For each open brace, whether it holds the items of a trait or an implementation.
    let mut open: Vec<bool> = Vec::new();
    let mut header = String::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            if c.is_alphabetic() || c == '_' {
                let end = rest
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                let is_associated = word == "type" && open.last() == Some(&true);
                if ["struct", "enum", "trait", "type", "union"].contains(&word)
                    && !is_associated
                    && let Some(name) = declared_name(after)
                {
                    found.push((index, name));
                }
                header.push_str(word);
                header.push(' ');
                rest = after;
                continue;
            }
            match c {
                '{' => {
                    open.push(
                        header
                            .split(' ')
                            .any(|word| word == "impl" || word == "trait"),
                    );
                    header.clear();
                }
                '}' => {
                    open.pop();
                    header.clear();
                }
                ';' => header.clear(),
                _ => {}
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    found
}

/// Returns the name after a keyword, which begins with a capital; `union` may be a variable too.
fn declared_name(after: &str) -> Option<String> {
    let name: String = after
        .strip_prefix(' ')?
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    name.starts_with(char::is_uppercase).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_two_types_is_found() {
        let tree = Tree::sample(&[
            ("a/Cargo.toml", ""),
            ("a/src/lib.rs", "pub struct Model;\nenum Stage {}\n"),
            ("b/Cargo.toml", ""),
            (
                "b/src/lib.rs",
                "// struct Stage\n\npub(crate) trait Model {}",
            ),
        ]);
        assert_eq!(
            type_names(&tree),
            [Finding::at(
                "b/src/lib.rs",
                2,
                "Model is a type of a/src/lib.rs too"
            )]
        );
    }

    #[test]
    fn associated_types_tests_and_alternatives_are_no_second_type() {
        let a = "struct Row;\ntype Error = u8;\n#[cfg(unix)]\nstruct Lock;\n#[cfg(not(unix))]\nstruct Lock(u8);";
        let b = "impl Read for B {\n    type Error = u8;\n    fn f() { if a { } }\n    type Row = u8;\n}\ntrait T { type Error; }\n#[cfg(test)]\nmod tests {\n    struct Row;\n}";
        let tree = Tree::sample(&[("a/Cargo.toml", ""), ("a/src/a.rs", a), ("a/src/b.rs", b)]);
        assert_eq!(type_names(&tree), []);
    }
}
