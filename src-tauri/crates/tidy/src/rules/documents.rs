use crate::{File, Finding, Tree};

/// Checks that both licences exist, and that every package names them.
pub fn licences(tree: &Tree) -> Vec<Finding> {
    let texts = [
        ("LICENSE-MIT", "Permission is hereby granted"),
        ("LICENSE-APACHE", "Apache License"),
    ];
    let missing = texts
        .iter()
        .filter(|(path, words)| {
            !tree
                .file(path)
                .is_some_and(|file| file.text.contains(words))
        })
        .map(|(path, _)| Finding::in_file(path, "the licence's text is not there"));
    let unnamed = tree
        .files
        .iter()
        .filter(|file| match file.name() {
            "Cargo.toml" => !file.text.contains("license.workspace = true"),
            "package.json" => !file.text.contains("\"license\": \"MIT OR Apache-2.0\""),
            _ => false,
        })
        .map(|file| Finding::in_file(&file.path, "names no licence"));
    missing.chain(unnamed).collect()
}

/// Checks that links in Markdown to files of the repository have an existing target.
pub fn link_targets_exist(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.has_extension(&["md"])) {
        for (index, line) in file.text.lines().enumerate() {
            for target in line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
            {
                let target = target.split('#').next().unwrap_or_default();
                if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let path = file.resolve(target);
                let is_there = tree.files.iter().any(|other| {
                    other.path == path
                        || other
                            .path
                            .starts_with(&format!("{}/", path.trim_end_matches('/')))
                });
                if !is_there {
                    findings.push(Finding::at(
                        &file.path,
                        index,
                        format!("{target} does not exist"),
                    ));
                }
            }
        }
    }
    findings
}

/// Checks that source files that the Markdown names in backticks exist: by a path, or the end of one.
pub fn named_files_exist(tree: &Tree) -> Vec<Finding> {
    const SOURCES: [&str; 7] = ["rs", "ts", "js", "mjs", "svelte", "wgsl", "py"];
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.has_extension(&["md"])) {
        for (index, line) in file.text.lines().enumerate() {
            // Every second part is between two backticks.
            let names = line.split('`').skip(1).step_by(2).filter(|name| {
                let is_path = |c: char| c.is_alphanumeric() || "_-./".contains(c);
                let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
                name.chars().all(is_path)
                    && extension.is_some_and(|(_, found)| SOURCES.contains(&found))
            });
            for name in names {
                let ending = format!("/{name}");
                let exists = |other: &File| other.path == name || other.path.ends_with(&ending);
                if !tree.files.iter().any(exists) {
                    let what = format!("there is no file {name}");
                    findings.push(Finding::at(&file.path, index, what));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_licence_is_found() {
        let tree = Tree::sample(&[
            ("LICENSE-MIT", "Permission is hereby granted"),
            ("a/Cargo.toml", "[package]"),
        ]);
        let paths: Vec<_> = licences(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["LICENSE-APACHE", "a/Cargo.toml"]);
    }

    #[test]
    fn a_dead_link_is_found() {
        let text = "[a](../b/c.md) [x](gone.md)\n[w](https://example.org) [s](#here) [f](../b)";
        let tree = Tree::sample(&[("docs/a.md", text), ("b/c.md", "")]);
        assert_eq!(
            link_targets_exist(&tree),
            [Finding::at("docs/a.md", 0, "gone.md does not exist")]
        );
    }

    #[test]
    fn a_named_file_that_does_not_exist_is_found() {
        let text = "`src/b.rs` `b.rs` `.rs` `a b.rs` `npm run b`\n`src/c.rs` and `x/b.rs`";
        let tree = Tree::sample(&[("a.md", text), ("crates/src/b.rs", "")]);
        assert_eq!(
            named_files_exist(&tree),
            [
                Finding::at("a.md", 1, "there is no file src/c.rs"),
                Finding::at("a.md", 1, "there is no file x/b.rs")
            ]
        );
    }
}
