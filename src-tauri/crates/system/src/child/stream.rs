//! A child process that answers many requests while it runs.

use std::io::{Read, Write};
use std::process::{self, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::{Call, Child, ChildError, ChildFault, end, status, stderr_of, was_interrupted};
use crate::frames::{LARGEST, READY};

/// Bytes read from stdout at once, and number of such parts that are read ahead.
const PART: usize = 1 << 16;
const PARTS_AHEAD: usize = 16;
/// Time limit for a child to end after it has closed its stdout.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a child to end by itself after its stdin is closed, before it is killed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum bytes that a runtime may print before the child writes [`READY`].
const MOST_PRINTED: usize = 1 << 12;
/// Pause between two checks of the cancel flag.
const PAUSE: Duration = Duration::from_millis(20);

/// A running child. Dropping this, or the end of the process that holds it, closes the child's stdin, at which it
/// should end; a dropped child that does not is killed.
#[derive(Debug)]
pub struct StreamingChild {
    child: process::Child,
    stdin: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
    /// The part received last, and how much of it was consumed.
    part: Vec<u8>,
    taken: usize,
}

impl Child {
    /// Starts the program with these arguments and this variable. Its own limits do not apply: each answer has one.
    pub fn stream(&self, call: Call<'_>) -> Result<StreamingChild, ChildError> {
        let mut child = self
            .spawn(&call, Stdio::piped())
            .map_err(|error| ChildError {
                fault: ChildFault::NotRun(error),
                stderr: String::new(),
            })?;
        let stderr = stderr_of(&mut child);
        let (sender, output) = sync_channel(PARTS_AHEAD);
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || read_parts(stdout, &sender));
        }
        Ok(StreamingChild {
            stdin: child.stdin.take(),
            child,
            output,
            stderr,
            part: Vec::new(),
            taken: 0,
        })
    }
}

/// Reads until the end, or until the receiver is gone.
fn read_parts(mut stdout: impl Read, sender: &SyncSender<Vec<u8>>) {
    let mut buffer = vec![0; PART];
    while let Ok(read @ 1..) = stdout.read(&mut buffer) {
        if sender.send(buffer[..read].to_vec()).is_err() {
            return;
        }
    }
}

impl StreamingChild {
    /// Writes to its stdin.
    ///
    /// # Errors
    /// Returns how it has ended if it does not read any more.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), ChildError> {
        let written = self.stdin.as_mut().map(|stdin| stdin.write_all(bytes));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Fills `buffer` with the next bytes that it writes; false if `cancel` was set meanwhile.
    ///
    /// # Errors
    /// Fails if that takes longer than `timeout`, after which the child is killed, or if it ends before.
    pub fn receive(
        &mut self,
        buffer: &mut [u8],
        timeout: Duration,
        cancel: &AtomicBool,
    ) -> Result<bool, ChildError> {
        self.receive_while(buffer, timeout, &mut || !cancel.load(Ordering::Relaxed))
    }

