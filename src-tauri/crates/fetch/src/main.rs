//! `goldcrest-fetch`: downloads one file and exits. The only program of Goldcrest that opens network sockets.
//!
//! It reads a request as a line of JSON from stdin, writes an event per line to stdout, and pauses at the line `pause`
//! or at the end of stdin, which also comes when the parent dies. See [`download`] for both. The exit status is 0 if
//! the file is complete and verified or the download was paused, and 1 otherwise. `tests/TRANSCRIPT.md` lists every
//! case with its message.

mod client;
mod error;
mod headers;
mod incomplete;
mod output;
mod resolve;
mod retries;
mod run;
mod test_setting;
mod token;
mod transfer;

use std::io::{self, BufRead, BufReader, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use download::{DownloadEvent, DownloadRequest, PAUSE};
use incomplete::Incomplete;

/// Maximum bytes of a request.
const LONGEST_REQUEST: u64 = 1 << 16;

fn main() -> ExitCode {
    let mut stdin = BufReader::new(io::stdin());
    let mut line = String::new();
    let read = stdin.by_ref().take(LONGEST_REQUEST).read_line(&mut line);
    let request = match read {
        Ok(_) => serde_json::from_str::<DownloadRequest>(&line),
        Err(error) => Err(serde_json::Error::io(error)),
    };
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            let message = format!(
                "goldcrest-fetch is started by Goldcrest, which asks for a file by a line of JSON: {error}"
            );
            output::end(&DownloadEvent::Failed {
                message,
                can_resume: true,
            });
            return ExitCode::FAILURE;
        }
    };
    let incomplete = Arc::new(Incomplete::default());
    let paused = Arc::clone(&incomplete);
    thread::spawn(move || {
        wait_for_pause(stdin);
        paused.pause();
    });
    match run::run(request, &incomplete) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::end(&DownloadEvent::Failed {
                message: error.to_string(),
                can_resume: error.can_resume(),
            });
            ExitCode::FAILURE
        }
    }
}

/// Returns at the command, or when the parent has closed the stream or died.
fn wait_for_pause(stdin: impl BufRead) {
    for line in stdin.lines() {
        match line {
            Ok(line) if line.trim() != PAUSE => {}
            Ok(_) | Err(_) => return,
        }
    }
}
