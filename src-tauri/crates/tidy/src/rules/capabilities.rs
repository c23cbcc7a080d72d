use crate::{Finding, Tree};

const COMMANDS: &str = "src-tauri/src/each_command.rs";
const CAPABILITIES: &str = "src-tauri/capabilities/";
const CONFIGURATION: &str = "src-tauri/tauri.conf.json";

/// Every command of the shell is granted to the window by name, and nothing else of ours is.
pub fn commands_are_granted(tree: &Tree) -> Vec<Finding> {
    let Some(list) = tree.file(COMMANDS) else {
        return vec![Finding::in_file(
            COMMANDS,
            "the list of commands is not there",
        )];
    };
    let commands: Vec<String> = list
        .text
        .split_once("![")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(names, _)| names.split(',').map(|name| name.trim().replace('_', "-")))
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .collect();
    let granted = grants(tree);
    let missing = commands
        .iter()
        .filter(|name| !granted.contains(&format!("allow-{name}")));
    let stale = granted
        .iter()
        .filter_map(|grant| grant.strip_prefix("allow-"))
        .filter(|name| !commands.iter().any(|command| command == name));
    missing
        .map(|name| Finding::in_file(CAPABILITIES, format!("the command {name} is not granted")))
        .chain(stale.map(|name| Finding::in_file(CAPABILITIES, format!("{name} is no command"))))
        .collect()
}

/// The page can load nothing from elsewhere, run no text as code, and reach no plugin.
pub fn window_is_closed_to_the_world(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(CONFIGURATION) else {
        return vec![Finding::in_file(CONFIGURATION, "not there")];
    };
    let needed = [
        "\"default-src\": \"'self'\"",
        "\"connect-src\": \"ipc: http://ipc.localhost\"",
        "\"require-trusted-types-for\": \"'script'\"",
        "\"freezePrototype\": true",
        "\"withGlobalTauri\": false",
    ];
    let forbidden = ["unsafe-inline", "unsafe-eval", "dangerous", "assetProtocol"];
    let missing = needed.iter().filter(|text| !file.text.contains(*text));
    let present = forbidden.iter().filter(|text| file.text.contains(*text));
    let too_wide = grants(tree).into_iter().filter(|grant| {
        [
            "core:default",
            "fs:",
            "http:",
            "shell:",
            "opener:",
            "dialog:",
        ]
        .iter()
        .any(|p| grant.starts_with(p))
    });
    missing
        .map(|text| Finding::in_file(CONFIGURATION, format!("lacks {text}")))
        .chain(present.map(|text| Finding::in_file(CONFIGURATION, format!("has {text}"))))
        .chain(too_wide.map(|grant| {
            Finding::in_file(
                CAPABILITIES,
                format!("{grant} is wider than a command of ours"),
            )
        }))
        .collect()
}

/// Every permission that any capability names.
fn grants(tree: &Tree) -> Vec<String> {
    tree.files
        .iter()
        .filter(|file| file.path.starts_with(CAPABILITIES))
        .filter_map(|file| file.text.split_once("\"permissions\""))
        .flat_map(|(_, rest)| rest.split('"').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "macro_rules! each_command { ($($then:tt)+) => { $($then)+![\n    send,\n    open_chat\n] }; }";

    fn with_grants(permissions: &str) -> Tree {
        let main = format!("{{ \"permissions\": [{permissions}] }}");
        Tree::made_up(&[
            (COMMANDS, LIST),
            ("src-tauri/capabilities/main.json", &main),
        ])
    }

    #[test]
    fn grants_and_commands_that_differ_are_found() {
        assert_eq!(
            commands_are_granted(&with_grants("\"allow-send\", \"allow-open-chat\"")),
            []
        );
        let findings = commands_are_granted(&with_grants("\"allow-send\", \"allow-gone\""));
        let said: Vec<_> = findings.iter().map(|f| f.what.as_str()).collect();
        assert_eq!(
            said,
            ["the command open-chat is not granted", "gone is no command"]
        );
        assert_eq!(commands_are_granted(&Tree::default()).len(), 1);
    }

    #[test]
    fn a_window_left_open_is_found() {
        let open = "{ \"default-src\": \"'self' 'unsafe-inline'\" }";
        let tree = Tree::made_up(&[
            (CONFIGURATION, open),
            (
                "src-tauri/capabilities/main.json",
                "{ \"permissions\": [\"fs:default\"] }",
            ),
        ]);
        assert_eq!(window_is_closed_to_the_world(&tree).len(), 5 + 1 + 1);
    }
}
