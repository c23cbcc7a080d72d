//! `goldcrest inspect`: contents of a model file.

use std::io::{self, Write};

use engine::{Inspection, ModelLine};
use figures::tokens;

use super::args::InspectArgs;
use super::output::{self, CliError};
use crate::visible::on_one_line;

pub fn run(args: &InspectArgs) -> Result<(), CliError> {
    let inspection = Inspection::of(&args.file, Some(args.context as usize))
        .map_err(|error| CliError::file(&args.file, error))?;
    if args.json {
        return output::json(&inspection);
    }
    let mut out = output::stdout();
    write(&mut out, &inspection)?;
    Ok(out.flush()?)
}

fn write(out: &mut impl Write, it: &Inspection) -> io::Result<()> {
    writeln!(
        out,
        "GGUF version {}, {}{}, {} parameters, mostly {}",
        it.version,
        megabytes(it.file_bytes),
        match it.files {
            1 => String::new(),
            files => format!(" in {files} files"),
        },
        count(it.parameters),
        it.quantisation
    )?;

    writeln!(out, "\nMetadata")?;
    for (key, value) in &it.metadata {
        writeln!(out, "  {} = {}", on_one_line(key), shown(value))?;
    }

    writeln!(out, "\nTensors")?;
    for tensor in &it.tensors {
        let dims: Vec<_> = tensor.dims.iter().map(ToString::to_string).collect();
        writeln!(
            out,
            "  {:<28} {:<5} {:>16} {:>12} bytes",
            on_one_line(&tensor.name),
            tensor.ty,
            dims.join(" × "),
            tensor.bytes
        )?;
    }
    for (name, total) in &it.types {
        writeln!(
            out,
            "  all {name}: {} tensors, {}",
            total.tensors,
            megabytes(total.bytes as u64)
        )?;
    }

    if let Some(model) = &it.model {
        write_model(out, model)?;
    }
    if let Some(format) = &it.chat_format {
        writeln!(out, "\nChat format: {format}.")?;
    }
    match &it.problem {
        Some(problem) => writeln!(out, "\nThe engine cannot run it: {problem}"),
        None => writeln!(out, "\nThe engine can run it."),
    }
}

fn write_model(out: &mut impl Write, model: &ModelLine) -> io::Result<()> {
    writeln!(out, "\nModel")?;
    writeln!(
        out,
        "  {} layers, width {}, feed-forward {}",
        model.shape.layers, model.shape.embedding, model.shape.feed_forward
    )?;
    writeln!(
        out,
        "  {} query heads, {} key and value heads, {} values in a head",
        model.shape.heads, model.shape.kv_heads, model.shape.head_dim
    )?;
    writeln!(
        out,
        "  vocabulary {}, {} head",
        model.shape.vocab,
        if model.tied_head { "tied" } else { "separate" }
    )?;
    writeln!(
        out,
        "  RoPE base {}, scaling {}, layers without RoPE {:?}",
        model.rope_theta, model.rope_scaling, model.layers_without_rope
    )?;
    writeln!(
        out,
        "  trained for {} of context, supports {}",
        tokens(model.trained_context),
        figures::count(model.longest_context)
    )?;
    writeln!(
        out,
        "  runs with {} of context on this computer",
        tokens(model.usable_context)
    )?;
    if let Some(note) = &model.context_note {
        writeln!(out, "  {note}")?;
    }
    writeln!(out, "\nMemory with {} of context", tokens(model.context))?;
    writeln!(out, "  weights {}", megabytes(model.weights_bytes))?;
    for (kind, bytes) in &model.kv_bytes {
        writeln!(out, "  KV cache in {kind}: {}", megabytes(*bytes))?;
    }
    Ok(())
}

/// Formats a value of the metadata as a line: of a long array, its first values and its length.
fn shown(value: &serde_json::Value) -> String {
    let Some(array) = value.as_object() else {
        return value.to_string();
    };
    let first = array["first"].to_string();
    format!(
        "{}, …] ({} values)",
        first.strip_suffix(']').unwrap_or(&first),
        array["length"]
    )
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Formats `3075098624` as `3.08 billion`.
fn count(parameters: u64) -> String {
    match parameters as f64 {
        x if x >= 1e9 => format!("{:.2} billion", x / 1e9),
        x => format!("{:.1} million", x / 1e6),
    }
}
