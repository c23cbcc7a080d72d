//! `goldcrest logits`: the model's logits for tokens, as JSON rows.

use super::args::LogitsArgs;
use super::interrupt::Interrupt;
use super::load;
use super::output::{self, CliError};

pub fn run(args: &LogitsArgs) -> Result<(), CliError> {
    let _interrupt = Interrupt::listen();
    let mut model = load::open(&args.model)?;
    let rows = model
        .run(|engine| engine.logits(&args.tokens, args.all))
        .map_err(|error| CliError::message(error.to_string()))?;
    output::json(&rows)
}
