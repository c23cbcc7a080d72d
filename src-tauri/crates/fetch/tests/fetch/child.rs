//! One run of the program.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use download::{Destination, DownloadEvent, DownloadPaths, DownloadRequest};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // Different at every offset, so that no part can stand for another.
    (0..60_000_u32)
        .flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect()
});

/// Returns the file that the tests download, 240 kB.
pub fn content() -> &'static [u8] {
    &CONTENT
}

pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// A download to a folder of its own.
pub struct Fetch {
    folder: TempDir,
    pub request: DownloadRequest,
    variables: Vec<(String, String)>,
}

impl Fetch {
    /// Makes a download of the tests' file, with all fields set.
    pub fn new(url: &str) -> Self {
        Self::of(url, content())
    }

    /// Makes a download of a file with this content, with all fields set.
    pub fn of(url: &str, content: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let request = DownloadRequest {
            url: url.to_owned(),
            destination: Destination::Folder {
                folder: folder.path().to_owned(),
                file: "model.gguf".to_owned(),
            },
            bytes: Some(content.len() as u64),
            sha256: Some(sha256(content)),
        };
        let home = folder.path().display().to_string();
        let variables = vec![
            ("GOLDCREST_FETCH_UNIT".to_owned(), "20".to_owned()),
            ("HOME".to_owned(), home),
        ];
        Self {
            folder,
            request,
            variables,
        }
    }

    pub fn with(mut self, variable: &str, value: &str) -> Self {
        self.variables.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// Removes the size from the request.
    pub fn of_any_size(mut self) -> Self {
        self.request.bytes = None;
        self
    }

    /// Downloads to the hub's cache, as from a typed address: nothing is known of the file.
    pub fn into_hub(mut self, revision: &str) -> Self {
        self.request.bytes = None;
        self.request.sha256 = None;
        self.into_cache(revision)
    }

    /// Downloads to the hub's cache.
    pub fn into_cache(mut self, revision: &str) -> Self {
        self.request.destination = Destination::HubCache {
            hub: self.folder().join("hub"),
            repository: "owner/name".to_owned(),
            revision: revision.to_owned(),
            file: "model.gguf".to_owned(),
        };
        self
    }

    pub fn into_folder(mut self, folder: &Path) -> Self {
        self.request.destination = Destination::Folder {
            folder: folder.to_owned(),
            file: "model.gguf".to_owned(),
        };
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn paths(&self) -> DownloadPaths {
        DownloadPaths::of(&self.request).expect("a request of which all is known")
    }

    pub fn file(&self) -> PathBuf {
        self.paths().file()
    }

    pub fn incomplete(&self) -> PathBuf {
        self.paths().incomplete().to_owned()
    }

    /// Returns the names in the folder.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).expect("a folder");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        entries.flatten().map(name).collect()
    }

    pub fn written(&self) -> Vec<u8> {
        fs::read(self.file()).expect("a file")
    }

    /// Creates the partial file of an earlier run.
    pub fn left(self, bytes: &[u8]) -> Self {
        let folder = self.incomplete().parent().map(fs::create_dir_all);
        folder.expect("a folder").expect("made");
        fs::write(self.incomplete(), bytes).expect("written");
        self
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goldcrest-fetch"));
        command.env_clear().envs(self.variables.iter().cloned());
        command
    }

    pub fn start(&self) -> Running {
        self.start_command(self.command())
    }

    pub fn start_command(&self, mut command: Command) -> Running {
        let line = serde_json::to_string(&self.request).expect("plain data");
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("the binary starts");
        let stdin = child.stdin.as_mut().expect("piped");
        writeln!(stdin, "{line}").expect("taken");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        Running {
            child,
            stdout,
            events: Vec::new(),
        }
    }

    pub fn run(&self) -> Ended {
        self.start().end()
    }
}

pub struct Running {
    pub child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    events: Vec<DownloadEvent>,
}

impl Running {
    /// Waits for an event, and returns whether it came.
    pub fn until(&mut self, wanted: impl Fn(&DownloadEvent) -> bool) -> bool {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).is_ok_and(|read| read > 0) {
            let event: DownloadEvent = serde_json::from_str(&line).expect("an event");
            line.clear();
            self.events.push(event);
            if self.events.last().is_some_and(&wanted) {
                return true;
            }
        }
        false
    }

    pub fn until_bytes(&mut self, bytes: u64) -> bool {
        self.until(|event| matches!(event, DownloadEvent::Progress { done, .. } if *done >= bytes))
    }

    pub fn pause(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("open");
        writeln!(stdin, "{}", download::PAUSE).expect("taken");
    }

    /// Closes stdin, as when the parent dies.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    pub fn end(mut self) -> Ended {
        self.until(|_| false);
        let output = self.child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(stderr, "", "nothing is written to stderr");
        let ended = Ended {
            events: self.events,
        };
        let is_failure = matches!(ended.events.last(), Some(DownloadEvent::Failed { .. }));
        assert_eq!(
            output.status.code(),
            Some(i32::from(is_failure)),
            "{ended:?}"
        );
        let last = ended.events.iter().filter(|event| event.is_last()).count();
        assert_eq!(last, 1, "{ended:?}");
        ended
    }
}

#[derive(Debug)]
pub struct Ended {
    pub events: Vec<DownloadEvent>,
}

impl Ended {
    pub fn is_done(&self) -> bool {
        matches!(self.events.last(), Some(DownloadEvent::Done { .. }))
    }

    pub fn hash(&self) -> String {
        match self.events.last() {
            Some(DownloadEvent::Done { sha256, .. }) => sha256.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the failure's message; without a failure, the last event.
    pub fn sentence(&self) -> String {
        match self.events.last() {
            Some(DownloadEvent::Failed { message, .. }) => message.clone(),
            other => format!("{other:?}"),
        }
    }

    pub fn can_resume(&self) -> bool {
        matches!(
            self.events.last(),
            Some(DownloadEvent::Failed {
                can_resume: true,
                ..
            })
        )
    }

    pub fn waits(&self) -> Vec<&str> {
        let mut waits = Vec::new();
        for event in &self.events {
            if let DownloadEvent::Waiting { message, .. } = event {
                waits.push(message.as_str());
            }
        }
        waits
    }

    /// Returns the bytes of each report.
    pub fn progress(&self) -> Vec<usize> {
        let done = |event: &DownloadEvent| match event {
            DownloadEvent::Progress { done, .. } => usize::try_from(*done).ok(),
            _ => None,
        };
        self.events.iter().filter_map(done).collect()
    }
}
