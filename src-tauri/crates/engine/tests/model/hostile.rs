//! Files that fail while they are read, and files that declare more data than any memory holds. Cases that might end
//! the process run in a child.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::gguf::BlockType;
use engine::gguf::write::{self, Field, TensorSpec};
use engine::{Engine, Gguf, Inspection, LoadOptions, ModelFile};

use crate::files::{altered, refusal};
use crate::reference::{fixture, on_cpu, on_gpu};

mod vocabulary;

/// Names the file that a child works on.
const FILE: &str = "GOLDCREST_TEST_HOSTILE_FILE";

/// The file that this process works on, if it is a child.
fn in_child() -> Option<PathBuf> {
    env::var_os(FILE).map(PathBuf::from)
}

/// Path of a child's result for its file.
fn said(file: &Path) -> PathBuf {
    file.with_extension("said")
}

/// Runs a test of this module in a child, with an address space of `megabytes`, and returns its result.
fn child(test: &str, file: &Path, megabytes: Option<u64>) -> String {
    let limit = megabytes.map_or("unlimited".to_owned(), |limit| (limit << 10).to_string());
    let mut arguments = vec![OsString::from("-c")];
    arguments.push(format!("ulimit -v {limit}; exec \"$0\" \"$@\"").into());
    arguments.push(env::current_exe().expect("this binary").into());
    let test = format!("hostile::{test}");
    arguments.extend(["--exact", &test, "--test-threads=1"].map(OsString::from));
    let output = Command::new("sh")
        .args(arguments)
        .env(FILE, file)
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "the child ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    fs::read_to_string(said(file)).expect("the child has said something")
}

fn error(path: &Path, options: &LoadOptions, progress: &mut dyn FnMut(f32)) -> String {
    let opened = Engine::open(path, options, progress);
    opened
        .err()
        .map_or("it opens".to_owned(), |error| error.to_string())
}

#[test]
fn a_file_that_shrinks_while_it_loads_is_an_error() {
    let test = "a_file_that_shrinks_while_it_loads_is_an_error";
    assert_refuses_a_shrinking_file(test, &on_cpu());
}

#[test]
fn a_file_that_shrinks_while_a_gpu_loads_it_is_an_error() {
    let Some(options) = on_gpu() else { return };
    let test = "a_file_that_shrinks_while_a_gpu_loads_it_is_an_error";
    assert_refuses_a_shrinking_file(test, &options);
}

