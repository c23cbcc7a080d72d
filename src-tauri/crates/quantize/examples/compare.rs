//! Error of quantised files relative to the floats that they were made from: `compare TEXT FLOATS FILE...`. For each
//! file the relative error of its weights, by type and over all, and with exact arithmetic the relative error, the mean
//! Kullback–Leibler divergence and the top-1 agreement of its logits.

#![expect(clippy::print_stdout, reason = "it prints its table")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use engine::{Engine, Gguf, KvType, LoadOptions};
use reference::Distance;

const TOKENS: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [text, floats, others @ ..] = &arguments[..] else {
        return Err("compare TEXT FLOATS FILE...".into());
    };
    let text = std::fs::read_to_string(text)?;
    let source = Gguf::open(Path::new(floats))?;
    let exact = logits(floats, &text)?;
    for file in others {
        println!("{file}");
        weights(&source, &Gguf::open(Path::new(file))?)?;
        let Distance {
            relative_error,
            mean_kl,
            top1,
        } = Distance::between(&logits(file, &text)?, &exact);
        println!(
            "  logits  relative error {relative_error:.6}  mean KL {mean_kl:.6}  top-1 {top1:.4}"
        );
    }
    Ok(())
}

fn weights(source: &Gguf, file: &Gguf) -> Result<(), Box<dyn Error>> {
    let mut by_type: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for tensor in file.tensors().iter().filter(|tensor| tensor.dims.len() > 1) {
        let (a, b) = (values(source, &tensor.name)?, values(file, &tensor.name)?);
        let (mut error, mut norm) = (0.0, 0.0);
        for (&x, &y) in a.iter().zip(&b) {
            error += f64::from(x - y).powi(2);
            norm += f64::from(x).powi(2);
        }
        for name in [tensor.ty.name(), "all"] {
            let sum = by_type.entry(name).or_default();
            *sum = (sum.0 + error, sum.1 + norm);
        }
    }
    for (name, (error, norm)) in by_type {
        println!(
            "  weights {name:<5} relative error {:.6}",
            (error / norm).sqrt()
        );
    }
    Ok(())
}

fn values(gguf: &Gguf, name: &str) -> Result<Vec<f32>, Box<dyn Error>> {
    let view = gguf.tensor(name).ok_or("both have the same tensors")?;
    let mut values = vec![0.0; view.rows * view.cols];
    kernels::dequantise(view.ty, &view.bytes.read()?, &mut values)?;
    Ok(values)
}

/// Logits `[TOKENS, vocabulary]` after the beginning of a text, with arithmetic in f32.
fn logits(file: &str, text: &str) -> Result<Vec<Vec<f32>>, Box<dyn Error>> {
    let options = LoadOptions {
        exact: true,
        kv: KvType::F32,
        context: Some(2 * TOKENS),
        ..LoadOptions::default()
    };
    let mut engine = Engine::open(Path::new(file), &options, &mut |_| {})?;
    let mut ids = engine.tokenizer().encode(text, false);
    ids.truncate(TOKENS);
    Ok(engine.logits(&ids, true)?)
}
