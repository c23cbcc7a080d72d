//! `goldcrest tokenize`: a text as token ids.

use engine::{Gguf, Tokenizer};

use super::args::TokenizeArgs;
use super::load;
use super::output::{self, CliError};

pub fn run(args: &TokenizeArgs) -> Result<(), CliError> {
    let file = load::file(args.model.as_deref())?;
    let gguf = Gguf::open(&file).map_err(|error| CliError::file(&file, error))?;
    let tokenizer = Tokenizer::from_gguf(&gguf).map_err(|error| CliError::file(&file, error))?;
    output::json(&tokenizer.encode(&args.text, !args.no_special))
}
