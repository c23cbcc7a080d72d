//! The program of a server, and its script.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Programs that run a script, which is their first argument that is a file.
const INTERPRETERS: [&str; 10] = [
    "bash", "bun", "deno", "java", "node", "perl", "python", "ruby", "sh", "tsx",
];
/// Finds a command: a path, or a name on a search path.
pub fn find(command: &str, search_path: &OsStr) -> Option<PathBuf> {
    let path = Path::new(command);
    if path.components().count() > 1 || path.is_absolute() {
        return executable(path);
    }
    let mut folders = std::env::split_paths(search_path).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| executable(&folder.join(command)))
}

/// Returns the absolute path of a program.
#[cfg(unix)]
pub fn executable(path: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let about = std::fs::metadata(path).ok()?;
    let may_run = about.is_file() && about.permissions().mode() & 0o111 != 0;
    may_run.then(|| std::path::absolute(path).ok()).flatten()
}

/// Returns the absolute path of a program. Windows' search path leaves endings out, and `npx` is a batch file.
#[cfg(not(unix))]
pub fn executable(path: &Path) -> Option<PathBuf> {
    const ENDINGS: [&str; 4] = ["", ".exe", ".cmd", ".bat"];
    let named = ENDINGS.iter().map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    });
    let mut runnable = named.filter(|path| path.is_file() && path.extension().is_some());
    runnable.find_map(|path| std::path::absolute(path).ok())
}

/// Returns the script that an interpreter is to run, if that exists.
pub fn script(command: &str, args: &[String]) -> Option<PathBuf> {
    let name = Path::new(command).file_stem()?.to_str()?;
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    let paths = args.iter().map(Path::new);
    let mut files = paths.filter(|path| path.is_absolute() && path.is_file());
    files.next().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_the_first_file_of_an_interpreter_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("server.py");
        std::fs::write(&file, "").expect("a file");
        let args = ["-u".to_owned(), file.display().to_string()];
        assert_eq!(script("/usr/bin/python3.11", &args), Some(file));
        assert_eq!(script("sqlite-server", &args), None);
        assert_eq!(script("node", &["server.py".to_owned()]), None);
    }
}
