//! A model with an external source of logits; tokenizer, template and sampler are the engine's.

use std::sync::atomic::AtomicBool;

use crate::model::error::DeviceError;
use crate::model::evaluate::{
    Cache, Evaluate, Pass, PassSlot, Want, cache_of, check_slots, one_by_one,
};

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

/// [`Evaluate`] over a [`LogitsSource`], which has one sequence and cannot truncate it: what is not a continuation is
/// replayed from the start.
pub struct ExternalModel {
    source: Box<dyn LogitsSource>,
    vocab: usize,
    /// Tokens in the source; `None` if its sequence is an unknown one.
    held: Option<Vec<u32>>,
}

/// The tokens of a sequence, in place of a cache.
pub struct Tokens(pub Vec<u32>);

impl Cache for Tokens {
    fn positions(&self) -> usize {
        self.0.len()
    }

    fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    fn bytes(&self) -> usize {
        0
    }
}

impl ExternalModel {
    /// A model over an empty source with a vocabulary of `vocab` tokens.
    pub fn new(source: Box<dyn LogitsSource>, vocab: usize) -> ExternalModel {
        ExternalModel {
            source,
            vocab,
            held: Some(Vec::new()),
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
        self.held = held.map(|held| [&held, ids].concat());
        Ok(Pass::Complete)
    }

    /// Brings the source in line with a sequence.
    fn replay(&mut self, tokens: &[u32], cancel: &AtomicBool) -> Result<Pass, DeviceError> {
        let held = self.held.as_deref();
        if !held.is_some_and(|held| tokens.starts_with(held)) {
            self.source.reset().map_err(DeviceError::Failed)?;
            self.held = Some(Vec::new());
        }
        let held = self.held.as_ref().map_or(0, Vec::len);
        if held == tokens.len() {
            return Ok(Pass::Complete);
        }
        self.read(&tokens[held..], cancel, &mut Vec::new())
    }

    fn append(
        &mut self,
        slot: &mut PassSlot<'_>,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        let Tokens(tokens) = cache_of(slot.cache)?;
        let ids = slot.ids;
        if self.replay(tokens, cancel)? == Pass::Cancelled {
            return Ok(Pass::Cancelled);
        }
        if slot.want == Want::All {
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
        tokens.extend_from_slice(ids);
        Ok(Pass::Complete)
    }
}

impl Evaluate for ExternalModel {
    fn new_cache(&mut self) -> Result<Box<dyn Cache>, DeviceError> {
        Ok(Box::new(Tokens(Vec::new())))
    }

    fn forward(
        &mut self,
        slots: &mut [PassSlot<'_>],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        check_slots(slots, CHUNK, self.vocab)?;
        one_by_one(slots, logits, |slot, logits| {
            self.append(slot, cancel, logits)
        })
    }

    fn chunk(&self) -> usize {
        CHUNK
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
        let mut cache = model.new_cache().expect("no device");
        let mut append = |cache: &mut Box<dyn Cache>, ids: &[u32], want, cancel| {
            let slot = PassSlot {
                cache: &mut **cache,
                ids,
                want,
            };
            let pass = model.forward(&mut [slot], cancel, &mut logits);
            let pass = pass.map_err(|error| error.to_string())?;
            Ok::<_, String>((pass, logits.clone()))
        };
        let complete = |logits| Ok((Pass::Complete, logits));
        let pass = append(&mut cache, &[1, 2, 3], Want::Last, &never);
        assert_eq!(pass, complete(vec![3.0; 8]));
        let pass = append(&mut cache, &[4, 5], Want::All, &never);
        assert_eq!(pass, complete([[4.0; 8], [5.0; 8]].concat()));
        assert_eq!(logged(), "[1, 2, 3] [4] [5]");

        cache.truncate(2);
        let pass = append(&mut cache, &[6], Want::Last, &never);
        assert_eq!(pass, complete(vec![3.0; 8]));
        assert_eq!(logged(), "reset [1, 2] [6]");

        // Cancelled, failed, or not of this vocabulary.
        let cancelled = AtomicBool::new(true);
        let pass = append(&mut cache, &[1], Want::Last, &cancelled);
        assert!(matches!(pass, Ok((Pass::Cancelled, _))));
        let error = append(&mut cache, &[7], Want::Last, &never);
        assert_eq!(error, Err("no sevens".to_owned()));
        assert!(append(&mut cache, &[8], Want::Last, &never).is_err());
        assert_eq!(logged(), "[1] reset [1, 2, 6] [7]");
        let pass = append(&mut cache, &[1], Want::Last, &never);
        assert_eq!(pass, complete(vec![4.0; 8]));
    }
}
