use serde_json::{Value, json};

use crate::{Finding, Tree};

const COMMANDS: &str = "src-tauri/src/each_command.rs";
const CAPABILITIES: &str = "src-tauri/capabilities/";
const CONFIGURATION: &str = "src-tauri/tauri.conf.json";

/// Checks that every command of the shell is granted to the window by name, and nothing else of the app is.
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

/// Returns everything that the page may load, run and reach; other sources are refused by `default-src` or have no
/// fallback.
fn content_security_policy() -> Value {
    json!({
        "default-src": "'self'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "font-src": "'self'",
        "connect-src": "ipc: http://ipc.localhost",
        "worker-src": "'self'",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "svelte-trusted-html dompurify goldcrest-worker",
    })
}

/// Checks that the page can load nothing from elsewhere, run no text as code, and reach no plugin: the window has
/// exactly these settings of Tauri.
pub fn window_is_restricted(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(CONFIGURATION) else {
        return vec![Finding::in_file(CONFIGURATION, "not there")];
    };
    let configuration: Value = match serde_json::from_str(&file.text) {
        Ok(configuration) => configuration,
        Err(error) => return vec![Finding::in_file(CONFIGURATION, error.to_string())],
    };
    let app = json!({
        "withGlobalTauri": false,
        "windows": [],
        "security": {
            "capabilities": ["main"],
            "freezePrototype": true,
            "csp": content_security_policy(),
        },
    });
    let mut findings: Vec<_> = differences("app", &app, &configuration["app"])
        .into_iter()
        .map(|what| Finding::in_file(CONFIGURATION, what))
        .collect();
    if configuration.get("plugins").is_some() {
        findings.push(Finding::in_file(CONFIGURATION, "no plugin is set up"));
    }
    findings.extend(
        overlays(tree)
            .filter(|file| !is_for_packages_alone(&file.text))
            .map(|file| Finding::in_file(&file.path, format!("is laid over {CONFIGURATION}"))),
    );
    for file in capabilities(tree) {
        findings.extend(
            wider_than_the_window(&file.text)
                .into_iter()
                .map(|what| Finding::in_file(&file.path, what)),
        );
    }
    findings
}

/// Returns the places where `found` differs from `expected`, key by key; the order of keys is free.
fn differences(at: &str, expected: &Value, found: &Value) -> Vec<String> {
    let (Some(wanted), Some(there)) = (expected.as_object(), found.as_object()) else {
        return if expected == found {
            Vec::new()
        } else {
            vec![format!("{at} is {found}, and should be {expected}")]
        };
    };
    let unknown = there
        .keys()
        .filter(|key| !wanted.contains_key(*key))
        .map(|key| format!("{at}.{key} should not be there"));
    let differ = wanted.iter().flat_map(|(key, value)| {
        differences(
            &format!("{at}.{key}"),
            value,
            there.get(key).unwrap_or(&Value::Null),
        )
    });
    unknown.chain(differ).collect()
}

/// Returns the parts of a capability that go beyond the app's own commands in the one window.
fn wider_than_the_window(text: &str) -> Vec<String> {
    let found: Value = match serde_json::from_str(text) {
        Ok(found) => found,
        Err(error) => return vec![error.to_string()],
    };
    let keys = [
        "$schema",
        "identifier",
        "description",
        "windows",
        "permissions",
    ];
    let there = found.as_object().into_iter().flat_map(|it| it.keys());
    let mut wide: Vec<_> = there
        .filter(|key| !keys.contains(&key.as_str()))
        .map(|key| format!("{key} is not for the one window alone"))
        .collect();
    if found["windows"] != json!(["main"]) {
        wide.push(format!("windows are {}", found["windows"]));
    }
    for permission in found["permissions"].as_array().into_iter().flatten() {
        if !permission
            .as_str()
            .is_some_and(|it| it.starts_with("allow-"))
        {
            wide.push(format!("{permission} is wider than a command of ours"));
        }
    }
    wide
}

/// Returns configurations of one platform, or in another format, which Tauri reads too.
fn overlays(tree: &Tree) -> impl Iterator<Item = &crate::File> {
    tree.files.iter().filter(|file| {
        let path = file.path.to_lowercase();
        path.starts_with("src-tauri/tauri.") && path != CONFIGURATION
    })
}

