//! Compares three results for the same model and text: the engine's as the user runs it, candle's, and the exact one,
//! which is the engine's forward pass in f32.

mod report;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use engine::{Engine, GenerateError, KvType, LoadOptions, ModelFile, OpenError};
use host::test_hooks;
use reference::TopToken;

use crate::reference_process::{ReferenceFault, ReferenceProcess};
pub use report::{Agreement, Comparison, Parting, VerifyReport, percent};

/// English and code, of some 380 tokens.
const TEXT: &str = include_str!("verify/text.txt");

/// Tokens of the text, by default and for models with more parameters than [`LARGE`], which take long.
pub const TOKENS: usize = 256;
pub const TOKENS_OF_LARGE: usize = 96;
const LARGE: u64 = 1_000_000_000;

/// Reasons for which there is no report.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The engine does not run the file.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// candle does not run it.
    #[error(transparent)]
    Reference(#[from] ReferenceFault),
    /// The engine fails during the comparison.
    #[error(transparent)]
    Engine(#[from] GenerateError),
    /// The two read files of different vocabularies.
    #[error(
        "candle finds {candle} tokens in the vocabulary, Goldcrest {engine}: they do not agree on the file"
    )]
    Vocabulary {
        /// Tokens by candle.
        candle: usize,
        /// Tokens by the engine.
        engine: usize,
    },
    /// There is no memory for the logits.
    #[error("no memory for the logits of {0} tokens")]
    Memory(usize),
}

/// Part that is running, with the tokens that it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyStage {
    Candle(usize),
    Exact(usize),
    Engine(usize),
}

/// Subject of a comparison.
pub struct Subject {
    /// The model, without its weights.
    pub file: ModelFile,
    /// Tokens of the text.
    pub tokens: Vec<u32>,
}

/// Logits `[positions][vocab]`, stored contiguously.
pub struct LogitsTable {
    vocab: usize,
    values: Vec<f32>,
}

impl LogitsTable {
    /// Makes an empty table with memory for this number of rows.
    pub fn new(vocab: usize, positions: usize) -> Result<LogitsTable, VerifyError> {
        let mut values = Vec::new();
        values
            .try_reserve_exact(vocab.saturating_mul(positions))
            .map_err(|_| VerifyError::Memory(positions))?;
        Ok(LogitsTable { vocab, values })
    }

    fn push(&mut self, row: &[f32]) {
        self.values.extend_from_slice(row);
    }

    fn row(&self, position: usize) -> &[f32] {
        &self.values[position * self.vocab..][..self.vocab]
    }
}

impl Subject {
    /// Reads the file without its weights, and the text's first `tokens` tokens; `None`: chosen for the model.
    ///
    /// # Errors
    /// Fails if the file is not a model that the engine runs.
    pub fn open(path: &Path, tokens: Option<usize>) -> Result<Subject, VerifyError> {
        let file = ModelFile::open(path)?;
        let (summary, tokenizer) = (file.summary(), file.tokenizer());
        let usual = if summary.parameters > LARGE {
            TOKENS_OF_LARGE
        } else {
            TOKENS
        };
        let mut ids: Vec<u32> = tokenizer.prompt_start().into_iter().collect();
        ids.extend(tokenizer.encode(TEXT, false));
        ids.truncate(tokens.unwrap_or(usual).min(summary.trained_context));
        Ok(Subject { file, tokens: ids })
    }

