//! Checks that the guide names the app's controls, keys, settings and commands as the app does, and all of them.
//!
//! The guide writes controls and keys in bold, and typed text as code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use guide::Guide;

use app::cli::{Cli, ENVIRONMENT};

/// Names in bold that are put together by the page, or are not the page's.
const NOT_LITERAL: [(&str, &str); 8] = [
    ("Delete message and what follows", "made of parts"),
    ("Delete answer and what follows", "made of parts"),
    ("Copy answer", "made of parts"),
    ("Edit answer", "made of parts"),
    ("Copy message", "made of parts"),
    ("SmolLM3-3B", "the model's name, from its manifest"),
    ("Delete for good…", "made of parts"),
    ("Export…", "made of parts"),
];

/// Keys of the lists and of the desktop, which are not in the page's list of keys.
const OTHER_KEYS: [(&str, &str); 4] = [
    ("Enter", "sends a message"),
    ("Ctrl+A", "selects in the list of chats"),
    ("Ctrl+Space", "selects in the list of chats"),
    ("Shift+F10", "opens menus, by the web view"),
];

/// Settings that the guide does not name.
const OTHER_SETTINGS: [(&str, &str); 2] = [
    ("Sampling", "a group; each of its settings is named"),
    ("Chat template", "changed by “Use the file's own template”"),
];

/// Commands of the palette without keys that the guide does not name.
const OTHER_COMMANDS: [(&str, &str); 1] = [("Stop the answer", "Esc does it")];

/// Returns whether a list of exceptions has a name.
fn is_among(list: &[(&str, &str)], name: &str) -> bool {
    list.iter().any(|(listed, _)| *listed == name)
}

fn ui(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../ui/src")
        .join(path)
}

fn source(path: &str) -> String {
    std::fs::read_to_string(ui(path)).expect("a source of the page")
}

/// Returns the sources of the page on one line, without its tests.
fn all_sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("the page") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_source = [".ts", ".svelte"].iter().any(|end| name.ends_with(end));
        if path.is_dir() {
            all_sources(&path, text);
        } else if is_source && !name.contains(".test.") {
            let source = std::fs::read_to_string(&path).expect("UTF-8");
            text.extend(source.split_whitespace().flat_map(|word| [word, " "]));
        }
    }
}

/// Returns what is between a pair of marks.
fn between<'t>(text: &'t str, mark: &'static str) -> impl Iterator<Item = &'t str> {
    text.split(mark).skip(1).step_by(2)
}

/// The texts of the guide, without blocks of code.
fn texts() -> Vec<String> {
    let whole = |topic: &guide::Topic| format!("{}\n\n{}", topic.answer, topic.details);
    let texts = Guide::shared().topics().iter().map(whole);
    let prose = |text: String| text.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    texts.map(prose).collect()
}

/// Returns the names in bold, each on one line.
fn bold() -> BTreeSet<String> {
    let one_line = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ");
    let texts = texts();
    texts
        .iter()
        .flat_map(|text| between(text, "**").map(one_line))
        .collect()
}

/// Returns the texts in code, and the lines of blocks of code.
fn code() -> Vec<String> {
    let topics = Guide::shared().topics().iter();
    let blocks = topics.flat_map(|topic| between(topic.details, "```").flat_map(str::lines));
    let blocks: Vec<String> = blocks.map(str::to_owned).collect();
    let texts = texts();
    let spans = texts
        .iter()
        .flat_map(|text| between(text, "`"))
        .map(str::to_owned);
    spans.chain(blocks).collect()
}

/// Returns the values of a field in a source: `field: "value"`.
fn values<'t>(source: &'t str, field: &str) -> Vec<&'t str> {
    let start = format!("{field}: \"");
    let parts: Vec<&str> = source.split(&*start).skip(1).collect();
    parts
        .into_iter()
        .filter_map(|part| part.split('"').next())
        .collect()
}

/// Returns keys as the guide writes them.
fn shown(keys: &str) -> String {
    let names = [
        ("Escape", "Esc"),
        ("ArrowUp", "↑"),
        ("ArrowDown", "↓"),
        ("Slash", "/"),
    ];
    names.iter().fold(keys.to_owned(), |keys, (name, sign)| {
        keys.replace(name, sign)
    })
}

fn is_keys(name: &str) -> bool {
    let parts: Vec<&str> = name.split('+').collect();
    let is_function =
        |part: &str| part.len() > 1 && part.starts_with('F') && part[1..].parse::<u8>().is_ok();
    let is_key = |part: &&str| {
        [
            "Ctrl",
            "Shift",
            "Alt",
            "Esc",
            "Enter",
            "Space",
            "Backspace",
            "Plus",
            "Minus",
        ]
        .contains(part)
            || is_function(part)
            || part.chars().count() == 1
    };
    parts.iter().all(is_key)
}

#[test]
fn keys_are_those_of_the_page() {
    let sources = [source("state/commands.ts"), source("state/shortcuts.ts")];
    let fields = sources
        .iter()
        .flat_map(|text| [values(text, "keys"), values(text, "also")]);
    let keys: BTreeSet<String> = fields.flatten().map(shown).collect();
    assert!(keys.len() > 30, "{keys:?}");
    let bold = bold();
    let missing: Vec<&String> = keys.difference(&bold).collect();
    assert!(missing.is_empty(), "the guide lacks {missing:?}");
    let unknown = bold.iter().filter(|name| is_keys(name));
    let unknown: Vec<&String> = unknown
        .filter(|name| !keys.contains(*name) && !is_among(&OTHER_KEYS, name))
        .collect();
    assert!(unknown.is_empty(), "the page has no {unknown:?}");
}