    /// Like [`StreamingChild::receive`], but returns false if `go_on` does, which is polled while nothing comes.
    ///
    /// # Errors
    /// Fails if that takes longer than `timeout`, after which the child is killed, or if it ends before.
    pub fn receive_while(
        &mut self,
        buffer: &mut [u8],
        timeout: Duration,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, ChildError> {
        let deadline = Instant::now() + timeout;
        let mut filled = 0;
        loop {
            let waiting = &self.part[self.taken..];
            let now = waiting.len().min(buffer.len() - filled);
            buffer[filled..filled + now].copy_from_slice(&waiting[..now]);
            filled += now;
            self.taken += now;
            if filled == buffer.len() {
                return Ok(true);
            }
            if !go_on() {
                return Ok(false);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(PAUSE.min(left)) {
                Ok(part) => (self.part, self.taken) = (part, 0),
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                Err(RecvTimeoutError::Timeout) => {
                    end(&mut self.child);
                    return Err(self.error(ChildFault::TimedOut));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    /// Waits for [`READY`], and skips what comes before. False if `go_on` returned false.
    ///
    /// # Errors
    /// Fails if that takes longer than `timeout`, or if it ends or prints too much before.
    pub fn receive_ready(
        &mut self,
        timeout: Duration,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, ChildError> {
        let mut byte = [0];
        for _ in 0..MOST_PRINTED {
            if !self.receive_while(&mut byte, timeout, go_on)? {
                return Ok(false);
            }
            if byte == [READY] {
                return Ok(true);
            }
        }
        end(&mut self.child);
        Err(self.error(ChildFault::TooMuchOutput))
    }

    /// Returns the next frame; `None` if `go_on` returned false.
    ///
    /// # Errors
    /// Fails if that takes longer than `timeout`, if the frame is too long, or if the child ends before.
    pub fn receive_frame(
        &mut self,
        timeout: Duration,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<u8>>, ChildError> {
        let mut length = [0; 4];
        if !self.receive_while(&mut length, timeout, go_on)? {
            return Ok(None);
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > LARGEST {
            end(&mut self.child);
            return Err(self.error(ChildFault::TooMuchOutput));
        }
        let mut frame = vec![0; length];
        let is_whole = self.receive_while(&mut frame, timeout, go_on)?;
        Ok(is_whole.then_some(frame))
    }

    /// Kills it at once, whatever it does.
    pub fn kill(&mut self) {
        end(&mut self.child);
    }

    /// Returns the error of a child that has ended. A clean exit is an error too: it should have gone on.
    fn ended(&mut self) -> ChildError {
        drop(self.stdin.take());
        let fault = match status(&mut self.child, Instant::now() + END_TIMEOUT) {
            Ok(status) if was_interrupted(status) => ChildFault::Interrupted,
            Ok(status) => ChildFault::Crashed(status),
            Err(fault) => fault,
        };
        self.error(fault)
    }

    fn error(&self, fault: ChildFault) -> ChildError {
        let stderr = self.stderr.recv_timeout(super::STDERR_TIMEOUT);
        ChildError {
            fault,
            stderr: stderr.unwrap_or_default(),
        }
    }
}

impl Drop for StreamingChild {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // Kills it after the timeout. Its status no longer matters.
        let _ = status(&mut self.child, Instant::now() + CLOSE_TIMEOUT);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    static NEVER: AtomicBool = AtomicBool::new(false);

    fn shell(script: &str) -> StreamingChild {
        let child = Child {
            program: "/bin/sh".into(),
            leading: vec!["-c".into(), script.into(), "child".into()],
            timeout: LONG,
            output_limit: 0,
        };
        child.stream(Call::default()).expect("a shell")
    }

    fn fault(child: &mut StreamingChild) -> ChildError {
        let received = child.receive(&mut [0; 4], LONG, &NEVER);
        received.expect_err("no output")
    }

    #[test]
    fn a_child_answers_one_request_after_the_other() {
        let mut child = shell("while read line; do echo \"<$line>\"; done");
        for (asked, answer) in [("one\n", *b"<one>\n"), ("two\n", *b"<two>\n")] {
            child.send(asked.as_bytes()).expect("it reads");
            let mut received = [0; 6];
            let whole = child.receive(&mut received, LONG, &NEVER);
            assert!(whole.is_ok_and(|whole| whole));
            assert_eq!(received, answer);
        }
    }

    #[test]
    fn a_long_answer_is_received_in_the_parts_that_are_asked_for() {
        let mut child = shell("head -c 3000000 /dev/zero; echo end");
        let mut zeros = vec![1; 3_000_000];
        assert!(child.receive(&mut zeros, LONG, &NEVER).is_ok());
        assert!(zeros.iter().all(|&byte| byte == 0));
        let mut rest = [0; 4];
        assert!(child.receive(&mut rest, LONG, &NEVER).is_ok());
        assert_eq!(&rest, b"end\n");
        assert!(matches!(fault(&mut child).fault, ChildFault::Crashed(_)));
    }

    #[test]
    fn a_child_that_crashes_is_late_or_is_ended_is_distinguished() {
        let error = fault(&mut shell("echo why >&2; exit 3"));
        let ChildFault::Crashed(status) = error.fault else {
            panic!("{error:?}");
        };
        assert_eq!((status.code(), error.stderr.trim()), (Some(3), "why"));
        let error = fault(&mut shell("kill -TERM $$"));
        assert!(matches!(error.fault, ChildFault::Interrupted));
        let mut hangs = shell("exec sleep 1000");
        let error = hangs.receive(&mut [0], Duration::from_millis(100), &NEVER);
        assert!(matches!(
            error.expect_err("late").fault,
            ChildFault::TimedOut
        ));
        let mut ended = shell("exit 0");
        thread::sleep(Duration::from_millis(300));
        let sent = ended.send(&vec![0; 1 << 20]);
        assert!(sent.is_err());
    }

    #[test]
    fn a_child_that_is_dropped_can_end_by_itself_and_is_killed_where_it_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let note = folder.path().join("note");
        let script = |then: &str| format!("cat; {then}; echo done > '{}'", note.display());
        let mut obeys = shell(&script("sleep 0.1"));
        obeys.send(b"x").expect("it reads");
        assert!(obeys.receive(&mut [0], LONG, &NEVER).is_ok());
        drop(obeys);
        assert!(note.exists(), "it was killed");

        std::fs::remove_file(&note).expect("removed");
        let began = Instant::now();
        drop(shell(&script("sleep 3")));
        assert!(
            began.elapsed() < Duration::from_secs(3),
            "it was waited for"
        );
        assert!(!note.exists());
    }

    #[test]
    fn a_busy_child_is_killed_at_once() {
        let mut busy = shell("while :; do :; done");
        let began = Instant::now();
        busy.kill();
        drop(busy);
        assert!(began.elapsed() < CLOSE_TIMEOUT, "it was waited for");
    }

    #[test]
    fn a_wait_is_cancelled() {
        let mut hangs = shell("exec sleep 1000");
        let received = hangs.receive(&mut [0], LONG, &AtomicBool::new(true));
        assert!(received.is_ok_and(|whole| !whole));
    }
}
