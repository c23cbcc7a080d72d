//! The files that a program needs to start. A sandbox shows them to it, beside the system's.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::program::{executable, find};

/// Files that mark the folder of a package.
const MARKERS: [&str; 4] = ["package.json", "pyproject.toml", "deno.json", "setup.py"];
/// Links and interpreters that are followed from a program.
const MOST_STEPS: usize = 16;

/// Bytes of a script that are read for the program that runs it.
const LONGEST_BEGINNING: u64 = 8192;

/// Returns the files and folders that a program needs to start: its installation, those of the programs that it links to
/// or names in its first line, and the package of its script. None of them is the user's home or holds it.
pub fn of(
    program: &Path,
    script: Option<&Path>,
    search_path: &OsStr,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    // A home may be a link; links of programs are followed to the real one.
    let real = home.and_then(|home| home.canonicalize().ok());
    let homes: Vec<&Path> = home.into_iter().chain(real.as_deref()).collect();
    let mut parts = Vec::new();
    let mut add = |part: PathBuf| {
        if !parts.contains(&part) {
            parts.push(part);
        }
    };
    let mut next = Some(program.to_owned());
    for _ in 0..MOST_STEPS {
        let Some(file) = next else { break };
        add(installation(&file, &homes));
        next = linked(&file).or_else(|| interpreter(&file, search_path));
    }
    if let Some(script) = script {
        add(package(script, &homes));
        if let Ok(real) = script.canonicalize() {
            add(package(&real, &homes));
        }
    }
    parts
}

/// Returns the folder of a program's installation, such as that above `bin`, or the program alone where that folder
/// holds other things too.
fn installation(file: &Path, homes: &[&Path]) -> PathBuf {
    if let Some(store) = packages_of(file) {
        return store;
    }
    let folder = file.parent();
    let is_of_programs = folder
        .and_then(Path::file_name)
        .is_some_and(|name| name == "bin" || name == "shims" || name == "Scripts");
    let prefix = folder.and_then(Path::parent).filter(|_| is_of_programs);
    match prefix.filter(|prefix| is_narrow(prefix, homes)) {
        Some(prefix) => prefix.to_owned(),
        None => file.to_owned(),
    }
}

/// Returns the folder that holds all packages of a kind, which link to each other: Nix's store, or `node_modules`.
fn packages_of(file: &Path) -> Option<PathBuf> {
    if file.starts_with("/nix/store") {
        return Some(PathBuf::from("/nix/store"));
    }
    let mut folders: Vec<&Path> = file.ancestors().skip(1).collect();
    folders.reverse();
    let modules = folders
        .into_iter()
        .find(|it| it.file_name() == Some(OsStr::new("node_modules")));
    modules.map(Path::to_owned)
}

/// Returns the folder of the package to which a script belongs, or the script alone.
fn package(script: &Path, homes: &[&Path]) -> PathBuf {
    if let Some(modules) = packages_of(script) {
        return modules;
    }
    let folders = script.ancestors().skip(1).take(4);
    let mut narrow = folders.take_while(|folder| is_narrow(folder, homes));
    let package = narrow.find(|folder| MARKERS.iter().any(|marker| folder.join(marker).is_file()));
    package.unwrap_or(script).to_owned()
}

/// Returns whether a folder can hold one installation alone: it is not the home, above it, or one of the folders right in
/// it in which programs of all kinds have their files.
fn is_narrow(folder: &Path, homes: &[&Path]) -> bool {
    let depth = folder
        .components()
        .filter(|it| matches!(it, Component::Normal(_)))
        .count();
    let holds_home = homes.iter().any(|home| home.starts_with(folder));
    let is_shared = homes.iter().any(|home| {
        [".local", ".config", ".cache", ".local/share"]
            .iter()
            .any(|it| folder == home.join(it))
    });
    depth >= 2 && !holds_home && !is_shared
}

/// Returns the target of a link.
fn linked(file: &Path) -> Option<PathBuf> {
    let target = fs::read_link(file).ok()?;
    let joined = file.parent()?.join(target);
    // `..` is removed in the real folder, because folders may be links too.
    let name = joined.file_name()?;
    Some(joined.parent()?.canonicalize().ok()?.join(name))
}

/// Returns the program that runs a script: its first line names it, or its second one, where the path has spaces or is
/// too long for the first. pip and uv write `'''exec' "PATH" "$0" "$@"` there.
fn interpreter(file: &Path, search_path: &OsStr) -> Option<PathBuf> {
    let mut beginning = Vec::new();
    let file = fs::File::open(file).ok()?;
    file.take(LONGEST_BEGINNING)
        .read_to_end(&mut beginning)
        .ok()?;
    let beginning = String::from_utf8_lossy(&beginning);
    let mut lines = beginning.strip_prefix("#!")?.lines();
    let mut words = lines.next()?.split_whitespace();
    let program = words.next()?;
    let second = lines.next().and_then(|it| it.strip_prefix("'''exec' "));
    if let Some(quoted) = second {
        return executable(Path::new(first_word(quoted)?));
    }
    if !program.ends_with("/env") {
        return executable(Path::new(program));
    }
    find(words.find(|word| !word.starts_with('-'))?, search_path)
}

