//! The program, with a script in place of the app, and plain HTTP clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use api::{ApiConfig, ApiEnd, ApiKey, ApiText, ApiUsage, FromServer, TextPart, ToServer};
use serde_json::Value;

pub const KEY: &str = "gold-test-key";
/// Time within which something has to happen that takes a few milliseconds.
pub const SOON: Duration = Duration::from_secs(40);

/// The running program.
pub struct Program {
    child: Child,
    /// `None` once the app has ended.
    app: Option<Mutex<ChildStdin>>,
    lines: Receiver<FromServer>,
    pub port: u16,
}

impl Program {
    pub fn start() -> Program {
        Program::with_origins(&[])
    }

    pub fn with_origins(origins: &[&str]) -> Program {
        let config = ApiConfig {
            port: 0,
            key: ApiKey::of(KEY),
            origins: origins.iter().map(|it| (*it).to_owned()).collect(),
        };
        let mut child = Command::new(env!("CARGO_BIN_EXE_goldcrest-serve"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut app = child.stdin.take().expect("a pipe");
        writeln!(app, "{}", serde_json::to_string(&config).expect("JSON")).expect("taken");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                let line = line.expect("UTF-8");
                let line = serde_json::from_str(&line).expect("a line of the program");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut program = Program {
            child,
            app: Some(Mutex::new(app)),
            lines,
            port: 0,
        };
        match program.line() {
            FromServer::Listening { port } => program.port = port,
            other => panic!("{other:?}"),
        }
        program
    }

    /// Returns the next line, other than about the load.
    pub fn line(&self) -> FromServer {
        loop {
            match self.lines.recv_timeout(SOON).expect("a line") {
                FromServer::Load { .. } => {}
                line => return line,
            }
        }
    }

    /// Returns the id of the next request for an answer.
    pub fn asked(&self) -> u64 {
        match self.line() {
            FromServer::Generate { id, .. } => id,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until this load is reported.
    pub fn loads(&self, expected: (u32, u32)) {
        let began = Instant::now();
        loop {
            let line = self.lines.recv_timeout(SOON).expect("a line");
            if let FromServer::Load { running, waiting } = line
                && (running, waiting) == expected
            {
                return;
            }
            assert!(began.elapsed() < SOON, "{expected:?}");
        }
    }

    /// Replies as the app.
    pub fn reply(&self, line: &ToServer) {
        let app = self.app.as_ref().expect("the app runs");
        let mut app = app.lock().expect("no panic");
        writeln!(app, "{}", serde_json::to_string(line).expect("JSON")).expect("taken");
    }

    pub fn begin(&self, id: u64) {
        let model = "Tiny".to_owned();
        self.reply(&ToServer::Begun { id, model });
    }

    pub fn say(&self, id: u64, text: &str) {
        let text = ApiText {
            part: TextPart::Answer,
            text: text.to_owned(),
            logprobs: Vec::new(),
        };
        self.reply(&ToServer::Text { id, text });
    }

    pub fn end(&self, id: u64) {
        let (reason, usage) = (ApiEnd::Stop, ApiUsage::default());
        self.reply(&ToServer::Ended { id, reason, usage });
    }

    /// Replies with a whole answer.
    pub fn answer(&self, id: u64, text: &str) {
        self.begin(id);
        self.say(id, text);
        self.end(id);
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(SOON)).expect("a time limit");
        stream
    }

    /// Sends text.
    pub fn sent(&self, text: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        // The program may have closed the connection before it has read all.
        let _ = stream.write_all(text);
        stream
    }

    /// Sends text, and returns the reply. The connection is closed after it.
    pub fn raw(&self, text: &[u8]) -> HttpReply {
        HttpReply::read(&mut self.sent(text))
    }

    /// Sends a request with the key.
    pub fn post(&self, path: &str, body: &Value) -> HttpReply {
        self.raw(post(path, "", &body.to_string()).as_bytes())
    }

    pub fn get(&self, path: &str, headers: &str) -> HttpReply {
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        self.raw(head.as_bytes())
    }

    /// Ends it as the app does, and returns its exit status.
    pub fn close(mut self) -> Option<i32> {
        drop(self.app.take());
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            assert!(began.elapsed() < SOON, "it ends with its stdin");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns its resident memory in MB, and its open files; `None` where they are not shown.
    pub fn usage(&self) -> Option<(u64, usize)> {
        let process = format!("/proc/{}", self.child.id());
        let status = std::fs::read_to_string(format!("{process}/status")).ok()?;
        let line = status.lines().find(|it| it.starts_with("VmRSS:"))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        let files = std::fs::read_dir(format!("{process}/fd")).ok()?.count();
        Some((kilobytes >> 10, files))
    }
}

#[cfg(target_os = "linux")]
impl Program {
    /// Returns the mode of its seccomp filter.
    pub fn seccomp(&self) -> Option<String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|it| it.strip_prefix("Seccomp:"))?;
        Some(line.trim().to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a request with the key, and more headers.
pub fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

/// A reply.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl HttpReply {
    /// Reads until the end of the connection.
    pub fn read(stream: &mut TcpStream) -> HttpReply {
        let mut bytes = Vec::new();
        // A connection that was closed with unread data ends with an error.
        let _ = stream.read_to_end(&mut bytes);
        let _ = stream.shutdown(Shutdown::Both);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        HttpReply {
            status: status.unwrap_or(0),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the error's parameter and message.
    pub fn error(&self) -> (Value, String) {
        let error = &self.json()["error"];
        let message = error["message"].as_str().expect("a message").to_owned();
        (error["param"].clone(), message)
    }
}
