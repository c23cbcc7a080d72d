//! Figures of the API, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::ToServer;
use axum::http::StatusCode;

/// Paths of the routes.
pub const PATHS: [&str; 7] = [
    "/v1/models",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/tokenize",
    "/health",
    "/metrics",
];
/// The figures. Clones share them.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Figures>>);

#[derive(Default)]
struct Figures {
    /// Requests by path and status.
    requests: BTreeMap<(&'static str, u16), u64>,
    answers: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    answer_tokens: u64,
    refused: u64,
}

impl Metrics {
    /// Counts a request.
    pub fn answered(&self, path: &str, status: StatusCode) {
        let path = PATHS.iter().find(|it| **it == path).unwrap_or(&"other");
        let mut figures = self.figures();
        *figures.requests.entry((path, status.as_u16())).or_default() += 1;
    }

    /// Counts the end of an answer.
    pub fn reply(&self, reply: &ToServer) {
        let mut figures = self.figures();
        match reply {
            ToServer::Ended { usage, .. } => {
                figures.answers += 1;
                figures.prompt_tokens += usage.prompt as u64;
                figures.cached_tokens += usage.cached as u64;
                figures.answer_tokens += usage.answer as u64;
            }
            ToServer::Refused { .. } => figures.refused += 1,
            _ => {}
        }
    }

    /// Returns the text. `load`: answers that are being written, and requests that wait.
    pub fn text(&self, load: (usize, usize)) -> String {
        let figures = self.figures();
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, u64)]| {
            let _ = writeln!(text, "# HELP goldcrest_{name} {help}");
            let _ = writeln!(text, "# TYPE goldcrest_{name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "goldcrest_{name}{labels} {value}");
            }
        };
        let requests = figures.requests.iter().map(|((path, status), count)| {
            (format!("{{path=\"{path}\",status=\"{status}\"}}"), *count)
        });
        let requests: Vec<_> = requests.collect();
        metric("requests_total", "counter", "Requests answered.", &requests);
        for (name, kind, help, value) in [
            (
                "answers_total",
                "counter",
                "Answers completed.",
                figures.answers,
            ),
            (
                "refused_total",
                "counter",
                "Answers refused or failed.",
                figures.refused,
            ),
            (
                "prompt_tokens_total",
                "counter",
                "Tokens of prompts.",
                figures.prompt_tokens,
            ),
            (
                "cached_tokens_total",
                "counter",
                "Tokens of prompts that were in the cache.",
                figures.cached_tokens,
            ),
            (
                "answer_tokens_total",
                "counter",
                "Tokens of answers.",
                figures.answer_tokens,
            ),
            ("running", "gauge", "Answers being written.", load.0 as u64),
            (
                "waiting",
                "gauge",
                "Requests waiting for a place.",
                load.1 as u64,
            ),
        ] {
            metric(name, kind, help, &[(String::new(), value)]);
        }
        text
    }

    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
