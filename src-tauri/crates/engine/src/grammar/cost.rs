//! Measured cost of holding an answer to a form.

use std::sync::Arc;
use std::time::Instant;

use inference::Constraint;
use serde_json::Value;

use super::compiler::Grammars;
use super::rules::Form;
use crate::run::error::GenerateError;
use crate::text::tokenizer::Tokenizer;

/// Cost of holding an answer to a form, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct FormCost {
    /// The trie of the vocabulary, once per model, and the first form.
    pub trie_s: f64,
    /// A form, once per request.
    pub compile_s: f64,
    /// The mask of a token: the median.
    pub mask_s: f64,
    /// The mask of the dearest token.
    pub longest_mask_s: f64,
}

impl FormCost {
    /// Measures the masks of `answer`, which has this schema.
    ///
    /// # Errors
    /// Fails if the schema cannot be used, or the answer does not have it.
    pub fn measure(
        tokenizer: Arc<Tokenizer>,
        schema: &Value,
        answer: &str,
    ) -> Result<FormCost, GenerateError> {
        let ids = tokenizer.encode(answer, false);
        let mut grammars = Grammars::new(tokenizer);
        let started = Instant::now();
        grammars.rules(&Constraint::Json(Arc::new(true.into())))?;
        let trie_s = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let rules = grammars.rules(&Constraint::Json(Arc::new(schema.clone())))?;
        let compile_s = started.elapsed().as_secs_f64();
        let mut masks = Vec::new();
        if let Form::Json(form) = &rules.form {
            let mut form = form.deep_clone();
            let error = |error| GenerateError::Form(format!("{error}"));
            for id in ids {
                let started = Instant::now();
                std::hint::black_box(form.compute_mask().map_err(error)?);
                form.consume_token(id).map_err(error)?;
                std::hint::black_box(form.compute_ff_tokens());
                masks.push(started.elapsed().as_secs_f64());
            }
        }
        masks.sort_by(f64::total_cmp);
        let at = |at: usize| masks.get(at).copied().unwrap_or_default();
        Ok(FormCost {
            trie_s,
            compile_s,
            mask_s: at(masks.len() / 2),
            longest_mask_s: at(masks.len().saturating_sub(1)),
        })
    }
}
