//! candle in a separate child process: it may panic on a file, or abort when out of memory.
//!
//! The parent writes requests to the child's stdin: a count as u32, and as many token ids as u32, all little-endian.
//! The child answers with the logits after the last of them, as f32. A count of 0 resets the sequence, without an
//! answer; the end of stdin ends it, and so does the parent's. Before the first answer it writes [`READY`], the
//! vocabulary's and the context's length as u32; what precedes that is candle's output while it loads.

mod serve;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::LogitsSource;

pub use serve::serve;
use system::child::{Call, Child, ChildError, ChildFault, StreamingChild};

/// The hidden subcommand that computes.
pub const SUBCOMMAND: &str = "reference-logits";

/// Terminator of candle's own output.
const READY: [u8; 4] = *b"\0ok\n";
/// Maximum bytes of that output.
const MOST_PRINTED: usize = 1 << 16;
/// Token ids in one request: few enough to fit into a pipe that nobody reads.
const MOST_IDS: usize = 1024;

/// Time limit for opening a model, or reading tokens: a base, and bytes of weights per second.
const LEAST_TIME: Duration = Duration::from_secs(60);
const LEAST_LOADING_RATE: u64 = 20 << 20;
const LEAST_READING_RATE: u64 = 50 << 20;

/// Variable that sets the number of candle's threads, as for all users of rayon.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Reasons for which candle has no logits.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceFault {
    /// The process could not be started.
    #[error("candle's process could not be started ({0})")]
    NotRun(io::Error),
    /// It reports the reason.
    #[error("{0}")]
    Refused(String),
    /// It died of a panic, out of memory, or otherwise.
    #[error("candle crashed on this file ({status}{}{reason})", if reason.is_empty() { "" } else { ": " })]
    Crashed {
        /// Its exit status.
        status: ExitStatus,
        /// Last line of its stderr.
        reason: String,
    },
    /// It exceeded its time limit and was killed.
    #[error("candle took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    /// Another process ended it.
    #[error("candle's process was ended")]
    Interrupted,
    /// Its output is invalid.
    #[error("candle's process wrote invalid output")]
    Garbled,
    /// Out of memory for its answer.
    #[error("no memory for the logits")]
    Memory,
}

/// A model that candle has open in a child process, with one sequence.
#[derive(Debug)]
pub struct ReferenceProcess {
    child: StreamingChild,
    vocab: usize,
    context: usize,
    /// Bytes of the model's file.
    bytes: u64,
    answer: Vec<u8>,
    /// True if a part of an answer is still to come that nobody waits for.
    cancelled: bool,
}

impl ReferenceProcess {
    /// Opens a model; `None` if `cancel` was set. The file must be one that [`engine::ModelFile::open`] accepts.
    ///
    /// # Errors
    /// Fails if candle cannot run the file, there is no memory for it, or it crashes or takes too long.
    pub fn open(
        file: &Path,
        threads: Option<usize>,
        cancel: &AtomicBool,
    ) -> Result<Option<Self>, ReferenceFault> {
        let child = Child {
            program: std::env::current_exe().map_err(ReferenceFault::NotRun)?,
            leading: vec![SUBCOMMAND.into()],
            timeout: LEAST_TIME,
            output_limit: 0,
        };
        Self::open_in(&child, file, threads, cancel)
    }

    fn open_in(
        child: &Child,
        file: &Path,
        threads: Option<usize>,
        cancel: &AtomicBool,
    ) -> Result<Option<Self>, ReferenceFault> {
        let bytes = std::fs::metadata(file).map_or(0, |file| file.len());
        let threads = threads.map(|threads| threads.to_string());
        let arguments: [OsString; 2] = ["--".into(), file.into()];
        let call = Call {
            arguments: &arguments,
            variable: threads.as_deref().map(|threads| (THREADS, threads)),
        };
        let timeout = LEAST_TIME + Duration::from_secs(bytes / LEAST_LOADING_RATE);
        let failed = |error| fault(error, timeout);
        let mut child = child.stream(call).map_err(failed)?;
        for printed in 0.. {
            let mut byte = [0];
            if !child.receive(&mut byte, timeout, cancel).map_err(failed)? {
                return Ok(None);
            }
            if byte[0] == READY[0] {
                break;
            }
            if printed == MOST_PRINTED {
                return Err(ReferenceFault::Garbled);
            }
        }
        let mut rest = [0; READY.len() - 1 + 8];
        if !child.receive(&mut rest, timeout, cancel).map_err(failed)? {
            return Ok(None);
        }
        let (ready, lengths) = rest.split_at(READY.len() - 1);
        let lengths = lengths.as_chunks::<4>().0;
        let [vocab, context] = [0, 1].map(|at| u32::from_le_bytes(lengths[at]) as usize);
        if ready != &READY[1..] || vocab == 0 || context == 0 {
            return Err(ReferenceFault::Garbled);
        }
        let mut answer = Vec::new();
        answer
            .try_reserve_exact(vocab * 4)
            .map_err(|_| ReferenceFault::Memory)?;
        answer.resize(vocab * 4, 0);
        Ok(Some(Self {
            child,
            vocab,
            context,
            bytes,
            answer,
            cancelled: false,
        }))
    }

