//! Answers of a model that generates a fixed text: its thinking, its answer, and the message if there is none.

use std::path::{Path, PathBuf};

use engine::gguf::BlockType;
use engine::gguf::write::{self, Field, TensorSpec};
use engine::{Gguf, Tokenizer};
use serde_json::Value;

use super::{OsStr, fs, goldcrest, parsed, refusal, run, run_with_input, stdout};

/// Writes a model whose tokens lead from one to the next in `text`, in which each occurs once: all layers are zero, and
/// the row of a token in the output matrix is that of the token before it in the table. The first one follows a line's
/// end, as the template writes it before an answer.
fn says(folder: &Path, text: &str) -> PathBuf {
    let tiny = "crates/engine/tests/fixtures/tiny-q8_0.gguf";
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join(tiny);
    let gguf = Gguf::open(&tiny).expect("the fixture is committed");
    let tokenizer = Tokenizer::from_gguf(&gguf).expect("a tokenizer");
    let ids = tokenizer.encode(text, true);
    let tokens = tokenizer.vocabulary_size();
    let width = gguf.u32("smollm3.embedding_length").expect("a width") as usize;
    let mut state = 1_u64;
    let mut sign = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if state >> 63 == 0 { 1.0 } else { -1.0 }
    };
    let table: Vec<f32> = (0..tokens * width).map(|_| sign()).collect();
    let mut head = vec![0_f32; tokens * width];
    let row = |id: u32| id as usize * width..(id as usize + 1) * width;
    let lines = ["\n", "\n\n"].map(|text| tokenizer.encode(text, false)[0]);
    let starts = lines.map(|line| (line, ids[0]));
    for (before, after) in starts
        .into_iter()
        .chain(ids.windows(2).map(|pair| (pair[0], pair[1])))
    {
        for (to, from) in head[row(after)].iter_mut().zip(&table[row(before)]) {
            *to += from;
        }
    }
    let mut specs = Vec::new();
    let mut data: Vec<Vec<f32>> = Vec::new();
    for tensor in gguf.tensors() {
        let values: usize = tensor.dims.iter().product();
        data.push(match &*tensor.name {
            "token_embd.weight" => table.clone(),
            name => vec![f32::from(u8::from(name.contains("norm"))); values],
        });
        specs.push((tensor.name.clone(), tensor.dims.clone()));
    }
    specs.push(("output.weight".to_owned(), vec![width, tokens]));
    data.push(head);
    let specs: Vec<TensorSpec> = specs
        .into_iter()
        .map(|(name, dims)| TensorSpec {
            name,
            ty: BlockType::F32,
            len: dims.iter().product::<usize>() * 4,
            dims,
        })
        .collect();
    let fields = gguf.stored_fields().into_iter();
    let fields = fields.map(|(key, value)| (key, Field::Stored(value.to_vec())));
    let mut image = write::header(fields, &specs);
    for values in data {
        image.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        image.resize(image.len() + write::padding(values.len() * 4), 0);
    }
    let path = folder.join("says.gguf");
    fs::write(&path, image).expect("written");
    path
}

fn ask(model: &Path, more: &[&str]) -> std::process::Output {
    let model = model.to_str().expect("UTF-8");
    let ask = ["ask", "--model", model, "--temperature", "0"];
    run(ask.iter().chain(more).chain(&["How do I strip tags?"]))
}

#[test]
fn a_tag_in_an_answer_is_printed_as_it_stands() {
    let folder = tempfile::tempdir().expect("a folder");
    for text in ["Use `<think> for my job", "Use `</think> for my job"] {
        let model = says(folder.path(), &format!("{text}<|im_end|>"));
        for mode in [&["--no-think"][..], &[]] {
            assert_eq!(stdout(ask(&model, mode)), format!("{text}\n"));
            let report = parsed(ask(&model, &[mode, &["--json"]].concat()));
            assert_eq!(
                (&report["text"], &report["thinking"]),
                (&text.into(), &"".into())
            );
            assert_eq!(report["thinking_tokens"], 0);
        }
    }
}

#[test]
fn a_model_that_only_thinks_says_so_and_ends_with_a_status_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = says(folder.path(), "<think>hm so<|im_end|>");
    for mode in [&["--no-think"][..], &[]] {
        let output = ask(&model, mode);
        assert!(output.stdout.is_empty());
        let said = refusal(output, 3);
        assert!(
            said.contains("hm so") && said.contains("wrote no answer"),
            "{said}"
        );
        let output = ask(&model, &[mode, &["--json"]].concat());
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (&report["text"], &report["thinking"]),
            (&"".into(), &"hm so".into())
        );
        refusal(output, 3);
    }
    // An answer that the user's own limit stopped has the requested length.
    let report = parsed(ask(&model, &["--json", "--max-tokens", "2"]));
    assert_eq!(report["stop_reason"], "max_tokens");
}

/// Writes a conversation of the terminal as a file, imports it, and exports it again.
#[test]
fn a_tag_in_an_answer_comes_back_from_a_file() {
    let home = tempfile::tempdir().expect("a folder");
    for (at, text) in ["Use `<think> for my job", "Use `</think> for my job"]
        .into_iter()
        .enumerate()
    {
        let model = says(home.path(), &format!("{text}<|im_end|>"));
        let first = home.path().join(format!("first{at}.jsonl"));
        let second = home.path().join(format!("second{at}.jsonl"));
        let model = model.to_str().expect("UTF-8");
        let chat = ["chat", "--model", model, "--temperature", "0", "--no-think"];
        let lines = format!("How do I strip tags?\n/export {}\n", first.display());
        assert_eq!(stdout(run_with_input(&chat, &lines)), format!("{text}\n"));
        let with_data = |args: &[&OsStr]| {
            let mut command = goldcrest();
            command.env("GOLDCREST_DATA_DIR", home.path().join(format!("data{at}")));
            stdout(command.args(args).output().expect("the binary starts"))
        };
        with_data(&["import".as_ref(), first.as_os_str()]);
        let export = ["export", "--all", "--format", "jsonl"].map(OsStr::new);
        with_data(&[&export[..], &[second.as_os_str()]].concat());
        for file in [&first, &second] {
            let lines = fs::read_to_string(file).expect("written");
            let lines = lines
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            let mut messages = lines.map(|mut line| line["message"].take());
            let answer = messages.find(|message| message["role"] == "assistant");
            let answer = answer.expect("an answer");
            assert_eq!(
                (&answer["text"], &answer["thinking"]),
                (&text.into(), &Value::Null)
            );
        }
    }
}
