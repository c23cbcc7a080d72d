//! `goldcrest render`: the exact prompt that a model's chat template makes, byte for byte except on a terminal.

use std::fs;
use std::io::Write;
use std::path::Path;

use engine::ModelFile;
use jiff::civil::Date;
use serde_json::Value;

use super::args::RenderArgs;
use super::load;
use super::output::{self, CliError};
use super::text;

pub fn run(args: &RenderArgs) -> Result<(), CliError> {
    let (context, today) = read_messages(&args.messages)?;
    let file = load::file(args.model.as_deref())?;
    let model = ModelFile::open(&file).map_err(|error| CliError::file(&file, error))?;
    load::tell_of_format(&model);
    let rendered = model.template().render(&context, today);
    let prompt = rendered.map_err(|error| CliError::message(error.to_string()))?;
    let mut out = output::content();
    out.write_all(prompt.as_bytes())?;
    Ok(out.flush()?)
}

fn read(file: &Path) -> Result<String, CliError> {
    let bytes = fs::read(file).map_err(|error| CliError::file(file, error))?;
    text::decoded(bytes).map_err(|error| CliError::file(file, error))
}

/// Reads the template's variables, and the day: `{"context": {…}, "today": "2026-03-05"}`, or only the variables, for
/// today.
fn read_messages(file: &Path) -> Result<(Value, Date), CliError> {
    let mut value: Value =
        serde_json::from_str(&read(file)?).map_err(|error| CliError::file(file, error))?;
    let Some(object) = value.as_object_mut() else {
        return Err(CliError::file(
            file,
            "holds no object of template variables",
        ));
    };
    let Some(context) = object.remove("context") else {
        return Ok((value, chat::now().date()));
    };
    let today = match object.get("today").map(|today| (today, today.as_str())) {
        None => chat::now().date(),
        Some((_, Some(text))) => text
            .parse()
            .map_err(|error| CliError::file(file, format!("`today` is no date: {error}")))?,
        Some((other, None)) => {
            return Err(CliError::file(file, format!("`today` is no date: {other}")));
        }
    };
    Ok((context, today))
}
