use crate::{File, Finding, Tree};

// Taken apart so that this file does not break its own rules.
const UNFINISHED: [&str; 7] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("HA", "CK:"),
    concat!("db", "g!("),
    concat!("todo", "!("),
    concat!("@ts", "-ignore"),
];
const MACHINE_PATHS: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// Checks that there are no notes of unfinished work, which belongs in an issue.
pub fn unfinished_work(tree: &Tree) -> Vec<Finding> {
    find(tree, &UNFINISHED, "unfinished: do it, or file it")
}

/// Checks that there is no path of the machine that a file was written on.
pub fn machine_paths(tree: &Tree) -> Vec<Finding> {
    find(tree, &MACHINE_PATHS, "a path of one machine")
}

fn find(tree: &Tree, words: &[&str], what: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_written_by_hand(file)) {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(*word)) {
                findings.push(Finding::at(&file.path, index, format!("{word} is {what}")));
            }
        }
    }
    findings
}

/// Returns whether a file is written by hand. Lock files, and the tables and texts of models and tests, are not.
fn is_written_by_hand(file: &File) -> bool {
    file.has_extension(&[
        "rs", "ts", "js", "mjs", "svelte", "css", "html", "toml", "md", "py", "yaml", "conf", "sh",
    ]) || ["package.json", "tauri.conf.json", "run", "manifest.json"].contains(&file.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_machine_paths_are_found() {
        let note = format!("let a = 1; // {} later", UNFINISHED[0]);
        let path = format!("data = \"{}me/data\"", MACHINE_PATHS[2]);
        let tree = Tree::sample(&[("a.rs", &note), ("b.py", &path), ("Cargo.lock", &path)]);
        assert_eq!(unfinished_work(&tree).len(), 1);
        assert_eq!(machine_paths(&tree).len(), 1);
    }
}
