//! `goldcrest quantize`: its output, and that no file is left after a failure or an interruption.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use engine::Gguf;
use engine::gguf::BlockType;
use engine::gguf::write::{self, Field, TensorSpec};
use tempfile::TempDir;

use super::{goldcrest, parsed, refusal, run, stdout, tiny_model};

/// Copies the tiny model's metadata and tensors, with all weights 0, in F16; its layers `wider` times as wide. The file
/// is sparse.
fn zeros(folder: &Path, wider: usize) -> PathBuf {
    let tiny = Gguf::open(&tiny_model()).expect("the tiny model");
    let widths = [
        "smollm3.embedding_length",
        "smollm3.feed_forward_length",
        "smollm3.attention.head_count",
        "smollm3.attention.head_count_kv",
    ];
    let fields = tiny
        .stored_fields()
        .into_iter()
        .map(|(key, bytes)| match tiny.u32(key) {
            Some(width) if widths.contains(&key) => (
                key,
                Field::U32(width * u32::try_from(wider).expect("small")),
            ),
            _ => (key, Field::Stored(bytes.to_vec())),
        });
    let describe = |tensor: &engine::gguf::TensorInfo| {
        let mut dims = tensor.dims.clone();
        dims[0] *= wider;
        if dims.len() > 1 && tensor.name != "token_embd.weight" {
            dims[1] *= wider;
        }
        let ty = if dims.len() > 1 {
            BlockType::F16
        } else {
            BlockType::F32
        };
        let len = dims.iter().product::<usize>() * ty.block_bytes();
        TensorSpec {
            name: tensor.name.clone(),
            ty,
            dims,
            len,
        }
    };
    let tensors: Vec<TensorSpec> = tiny.tensors().iter().map(describe).collect();
    let header = write::header(fields, &tensors);
    let data: usize = tensors
        .iter()
        .map(|tensor| tensor.len + write::padding(tensor.len))
        .sum();
    let path = folder.join("zeros.gguf");
    let mut file = File::create(&path).expect("made");
    file.write_all(&header).expect("written");
    file.set_len((header.len() + data) as u64).expect("sparse");
    path
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("read");
    entries
        .map(|entry| {
            entry
                .expect("read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[test]
fn quantize_writes_a_file_that_inspect_reads() {
    let folder = folder();
    let input = zeros(folder.path(), 1);
    let output = folder.path().join("out.gguf");
    let arguments = [Path::new("quantize"), &input, &output, Path::new("q4_k_m")];
    let said = stdout(run(arguments));
    assert!(
        said.contains("Q4_K_M: ") && said.contains("bits per weight"),
        "{said}"
    );
    let inspected = parsed(run([Path::new("inspect"), &output, Path::new("--json")]));
    assert_eq!(inspected["quantisation"], "Q4_K_M");

    let refused = refusal(run(arguments), 1);
    assert!(
        refused.contains("the file is there already; --force overwrites it"),
        "{refused}"
    );
    let again = [&arguments[..], &[Path::new("--force"), Path::new("--json")]].concat();
    let report = parsed(run(again));
    assert_eq!(report["file_type"], "Q4_K_M");
    assert_eq!(
        report["output_bytes"],
        fs::metadata(&output).expect("there").len()
    );
    let tensors = report["tensors"].as_array().expect("a list");
    assert!(
        tensors
            .iter()
            .any(|tensor| tensor["name"] == "token_embd.weight" && tensor["type"] == "Q6_K")
    );
    assert!(tensors.iter().all(|tensor| tensor["relative_error"] == 0.0));
}

#[test]
fn quantize_refuses_what_it_cannot_read_in_one_sentence() {
    let folder = folder();
    let (cut, out) = (
        folder.path().join("cut.gguf"),
        folder.path().join("out.gguf"),
    );
    let whole = fs::read(tiny_model()).expect("the tiny model");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    let nested = folder.path().join("nested");
    fs::create_dir(&nested).expect("made");
    fs::write(nested.join("config.json"), "[".repeat(1 << 20)).expect("written");
    let cases = [
        (tiny_model(), "it is stored as "),
        (cut, "cut.gguf: "),
        (folder.path().join("none.gguf"), "none.gguf: "),
        (nested, "config.json: "),
    ];
    for (input, reason) in cases {
        let said = refusal(
            run([Path::new("quantize"), &input, &out, Path::new("Q8_0")]),
            1,
        );
        assert!(said.contains(reason), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!out.exists());
    }
    let said = refusal(
        run([Path::new("quantize"), &out, &out, Path::new("Q4_K_S")]),
        2,
    );
    assert!(
        said.contains("must be Q4_K_M, Q5_K_M, Q6_K, Q8_0 or F16"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn quantize_leaves_nothing_when_the_system_takes_no_more() {
    let folder = folder();
    let input = zeros(folder.path(), 1);
    let out = folder.path().join("out");
    fs::create_dir(&out).expect("made");
    let mut shell = std::process::Command::new("sh");
    // Files of a few hundred kilobytes at most; the signal for more is ignored, so that the write fails.
    shell.args([
        "-c",
        "trap '' XFSZ; ulimit -f 400; exec \"$0\" quantize \"$1\" \"$2\" F16",
    ]);
    shell
        .arg(env!("CARGO_BIN_EXE_goldcrest"))
        .arg(&input)
        .arg(out.join("out.gguf"));
    let said = refusal(shell.output().expect("a shell"), 1);
    assert!(
        said.contains("out.gguf: the file is larger than the system allows"),
        "{said}"
    );
    assert_eq!(names(&out), [""; 0]);
}

#[cfg(unix)]
#[test]
fn quantize_leaves_nothing_when_it_is_interrupted() {
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};
    let folder = folder();
    let input = zeros(folder.path(), 8);
    let out = folder.path().join("out");
    fs::create_dir(&out).expect("made");
    let mut command = goldcrest();
    command
        .arg("quantize")
        .arg(&input)
        .arg(out.join("out.gguf"))
        .args(["Q4_K_M", "--threads", "1"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let began = Instant::now();
    while names(&out).is_empty() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "nothing is written"
        );
        thread::sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        output.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(names(&out), [""; 0]);
}
