//! Confinement of a thread by the kernel, on Linux.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter, apply_filter};

/// System calls that fail from now on: those that open files and sockets, that change files by their names, that start
/// programs, and that reach into others.
const DENIED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_connect,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_fsopen,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_kill,
    libc::SYS_linkat,
    libc::SYS_lsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_mount,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_removexattr,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_request_key,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_setns,
    libc::SYS_setxattr,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_symlinkat,
    libc::SYS_tgkill,
    libc::SYS_tkill,
    libc::SYS_truncate,
    libc::SYS_umount2,
    libc::SYS_unlinkat,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_utimensat,
];

/// The older forms of these calls, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const DENIED_OLDER: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_creat,
    libc::SYS_fork,
    libc::SYS_futimesat,
    libc::SYS_lchown,
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_open,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_unlink,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_OLDER: &[i64] = &[];

/// Newer forms, which have one number on all architectures: fchmodat2, setxattrat, removexattrat.
const DENIED_NEWER: &[i64] = &[452, 463, 466];

/// System calls that make a socket receive connections.
pub const LISTENING: &[i64] = &[libc::SYS_bind, libc::SYS_listen];

/// Confines this thread, and those that it starts, for good. `also`: further system calls that fail.
///
/// # Errors
/// Fails if the kernel has no seccomp, or none for this architecture.
pub fn confine(also: &[i64]) -> Result<(), Error> {
    let rules: BTreeMap<i64, Vec<_>> = DENIED
        .iter()
        .chain(DENIED_OLDER)
        .chain(DENIED_NEWER)
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
    use std::fs::{self, File};
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn a_confined_thread_opens_changes_and_starts_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        File::create(&path).expect("a file");
        let opens = move || {
            let file = File::open("/proc/self/status").map(drop);
            let socket = UnixStream::pair().map(drop);
            let program = Command::new("/bin/true").status().map(drop);
            let renamed = fs::rename(&path, path.with_extension("old"));
            let removed = fs::remove_file(path.with_extension("old"));
            let made = fs::create_dir(&path);
            let acts = [file, socket, program, renamed, removed, made];
            acts.map(|done| done.map_err(|error| error.kind()))
        };
        let confined = opens.clone();
        let confined = thread::spawn(move || confine(LISTENING).map(|()| confined()).ok());
        let confined = confined.join().expect("no panic");
        assert_eq!(confined, Some([Err(ErrorKind::PermissionDenied); 6]));
        assert_eq!(opens(), [Ok(()); 6]);
    }
}
