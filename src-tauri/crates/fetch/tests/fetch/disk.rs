//! Disks that are full, and folders that cannot be written.

use std::fs;
use std::path::Path;
use std::process::Command;

use download::Destination;

use crate::child::{Fetch, content};
use crate::server::{Reply, Server};
use crate::{End, check};

/// A mount that lasts as long as this value.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    /// Mounts a disk of this many kilobytes.
    fn small_disk(at: &'a Path, kilobytes: u32) -> Option<Self> {
        let size = format!("size={kilobytes}k");
        Self::mounted(at, &["-t", "tmpfs", "-o", &size, "tmpfs"])
    }

    /// Bind-mounts a folder, as a drive that can be removed.
    fn drive(at: &'a Path, folder: &Path) -> Option<Self> {
        Self::mounted(at, &["--bind", &folder.display().to_string()])
    }

    /// Bind-mounts a folder read-only.
    fn read_only(at: &'a Path, folder: &Path) -> Option<Self> {
        let drive = Self::drive(at, folder)?;
        let mut command = Command::new("mount");
        command.args(["-o", "remount,bind,ro"]).arg(at);
        assert!(command.status().is_ok_and(|status| status.success()));
        Some(drive)
    }

    fn mounted(at: &'a Path, args: &[&str]) -> Option<Self> {
        fs::create_dir_all(at).expect("made");
        let mut command = Command::new("mount");
        command.args(args).arg(at);
        let mounted = command.output().is_ok_and(|output| output.status.success());
        if !mounted {
            testing::skip("only root mounts a disk");
        }
        // Lazily: a value that is made and dropped would unmount a folder that was never mounted.
        mounted.then(|| Self(at))
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        // Even if something on it is open, as when a drive is pulled out.
        let unmounted = Command::new("umount").arg("-l").arg(self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_found_before_and_while_it_is_written() {
    let server = Server::new(|asked| match asked.path.as_str() {
        "/slow" => Reply::file(content(), "a", asked).slowly(1_000),
        "/endless" => Reply::new(200, &[], content()),
        "/slow-endless" => Reply::new(200, &[], content()).slowly(200),
        _ => Reply::file(content(), "a", asked),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("disk");
    let Some(_disk) = Mount::small_disk(&disk, 128) else {
        return;
    };
    let all = |url: &str| Fetch::new(url).with("GOLDCREST_FETCH_RESERVE", "0");
    let fetch = all(&server.address("model.gguf")).into_folder(&disk);
    check(
        "a disk that is too small",
        &fetch,
        End::Kept("240.0 kB more are needed"),
    );
    assert!(server.asked().is_empty(), "that is known before");
    assert_eq!(fs::metadata(fetch.incomplete()).map_or(0, |it| it.len()), 0);
    // Without a known length, it takes half of the disk.
    let fetch = all(&server.address("endless"))
        .of_any_size()
        .into_folder(&disk);
    check(
        "a file without a size that does not end",
        &fetch,
        End::Nothing("sends without end"),
    );
    let mut running = all(&server.address("slow-endless"))
        .of_any_size()
        .into_folder(&disk)
        .start();
    assert!(running.until_bytes(1_000));
    let others = disk.join("others");
    fs::write(&others, vec![0; 90_000]).expect("there is room");
    let ended = running.end();
    assert!(
        ended.sentence().contains("is full. Free some space"),
        "{ended:?}"
    );
    assert!(ended.can_resume());
    drop(_disk);

    let Some(_disk) = Mount::small_disk(&disk, 300) else {
        return;
    };
    let fetch = all(&server.address("slow")).into_folder(&disk);
    let mut running = fetch.start();
    assert!(running.until_bytes(1_000));
    let others = disk.join("others");
    fs::write(&others, vec![0; 200_000]).expect("there is room");
    let ended = running.end();
    assert!(ended.sentence().contains("more are needed"), "{ended:?}");
    assert!(ended.can_resume() && !fetch.file().exists());
    fs::remove_file(others).expect("removed");
    check("resumed when there is room again", &fetch, End::File);
}

#[cfg(target_os = "linux")]
#[test]
fn some_space_is_left_to_other_programs() {
    let server = Server::new(|asked| match asked.path.as_str() {
        "/endless" => Reply::new(200, &[], content()).slowly(1_000),
        _ => Reply::file(content(), "a", asked),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("disk");
    let Some(_disk) = Mount::small_disk(&disk, 300) else {
        return;
    };
    let reserved = |path: &str, reserve: &str| {
        Fetch::new(&server.address(path))
            .with("GOLDCREST_FETCH_RESERVE", reserve)
            .into_folder(&disk)
    };
    let fetch = reserved("model.gguf", "100000");
    check(
        "no space beside the file",
        &fetch,
        End::Kept("340.0 kB more are needed"),
    );
    let fetch = reserved("endless", "200000").of_any_size();
    check(
        "no space beside a file of unknown size",
        &fetch,
        End::Kept("200.0 kB more are needed"),
    );
    assert!(download::free_bytes(&disk).is_ok_and(|free| free > 10_000));
}

#[cfg(target_os = "linux")]
#[test]
fn a_drive_that_is_pulled_out_meanwhile_is_waited_for() {
    let server = Server::new(|asked| match asked.before {
        0 => Reply::file(content(), "a", asked).slowly(1_000),
        _ => Reply::file(content(), "a", asked),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let (real, drive) = (folder.path().join("real"), folder.path().join("drive"));
    fs::create_dir(&real).expect("made");
    let Some(mount) = Mount::drive(&drive, &real) else {
        return;
    };
    let fetch = Fetch::new(&server.address("model.gguf")).into_folder(&drive.join("models"));
    let mut running = fetch.start();
    assert!(running.until_bytes(10_000));
    drop(mount);
    let ended = running.end();
    assert!(
        ended.sentence().contains("its drive was disconnected"),
        "{ended:?}"
    );
    assert!(ended.can_resume());
    let left = fs::read_dir(&drive).expect("the folder below").count();
    assert_eq!(left, 0, "nothing is written in its place");
    let _mount = Mount::drive(&drive, &real).expect("as before");
    check("resumed when the drive is there again", &fetch, End::File);
    assert!(server.asked()[1].from().is_some_and(|from| from >= 10_000));
}

#[cfg(target_os = "linux")]
#[test]
fn a_cache_that_cannot_be_written_and_has_the_file_is_enough() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let address = server.address("model.gguf");
    let cached = |hub: &Path, file: &str| {
        let mut fetch = Fetch::new(&address);
        fetch.request.destination = Destination::HubCache {
            hub: hub.to_owned(),
            repository: "owner/name".to_owned(),
            revision: COMMIT.to_owned(),
            file: file.to_owned(),
        };
        fetch
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (real, shown) = (folder.path().join("real"), folder.path().join("shown"));
    assert!(cached(&real, "model.gguf").run().is_done());
    fs::remove_dir_all(real.join(".locks")).expect("removed");
    fs::remove_dir_all(real.join("models--owner--name/refs")).expect("removed");
    let Some(_mount) = Mount::read_only(&shown, &real) else {
        return;
    };
    let fetch = cached(&shown, "model.gguf");
    check(
        "a cache that cannot be written has the file",
        &fetch,
        End::File,
    );
    assert_eq!(server.asked().len(), 1);
    let mut other = cached(&shown, "other.gguf");
    other.request.sha256 = Some("0".repeat(64));
    check(
        "a cache that cannot be written has another file",
        &other,
        End::Kept("cannot be written"),
    );
    assert_eq!(server.asked().len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_cache_without_rights_is_named_before_anything_is_asked() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let all = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    let fetch = Fetch::new(&server.address("model.gguf")).into_cache(&"a".repeat(40));
    // A program that every user may start, in a folder that every user may read.
    let program = fetch.folder().join("goldcrest-fetch");
    fs::copy(env!("CARGO_BIN_EXE_goldcrest-fetch"), &program).expect("copied");
    all(&program, 0o755);
    all(fetch.folder(), 0o755);
    let is_root = fs::metadata("/proc/self").expect("there").uid() == 0;
    let with = fetch.command();
    let mut command = match is_root {
        true => Command::new("setpriv"),
        false => Command::new(&program),
    };
    if is_root {
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
        command.args(nobody).arg(&program);
        if Command::new("setpriv").arg("--version").output().is_err() {
            return testing::skip("setpriv is not there");
        }
    }
    let variables = with
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(variables);
    all(fetch.folder(), 0o555);
    let ended = fetch.start_command(command).end();
    all(fetch.folder(), 0o755);
    let sentence = ended.sentence();
    assert!(
        sentence.contains("cannot be written: Permission denied"),
        "{sentence}"
    );
    assert!(ended.can_resume() && server.asked().is_empty());
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let server = Server::new(|asked| Reply::file(content(), "a", asked));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, b"").expect("written");
    let fetch = Fetch::new(&server.address("model.gguf")).into_folder(&file.join("below"));
    check(
        "a folder that cannot be made",
        &fetch,
        End::Kept("cannot be written"),
    );
    assert!(server.asked().is_empty());
}
