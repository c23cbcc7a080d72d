//! The child's part: opens a model with candle and answers with logits.

use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::process;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use reference::{ReferenceError, ReferenceModel};
use system::limits;

use super::{MOST_IDS, READY};

/// Reasons for the child's end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// candle failed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The parent is gone, or violates the protocol.
    #[error("the requests cannot be read, or the logits not be written: {0}")]
    Pipe(#[from] io::Error),
}

/// Opens a model and answers the requests on stdin. The end of stdin ends this process, whatever candle computes.
pub fn serve(file: &Path) -> Result<(), ServeError> {
    say_panics_in_one_line();
    let requests = requests()?;
    let available = engine::process::available();
    if let Some(available) = available {
        limits::set_memory(available)?;
    }
    let mut model = ReferenceModel::open(file, available)?;
    let outline = model.outline().clone();
    let mut out = BufWriter::new(io::stdout().lock());
    out.write_all(&READY)?;
    for length in [outline.vocab, outline.context] {
        let length = u32::try_from(length).map_err(io::Error::other)?;
        out.write_all(&length.to_le_bytes())?;
    }
    out.flush()?;
    for ids in requests {
        let ids = ids?;
        if ids.is_empty() {
            model.reset();
            continue;
        }
        for logit in model.append(&ids)? {
            out.write_all(&logit.to_le_bytes())?;
        }
        out.flush()?;
    }
    Ok(())
}

/// Reads the requests on a separate thread: a parent that has ended, or waits no longer, closes stdin.
fn requests() -> io::Result<Receiver<io::Result<Vec<u32>>>> {
    let (sender, requests) = channel();
    thread::Builder::new().spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(ids) = next(&mut stdin).transpose() {
            let is_last = ids.is_err();
            if sender.send(ids).is_err() || is_last {
                return;
            }
        }
        process::exit(0);
    })?;
    Ok(requests)
}

/// Returns the ids of the next request; `None` if there are no more.
fn next(requests: &mut impl Read) -> io::Result<Option<Vec<u32>>> {
    let mut number = [0; 4];
    match requests.read_exact(&mut number) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let count = u32::from_le_bytes(number) as usize;
    if count > MOST_IDS {
        return Err(io::Error::other("too many tokens in a request"));
    }
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        requests.read_exact(&mut number)?;
        ids.push(u32::from_le_bytes(number));
    }
    Ok(Some(ids))
}

/// Prints a panic on one line: the parent shows the last line of this process's stderr.
fn say_panics_in_one_line() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload_as_str().unwrap_or("of unknown cause");
        let line = payload.lines().next().unwrap_or_default();
        // The error stream may be closed.
        let _ = writeln!(io::stderr(), "panic: {line}");
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_until_they_end() {
        let numbers = |numbers: &[u32]| -> Vec<u8> {
            numbers.iter().flat_map(|it| it.to_le_bytes()).collect()
        };
        let bytes = numbers(&[2, 5, 6, 0, 1, 7]);
        let mut requests = bytes.as_slice();
        for ids in [vec![5, 6], vec![], vec![7]] {
            assert_eq!(next(&mut requests).expect("a request"), Some(ids));
        }
        assert_eq!(next(&mut requests).expect("the end"), None);
        assert!(next(&mut numbers(&[3, 5]).as_slice()).is_err());
        assert!(next(&mut numbers(&[u32::MAX]).as_slice()).is_err());
    }
}
