//! `goldcrest fetch`: downloads a model by the separate program for it.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use ::download::{
    Destination, Download, DownloadEvent, DownloadRequest, DownloadState, HUB, Places,
    hub_endpoint, hub_folder,
};
use models::{KnownModel, Manifest};
use serde::Serialize;

use super::args::FetchArgs;
use super::interrupt::Interrupt;
use super::output::{self, CliError};
use super::progress::ProgressLine;
use crate::visible::on_one_line;

/// Polling interval for Ctrl+C.
const PAUSE: Duration = Duration::from_millis(50);

/// Output of `--json`.
#[derive(Serialize)]
struct FetchReport<'a> {
    file: &'a Path,
    bytes: u64,
    sha256: &'a str,
}

pub fn run(args: &FetchArgs) -> Result<(), CliError> {
    let mut request = request(args)?;
    let program = ::download::program().map_err(|error| CliError::message(error.to_string()))?;
    let (sender, events) = channel();
    let on_event = move |event| {
        // An error means that the command has ended.
        let _ = sender.send(event);
    };
    let interrupt = Interrupt::listen();
    let download = Download::start(&program, &request, on_event);
    let download = download.map_err(|error| CliError::file(&program, error))?;
    let mut bar = ProgressLine::new();
    let (last, _) =
        interrupt.during(|cancel| follow(&download, &events, cancel, &mut bar, &mut request));
    bar.clear();
    match last {
        Some(DownloadEvent::Done {
            file,
            sha256,
            bytes,
        }) => {
            if args.json {
                return output::json(&FetchReport {
                    file: &file,
                    bytes,
                    sha256: &sha256,
                });
            }
            let mut out = output::stdout();
            writeln!(out, "{}", on_one_line(&file.display().to_string()))?;
            Ok(out.flush()?)
        }
        Some(DownloadEvent::Failed { message, .. }) => Err(CliError::message(message)),
        _ => {
            let kept = ::download::incomplete_bytes(&request).ok().flatten();
            let name = on_one_line(request.file_name()).into_owned();
            let kept = match kept {
                Some(kept) => format!("{} MB of {name} are kept", megabytes(kept)),
                None => format!("Nothing of {name} was downloaded yet"),
            };
            // A terminal that is gone is no failure.
            let _ = writeln!(
                output::stderr(),
                "goldcrest: stopped. {kept}; the same command goes on from there."
            );
            Err(CliError::Interrupted)
        }
    }
}