#[test]
fn settings_are_those_of_the_page() {
    let bold = bold();
    for name in chat::setting_names().into_values() {
        assert!(
            bold.contains(name) || is_among(&OTHER_SETTINGS, name),
            "the guide lacks {name}"
        );
    }
    let pages = source("state/settings-pages.ts");
    let pages: Vec<&str> = between(&pages, "\"").collect();
    let named = |page: &str| bold.contains(&format!("Settings → {page}")) || bold.contains(page);
    for page in &pages {
        assert!(named(page), "the guide lacks the page {page}");
    }
    for name in bold
        .iter()
        .filter_map(|name| name.strip_prefix("Settings → "))
    {
        assert!(pages.contains(&name), "the settings have no page {name}");
    }
}

#[test]
fn commands_of_the_page_are_named() {
    let bold = bold();
    let text = source("state/commands.ts");
    let list = text
        .split("export const commands")
        .nth(1)
        .expect("the list");
    let mut found = 0;
    let mut missing = Vec::new();
    for command in list.split("\n  {").skip(1) {
        let has = |field: &str| command.contains(&format!("\n    {field}: "));
        let [name, ..] = values(command, "name")[..] else {
            continue;
        };
        found += 1;
        let is_named = has("keys") || has("slash") || bold.contains(name);
        if !is_named && !is_among(&OTHER_COMMANDS, name) {
            missing.push(name);
        }
    }
    assert!(found > 30, "{found}");
    assert!(missing.is_empty(), "the guide lacks {missing:?}");
}

#[test]
fn labels_of_menus_are_named() {
    let bold = bold();
    let mut missing = Vec::new();
    for path in [
        "chat/menus.ts",
        "sidebar/actions.ts",
        "sidebar/FolderRow.svelte",
        "sidebar/Sidebar.svelte",
        "models/ModelRow.svelte",
    ] {
        let text = source(path);
        let labels = values(&text, "label");
        assert!(!labels.is_empty(), "{path}");
        missing.extend(
            labels
                .into_iter()
                .filter(|label| !bold.contains(*label))
                .map(str::to_owned),
        );
    }
    assert!(missing.is_empty(), "the guide lacks {missing:?}");
}

#[test]
fn names_in_bold_are_those_of_the_app() {
    let mut sources = String::new();
    all_sources(&ui(""), &mut sources);
    let settings: Vec<&str> = chat::setting_names().into_values().collect();
    let is_known = |name: &String| {
        is_keys(name)
            || name.starts_with("Settings → ")
            || settings.contains(&&**name)
            || is_among(&NOT_LITERAL, name)
            || sources.contains(name)
    };
    let unknown: Vec<String> = bold().into_iter().filter(|name| !is_known(name)).collect();
    assert!(
        unknown.is_empty(),
        "nothing in the app is called {unknown:?}"
    );
}

#[test]
fn slash_commands_are_those_of_the_table() {
    let names: Vec<&str> = chat::SLASH_COMMANDS
        .iter()
        .map(|it| it.name.text())
        .collect();
    let code = code();
    for name in &names {
        let is_it = |span: &String| span.split(' ').next() == Some(&format!("/{name}"));
        assert!(code.iter().any(is_it), "the guide lacks /{name}");
    }
    for span in code.iter().filter_map(|span| span.strip_prefix('/')) {
        let name = span.split(' ').next().unwrap_or_default();
        assert!(names.contains(&name), "there is no /{name}");
    }
}

#[test]
fn commands_and_flags_of_the_terminal_are_those_of_the_command_line() {
    let command = Cli::command();
    let shown = || command.get_subcommands().filter(|it| !it.is_hide_set());
    let code = code();
    let named = |span: &str| -> Option<String> {
        let rest = span.trim_start_matches("$ ").strip_prefix("goldcrest ")?;
        Some(rest.split(' ').next().unwrap_or_default().to_owned())
    };
    let commands: BTreeSet<String> = code.iter().filter_map(|span| named(span)).collect();
    for it in shown() {
        assert!(
            commands.contains(it.get_name()),
            "the guide lacks goldcrest {}",
            it.get_name()
        );
    }
    let is_known = |name: &str| {
        name == "help"
            || name.ends_with(".gguf")
            || name.starts_with("--")
            || shown().any(|it| it.get_name() == name)
    };
    for name in &commands {
        assert!(is_known(name), "there is no goldcrest {name}");
    }
    let nested = shown().flat_map(|it| it.get_subcommands());
    let flags: BTreeSet<String> = shown()
        .chain(nested)
        .flat_map(|it| it.get_arguments())
        .filter_map(|argument| argument.get_long().map(|flag| format!("--{flag}")))
        .chain(["--version".to_owned()])
        .collect();
    for span in code
        .iter()
        .filter(|span| span.contains("goldcrest ") || span.starts_with("--"))
    {
        for flag in span
            .split(' ')
            .filter(|word| word.starts_with("--") && *word != "--")
        {
            assert!(flags.contains(flag), "there is no {flag}");
        }
    }
}

#[test]
fn environment_variables_are_those_that_are_obeyed() {
    let code = code().join(" ");
    for (name, _) in ENVIRONMENT {
        assert!(code.contains(name), "the guide lacks {name}");
    }
    let words =
        code.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    for name in words.filter(|word| word.starts_with("GOLDCREST_")) {
        let is_known = ENVIRONMENT.iter().any(|(known, _)| *known == name);
        assert!(is_known, "nothing obeys {name}");
    }
}
