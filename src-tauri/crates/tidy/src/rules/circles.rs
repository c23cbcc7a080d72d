use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::modules::packages;
use crate::paths::uses;
use crate::{File, Finding, Tree};

/// Checks that no file of a package depends on itself, directly or by way of others.
pub fn no_circle_of_files(tree: &Tree) -> Vec<Finding> {
    let packages = packages(tree);
    let circular = packages.iter().flat_map(|package| {
        let path = |at: usize| package.modules[at].file.path.as_str();
        findings(&uses(package), path)
    });
    circular.chain(circles_of_ui(tree)).collect()
}

/// Likewise for the imports of the page's files.
fn circles_of_ui(tree: &Tree) -> Vec<Finding> {
    let files: Vec<&File> = tree
        .ui()
        .filter(|file| file.has_extension(&["ts", "js", "svelte"]))
        .collect();
    let by_path: BTreeMap<&str, usize> = files
        .iter()
        .enumerate()
        .map(|(at, file)| (file.path.as_str(), at))
        .collect();
    let imported = |file: &File| {
        let targets = file
            .text
            .match_indices("from \"")
            .chain(file.text.match_indices("import(\""));
        let targets = targets.filter_map(|(at, found)| {
            let target = file.text[at + found.len()..].split('"').next()?;
            target.starts_with('.').then(|| file.resolve(target))
        });
        targets
            .filter_map(|target| {
                let found = ["", ".ts", ".js", "/index.ts"].map(|end| format!("{target}{end}"));
                found
                    .iter()
                    .find_map(|path| by_path.get(path.as_str()).copied())
            })
            .collect()
    };
    let used: Vec<BTreeSet<usize>> = files.iter().map(|file| imported(file)).collect();
    findings(&used, |at| files[at].path.as_str())
}

/// Returns one finding for each circle, at its first file.
fn findings<'p>(used: &[BTreeSet<usize>], path: impl Fn(usize) -> &'p str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut reported: BTreeSet<usize> = BTreeSet::new();
    for start in 0..used.len() {
        if reported.contains(&start) {
            continue;
        }
        if let Some(circle) = circle(used, start) {
            reported.extend(&circle);
            let others: Vec<&str> = circle[1..].iter().map(|at| path(*at)).collect();
            findings.push(Finding::in_file(
                path(start),
                format!("uses itself in a circle, by way of {}", others.join(", ")),
            ));
        }
    }
    findings
}

/// Returns the shortest path from a file back to itself.
fn circle(used: &[BTreeSet<usize>], start: usize) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = vec![start];
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        next += 1;
        for &target in &used[at] {
            if target == start {
                let mut way = vec![at];
                while let Some(from) = way.last().and_then(|last| before.get(last)) {
                    way.push(*from);
                }
                way.reverse();
                return Some(way);
            }
            if let Entry::Vacant(unseen) = before.entry(target) {
                unseen.insert(at);
                queue.push(target);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circular(files: &[(&str, &str)]) -> Vec<String> {
        let mut files = files.to_vec();
        files.push(("a/Cargo.toml", ""));
        let found = no_circle_of_files(&Tree::sample(&files));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_is_found_through_each_form_of_path() {
        for uses_b in [
            "use crate::b::B;",
            "use super::{b::{self, B}, c};",
            "use crate::b;\nfn f() { b::f(); }",
            "fn f() { super::b::f() }",
            "use crate::B;",
            "use crate::B as Other;",
        ] {
            let found = circular(&[
                ("a/src/a.rs", uses_b),
                ("a/src/b.rs", "pub struct B;\npub fn f(c: crate::c::C) {}"),
                ("a/src/c.rs", "use super::a::*;\npub struct C;"),
                ("a/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use b::B;"),
            ]);
            assert_eq!(
                found,
                ["a/src/a.rs: uses itself in a circle, by way of a/src/b.rs, a/src/c.rs"],
                "{uses_b}"
            );
        }
    }

    #[test]
    fn a_folder_and_its_file_are_a_circle_if_each_uses_the_other() {
        let lib = "mod child;\nuse child::run;\npub struct Parent;";
        let child = "use super::Parent;\npub fn run() {}";
        assert_eq!(
            circular(&[("a/src/child.rs", child), ("a/src/lib.rs", lib)]),
            ["a/src/child.rs: uses itself in a circle, by way of a/src/lib.rs"]
        );
        let passes_on = "mod child;\npub use child::run;\npub struct Parent;";
        let files = [("a/src/child.rs", child), ("a/src/lib.rs", passes_on)];
        assert_eq!(circular(&files), [""; 0]);
    }

    #[test]
    fn tests_comments_and_other_crates_close_no_circle() {
        let b =
            "// use crate::a::A;\nuse a::A;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}";
        let files = [
            ("a/src/a.rs", "use crate::b::B;\npub struct A;"),
            ("a/src/b.rs", b),
            ("a/src/lib.rs", "mod a;\nmod b;"),
        ];
        assert_eq!(circular(&files), [""; 0]);
    }

    #[test]
    fn a_circle_in_the_page_is_found() {
        let found = circular(&[
            ("ui/src/a.svelte", "import { b } from \"./parts/b\";"),
            ("ui/src/parts/b.ts", "export { c } from \"../c.ts\";"),
            ("ui/src/c.ts", "const a = await import(\"./a.svelte\");"),
            ("ui/src/d.ts", "import A from \"./a.svelte\";"),
        ]);
        assert_eq!(
            found,
            ["ui/src/a.svelte: uses itself in a circle, by way of ui/src/parts/b.ts, ui/src/c.ts"]
        );
    }
}