    /// Computes candle's logits in a child process; `None` if `cancel` was set.
    ///
    /// # Errors
    /// Fails if candle does not run the file.
    pub fn candle(
        &self,
        path: &Path,
        threads: Option<usize>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(VerifyStage),
    ) -> Result<Option<LogitsTable>, VerifyError> {
        let vocab = self.file.summary().vocab;
        let Some(mut candle) = ReferenceProcess::open(path, threads, cancel)? else {
            return Ok(None);
        };
        if candle.vocab() != vocab {
            return Err(VerifyError::Vocabulary {
                candle: candle.vocab(),
                engine: vocab,
            });
        }
        let mut table = LogitsTable::new(vocab, self.tokens.len())?;
        let mut logits = Vec::new();
        for (position, &id) in self.tokens.iter().enumerate() {
            if !candle.read(&[id], cancel, &mut logits)? {
                return Ok(None);
            }
            table.push(&logits);
            progress(VerifyStage::Candle(position + 1));
        }
        Ok(Some(table))
    }

    /// Computes the logits in f32 on the CPU; `None` if `cancel` was set.
    ///
    /// # Errors
    /// Fails if the model does not open or fails.
    pub fn exact(
        &self,
        threads: Option<usize>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(VerifyStage),
    ) -> Result<Option<LogitsTable>, VerifyError> {
        progress(VerifyStage::Exact(0));
        let options = LoadOptions {
            threads,
            context: Some(self.tokens.len()),
            allow_yarn: false,
            exact: true,
            kv: KvType::F32,
            ..LoadOptions::default()
        };
        let mut engine = Engine::load(&self.file, &options, &mut |_| {})?;
        let mut table = LogitsTable::new(self.file.summary().vocab, self.tokens.len())?;
        let mut read = 0;
        let all = self.tokens.len();
        let complete = engine.each_logits(&self.tokens, all, cancel, &mut |row| {
            table.push(row);
            read += 1;
            progress(VerifyStage::Exact(read));
        })?;
        Ok(complete.then_some(table))
    }

    /// Compares the results of `engine` with the two others: the first half of the text is prefilled like a prompt, the
    /// second is decoded like an answer. `None` if `cancel` was set.
    ///
    /// # Errors
    /// Fails if the engine fails.
    pub fn compare(
        &self,
        engine: &mut Engine,
        candle: &LogitsTable,
        exact: &LogitsTable,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(VerifyStage),
    ) -> Result<Option<Comparison>, VerifyError> {
        progress(VerifyStage::Engine(0));
        let mut comparison = Comparison::default();
        let mut position = 0;
        let disturbed = test_hooks::disturbs_logits();
        let half = self.tokens.len() / 2;
        let complete = engine.each_logits(&self.tokens, half, cancel, &mut |row| {
            let (candle, exact) = (candle.row(position), exact.row(position));
            let next = self.tokens.get(position + 1).copied();
            if disturbed {
                comparison.add(&disturb(row), candle, exact, next);
            } else {
                comparison.add(row, candle, exact, next);
            }
            position += 1;
            progress(VerifyStage::Engine(position));
        })?;
        Ok(complete.then_some(comparison))
    }

    /// Makes the report of a comparison of `engine`, with the reason for its device.
    pub fn report(
        &self,
        engine: &Engine,
        device_reason: String,
        comparison: &Comparison,
    ) -> VerifyReport {
        let text = |id| self.file.tokenizer().decode(&[id]);
        VerifyReport::new(
            self.file.summary(),
            engine.device(),
            device_reason,
            &self.tokens,
            comparison,
            &text,
        )
    }
}

/// Disturbs logits as a wrong kernel does: every 16th is off by a part of the largest.
fn disturb(logits: &[f32]) -> Vec<f32> {
    let top = TopToken::of(logits).id as usize;
    let size = logits.get(top).map_or(1.0, |top| top.abs());
    let mut wrong = logits.to_vec();
    for logit in wrong.iter_mut().step_by(16) {
        *logit -= size;
    }
    wrong
}

#[cfg(test)]
mod tests {
    use reference::ReferenceModel;

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    const POSITIONS: usize = 40;

    fn engine(file: &Path) -> Engine {
        let options = LoadOptions {
            threads: Some(1),
            ..LoadOptions::default()
        };
        Engine::open(file, &options, &mut |_| {}).expect("it opens")
    }