/// Shows the events until the last one, which it returns; Ctrl+C pauses the download.
fn follow(
    download: &Download,
    events: &Receiver<DownloadEvent>,
    cancel: &AtomicBool,
    bar: &mut ProgressLine,
    request: &mut DownloadRequest,
) -> Option<DownloadEvent> {
    let mut state = DownloadState::Paused {
        done: 0,
        total: request.bytes,
    };
    let mut reason = None;
    loop {
        if cancel.load(Ordering::Relaxed) {
            download.pause();
        }
        match events.recv_timeout(PAUSE) {
            Ok(event) if event.is_last() => return Some(event),
            Ok(DownloadEvent::Resolved { request: resolved }) => {
                *request = resolved;
                continue;
            }
            Ok(event) => state = state.after(event),
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        let (done, total) = state.progress();
        let all = total.unwrap_or(done).max(1);
        match &state {
            DownloadState::Running {
                bytes_per_second, ..
            } => bar.show(speed(done, total, *bytes_per_second), done, all),
            DownloadState::Waiting {
                message, seconds, ..
            } => {
                // Each reason once: a network may be gone for an hour.
                if reason.as_ref() != Some(message) {
                    bar.clear();
                    // A terminal that is gone is no failure.
                    let _ = writeln!(output::stderr(), "goldcrest: {message}");
                    reason = Some(message.clone());
                }
                bar.show(format!("Next try in {seconds} s"), done, all);
            }
            DownloadState::Verifying { done, total } => bar.show("Verifying", *done, *total),
            DownloadState::Paused { .. } | DownloadState::Failed { .. } => {}
        }
    }
}

/// Formats progress: `Downloading 612 of 1,915 MB, 12.3 MB/s, 2 min left`
fn speed(done: u64, total: Option<u64>, bytes_per_second: Option<f64>) -> String {
    let mut line = match total {
        Some(total) => format!("Downloading {} of {} MB", megabytes(done), megabytes(total)),
        None => format!("Downloading {} MB", megabytes(done)),
    };
    let Some(speed) = bytes_per_second.filter(|speed| *speed > 0.0) else {
        return line;
    };
    line.push_str(&format!(", {:.1} MB/s", speed / 1e6));
    if let Some(total) = total {
        let seconds = total.saturating_sub(done) as f64 / speed;
        let left = if seconds < 60.0 {
            format!(", {seconds:.0} s left")
        } else {
            format!(", {:.0} min left", seconds / 60.0)
        };
        line.push_str(&left);
    }
    line
}

/// Formats whole megabytes, with groups of three digits.
fn megabytes(bytes: u64) -> String {
    figures::count(usize::try_from(bytes / 1_000_000).unwrap_or(usize::MAX))
}

fn request(args: &FetchArgs) -> Result<DownloadRequest, CliError> {
    let folder = args.folder.as_ref().map(std::path::absolute).transpose()?;
    let home = env::home_dir().unwrap_or_default();
    let variable = |name: &str| env::var_os(name);
    let hub = hub_folder(&variable, &home);
    if !args.model.contains("://") {
        if args.sha256.is_some() {
            return Err(CliError::message(
                "--sha256 is for addresses; of a known model the SHA-256 is known",
            ));
        }
        return of_known_model(&args.model, hub, folder);
    }
    let places = Places {
        hub,
        endpoint: hub_endpoint(&variable),
        folder,
    };
    let request = DownloadRequest::of_address(&args.model, &places);
    let request = request.map_err(|error| match error {
        ::download::AddressError::NoFolder => {
            CliError::message(format!("{error} Name one with --folder."))
        }
        error => CliError::message(error.to_string()),
    })?;
    Ok(DownloadRequest {
        sha256: args.sha256.clone(),
        ..request
    })
}

fn of_known_model(
    name: &str,
    hub: PathBuf,
    folder: Option<PathBuf>,
) -> Result<DownloadRequest, CliError> {
    let manifest = Manifest::embedded();
    let found = manifest.downloadable().find(|model| is_called(model, name));
    let parts = found.and_then(|model| Some((model, model.address(HUB)?, model.hub()?)));
    let Some((model, url, (repository, revision))) = parts else {
        let known: Vec<String> = manifest.downloadable().map(full_name).collect();
        return Err(CliError::message(format!(
            "no model is called {name:?}; there are {}, and any GGUF file by its address",
            known.join(", ")
        )));
    };
    let file = model.file.clone();
    let destination = match folder {
        Some(folder) => Destination::Folder { folder, file },
        None => Destination::HubCache {
            hub,
            repository: repository.to_owned(),
            revision: revision.to_owned(),
            file,
        },
    };
    Ok(DownloadRequest {
        url,
        destination,
        bytes: Some(model.bytes),
        sha256: Some(model.sha256.clone()),
    })
}

fn full_name(model: &KnownModel) -> String {
    format!("{}:{}", model.name, model.quantisation)
}

/// Matches a model by its name, its name with the quantisation, or its file; the first of a name is the recommended
/// one.
fn is_called(model: &KnownModel, name: &str) -> bool {
    [&model.name, &full_name(model), &model.file]
        .into_iter()
        .any(|it| it.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(model: &str) -> FetchArgs {
        FetchArgs {
            model: model.to_owned(),
            folder: Some("/models".into()),
            sha256: None,
            json: false,
        }
    }

    fn file(model: &str) -> Option<String> {
        let request = request(&args(model)).ok()?;
        Some(request.file_name().to_owned())
    }

    #[test]
    fn a_known_model_is_found_by_name_quantisation_and_file() {
        for (name, expected) in [
            ("SmolLM3-3B", "SmolLM3-Q4_K_M.gguf"),
            ("smollm3-3b", "SmolLM3-Q4_K_M.gguf"),
            ("SmolLM3-3B:Q8_0", "SmolLM3-Q8_0.gguf"),
            ("SmolLM3-Q8_0.gguf", "SmolLM3-Q8_0.gguf"),
        ] {
            assert_eq!(file(name).as_deref(), Some(expected), "{name}");
        }
        for unknown in [
            "",
            "SmolLM3-3B:Q1",
            "SmolLM2-135M-Instruct",
            "bundled/SmolLM2-135M-Instruct.Q4_1.gguf",
        ] {
            assert_eq!(file(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn an_address_is_of_the_hub_by_its_file_or_its_page() {
        let base = "https://huggingface.co/owner/name";
        let expected = format!("{base}/resolve/main/a/b.gguf");
        for address in [
            format!("{base}/resolve/main/a/b.gguf?download=true"),
            format!("{base}/blob/main/a/b.gguf"),
            format!(" {base}/blob/main/a/b.gguf#x "),
            "https://hf.co/owner/name/blob/main/a/b.gguf".to_owned(),
        ] {
            let request = request(&args(&address)).expect(&address);
            assert_eq!(
                (request.url.as_str(), request.file_name()),
                (&*expected, "b.gguf")
            );
        }
    }

    #[test]
    fn a_line_of_progress_has_speed_and_time_left() {
        let line = speed(612_000_000, Some(1_915_305_312), Some(12.34e6));
        assert_eq!(line, "Downloading 612 of 1,915 MB, 12.3 MB/s, 2 min left");
        assert_eq!(speed(5_000_000, None, None), "Downloading 5 MB");
    }
}
