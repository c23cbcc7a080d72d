//! Names with terminal control characters, in all output of subcommands.

use std::collections::BTreeSet;

use super::*;

/// Sets a window's title and the clipboard, begins another line, and reorders letters.
const NAME: &str = "n\u{1b}]0;t\u{7}\u{1b}]52;c;eA==\u{7}\r\nforged\u{202e}fugg";

/// Makes the tiny model under [`NAME`], in a file of that name. The description gives up the bytes, so that everything
/// else stays in place.
fn hostile_model(folder: &Path) -> PathBuf {
    let text_entry = |key: &str, text: &str| {
        let length = |text: &str| (text.len() as u64).to_le_bytes();
        let string: [u8; 4] = 8_u32.to_le_bytes();
        [
            &length(key)[..],
            key.as_bytes(),
            &string,
            &length(text),
            text.as_bytes(),
        ]
        .concat()
    };
    let replace = |bytes: &mut Vec<u8>, from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).position(|it| it == from);
        let at = at.expect("it is in the file");
        bytes.splice(at..at + from.len(), to.iter().copied());
    };
    let description = "Tiny guide and tiny model of the Goldcrest app, trained on generated text";
    let shorter = &description[NAME.len() - "Tiny model".len()..];
    let mut bytes = fs::read(tiny_model()).expect("the tiny model");
    let whole = bytes.len();
    for (key, from, to) in [
        ("general.name", "Tiny model", NAME),
        ("general.description", description, shorter),
    ] {
        replace(&mut bytes, &text_entry(key, from), &text_entry(key, to));
    }
    assert_eq!(bytes.len(), whole);
    let path = folder.join(format!("{NAME}.gguf"));
    fs::write(&path, bytes).expect("written");
    path
}

#[cfg(unix)]
#[test]
fn no_subcommand_prints_a_name_raw() {
    let home = tempfile::tempdir().expect("a folder");
    let searched = home.path().join(".lmstudio/models/me/it");
    fs::create_dir_all(&searched).expect("made");
    let model = hostile_model(&searched);
    let model = model.to_str().expect("UTF-8");
    let in_home = |name: &str| home.path().join(name).display().to_string();
    let messages = in_home("messages.json");
    let context = json!({ "messages": [{ "role": "user", "content": "Hi" }] });
    fs::write(&messages, context.to_string()).expect("written");
    let title = json!([{ "uuid": "1", "name": NAME, "chat_messages": [
        { "uuid": "a", "sender": "human", "text": "Hi", "created_at": "2025-05-01T10:00:00Z" },
    ] }]);
    let chats = in_home("conversations.json");
    fs::write(&chats, title.to_string()).expect("written");
    let (no_export, no_model) = (in_home(NAME), in_home(&format!("{NAME}.safetensors")));
    let exported = in_home(&format!("{NAME}.md"));

    let commands: &[&[&str]] = &[
        &["ask", "--json", "--max-tokens", "2", "-m", model, "Hi"],
        &["chat", "--max-tokens", "2", "-m", model],
        &["import", &no_export],
        &["import", &chats],
        &["chats"],
        &["chats", "--json"],
        &["export", "--all", &exported],
        &["inspect", model],
        &["inspect", "--json", model],
        &["models"],
        &["models", "--json"],
        &["tokenize", "-m", model, "Hi"],
        &["tokenize", "-m", &no_model, "Hi"],
        &["render", "-m", model, "--messages", &messages],
        &["render", "-m", model, "--messages", &no_model],
        &["logits", "-m", &no_model, "--tokens", "1"],
        &[
            "bench", "-p", "8", "-n", "4", "-r", "1", "-t", "1", "--lookup", "-m", model,
        ],
        &[
            "bench", "-p", "8", "-n", "4", "-r", "1", "-t", "1", "--json", "-m", model,
        ],
        &["quantize", model, &no_export, "Q8_0"],
        &["verify", "-n", "4", model],
        &["verify", "-n", "4", "--json", model],
        &["fetch", NAME],
        &["guide", NAME],
        &["devices", "-m", model],
        &["tools", "call", NAME],
        &["tools", "call", "calculator", NAME],
        &["mcp", "list", "--config", &no_model],
        &["serve", "--origin", NAME],
        // Invalid arguments.
        &["ask", "--temperature", NAME, "Hi"],
        &["ask", &format!("--{NAME}"), "Hi"],
        &["models", NAME],
        &["chats", "--sort", NAME],
    ];
    for &args in commands {
        let mut child = goldcrest()
            .env("HOME", home.path())
            .env("GOLDCREST_DATA_DIR", home.path().join("data"))
            .env("RUST_LOG", "info")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let typed = b"/status\n/model\n/model none\n";
        // A subcommand that reads nothing may have ended.
        let _ = child.stdin.take().expect("piped").write_all(typed);
        let output = child.wait_with_output().expect("it ends");
        for printed in [output.stdout, output.stderr] {
            let printed = String::from_utf8(printed).expect("UTF-8");
            let raw = |it: &char| it.is_control() && !"\n\t".contains(*it) || *it == '\u{202e}';
            assert_eq!(printed.chars().find(raw), None, "{args:?}: {printed:?}");
            let forged = printed
                .lines()
                .any(|line| line.trim().starts_with("forged"));
            assert!(!forged, "{args:?}: {printed}");
        }
    }
    let run: BTreeSet<&str> = commands.iter().map(|args| args[0]).collect();
    let help = stdout(super::run(["--help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed: BTreeSet<&str> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert_eq!(run, listed, "each subcommand is run");
}