#[track_caller]
fn assert_refuses_a_shrinking_file(test: &str, options: &LoadOptions) {
    if let Some(path) = in_child() {
        let len = fs::metadata(&path).expect("the file").len();
        let error = error(&path, options, &mut |_| {
            // Once the first tensor is there, the data of the last ones is gone.
            let file = File::options().write(true).open(&path).expect("the file");
            file.set_len(len / 2).expect("it shrinks");
        });
        fs::write(said(&path), error).expect("it is written");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shrinking.gguf");
    fs::copy(fixture("tiny-q8_0.gguf"), &path).expect("it is copied");
    let error = child(test, &path, None);
    assert!(
        error.starts_with("tensor `")
            && error.ends_with("cannot be read: the file has become shorter"),
        "{error}"
    );
}

/// A file in which every tensor of `model` is zeros that take no room on a disk.
fn sparse(path: &Path, model: &Shape) {
    sparse_with_head(path, model, None);
}

/// Like [`sparse`], with a head of its own of this many rows and columns.
fn sparse_with_head(path: &Path, model: &Shape, head: Option<(usize, usize)>) {
    let gguf = Gguf::open(&fixture("tiny-q8_0.gguf")).expect("the fixture is committed");
    let fields = gguf.keys().filter_map(|key| {
        let number = |value: usize| Some((key, Field::U32(value as u32)));
        match key.strip_prefix("smollm3.") {
            Some("embedding_length") => number(model.embedding),
            Some("feed_forward_length") => number(model.feed_forward),
            Some("block_count") => number(model.layers),
            Some("attention.head_count") => number(model.heads),
            Some("attention.head_count_kv") => number(model.kv_heads),
            Some("attention.key_length" | "attention.value_length") => number(model.head_dim),
            Some("rope.dimension_count") => number(model.head_dim),
            _ => Some((key, Field::from_value(&gguf.get(key)?)?)),
        }
    });
    let mut fields: Vec<_> = fields.collect();
    fields.retain(|(key, _)| !key.ends_with("key_length") && !key.ends_with("value_length"));
    let dim = model.head_dim as u32;
    fields.push(("smollm3.attention.key_length", Field::U32(dim)));
    let mut tensors = model.tensors(gguf.tensor("token_embd.weight").expect("a table").rows);
    tensors.extend(head.map(|(rows, cols)| TensorSpec {
        name: "output.weight".to_owned(),
        ty: BlockType::F16,
        dims: vec![cols, rows],
        len: 2 * rows * cols,
    }));
    let image = write::header(fields, &tensors);
    let data: usize = tensors
        .iter()
        .map(|tensor| tensor.len + write::padding(tensor.len))
        .sum();
    let mut file = File::create(path).expect("a file");
    file.write_all(&image).expect("it is written");
    file.set_len((image.len() + data) as u64)
        .expect("a sparse file");
}

struct Shape {
    layers: usize,
    embedding: usize,
    feed_forward: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
}

impl Shape {
    fn tensors(&self, vocab: usize) -> Vec<TensorSpec> {
        let describe = |name: String, cols: usize, rows: usize| {
            let ty = match rows {
                1 => BlockType::F32,
                // Blocks of 32 need rows of as many.
                _ if cols.is_multiple_of(32) => BlockType::Q4_0,
                _ => BlockType::F16,
            };
            let dims = if rows == 1 {
                vec![cols]
            } else {
                vec![cols, rows]
            };
            TensorSpec {
                len: ty.row_bytes(cols).expect("whole blocks") * rows,
                name,
                ty,
                dims,
            }
        };
        let (e, f) = (self.embedding, self.feed_forward);
        let (h, k) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let mut all = vec![
            describe("token_embd.weight".to_owned(), e, vocab),
            describe("output_norm.weight".to_owned(), e, 1),
        ];
        for layer in 0..self.layers {
            for (part, cols, rows) in [
                ("attn_norm", e, 1),
                ("attn_q", e, h),
                ("attn_k", e, k),
                ("attn_v", e, k),
                ("attn_output", h, e),
                ("ffn_norm", e, 1),
                ("ffn_gate", e, f),
                ("ffn_up", e, f),
                ("ffn_down", f, e),
            ] {
                all.push(describe(format!("blk.{layer}.{part}.weight"), cols, rows));
            }
        }
        all
    }
}

const NARROW: Shape = Shape {
    layers: 1,
    embedding: 64,
    feed_forward: 64,
    heads: 2,
    kv_heads: 1,
    head_dim: 32,
};

#[test]
fn shapes_that_padding_makes_many_times_larger_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wide.gguf");
    sparse(&path, &NARROW);
    ModelFile::open(&path).expect("a model of no use, but a model");
    for (shape, expected) in [
        (
            Shape {
                layers: 40,
                embedding: 1,
                feed_forward: 1 << 20,
                ..NARROW
            },
            "`smollm3.embedding_length`",
        ),
        (
            Shape {
                feed_forward: 1 << 18,
                ..NARROW
            },
            "`smollm3.feed_forward_length`",
        ),
        (
            Shape {
                heads: 1 << 15,
                ..NARROW
            },
            "32768 heads of 32 values",
        ),
        (
            Shape {
                heads: 1 << 16,
                kv_heads: 1 << 16,
                head_dim: 2,
                ..NARROW
            },
            "65536 heads of 2 values",
        ),
        (
            Shape {
                head_dim: 1024,
                ..NARROW
            },
            "2 heads of 1024 values",
        ),
    ] {
        sparse(&path, &shape);
        let error = refusal(&path);
        assert!(
            error.contains(expected),
            "`{error}` does not say `{expected}`"
        );
    }
}