/// Returns whether a platform's configuration affects only how its packages are made.
fn is_for_packages_alone(text: &str) -> bool {
    let parsed: Result<Value, _> = serde_json::from_str(text);
    let keys = parsed.ok().and_then(|it| it.as_object().cloned());
    keys.is_some_and(|it| {
        it.keys()
            .all(|key| ["$schema", "bundle"].contains(&key.as_str()))
    })
}

fn capabilities(tree: &Tree) -> impl Iterator<Item = &crate::File> {
    tree.files
        .iter()
        .filter(|file| file.path.starts_with(CAPABILITIES))
}

/// Returns every permission that any capability names.
fn grants(tree: &Tree) -> Vec<String> {
    capabilities(tree)
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
        Tree::sample(&[
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

    /// Returns a valid configuration.
    fn configuration() -> Value {
        json!({ "app": {
            "security": {
                "csp": content_security_policy(),
                "freezePrototype": true,
                "capabilities": ["main"],
            },
            "windows": [],
            "withGlobalTauri": false,
        } })
    }

    /// Returns the findings in a changed configuration.
    fn configured(change: impl FnOnce(&mut Value)) -> Vec<Finding> {
        let mut configuration = configuration();
        change(&mut configuration);
        let text = configuration.to_string();
        window_is_restricted(&Tree::sample(&[(CONFIGURATION, &text)]))
    }

    #[test]
    fn a_window_left_open_is_found() {
        assert_eq!(configured(|_| {}), []);
        for (directive, sources) in [
            ("img-src", "'self' data:"),
            ("script-src", "'self' https:"),
            ("script-src", "'self' 'unsafe-inline'"),
            ("style-src", "'self' https:"),
            (
                "connect-src",
                "ipc: http://ipc.localhost http://127.0.0.1:9",
            ),
            ("form-action", "https:"),
            ("object-src", "*"),
            ("trusted-types", "*"),
            ("frame-src", "https:"),
        ] {
            let found = configured(|it| it["app"]["security"]["csp"][directive] = json!(sources));
            assert_eq!(found.len(), 1, "{directive} {sources}: {found:?}");
        }
        for directive in content_security_policy()
            .as_object()
            .expect("an object")
            .keys()
        {
            let found = configured(|it| {
                let policy = it["app"]["security"]["csp"].as_object_mut();
                policy.expect("an object").remove(directive);
            });
            assert_eq!(found.len(), 1, "{directive}: {found:?}");
        }
        for (key, value) in [
            ("freezePrototype", json!(false)),
            ("dangerousDisableAssetCspModification", json!(true)),
            ("assetProtocol", json!({ "enable": true })),
            ("devCsp", json!({})),
        ] {
            let found = configured(|it| it["app"]["security"][key] = value);
            assert_eq!(found.len(), 1, "{key}: {found:?}");
        }
        assert_eq!(configured(|it| it["plugins"] = json!({})).len(), 1);
        for overlay in ["tauri.linux.conf.json", "Tauri.toml", "tauri.conf.json5"] {
            let (path, main) = (format!("src-tauri/{overlay}"), configuration().to_string());
            let findings = |text: &str| {
                let tree = Tree::sample(&[(CONFIGURATION, &main), (&path, text)]);
                window_is_restricted(&tree).len()
            };
            assert_eq!(findings("{ \"app\": {} }"), 1, "{overlay}");
            assert_eq!(findings("app = {}"), 1, "{overlay}");
            assert_eq!(
                findings("{ \"bundle\": { \"targets\": [\"deb\"] } }"),
                0,
                "{overlay}"
            );
        }
    }

    #[test]
    fn a_capability_for_more_than_our_commands_is_found() {
        let findings = |text: &str| wider_than_the_window(text).len();
        let main = |rest: &str| {
            format!("{{ \"windows\": [\"main\"], \"permissions\": [\"allow-send\"]{rest} }}")
        };
        assert_eq!(findings(&main("")), 0);
        assert_eq!(
            findings(&main(", \"remote\": { \"urls\": [\"https://*\"] }")),
            1
        );
        assert_eq!(findings(&main("").replace("main", "*")), 1);
        assert_eq!(findings(&main("").replace("allow-send", "fs:default")), 1);
        assert_eq!(findings("{"), 1);
    }
}
