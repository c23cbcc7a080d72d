//! Disks that are full, and folders that cannot be written.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::child::{Fetch, content};
use crate::server::{Reply, Server};
use crate::{End, check};

#[expect(dead_code, reason = "no test here asks for a GPU")]
#[path = "../../../skipped.rs"]
mod skipped;

/// A disk of this many kilobytes, as long as this lives.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path, kilobytes: u32) -> Option<Self> {
        fs::create_dir_all(at).expect("made");
        let size = format!("size={kilobytes}k");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at);
        let mounted = command.output().is_ok_and(|output| output.status.success());
        if !mounted {
            skipped::skip("only root mounts a small disk");
        }
        mounted.then_some(Self(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_found_before_and_while_it_is_written() {
    let server = Server::new(|asked| match asked.path.as_str() {
        "/slow" => Reply::file(content(), "a", asked).slowly(1_000),
        "/endless" => Reply::new(200, &[], content()),
        _ => Reply::file(content(), "a", asked),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("disk");
    let Some(_disk) = SmallDisk::mount(&disk, 128) else {
        return;
    };
    let all = |url: &str| Fetch::new(url).with("GOLDCREST_FETCH_RESERVE", "0");
    let fetch = all(&server.address("model.gguf")).into_folder(&disk);
    check(
        "a disk that is too small",
        &fetch,
        End::Kept("240.0 kB more are needed"),
    );
    assert_eq!(fs::metadata(fetch.incomplete()).map_or(0, |it| it.len()), 0);
    // Without a length nobody knows before.
    let fetch = all(&server.address("endless"))
        .of_any_size()
        .into_folder(&disk);
    check(
        "a disk that is full in the middle",
        &fetch,
        End::Kept("is full. Free some space"),
    );
    let left = fs::read(fetch.incomplete()).expect("kept");
    assert!(content().starts_with(&left) && !left.is_empty());
    drop(_disk);

    let Some(_disk) = SmallDisk::mount(&disk, 300) else {
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
    crate::note("another program fills the disk", &ended);
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
    let Some(_disk) = SmallDisk::mount(&disk, 300) else {
        return;
    };
    let reserved = |path: &str| {
        Fetch::new(&server.address(path))
            .with("GOLDCREST_FETCH_RESERVE", "100000")
            .into_folder(&disk)
    };
    let fetch = reserved("model.gguf");
    check(
        "no space beside the file",
        &fetch,
        End::Kept("340.0 kB more are needed"),
    );
    let fetch = reserved("endless").of_any_size();
    check(
        "no space beside a file of unknown size",
        &fetch,
        End::Kept("100.0 kB more are needed"),
    );
    assert!(download::free_bytes(&disk).is_ok_and(|free| free > 10_000));
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
