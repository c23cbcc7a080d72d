use crate::{Finding, Tree};

/// Both licences are there, and every package names them.
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

/// Links in our Markdown that lead to a file of the repository lead to one that is there.
pub fn links_lead_somewhere(tree: &Tree) -> Vec<Finding> {
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
                let path = resolve(&file.path, target);
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
                        format!("{target} is not there"),
                    ));
                }
            }
        }
    }
    findings
}

fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_licence_is_found() {
        let tree = Tree::made_up(&[
            ("LICENSE-MIT", "Permission is hereby granted"),
            ("a/Cargo.toml", "[package]"),
        ]);
        let paths: Vec<_> = licences(&tree).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["LICENSE-APACHE", "a/Cargo.toml"]);
    }

    #[test]
    fn a_dead_link_is_found() {
        let text = "[a](../b/c.md) [x](gone.md)\n[w](https://example.org) [s](#here) [f](../b)";
        let tree = Tree::made_up(&[("docs/a.md", text), ("b/c.md", "")]);
        assert_eq!(
            links_lead_somewhere(&tree),
            [Finding::at("docs/a.md", 0, "gone.md is not there")]
        );
    }
}
