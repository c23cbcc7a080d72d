//! The packages' product code: their modules, without tests.

use std::collections::BTreeSet;

use crate::{File, Tree, code_only};

/// A package and the files of its library or program.
pub struct Package<'t> {
    /// Sorted by path of file.
    pub modules: Vec<Module<'t>>,
}

/// A file of product code.
pub struct Module<'t> {
    /// Names from the crate's root, which itself is empty.
    pub path: Vec<String>,
    /// The file.
    pub file: &'t File,
    /// Its text without comments, literals and test-only code; line numbers are unchanged.
    pub code: String,
}

/// Returns all packages, without `tests/`, `benches/`, build scripts and modules under `#[cfg(test)]`.
pub fn packages(tree: &Tree) -> Vec<Package<'_>> {
    let manifests = tree.files.iter().filter(|file| file.name() == "Cargo.toml");
    manifests
        .map(|manifest| {
            let folder = manifest.path.trim_end_matches("Cargo.toml");
            Package {
                modules: modules(tree, folder),
            }
        })
        .collect()
}

fn modules<'t>(tree: &'t Tree, folder: &str) -> Vec<Module<'t>> {
    let sources = format!("{folder}src/");
    let mut tests = BTreeSet::new();
    let mut modules = Vec::new();
    for file in tree.rust() {
        let Some(inner) = file.path.strip_prefix(&sources) else {
            continue;
        };
        let path = module_path(inner);
        let code = code_only(&file.text);
        for name in test_modules(&code) {
            tests.insert([path.as_slice(), &[name]].concat());
        }
        modules.push(Module {
            path,
            file,
            code: without_tests(&code),
        });
    }
    modules.retain(|module| {
        !(1..=module.path.len()).any(|length| tests.contains(&module.path[..length]))
    });
    modules
}

/// Returns the module of a file: `a/b.rs` and `a/b/mod.rs` are `a::b`.
fn module_path(file: &str) -> Vec<String> {
    let mut path: Vec<String> = file
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    let last = path.last().map(String::as_str);
    if last == Some("mod") || (path.len() == 1 && matches!(last, Some("lib" | "main"))) {
        path.pop();
    }
    path
}

/// Returns the modules in separate files that are compiled only for tests.
fn test_modules(code: &str) -> Vec<String> {
    test_items(code)
        .filter_map(|(start, end)| {
            let item = code[start..end].strip_suffix(';')?;
            let (_, name) = item.rsplit_once("mod ")?;
            Some(name.trim().to_owned())
        })
        .collect()
}

fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut at = 0;
    for (start, end) in test_items(code) {
        if start < at {
            continue;
        }
        out.push_str(&code[at..start]);
        out.extend(code[start..end].chars().filter(|&c| c == '\n'));
        at = end;
    }
    out.push_str(&code[at..]);
    out
}

/// Returns the ranges of items under `#[cfg(test)]`, with this attribute.
fn test_items(code: &str) -> impl Iterator<Item = (usize, usize)> {
    let outer = ["#[cfg(test)]", "#[cfg(all(test,"];
    let inner = code.find("#![cfg(test)]").map(|at| (at, code.len()));
    let items = code.match_indices("#[cfg(").filter_map(move |(start, _)| {
        let is_test = outer.iter().any(|form| code[start..].starts_with(form));
        is_test.then(|| (start, item_end(code, start)))
    });
    inner.into_iter().chain(items)
}

/// Returns the end of the item whose first attribute begins here: after its `;`, its closing brace, or the `,` of a
/// field.
fn item_end(code: &str, start: usize) -> usize {
    const ITEMS: [&str; 8] = [
        "fn ", "mod ", "struct ", "enum ", "impl", "trait ", "use ", "pub",
    ];
    let mut depth = 0;
    let mut item = None;
    for (at, c) in code[start..].char_indices().map(|(at, c)| (start + at, c)) {
        let starts_item = depth == 0 && item.is_none() && !c.is_whitespace() && c != '#';
        if starts_item && c != '[' {
            item = Some(&code[at..]);
        }
        let is_item = item.is_some_and(|item| ITEMS.iter().any(|word| item.starts_with(word)));
        let is_use = item.is_some_and(|item| item.split(';').next().is_some_and(is_import));
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth -= 1;
                if depth < 0 {
                    return at;
                }
                if depth == 0 && c == '}' && !is_use {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            ',' if depth == 0 && item.is_some() && !is_item => return at + 1,
            _ => {}
        }
    }
    code.len()
}

fn is_import(item: &str) -> bool {
    item.starts_with("use ") || (item.starts_with("pub") && item.contains(" use "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_for_tests_alone_is_left_out() {
        let lib = "mod a;\n#[cfg(test)]\nmod battery;\n#[cfg(test)]\nuse a::{B, C};\nstruct Product {\n    #[cfg(test)]\n    count: [u8; 2],\n    kept: u8,\n}\n#[cfg(test)]\nmod tests {\n    fn inner() {}\n}\nfn after() {}";
        let tree = Tree::sample(&[
            ("a/Cargo.toml", ""),
            ("a/src/a/mod.rs", "fn a() {}"),
            ("a/src/battery.rs", "fn battery() {}"),
            ("a/src/battery/deep.rs", "fn deep() {}"),
            ("a/src/lib.rs", lib),
            ("a/tests/b.rs", "fn b() {}"),
        ]);
        let package = packages(&tree).remove(0);
        let paths: Vec<_> = package.modules.iter().map(|m| m.path.join("::")).collect();
        assert_eq!(paths, ["a", ""]);
        let code = &package.modules[1].code;
        for kept in ["mod a;", "struct Product", "kept: u8", "fn after"] {
            assert!(code.contains(kept), "{kept}: {code}");
        }
        for left_out in ["battery", "use", "count", "inner"] {
            assert!(!code.contains(left_out), "{left_out}: {code}");
        }
        assert_eq!(code.lines().count(), lib.lines().count());
    }
}
