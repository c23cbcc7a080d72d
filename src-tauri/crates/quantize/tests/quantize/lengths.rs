//! Inputs that are longer than those of any such model.

use std::fs;

use candle_core::DType;

use crate::hostile::refused;
use crate::models::{Model, ODD, folder};

/// Refuses long JSON texts: in memory they take many times their length, and SmolLM3's are far shorter.
#[test]
fn settings_and_headers_of_absurd_length() {
    let folder = folder();
    let input = folder.path().join("model");
    Model::random(ODD).write_folder(&input, DType::F16, 2);
    for name in [
        "config.json",
        "tokenizer_config.json",
        "generation_config.json",
        "model.safetensors.index.json",
    ] {
        let path = input.join(name);
        let before = fs::read(&path).ok();
        let mut long = before.clone().unwrap_or_else(|| b"{}".to_vec());
        long.resize((1 << 20) + 1, b' ');
        fs::write(&path, long).expect("written");
        let reason = format!("{name}: it has 1048577 bytes where 1048576 are the most");
        refused(folder.path(), &input, &reason);
        match before {
            Some(before) => fs::write(&path, before).expect("written"),
            None => fs::remove_file(&path).expect("removed"),
        }
    }
    let shard = input.join("model-00002-of-00002.safetensors");
    let write = |header: &str| {
        let length = (header.len() as u64).to_le_bytes();
        fs::write(&shard, [&length[..], header.as_bytes()].concat()).expect("written");
    };
    fs::remove_file(input.join("model.safetensors.index.json")).expect("it was there");
    write(&format!("{{}}{}", " ".repeat(4 << 20)));
    refused(folder.path(), &input, "its header would have 4194306 bytes");
    let tensor = r#"{"dtype":"F32","shape":[0],"data_offsets":[0,0]}"#;
    let tensors: Vec<String> = (0..66_000).map(|at| format!("\"{at}\":{tensor}")).collect();
    write(&format!("{{{}}}", tensors.join(",")));
    refused(folder.path(), &input, "there are more than 65536 tensors");
}
