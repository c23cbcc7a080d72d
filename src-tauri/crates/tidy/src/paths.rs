//! Dependencies between the files of a package, by the names in their code.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{Module, Package};

type Path = Vec<String>;

/// Returns, for each module by its index, the modules whose items its code names. Declaring a module and re-exporting
/// its items by `pub use` does not count.
pub fn uses(package: &Package<'_>) -> Vec<BTreeSet<usize>> {
    let scopes: Vec<Scope> = package.modules.iter().map(Scope::read).collect();
    let by_path = package.modules.iter().enumerate();
    let resolver = Resolver {
        scopes: &scopes,
        by_path: by_path.map(|(at, m)| (m.path.as_slice(), at)).collect(),
    };
    let used = |(at, scope): (usize, &Scope)| {
        let named = scope.imports.iter().filter(|import| !import.is_public);
        let named = named.map(|import| &import.path).chain(&scope.paths);
        let targets = named.filter_map(|path| resolver.file_of(path, 0));
        targets.filter(|target| *target != at).collect()
    };
    scopes.iter().enumerate().map(used).collect()
}

/// Names in the code of a file, by paths from the crate's root.
struct Scope {
    imports: Vec<Import>,
    /// Paths in code beside the imports.
    paths: Vec<Path>,
    /// Names of the items that are defined here.
    items: BTreeSet<String>,
}

struct Import {
    path: Path,
    /// The name here; `*` for all names.
    name: String,
    is_public: bool,
}

struct Resolver<'a> {
    scopes: &'a [Scope],
    by_path: BTreeMap<&'a [String], usize>,
}

impl Resolver<'_> {
    /// Returns the file that defines the target of a path; `None` for a module by itself, and for items outside this
    /// package.
    fn file_of(&self, path: &[String], depth: usize) -> Option<usize> {
        const DEEPEST: usize = 8;
        let length = (0..=path.len())
            .rev()
            .find(|&length| self.by_path.contains_key(&path[..length]))?;
        let (module, rest) = (self.by_path[&path[..length]], &path[length..]);
        let name = rest.first()?;
        let scope = &self.scopes[module];
        if name == "*" || scope.items.contains(name) || depth == DEEPEST {
            return Some(module);
        }
        let named = scope.imports.iter().filter(|import| import.name == *name);
        let mut passed_on = named.map(|import| [import.path.as_slice(), &rest[1..]].concat());
        if let Some(path) = passed_on.next() {
            return self.file_of(&path, depth + 1);
        }
        let globs = scope.imports.iter().filter(|import| import.name == "*");
        globs
            .filter_map(|import| {
                let (_, from) = import.path.split_last()?;
                let path = [from, rest].concat();
                let found = self.file_of(&path, depth + 1)?;
                self.scopes[found].items.contains(name).then_some(found)
            })
            .next()
            .or(Some(module))
    }
}

impl Scope {
    fn read(module: &Module<'_>) -> Self {
        let tokens = tokens(&module.code);
        let mut scope = Scope {
            imports: Vec::new(),
            paths: Vec::new(),
            items: items(&tokens),
        };
        let children: BTreeSet<&str> = pairs(&tokens)
            .filter(|(word, _)| *word == "mod")
            .map(|(_, name)| name)
            .collect();
        let absolute = |path: &[&str]| absolute(path, &module.path, &children);
        let mut at = 0;
        while at < tokens.len() {
            // `use<'a>` is a bound.
            if tokens[at] == "use" && tokens.get(at + 1) != Some(&"<") {
                let is_public = at > 0 && matches!(tokens[at - 1], "pub" | ")");
                let mut found = Vec::new();
                at = imports(&tokens, at + 1, &[], &mut found);
                for (path, name) in found {
                    if let Some(path) = absolute(&path) {
                        let name = name.to_owned();
                        scope.imports.push(Import {
                            path,
                            name,
                            is_public,
                        });
                    }
                }
                continue;
            }
            let length = path_length(&tokens[at..]);
            let is_start = at == 0 || !matches!(tokens[at - 1], "::" | ".");
            if length > 1 && is_start {
                let names = tokens[at..at + 2 * length - 1].iter().step_by(2);
                let path: Vec<&str> = names.copied().collect();
                scope.paths.extend(absolute(&path));
                scope.paths.extend(scope.through_import(&path));
            }
            at += (2 * length).saturating_sub(1).max(1);
        }
        scope
    }

    /// Resolves a path whose first name is a module that was imported above.
    fn through_import(&self, path: &[&str]) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let import = self.imports.iter().find(|import| import.name == *first)?;
        let rest = rest.iter().map(|name| (*name).to_owned());
        Some(import.path.iter().cloned().chain(rest).collect())
    }
}

/// Returns a path from the crate's root; `None` if it leads to another crate or to a name that is imported.
fn absolute(path: &[&str], here: &[String], children: &BTreeSet<&str>) -> Option<Path> {
    let mut base = here.to_vec();
    let mut rest = path;
    match *path.first()? {
        "crate" => {
            base.clear();
            rest = &path[1..];
        }
        "self" => rest = &path[1..],
        "super" => {
            while let Some(("super", behind)) = rest.split_first().map(|(first, b)| (*first, b)) {
                base.pop();
                rest = behind;
            }
        }
        first if children.contains(first) => {}
        _ => return None,
    }
    base.extend(rest.iter().map(|name| (*name).to_owned()));
    Some(base)
}

/// Reads one branch of a `use`, and returns its end.
fn imports<'t>(
    tokens: &[&'t str],
    mut at: usize,
    before: &[&'t str],
    found: &mut Vec<(Vec<&'t str>, &'t str)>,
) -> usize {
    let mut path = before.to_vec();
    while at < tokens.len() {
        match tokens[at] {
            "::" => {}
            "{" => {
                at += 1;
                while at < tokens.len() && tokens[at] != "}" {
                    at = imports(tokens, at, &path, found);
                    if tokens.get(at) != Some(&"}") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => {
                let name = tokens.get(at + 1).copied().unwrap_or_default();
                found.push((path, name));
                return at + 2;
            }
            "self" if !before.is_empty() && path.len() == before.len() => {
                let name = path.last().copied().unwrap_or_default();
                found.push((path, name));
                return at + 1;
            }
            ";" | "," | "}" => break,
            name => path.push(name),
        }
        at += 1;
    }
    if let Some(&name) = path.last()
        && path.len() > before.len()
    {
        found.push((path, name));
    }
    at
}

/// Returns the names after keywords that define an item.
fn items(tokens: &[&str]) -> BTreeSet<String> {
    const DEFINES: [&str; 9] = [
        "const", "enum", "fn", "mut", "static", "struct", "trait", "type", "union",
    ];
    let defined = pairs(tokens).filter(|(word, _)| DEFINES.contains(word));
    defined.map(|(_, name)| name.to_owned()).collect()
}

fn pairs<'a, 't>(tokens: &'a [&'t str]) -> impl Iterator<Item = (&'t str, &'t str)> + 'a {
    tokens.windows(2).map(|pair| (pair[0], pair[1]))
}

/// Returns the number of leading names joined by `::`.
fn path_length(tokens: &[&str]) -> usize {
    let is_name = |at: usize| tokens.get(at).is_some_and(|token| is_word(token));
    let mut length = 0;
    while is_name(2 * length) {
        length += 1;
        if tokens.get(2 * length - 1) != Some(&"::") {
            break;
        }
    }
    length
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits code into words, `::`, and every other character by itself.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let length = match c {
            c if is_part(c) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        if !c.is_whitespace() {
            found.push(token);
        }
        rest = behind;
    }
    found
}
