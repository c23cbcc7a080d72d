//! `goldcrest logits`: what the model makes of tokens, as JSON rows.

use super::{CliError, LogitsArgs, load, output};

pub fn run(args: &LogitsArgs) -> Result<(), CliError> {
    let mut engine = load::open(&args.model)?;
    let rows = engine
        .logits(&args.tokens, args.all)
        .map_err(|error| CliError::message(error.to_string()))?;
    output::json(&rows)
}
