use crate::{File, Finding, Tree};

const TOKENS: &str = "ui/src/styles/tokens.css";
const HOST: &str = "ui/src/host/";
const COLOUR_FUNCTIONS: [&str; 9] = [
    "rgb(", "rgba(", "hsl(", "hsla(", "hwb(", "lab(", "lch(", "oklab(", "oklch(",
];
const COLOUR_NAMES: [&str; 10] = [
    "black", "blue", "gold", "gray", "green", "grey", "orange", "red", "white", "yellow",
];
const NETWORK_APIS: [&str; 9] = [
    "fetch(",
    "XMLHttpRequest",
    "WebSocket(",
    "EventSource(",
    "sendBeacon(",
    "src=\"http",
    "href=\"http",
    "url(http",
    "url(\"http",
];
/// Storage of the web view, which the store's copies do not include.
const BROWSER_STORAGE: [&str; 3] = ["localStorage", "sessionStorage", "indexedDB"];

/// Checks that colours are named in one place, so that light and dark are changed in one place.
pub fn colours_are_tokens(tree: &Tree) -> Vec<Finding> {
    let styled =
        |file: &&File| file.has_extension(&["css", "svelte", "html"]) && file.path != TOKENS;
    find(
        tree.ui().filter(styled),
        |line| {
            COLOUR_FUNCTIONS.iter().any(|name| has_call(line, name))
                || has_hex(line)
                || has_named(line)
        },
        "a colour: name it in styles/tokens.css",
    )
}

/// Checks that only `host/` names Tauri.
pub fn only_host_names_tauri(tree: &Tree) -> Vec<Finding> {
    let others = tree.ui().filter(|file| !file.path.starts_with(HOST));
    find(
        others,
        |line| line.contains("@tauri-apps") || line.contains("__TAURI"),
        "only host/ may name Tauri",
    )
}

/// Checks that the page uses no network and no storage beside the store.
pub fn ui_stays_offline(tree: &Tree) -> Vec<Finding> {
    let mut findings = find(
        tree.ui(),
        |line| NETWORK_APIS.iter().any(|way| line.contains(way)),
        "uses a network",
    );
    findings.extend(find(
        tree.ui(),
        |line| BROWSER_STORAGE.iter().any(|name| line.contains(name)),
        "store it through host/",
    ));
    findings
}

fn find<'a>(
    files: impl Iterator<Item = &'a File>,
    breaks: impl Fn(&str) -> bool,
    what: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let line = line.trim();
            let is_comment = ["//", "/*", "*", "<!--"]
                .iter()
                .any(|start| line.starts_with(start));
            if !is_comment && breaks(line) {
                findings.push(Finding::at(&file.path, index, what));
            }
        }
    }
    findings
}

fn has_call(line: &str, name: &str) -> bool {
    line.match_indices(name)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_'))
}

/// Returns whether a line has `#` and as many hexadecimal digits as a colour; `{#each` and `#app` have not.
fn has_hex(line: &str) -> bool {
    line.match_indices('#').any(|(at, _)| {
        let word: String = line[at + 1..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        [3, 4, 6, 8].contains(&word.len())
            && word.chars().all(|c| c.is_ascii_hexdigit())
            && !line[..at].ends_with(['{', '&'])
    })
}

/// Returns whether a line has a colour's name as a value of a declaration.
fn has_named(line: &str) -> bool {
    let Some((property, value)) = line.split_once(':') else {
        return false;
    };
    let is_property = property
        .trim()
        .chars()
        .all(|c| c.is_ascii_lowercase() || c == '-');
    is_property
        && value
            .split([' ', ',', '(', ')', ';'])
            .any(|word| COLOUR_NAMES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_outside_the_tokens_are_found() {
        let css = "a { color: #fff; }\nb { background: oklch(50% 0 0); }\ncolor: white;\nwhite-space: pre;\n\
                   c { color: var(--ink); border-color: color-mix(in oklch, var(--a), var(--b)); }\n#app {}\n{#each a as b}";
        let tree = Tree::sample(&[("ui/src/parts/A.svelte", css), (TOKENS, css)]);
        let lines: Vec<_> = colours_are_tokens(&tree).iter().map(|f| f.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn tauri_away_from_the_host_is_found() {
        let import = "import { invoke } from \"@tauri-apps/api/core\";";
        let tree = Tree::sample(&[
            ("ui/src/state/chat.ts", import),
            ("ui/src/host/tauri.ts", import),
        ]);
        assert_eq!(
            only_host_names_tauri(&tree),
            [Finding::at(
                "ui/src/state/chat.ts",
                0,
                "only host/ may name Tauri"
            )]
        );
    }

    #[test]
    fn ways_out_and_other_stores_are_found() {
        let text = "await fetch(\"/x\");\n<link href=\"https://example.org/a.css\">\nlocalStorage.a = 1;\n// fetch(x)";
        assert_eq!(
            ui_stays_offline(&Tree::sample(&[("ui/src/a.ts", text)])).len(),
            3
        );
    }
}
