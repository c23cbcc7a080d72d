//! `goldcrest tokenize`: texts as token ids, a line for each.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use engine::{Gguf, Tokenizer};
use serde::Serialize;

use super::args::TokenizeArgs;
use super::load;
use super::output::{self, CliError};
use super::text;

/// Output of `--json` for a text.
#[derive(Serialize)]
struct TokenizedText<'a> {
    text: &'a str,
    ids: Vec<u32>,
}

pub fn run(args: &TokenizeArgs) -> Result<(), CliError> {
    let file = load::file(args.model.as_deref())?;
    let gguf = Gguf::open(&file).map_err(|error| CliError::file(&file, error))?;
    let tokenizer = Tokenizer::from_gguf(&gguf).map_err(|error| CliError::file(&file, error))?;
    let mut print = |text: &str| {
        let ids = tokenizer.encode(text, !args.no_special);
        if args.json {
            output::json(&TokenizedText { text, ids })
        } else {
            output::json(&ids)
        }
    };
    match &args.file {
        Some(file) => {
            let separator = if args.null { 0 } else { b'\n' };
            let (input, name) = open(file)?;
            each_text(input, name, separator, &mut print)
        }
        None => args.texts.iter().try_for_each(|text| print(text)),
    }
}

/// Opens the file, or stdin for `-`, with its name.
fn open(file: &Path) -> Result<(Box<dyn BufRead>, &Path), CliError> {
    if file.as_os_str() == "-" {
        return Ok((Box::new(io::stdin().lock()), Path::new("stdin")));
    }
    let opened = File::open(file).map_err(|error| CliError::file(file, error))?;
    Ok((Box::new(BufReader::new(opened)), file))
}

/// Calls `each` with every text that `separator` ends; the last one needs none. With lines, the carriage return of
/// Windows belongs to the separator.
fn each_text(
    mut input: Box<dyn BufRead>,
    name: &Path,
    separator: u8,
    each: &mut dyn FnMut(&str) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut bytes = Vec::new();
    text::skip_mark(&mut input).map_err(|error| CliError::file(name, error))?;
    for number in 1.. {
        bytes.clear();
        let read = input.read_until(separator, &mut bytes);
        if read.map_err(|error| CliError::file(name, error))? == 0 {
            break;
        }
        bytes.pop_if(|last| *last == separator);
        if separator == b'\n' {
            bytes.pop_if(|last| *last == b'\r');
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            CliError::file(name, format!("text {number} is not UTF-8: {error}"))
        })?;
        each(text)?;
    }
    Ok(())
}
