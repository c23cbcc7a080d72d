//! `goldcrest package-files`: man pages and shell completions, which `npm run build` puts into the packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use super::args::PackageFilesArgs;
use super::output::CliError;

const FILES: [(&str, &str); 3] = [
    (
        "~/.local/share/goldcrest/goldcrest.db",
        "All chats and settings; copies/ beside it holds one copy a day, five of them.",
    ),
    ("~/.local/share/goldcrest/logs/", "The log, a file a day."),
    (
        "~/.local/share/goldcrest/gpu.json",
        "GPU check cache; without it the GPUs are checked again.",
    ),
];

/// Writes the files of a command line, whose pages list these `variables`.
pub fn run(
    args: &PackageFilesArgs,
    command: &Command,
    variables: &[(&str, &str)],
) -> Result<(), CliError> {
    for (name, text) in made(command, variables) {
        let file = args.folder.join(name);
        let folder = file.parent().unwrap_or(&args.folder);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, text))
            .map_err(|error| CliError::file(&file, error))?;
    }
    Ok(())
}

/// Returns every file with its text: a man page for the program and for each of its commands, and completions for three
/// shells.
fn made(command: &Command, variables: &[(&str, &str)]) -> BTreeMap<PathBuf, String> {
    let mut made = BTreeMap::new();
    let mut shown = visible(command).disable_help_subcommand(true);
    shown.build();
    for each in shown.get_subcommands() {
        let name = format!("goldcrest-{}", each.get_name());
        let inner = each.get_subcommands().map(|inner| {
            let name = format!("{name}-{}", inner.get_name());
            (name, inner)
        });
        for (name, each) in inner.chain([(name.clone(), each)]) {
            let version = env!("CARGO_PKG_VERSION");
            let page = page(each.clone().display_name(name.clone()).version(version), "");
            made.insert(format!("man/{name}.1").into(), page);
        }
    }
    let more = section("ENVIRONMENT", variables) + &section("FILES", &FILES);
    let main = page(shown.after_help(""), &more);
    made.insert("man/goldcrest.1".into(), main);
    for (shell, name) in [
        (Shell::Bash, "goldcrest.bash"),
        (Shell::Zsh, "_goldcrest"),
        (Shell::Fish, "goldcrest.fish"),
    ] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut visible(command), "goldcrest", &mut text);
        let text = String::from_utf8(text).expect("UTF-8");
        made.insert(Path::new("completions").join(name), text);
    }
    made
}

/// Returns the command line without hidden parts, which completions would offer.
fn visible(command: &Command) -> Command {
    // clap keeps names for the life of the program.
    let kept = |text: &str| -> &'static str { text.to_owned().leak() };
    let mut shown = Command::new(kept(command.get_name()))
        .args(command.get_arguments().filter(|it| !it.is_hide_set()))
        .subcommands(
            command
                .get_subcommands()
                .filter(|it| !it.is_hide_set())
                .map(visible),
        );
    if let Some(version) = command.get_version() {
        shown = shown.version(kept(version));
    }
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(about) = command.get_long_about() {
        shown = shown.long_about(about.clone());
    }
    shown
}

/// Renders a page, with sections before the last one, which is the version.
fn page(command: Command, more: &str) -> String {
    let has_commands = command.has_subcommands();
    let man = Man::new(command);
    let mut text = Vec::new();
    man.render_title(&mut text)
        .and_then(|()| man.render_name_section(&mut text))
        .and_then(|()| man.render_synopsis_section(&mut text))
        .and_then(|()| man.render_description_section(&mut text))
        .and_then(|()| man.render_options_section(&mut text))
        .expect("written to memory");
    if has_commands {
        man.render_subcommands_section(&mut text)
            .expect("written to memory");
    }
    text.extend_from_slice(more.as_bytes());
    String::from_utf8(text).expect("UTF-8")
}

fn section(title: &str, entries: &[(&str, &str)]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\e").replace('-', "\\-");
    let entry = |(name, text): &(&str, &str)| {
        format!(".TP\n\\fB{}\\fR\n{}\n", escaped(name), escaped(text))
    };
    let entries: String = entries.iter().map(entry).collect();
    format!(".SH {title}\n{entries}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::{Cli, ENVIRONMENT};

    #[test]
    fn every_command_has_a_page_and_every_variable_is_in_the_first() {
        let made = made(&Cli::command(), &ENVIRONMENT);
        let main = &made[Path::new("man/goldcrest.1")];
        for (variable, _) in ENVIRONMENT {
            assert!(main.contains(&format!("\\fB{variable}\\fR")), "{variable}");
        }
        for (name, text) in &made {
            let name = name.display();
            for hidden in [
                "gpu-check",
                "reference-logits",
                "package-files",
                "tool-process",
                "--write",
            ] {
                let shell = hidden.replace("--", "-l ");
                let found = [hidden, &hidden.replace('-', "\\-"), &shell];
                assert!(
                    !found.iter().any(|it| text.contains(*it)),
                    "{hidden} in {name}"
                );
            }
            assert!(!text.is_empty(), "{name}");
        }
        let tools = &made[Path::new("man/goldcrest-tools.1")];
        assert!(tools.contains("goldcrest\\-tools\\-call(1)"), "{tools}");
        let call = &made[Path::new("man/goldcrest-tools-call.1")];
        assert!(call.contains("goldcrest tools call"), "{call}");
        let bench = &made[Path::new("man/goldcrest-bench.1")];
        assert!(bench.contains(env!("CARGO_PKG_VERSION")), "{bench}");
        assert!(!bench.contains(".SH SUBCOMMANDS"), "{bench}");
        let devices = &made[Path::new("man/goldcrest-devices.1")];
        assert!(devices.contains("\\-\\-check"), "{devices}");
    }

    #[test]
    fn the_files_are_written_below_the_folder() {
        let command = Cli::command();
        let folder = tempfile::tempdir().expect("made");
        let args = PackageFilesArgs {
            folder: folder.path().join("made"),
        };
        run(&args, &command, &ENVIRONMENT).expect("written");
        for (name, text) in made(&command, &ENVIRONMENT) {
            let written = fs::read_to_string(args.folder.join(&name)).expect("there");
            assert_eq!(written, text, "{}", name.display());
        }
        fs::write(folder.path().join("file"), "").expect("written");
        let folder = folder.path().join("file");
        let failed = run(&PackageFilesArgs { folder }, &command, &ENVIRONMENT)
            .expect_err("a file is no folder");
        assert!(failed.to_string().contains("file"), "{failed}");
    }
}