    /// Computes candle's logits in this process.
    fn candle(subject: &Subject, file: &Path) -> LogitsTable {
        let mut table = LogitsTable::new(subject.file.summary().vocab, POSITIONS).expect("memory");
        let mut model = ReferenceModel::open(file, None).expect("it opens");
        let tokens = &subject.tokens;
        let read = model.all_logits(tokens, &mut |row| table.push(&row));
        read.expect("it runs");
        table
    }

    fn exact(subject: &Subject) -> LogitsTable {
        let table = subject.exact(Some(1), &NEVER, &mut |_| {});
        table.expect("it runs").expect("not cancelled")
    }

    fn report(subject: &Subject, engine: &mut Engine, tables: [&LogitsTable; 2]) -> VerifyReport {
        let [candle, exact] = tables;
        let compared = subject.compare(engine, candle, exact, &NEVER, &mut |_| {});
        let comparison = compared.expect("it runs").expect("not cancelled");
        subject.report(engine, "a test".to_owned(), &comparison)
    }

    #[test]
    fn a_sound_engine_agrees_and_one_with_other_weights_does_not() {
        let file = testing::tiny_model();
        let subject = Subject::open(&file, Some(POSITIONS)).expect("a model");
        assert_eq!(subject.tokens.len(), POSITIONS);
        let (candle, exact) = (candle(&subject, &file), exact(&subject));
        let sound = report(&subject, &mut engine(&file), [&candle, &exact]);
        assert!(sound.agrees(), "{sound:?}");
        assert!(sound.sentence.starts_with("Goldcrest and candle agree: "));
        assert!(sound.engine.relative_error < 0.03, "{:?}", sound.engine);

        // The same file without a part of its weights simulates an engine that computes wrongly.
        let mut bytes = std::fs::read(&file).expect("the bundled model");
        let middle = bytes.len() / 2;
        bytes[middle..middle + 200_000].fill(0);
        let folder = tempfile::tempdir().expect("a folder");
        let damaged = folder.path().join("damaged.gguf");
        std::fs::write(&damaged, bytes).expect("written");
        let wrong = report(&subject, &mut engine(&damaged), [&candle, &exact]);
        assert_eq!(wrong.verdict, Agreement::EngineDiffers, "{wrong:?}");
        assert!(wrong.sentence.contains("do not agree"));
        assert!(!wrong.partings.is_empty());

        // If all three read the damaged file, they agree on it: only the perplexity rises.
        let subject = Subject::open(&damaged, Some(POSITIONS)).expect("a model");
        let tables = [self::candle(&subject, &damaged), self::exact(&subject)];
        let alike = report(&subject, &mut engine(&damaged), [&tables[0], &tables[1]]);
        assert!(alike.agrees(), "{alike:?}");
    }

    #[test]
    fn the_text_is_long_enough_and_its_length_can_be_chosen() {
        let file = testing::tiny_model();
        let count = |tokens| Subject::open(&file, tokens).map(|it| it.tokens.len());
        assert_eq!(count(None).expect("a model"), TOKENS);
        assert_eq!(count(Some(10)).expect("a model"), 10);
        assert!(count(Some(100_000)).expect("a model") > TOKENS);
        assert!(Subject::open(Path::new("no such file"), None).is_err());
    }

    #[test]
    fn each_part_can_be_cancelled() {
        let file = testing::tiny_model();
        let subject = Subject::open(&file, Some(4)).expect("a model");
        let cancelled = AtomicBool::new(true);
        let table = subject.exact(Some(1), &cancelled, &mut |_| {});
        assert!(table.expect("no failure").is_none());
        let tables = [candle(&subject, &file), exact(&subject)];
        let (candle, exact) = (&tables[0], &tables[1]);
        let compared = subject.compare(&mut engine(&file), candle, exact, &cancelled, &mut |_| {});
        assert!(compared.expect("no failure").is_none());
    }
}
