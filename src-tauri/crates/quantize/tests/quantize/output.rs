//! The output: refusals, overwriting, and no partial file.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::DType;
use quantize::{FileType, QuantizeError, QuantizeStep, quantize};

use crate::models::{Model, ODD, f16_file, folder, request, run};
use testing::skip;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("read");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry
            .expect("read")
            .file_name()
            .to_string_lossy()
            .into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

fn message(result: Result<quantize::QuantizeReport, QuantizeError>) -> String {
    result.expect_err("it is refused").to_string()
}

#[test]
fn a_file_that_is_there_is_overwritten_only_when_that_is_asked_for() {
    let folder = folder();
    let input = f16_file(folder.path(), ODD);
    let output = folder.path().join("out.gguf");
    fs::write(&output, "precious").expect("written");
    assert!(message(run(&input, &output, FileType::Q8_0)).contains("there already"));
    assert_eq!(fs::read_to_string(&output).expect("read"), "precious");
    let mut request = request(&input, &output, FileType::Q8_0);
    request.overwrite = true;
    quantize(&request, &mut |_, _, _| {}, &AtomicBool::new(false)).expect("it is quantised");
    assert!(fs::read(&output).expect("read").starts_with(b"GGUF"));
    assert_eq!(names(folder.path()), ["f16.gguf", "out.gguf"]);
}

#[test]
fn an_input_is_never_the_output() {
    let folder = folder();
    let input = f16_file(folder.path(), ODD);
    let before = fs::read(&input).expect("read");
    let linked = folder.path().join("linked.gguf");
    fs::hard_link(&input, &linked).expect("linked");
    let model = folder.path().join("model");
    Model::random(ODD).write_folder(&model, DType::F16, 1);
    let shard = model.join("model.safetensors");
    let dotted = folder.path().join("model/../f16.gguf");
    for (input, output) in [
        (&input, &input),
        (&input, &linked),
        (&input, &dotted),
        (&model, &shard),
    ] {
        let mut request = request(input, output, FileType::Q8_0);
        request.overwrite = true;
        let refused = quantize(&request, &mut |_, _, _| {}, &AtomicBool::new(false));
        assert!(message(refused).contains("the output cannot be an input"));
    }
    assert!(fs::read(&input).expect("read") == before);
}

#[test]
fn folders_that_take_no_file_are_named() {
    let folder = folder();
    let input = f16_file(folder.path(), ODD);
    assert!(message(run(&input, folder.path(), FileType::F16)).contains("not the name of a file"));
    let nowhere = folder.path().join("none/out.gguf");
    assert!(message(run(&input, &nowhere, FileType::F16)).contains("its folder is not there"));
    #[cfg(target_os = "linux")]
    {
        // Nobody, not even root, can create files there.
        let refused = message(run(&input, Path::new("/proc/out.gguf"), FileType::F16));
        assert!(refused.starts_with("/proc/out.gguf: "), "{refused}");
    }
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_takes_no_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let input = f16_file(folder.path(), ODD);
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).expect("made");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).expect("set");
    if fs::write(closed.join("probe"), "").is_ok() {
        return skip("root writes into read-only folders");
    }
    let refused = message(run(&input, &closed.join("out.gguf"), FileType::F16));
    assert!(
        refused.contains("no file can be made in its folder: permission denied"),
        "{refused}"
    );
}

#[test]
fn a_cancelled_run_leaves_nothing() {
    for at in [QuantizeStep::Write, QuantizeStep::Verify] {
        let folder = folder();
        let input = f16_file(folder.path(), ODD);
        let cancel = AtomicBool::new(false);
        let request = request(&input, &folder.path().join("out.gguf"), FileType::Q4KM);
        let mut progress = |step, _, _| cancel.store(step == at, Ordering::Relaxed);
        // In the last step there may be nothing left to cancel.
        match quantize(&request, &mut progress, &cancel) {
            Err(QuantizeError::Cancelled) => assert_eq!(names(folder.path()), ["f16.gguf"]),
            Err(error) => panic!("{error}"),
            Ok(_) => assert_eq!(names(folder.path()), ["f16.gguf", "out.gguf"]),
        }
    }
}

#[test]
fn progress_reaches_the_number_of_weights_in_both_steps() {
    let folder = folder();
    let input = f16_file(folder.path(), ODD);
    let mut seen = Vec::new();
    let request = request(&input, &folder.path().join("out.gguf"), FileType::Q8_0);
    let mut progress = |step, done, total| seen.push((step, done, total));
    let report =
        quantize(&request, &mut progress, &AtomicBool::new(false)).expect("it is quantised");
    for step in [QuantizeStep::Write, QuantizeStep::Verify] {
        let last = seen.iter().rev().find(|(other, _, _)| *other == step);
        assert_eq!(last, Some(&(step, report.parameters, report.parameters)));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_without_room_is_refused_before_anything_is_written() {
    let folder = folder();
    let input = f16_file(folder.path(), ODD);
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).expect("made");
    let mount = |arguments: &[&str]| {
        let mut command = Command::new("mount");
        command.args(arguments).arg(&disk);
        command.output().is_ok_and(|output| output.status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=256k", "tmpfs"]) {
        return skip("only root mounts a small disk");
    }
    let refused = message(run(&input, &disk.join("out.gguf"), FileType::F16));
    let left = names(&disk);
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert!(refused.contains("MB are free on its disk"), "{refused}");
    assert!(left.is_empty(), "{left:?}");
}

#[cfg(unix)]
#[test]
fn a_new_file_has_the_permissions_of_any_other() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let input = f16_file(folder.path(), ODD);
    let output = folder.path().join("out.gguf");
    run(&input, &output, FileType::Q8_0).expect("it is quantised");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode();
    assert_eq!(mode(&output), mode(&input));
}
