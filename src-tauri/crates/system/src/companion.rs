//! Programs of Goldcrest that do one thing with other rights. Each is beside the running program.

use std::io;
use std::path::PathBuf;
use std::process::Command;

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

/// Starts a program in a process group of its own: Ctrl+C in the terminal is for the parent, which then ends it.
pub fn apart_from_terminal(command: &mut Command) {
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
}