    /// Returns the tokens in the vocabulary.
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// Returns the longest sequence in tokens.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Appends `ids` to the sequence, and replaces `logits` with those `[vocab]` after the last of them; false if
    /// `cancel` was set: the process is then useless.
    ///
    /// # Errors
    /// Fails if candle fails, crashes or takes too long.
    pub fn read(
        &mut self,
        ids: &[u32],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<bool, ReferenceFault> {
        self.check_not_cancelled()?;
        for part in ids.chunks(MOST_IDS) {
            let count = u32::try_from(part.len()).unwrap_or(0);
            let request: Vec<u8> = std::iter::once(&count)
                .chain(part)
                .flat_map(|number| number.to_le_bytes())
                .collect();
            let seconds = (self.bytes / LEAST_READING_RATE).saturating_mul(part.len() as u64);
            let timeout = LEAST_TIME + Duration::from_secs(seconds);
            let failed = |error| fault(error, timeout);
            self.child.send(&request).map_err(failed)?;
            let answered = self.child.receive(&mut self.answer, timeout, cancel);
            if !answered.map_err(failed)? {
                self.cancelled = true;
                return Ok(false);
            }
        }
        logits.clear();
        logits
            .try_reserve(self.vocab)
            .map_err(|_| ReferenceFault::Memory)?;
        let values = self.answer.as_chunks::<4>().0;
        logits.extend(values.iter().map(|&value| f32::from_le_bytes(value)));
        Ok(true)
    }

    fn check_not_cancelled(&self) -> Result<(), ReferenceFault> {
        if self.cancelled {
            return Err(ReferenceFault::Interrupted);
        }
        Ok(())
    }

    /// Resets the sequence.
    ///
    /// # Errors
    /// Fails if the process has ended.
    pub fn forget(&mut self) -> Result<(), ReferenceFault> {
        self.check_not_cancelled()?;
        let sent = self.child.send(&0u32.to_le_bytes());
        sent.map_err(|error| fault(error, LEAST_TIME))
    }
}

impl LogitsSource for ReferenceProcess {
    fn append(
        &mut self,
        ids: &[u32],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<bool, String> {
        self.read(ids, cancel, logits)
            .map_err(|error| error.to_string())
    }

    fn reset(&mut self) -> Result<(), String> {
        self.forget().map_err(|error| error.to_string())
    }
}

/// Interprets a child's end. If it fails by itself, the last line of its stderr is the reason.
fn fault(error: ChildError, timeout: Duration) -> ReferenceFault {
    const OWN_FAILURE: i32 = 1;
    let said = error.stderr.lines().rev().find(|line| !line.is_empty());
    let said = said.unwrap_or_default();
    match error.fault {
        ChildFault::NotRun(error) => ReferenceFault::NotRun(error),
        ChildFault::TimedOut => ReferenceFault::TimedOut(timeout),
        ChildFault::Interrupted => ReferenceFault::Interrupted,
        ChildFault::TooMuchOutput => ReferenceFault::Garbled,
        ChildFault::Crashed(status) => match said.strip_prefix("goldcrest: ") {
            Some(said) if status.code() == Some(OWN_FAILURE) => {
                ReferenceFault::Refused(said.to_owned())
            }
            _ => ReferenceFault::Crashed {
                status,
                reason: said.to_owned(),
            },
        },
    }
}
