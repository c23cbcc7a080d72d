//! The lengths of context to choose from, with the memory that each takes.

use std::path::PathBuf;

use chat::{Failure, ModelChoice, ModelStatus, Settings};
use engine::{ContextCost, ContextCosts, LoadOptions, context_costs};
use serde::Serialize;

use super::{file_of, opened, refusal};

/// A length of context, with the memory that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ContextOption {
    /// The length in tokens.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub tokens: usize,
    /// Memory of a full KV cache in f16, in bytes.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub kv_f16_bytes: u64,
    /// Memory of a full KV cache in q8_0, in bytes.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub kv_q8_bytes: u64,
    /// True if it is longer than the model was trained for, so that YaRN is applied.
    pub stretched: bool,
    /// True if it fits in the free memory with a KV cache in f16.
    pub fits_f16: bool,
    /// True if it fits with one in q8_0.
    pub fits_q8: bool,
}

/// Lengths of the context to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ContextOptions {
    /// Lengths in ascending order, including the current one.
    pub lengths: Vec<ContextOption>,
    /// Default with a KV cache in f16.
    pub automatic_f16: ContextOption,
    /// Default with one in q8_0.
    pub automatic_q8: ContextOption,
}

impl From<ContextCost> for ContextOption {
    fn from(cost: ContextCost) -> Self {
        Self {
            tokens: cost.tokens,
            kv_f16_bytes: cost.kv_f16_bytes,
            kv_q8_bytes: cost.kv_q8_bytes,
            stretched: cost.stretched,
            fits_f16: cost.fits_f16,
            fits_q8: cost.fits_q8,
        }
    }
}

impl From<ContextCosts> for ContextOptions {
    fn from(costs: ContextCosts) -> Self {
        Self {
            lengths: costs.lengths.into_iter().map(ContextOption::from).collect(),
            automatic_f16: costs.automatic_f16.into(),
            automatic_q8: costs.automatic_q8.into(),
        }
    }
}

/// Returns the lengths that a model can have; `None` if there is no model.
///
/// # Errors
/// Fails if its file cannot be read.
pub fn of_model(
    status: &ModelStatus,
    settings: &Settings,
) -> Result<Option<ContextOptions>, Failure> {
    let file = match status {
        ModelStatus::None => return Ok(None),
        ModelStatus::Ready { model } => &model.file,
        ModelStatus::Checking { model }
        | ModelStatus::Loading { model, .. }
        | ModelStatus::Ejected { model } => &model.file,
    };
    let choice = match file {
        Some(file) => ModelChoice::File(PathBuf::from(file)),
        None => ModelChoice::BundledModel,
    };
    let options = LoadOptions {
        allow_yarn: choice != ModelChoice::BundledModel,
        ..opened::load_options(&settings.load_options())
    };
    let costs = context_costs(&file_of(&choice)?, &options)
        .map_err(|error| refusal::of(&choice, &error))?;
    Ok(Some(costs.into()))
}

#[cfg(test)]
mod tests {
    use chat::UnopenedModel;

    use super::*;
    use crate::bundled_model;

    #[test]
    fn a_model_that_is_known_has_its_lengths_and_none_has_none() {
        let settings = Settings::default();
        let lengths = |status| {
            let options = of_model(&status, &settings).expect("it is read");
            let lengths = options.map_or_else(Vec::new, |options| options.lengths);
            let facts = lengths
                .iter()
                .map(|it| (it.tokens, it.stretched, it.fits_f16));
            facts.collect::<Vec<_>>()
        };
        assert_eq!(lengths(ModelStatus::None), []);
        let file = bundled_model::file().expect("the bundled model");
        let model = |file: Option<PathBuf>| UnopenedModel {
            name: "Mine".into(),
            bundled_model: file.is_none(),
            file: file.map(|file| file.display().to_string()),
        };
        let bundled = ModelStatus::Ejected { model: model(None) };
        assert_eq!(
            lengths(bundled),
            [(2048, false, true)],
            "it is not stretched"
        );
        let mine = ModelStatus::Ejected {
            model: model(Some(file)),
        };
        assert_eq!(lengths(mine), [(2048, false, true), (4096, true, true)]);
        let gone = ModelStatus::Ejected {
            model: model(Some("/none/x.gguf".into())),
        };
        let failure = of_model(&gone, &settings).expect_err("it is gone");
        assert_eq!(failure.message, "x.gguf is no longer in /none.");
    }
}
