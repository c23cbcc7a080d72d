//! Compilation of forms for the vocabulary of a model.

use std::sync::Arc;

use inference::Constraint;
use llguidance::api::TopLevelGrammar;
use llguidance::panic_utils::catch_unwind;
use llguidance::toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};
use llguidance::{Matcher, ParserFactory};

use super::limits::{limits, reason_of};
use super::rules::AnswerRules;
use super::schema::usable;
use crate::run::error::GenerateError;
use crate::text::protocol::CallFormat;
use crate::text::tokenizer::Tokenizer;

/// Compiler of forms. The trie of the vocabulary is made with the first one.
pub(crate) struct Grammars {
    pub(super) tokenizer: Arc<Tokenizer>,
    /// The format of calls, if the model has one; true if programs have calls of their own.
    pub(super) calls: Option<(&'static CallFormat, bool)>,
    factory: Option<ParserFactory>,
    /// The last forms, the newest first.
    compiled: Vec<(Constraint, Arc<AnswerRules>)>,
}

impl Grammars {
    /// Forms in memory: a step of a chat has that of the step before.
    const CAPACITY: usize = 8;

    pub fn new(tokenizer: Arc<Tokenizer>) -> Grammars {
        Grammars {
            tokenizer,
            calls: None,
            factory: None,
            compiled: Vec::new(),
        }
    }

    /// Sets the format of calls; `runs_code` if programs have calls of their own.
    pub fn set_calls(&mut self, format: &'static CallFormat, runs_code: bool) {
        self.calls = Some((format, runs_code));
    }

    /// Compiles a form, unless it is in memory.
    ///
    /// # Errors
    /// Fails if the schema of an answer cannot be used, or the model has no format of calls.
    pub fn rules(&mut self, constraint: &Constraint) -> Result<Arc<AnswerRules>, GenerateError> {
        let found = self.compiled.iter().position(|(of, _)| of == constraint);
        if let Some(at) = found {
            let found = self.compiled.remove(at);
            let rules = Arc::clone(&found.1);
            self.compiled.insert(0, found);
            return Ok(rules);
        }
        let rules = Arc::new(match constraint {
            Constraint::Json(schema) => {
                let schema = usable(schema)?.schema;
                AnswerRules::json(self.json(&schema)?)
            }
            Constraint::NoCalls => self.no_calls(),
            Constraint::Calls { tools, required } => self.calls(tools, *required, None)?,
            Constraint::CallsOrJson { tools, schema } => {
                let schema = usable(schema)?.schema;
                self.calls(tools, true, Some(&schema))?
            }
        });
        self.compiled.truncate(Self::CAPACITY - 1);
        self.compiled
            .insert(0, (constraint.clone(), Arc::clone(&rules)));
        Ok(rules)
    }

    /// An answer of JSON, after up to two newlines.
    fn json(&mut self, schema: &serde_json::Value) -> Result<Matcher, GenerateError> {
        self.matcher(&format!("start: (\"\\n\" \"\\n\"?)? %json {schema}\n"))
    }

    /// Compiles a grammar in llguidance's dialect of Lark.
    pub(super) fn matcher(&mut self, lark: &str) -> Result<Matcher, GenerateError> {
        let parser = self
            .factory()?
            .create_parser(TopLevelGrammar::from_lark(lark.to_owned()));
        let matcher = Matcher::new(parser);
        match matcher.get_error() {
            None => Ok(matcher),
            Some(error) => Err(GenerateError::Form(reason_of(&error))),
        }
    }

    fn factory(&mut self) -> Result<&ParserFactory, GenerateError> {
        if self.factory.is_none() {
            let started = std::time::Instant::now();
            let factory = factory(&self.tokenizer);
            let factory = factory.map_err(|error| GenerateError::Form(reason_of(&error)))?;
            tracing::debug!(seconds = started.elapsed().as_secs_f64(), "vocabulary trie");
            self.factory = Some(factory);
        }
        let missing = || GenerateError::Form("no vocabulary".to_owned());
        self.factory.as_ref().ok_or_else(missing)
    }
}

/// Makes the trie of a vocabulary, and what llguidance derives from it. The error is a message.
fn factory(tokenizer: &Arc<Tokenizer>) -> Result<ParserFactory, String> {
    let made = catch_unwind(std::panic::AssertUnwindSafe(|| {
        let tokens: TokEnv = Arc::new(GrammarTokens::new(Arc::clone(tokenizer)));
        let mut factory = ParserFactory::new_simple(&tokens)?;
        *factory.quiet().limits_mut() = limits();
        Ok(factory)
    }));
    made.map_err(|error| error.to_string())
}

/// The vocabulary as llguidance has it. Special tokens have a mark before their text, so that text is never one.
struct GrammarTokens {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
}

impl GrammarTokens {
    fn new(tokenizer: Arc<Tokenizer>) -> GrammarTokens {
        /// Longest token of the trie in bytes; longer ones are never sampled.
        const LONGEST: usize = 1000;
        let ids = 0..u32::try_from(tokenizer.vocabulary_size()).unwrap_or(u32::MAX);
        let suppressed = tokenizer.suppressed();
        let words = ids.map(|id| {
            let piece = tokenizer.piece(id);
            let is_special = tokenizer.is_special(id) || suppressed.binary_search(&id).is_ok();
            match piece.len() {
                LONGEST.. => Vec::new(),
                _ if is_special => [&[TokTrie::SPECIAL_TOKEN_MARKER], piece].concat(),
                _ => piece.to_vec(),
            }
        });
        let words: Vec<Vec<u8>> = words.collect();
        let ends = tokenizer.turn_ends();
        let info = TokRxInfo::new(
            u32::try_from(words.len()).unwrap_or(u32::MAX),
            ends.first()
                .copied()
                .unwrap_or(llguidance::toktrie::INVALID_TOKEN),
        );
        let mut trie = TokTrie::from(&info, &words);
        if !ends.is_empty() {
            trie = trie.with_eos_tokens(ends);
        }
        GrammarTokens { trie, tokenizer }
    }
}

impl TokenizerEnv for GrammarTokens {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let encode = |text: &str| self.tokenizer.encode(text, false);
        self.trie.tokenize_with_greedy_fallback(bytes, encode)
    }
}
