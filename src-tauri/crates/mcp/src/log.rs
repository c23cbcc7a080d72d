//! The end of what a server wrote to stderr.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::clean;
use crate::config::ServerConfig;

/// Bytes that are kept.
const LIMIT: usize = 16 << 10;
/// Shortest value of a variable that is looked for: a shorter one is part of many words.
const SHORTEST_SECRET: usize = 4;

/// The end of a server's stderr, without control characters and without the values of its variables.
#[derive(Clone)]
pub struct StderrTail {
    bytes: Arc<Mutex<Vec<u8>>>,
    secrets: Arc<[String]>,
}

impl StderrTail {
    /// Makes an empty one for a server.
    pub fn of(config: &ServerConfig) -> StderrTail {
        let values = config.env.values().map(|value| value.expose());
        let long = values.filter(|value| value.len() >= SHORTEST_SECRET);
        StderrTail {
            bytes: Arc::default(),
            secrets: long.map(str::to_owned).collect(),
        }
    }

    /// Reads until the end.
    pub async fn fill(self, mut stderr: impl AsyncRead + Unpin) {
        let mut part = vec![0; 8 << 10];
        while let Ok(read @ 1..) = stderr.read(&mut part).await {
            self.push(&part[..read]);
        }
    }

    fn push(&self, part: &[u8]) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.extend_from_slice(part);
        let surplus = bytes.len().saturating_sub(LIMIT);
        bytes.drain(..surplus);
    }

    /// Returns the text.
    pub fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        drop(bytes);
        self.without_secrets(&clean::visible(&text))
    }

    /// Returns the last line that speaks of an error, or else the last one that says something.
    pub fn last_line(&self) -> Option<String> {
        let text = self.text();
        let lines: Vec<String> = text.lines().map(|line| clean::line(line, 200)).collect();
        let last =
            |is_it: &dyn Fn(&str) -> bool| lines.iter().rev().find(|line| is_it(line)).cloned();
        let error = last(&|line| line.to_lowercase().contains("error"));
        error.or_else(|| last(&|line| line.contains(char::is_alphanumeric)))
    }

    /// Replaces the values of the server's variables.
    pub fn without_secrets(&self, text: &str) -> String {
        let values = self.secrets.iter();
        values.fold(text.to_owned(), |text, secret| text.replace(secret, "•••"))
    }
}
