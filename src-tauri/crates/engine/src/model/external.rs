//! A model with an external source of logits; tokenizer, template and sampler are the engine's.

use std::sync::atomic::AtomicBool;

use crate::model::error::DeviceError;
use crate::model::evaluate::{Evaluate, Pass, Want, check_ids};

/// Computes the logits of one sequence for an [`Engine`](crate::Engine).
pub trait LogitsSource: Send {
    /// Appends `ids` to the sequence and replaces `logits` by those `[vocab]` after the last of them; false
    /// when cancelled.
    ///
    /// # Errors
    /// The reason, as a sentence.
    fn append(
        &mut self,
        ids: &[u32],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<bool, String>;

    /// Clears the sequence.
    ///
    /// # Errors
    /// The reason, as a sentence.
    fn reset(&mut self) -> Result<(), String>;
}

/// Tokens of a prompt per call of the source, between reports of progress.
const CHUNK: usize = 32;

/// [`Evaluate`] over a [`LogitsSource`]. The source cannot truncate its sequence: after a truncation the rest is replayed
/// from the start.
pub struct ExternalModel {
    source: Box<dyn LogitsSource>,
    vocab: usize,
    tokens: Vec<u32>,
    /// Number of tokens in the source; `None` if its sequence is a different one.
    held: Option<usize>,
}

impl ExternalModel {
    /// A model over an empty source with a vocabulary of `vocab` tokens.
    pub fn new(source: Box<dyn LogitsSource>, vocab: usize) -> ExternalModel {
        ExternalModel {
            source,
            vocab,
            tokens: Vec::new(),
            held: Some(0),
        }
    }

    /// Appends tokens to the source; if that does not complete, its sequence is discarded.
    fn read(
        &mut self,
        ids: &[u32],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        let held = self.held.take();
        let complete = self
            .source
            .append(ids, cancel, logits)
            .map_err(DeviceError::Failed)?;
        if !complete {
            return Ok(Pass::Cancelled);
        }
        if logits.len() != self.vocab {
            return Err(DeviceError::Failed(format!(
                "{} logits where the vocabulary has {} tokens",
                logits.len(),
                self.vocab
            )));
        }
        self.held = held.map(|held| held + ids.len());
        Ok(Pass::Complete)
    }

    /// Brings the source in line with the sequence.
    fn replay(&mut self, cancel: &AtomicBool) -> Result<Pass, DeviceError> {
        if self.held.is_none() {
            self.source.reset().map_err(DeviceError::Failed)?;
            self.held = Some(0);
        }
        let rest = self.tokens[self.held.unwrap_or(0)..].to_vec();
        if rest.is_empty() {
            return Ok(Pass::Complete);
        }
        self.read(&rest, cancel, &mut Vec::new())
    }
}

impl Evaluate for ExternalModel {
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        check_ids(ids, CHUNK, self.vocab)?;
        if self.replay(cancel)? == Pass::Cancelled {
            return Ok(Pass::Cancelled);
        }
        if want == Want::All {
            let mut all = Vec::new();
            for id in ids {
                if self.read(&[*id], cancel, logits)? == Pass::Cancelled {
                    return Ok(Pass::Cancelled);
                }
                all.extend_from_slice(logits);
            }
            *logits = all;
        } else if self.read(ids, cancel, logits)? == Pass::Cancelled {
            return Ok(Pass::Cancelled);
        }
        self.tokens.extend_from_slice(ids);
        Ok(Pass::Complete)
    }

    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.held = self.held.filter(|&held| held <= len);
    }

    fn chunk(&self) -> usize {
        CHUNK
    }

    fn kv_bytes(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Logits that encode the number of tokens and the last one; it records its input.
    struct Counting {
        read: Vec<u32>,
        log: Arc<Mutex<Vec<String>>>,
    }

    impl LogitsSource for Counting {
        fn append(
            &mut self,
            ids: &[u32],
            cancel: &AtomicBool,
            logits: &mut Vec<f32>,
        ) -> Result<bool, String> {
            self.log.lock().expect("a log").push(format!("{ids:?}"));
            if cancel.load(std::sync::atomic::Ordering::Relaxed) {
                return Ok(false);
            }
            self.read.extend_from_slice(ids);
            if ids.contains(&7) {
                return Err("no sevens".to_owned());
            }
            *logits = vec![self.read.len() as f32; 8];
            Ok(true)
        }

        fn reset(&mut self) -> Result<(), String> {
            self.log.lock().expect("a log").push("reset".to_owned());
            self.read.clear();
            Ok(())
        }
    }

    #[test]
    fn what_is_left_of_a_sequence_is_read_once_more() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let source = Counting {
            read: Vec::new(),
            log: Arc::clone(&log),
        };
        let logged = || std::mem::take(&mut *log.lock().expect("a log")).join(" ");
        let mut model = ExternalModel::new(Box::new(source), 8);
        let (never, mut logits) = (AtomicBool::new(false), Vec::new());
        let pass = model.append(&[1, 2, 3], Want::Last, &never, &mut logits);
        assert!(matches!(pass, Ok(Pass::Complete)) && logits == [3.0; 8]);
        let pass = model.append(&[4, 5], Want::All, &never, &mut logits);
        assert!(matches!(pass, Ok(Pass::Complete)));
        assert_eq!((logits.len(), logits[0], logits[8]), (16, 4.0, 5.0));
        assert_eq!(logged(), "[1, 2, 3] [4] [5]");

        model.truncate(2);
        let pass = model.append(&[6], Want::Last, &never, &mut logits);
        assert!(matches!(pass, Ok(Pass::Complete)) && logits == [3.0; 8]);
        assert_eq!(logged(), "reset [1, 2] [6]");

        // Cancelled, failed, or not of this vocabulary.
        let cancelled = AtomicBool::new(true);
        let pass = model.append(&[1], Want::Last, &cancelled, &mut logits);
        assert!(matches!(pass, Ok(Pass::Cancelled)));
        let error = model.append(&[7], Want::Last, &never, &mut logits);
        assert!(error.is_err_and(|error| error.to_string() == "no sevens"));
        assert!(model.append(&[8], Want::Last, &never, &mut logits).is_err());
        assert_eq!(logged(), "[1] reset [1, 2, 6] [7]");
        let pass = model.append(&[1], Want::Last, &never, &mut logits);
        assert!(matches!(pass, Ok(Pass::Complete)) && logits == [4.0; 8]);
    }
}
