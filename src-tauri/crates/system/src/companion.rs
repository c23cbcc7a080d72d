//! Programs of Goldcrest that do one thing with other rights. Each is beside the running program.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the path of a program, never one from the PATH. `purpose`: what it does for the user.
///
/// # Errors
/// Fails if the running program does not know its own path, or no such file is beside it.
pub fn path(name: &str, purpose: &str) -> io::Result<PathBuf> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    // The program may have been started by a link elsewhere.
    let program = std::env::current_exe()?.canonicalize()?;
    let program = program.with_file_name(name);
    if program.is_file() {
        return Ok(program);
    }
    let missing = format!(
        "{} is missing. It {purpose} and is a part of Goldcrest: install Goldcrest again",
        program.display()
    );
    Err(io::Error::new(io::ErrorKind::NotFound, missing))
}

/// Returns a command for a program that is spoken to over its pipes. It is in a process group of its own: Ctrl+C in the
/// terminal is for the parent, which then ends it.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        command.process_group(0);
    }
    #[cfg(windows)]
    {
        use std::os::windows::process::CommandExt;
        const NEW_PROCESS_GROUP: u32 = 0x0000_0200;
        const NO_WINDOW: u32 = 0x0800_0000;
        command.creation_flags(NEW_PROCESS_GROUP | NO_WINDOW);
    }
    command
}

/// Reads the lines of a program up to its end, an error, or a line for which `goes_on` returns false. A line of more than
/// `longest` bytes is read as several.
pub fn read_lines(output: impl Read, longest: u64, mut goes_on: impl FnMut(&[u8]) -> bool) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(1..) = output.by_ref().take(longest).read_until(b'\n', &mut line) {
        if !goes_on(&line) {
            return;
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_up_to_the_end_and_in_parts_if_they_are_too_long() {
        let read = |most: usize| {
            let mut lines = Vec::new();
            read_lines(&b"one\ntwo and more\nend"[..], 8, |line| {
                lines.push(String::from_utf8_lossy(line).into_owned());
                lines.len() < most
            });
            lines
        };
        assert_eq!(read(9), ["one\n", "two and ", "more\n", "end"]);
        assert_eq!(read(2), ["one\n", "two and "]);
    }
}