/// Returns the first word of a shell's command, which may be quoted.
fn first_word(command: &str) -> Option<&str> {
    let quote = command.chars().next().filter(|it| matches!(it, '"' | '\''));
    match quote {
        Some(quote) => command[1..].split(quote).next(),
        None => command.split_whitespace().next(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::program::script;

    /// A home with programs, each of which holds the text beside it.
    fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        home
    }

    fn parts_of(home: &tempfile::TempDir, command: &str, args: &[String]) -> Vec<String> {
        let root = home.path();
        let search_path = OsStr::new("/usr/bin:/bin");
        let program = find(command, search_path).expect("a program");
        let script = script(command, args);
        let found = of(&program, script.as_deref(), search_path, Some(root));
        let shown = found.iter().map(|part| match part.strip_prefix(root) {
            Ok(inside) => inside.display().to_string(),
            Err(_) => part.display().to_string(),
        });
        shown.collect()
    }

    #[test]
    fn an_installation_is_found_through_its_links_and_first_lines() {
        let home = home(&[
            (".nvm/v20/bin/node", ""),
            (
                ".nvm/v20/lib/node_modules/npm/bin/npx-cli.js",
                "#!/usr/bin/env sh\n",
            ),
            (".pipx/venvs/my mail/bin/mail", ""),
            (".pythons/3.12/bin/python3.12", ""),
        ]);
        let root = home.path();
        symlink(
            "../lib/node_modules/npm/bin/npx-cli.js",
            root.join(".nvm/v20/bin/npx"),
        )
        .expect("a link");
        symlink(
            root.join(".pythons/3.12/bin/python3.12"),
            root.join(".pipx/venvs/my mail/bin/python"),
        )
        .expect("a link");
        fs::create_dir_all(root.join(".local/bin")).expect("a folder");
        symlink(
            "../../.pipx/venvs/my mail/bin/mail",
            root.join(".local/bin/mail"),
        )
        .expect("a link");

        let command = |name: &str| root.join(name).display().to_string();
        let npx = parts_of(&home, &command(".nvm/v20/bin/npx"), &[]);
        assert_eq!(npx[..2], [".nvm/v20", ".nvm/v20/lib/node_modules"]);
        let python = command(".pipx/venvs/my mail/bin/python");
        for quote in ['"', '\''] {
            let script =
                format!("#!/bin/sh\n'''exec' {quote}{python}{quote} \"$0\" \"$@\"\n' '''\n");
            fs::write(command(".pipx/venvs/my mail/bin/mail"), script).expect("a file");
            let mail = parts_of(&home, &command(".local/bin/mail"), &[]);
            let expected = [".local/bin/mail", ".pipx/venvs/my mail", ".pythons/3.12"];
            assert_eq!(mail, expected);
        }
    }

    #[test]
    fn the_home_behind_a_link_is_no_part_of_a_program() {
        let real = home(&[("bin/tool", "")]);
        let links = tempfile::tempdir().expect("a folder");
        let home = links.path().join("home");
        symlink(real.path(), &home).expect("a link");
        symlink("tool", real.path().join("bin/other")).expect("a link");
        let found = of(&home.join("bin/other"), None, OsStr::new(""), Some(&home));
        let real = real.path().canonicalize().expect("a folder");
        assert_eq!(found, [home.join("bin/other"), real.join("bin/tool")]);
    }

    #[test]
    fn the_home_is_never_part_of_a_program() {
        let home = home(&[
            ("bin/tool", ""),
            (".local/bin/tool", ""),
            ("server.py", ""),
            ("package.json", "{}"),
            ("work/weather/package.json", "{}"),
            ("work/weather/build/index.js", ""),
            ("work/node_modules/a/dist/index.js", ""),
        ]);
        let root = home.path();
        let path = |name: &str| root.join(name).display().to_string();
        assert_eq!(parts_of(&home, &path("bin/tool"), &[]), ["bin/tool"]);
        assert_eq!(
            parts_of(&home, &path(".local/bin/tool"), &[]),
            [".local/bin/tool"]
        );
        for (file, part) in [
            ("server.py", "server.py"),
            ("work/weather/build/index.js", "work/weather"),
            ("work/node_modules/a/dist/index.js", "work/node_modules"),
        ] {
            let found = package(&root.join(file), &[root]);
            assert_eq!(found, root.join(part));
        }
    }
}
