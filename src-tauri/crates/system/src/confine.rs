//! Confinement of a thread by the kernel, on Linux.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter, apply_filter};

/// System calls that fail from now on: those that open files and sockets, and those that start programs.
const DENIED: &[i64] = &[
    libc::SYS_connect,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_io_uring_setup,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_ptrace,
    libc::SYS_socket,
    libc::SYS_socketpair,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// System calls that make a socket receive connections.
pub const LISTENING: &[i64] = &[libc::SYS_bind, libc::SYS_listen];

/// Confines this thread, and those that it starts, for good. `also`: further system calls that fail.
///
/// # Errors
/// Fails if the kernel has no seccomp, or none for this architecture.
pub fn confine(also: &[i64]) -> Result<(), Error> {
    let rules: BTreeMap<i64, Vec<_>> = DENIED
        .iter()
        .chain(also)
        .map(|call| (*call, Vec::new()))
        .collect();
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn a_confined_thread_opens_and_starts_nothing() {
        let opens = || {
            let file = File::open("/proc/self/status").map(drop);
            let socket = UnixStream::pair().map(drop);
            let program = Command::new("/bin/true").status().map(drop);
            [file, socket, program].map(|opened| opened.map_err(|error| error.kind()))
        };
        let confined = thread::spawn(move || confine(LISTENING).map(|()| opens()).ok());
        let confined = confined.join().expect("no panic");
        assert_eq!(confined, Some([Err(ErrorKind::PermissionDenied); 3]));
        assert_eq!(opens(), [Ok(()); 3]);
    }
}