#[test]
fn out_of_memory_while_loading_is_an_error() {
    if let Some(path) = in_child() {
        fs::write(said(&path), error(&path, &on_cpu(), &mut |_| {})).expect("it is written");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.gguf");
    // Three matrices of 151 MB.
    let large = Shape {
        embedding: 2048,
        feed_forward: 1 << 17,
        heads: 16,
        kv_heads: 4,
        head_dim: 128,
        ..NARROW
    };
    sparse(&path, &large);
    let said = child("out_of_memory_while_loading_is_an_error", &path, Some(500));
    assert!(
        said.contains("cannot be uploaded to the device") && said.contains("MB of memory left"),
        "{said}"
    );
}

/// Limits the address space of this process to what it has now and `more` bytes, or not at all.
#[cfg(target_os = "linux")]
fn limit_addresses(more: Option<u64>) {
    let limit = match more {
        None => "unlimited".to_owned(),
        Some(more) => {
            let statm = fs::read_to_string("/proc/self/statm").expect("what this process has");
            let pages = statm.split(' ').next().and_then(|it| it.parse().ok());
            (4096_u64 * pages.unwrap_or(0) + more).to_string()
        }
    };
    let status = Command::new("prlimit")
        .arg(format!("--as={limit}:unlimited"))
        .arg(format!("--pid={}", std::process::id()))
        .status();
    assert!(status.expect("prlimit").success());
}

#[cfg(target_os = "linux")]
#[test]
fn out_of_memory_in_a_pass_is_an_error_and_the_model_stays_usable() {
    if let Some(path) = in_child() {
        let mut engine = Engine::open(&path, &on_cpu(), &mut |_| {}).expect("a good file");
        let tokens: Vec<u32> = (0..400).collect();
        let long = |engine: &mut Engine| match engine.logits(&tokens, false) {
            Ok(logits) => logits.len().to_string(),
            Err(error) => error.to_string(),
        };
        limit_addresses(Some(16 << 20));
        let refused = long(&mut engine);
        limit_addresses(None);
        fs::write(said(&path), format!("{refused}, {}", long(&mut engine))).expect("it is written");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("heads.gguf");
    // Attention takes 48 MB for each thread.
    let heads = Shape {
        heads: 1024,
        ..NARROW
    };
    sparse(&path, &heads);
    let said = child(
        "out_of_memory_in_a_pass_is_an_error_and_the_model_stays_usable",
        &path,
        None,
    );
    assert!(
        said.starts_with("the device failed: the system has no ")
            && said.ends_with(" MB of memory left, 1"),
        "{said}"
    );
}

#[test]
fn text_of_a_file_is_truncated_in_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = "x".repeat(3_000_000);
    for key in [
        "general.architecture",
        "tokenizer.ggml.model",
        "tokenizer.ggml.pre",
        "smollm3.rope.scaling.type",
    ] {
        let change = |found: &str, field| {
            if found == key {
                Field::String(long.clone())
            } else {
                field
            }
        };
        let path = altered("tiny-yarn-q8_0", folder.path(), change, "");
        let error = refusal(&path);
        assert!(
            error.contains("xxx…") && error.len() < 400,
            "{key}: {} bytes",
            error.len()
        );
    }
    let change = |key: &str, field| match key {
        "general.name" => Field::String(long.clone()),
        _ => field,
    };
    let path = altered("tiny-q8_0", folder.path(), change, "");
    let file = ModelFile::open(&path).expect("a good file");
    let summary = file.summary();
    assert_eq!(summary.name.chars().count(), 201);
    let file = write::header(
        [(&*long, Field::Bool(true))],
        &[TensorSpec {
            name: long.clone(),
            ty: BlockType::F32,
            dims: vec![1],
            len: 4,
        }],
    );
    fs::write(&path, [&file[..], &[0; 32]].concat()).expect("it is written");
    let inspection = Inspection::of(&path, None).expect("a GGUF file");
    let words = inspection
        .metadata
        .keys()
        .chain([&inspection.tensors[0].name]);
    for word in words {
        assert_eq!(word.chars().count(), 201);
    }
}

#[test]
fn an_untied_head_must_have_the_shape_of_the_vocabulary() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("untied.gguf");
    sparse_with_head(&path, &NARROW, Some((525, 64)));
    let mut engine = Engine::open(&path, &on_cpu(), &mut |_| {}).expect("a good file");
    let logits = engine.logits(&[1, 2], false).expect("logits");
    assert!(logits[0].len() == 525 && logits[0].iter().all(|&logit| logit == 0.0));
    for head in [(524, 64), (525, 32), (64, 525)] {
        sparse_with_head(&path, &NARROW, Some(head));
        let error = refusal(&path);
        assert!(
            error.contains("tensor `output.weight`: its shape is"),
            "{error}"
        );
    }
    // A head that cannot be read does not count as a missing one.
    sparse_with_head(&path, &NARROW, Some((525, 64)));
    let file = fs::OpenOptions::new().read(true).write(true).open(&path);
    let file = file.expect("opened");
    let mut start = vec![0; 1 << 16];
    file.read_exact_at(&mut start, 0).expect("read");
    let name = b"\x0d\0\0\0\0\0\0\0output.weight";
    let at = start.windows(name.len()).position(|it| it == name);
    let ty_at = at.expect("it is described") + name.len() + 4 + 2 * 8;
    file.write_all_at(&21u32.to_le_bytes(), ty_at as u64)
        .expect("written");
    let error = refusal(&path);
    assert!(
        error.contains("tensor `output.weight`: its type IQ3_S is not supported"),
        "{error}"
    );
}
