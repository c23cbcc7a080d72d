//! Chat templates of unknown text, rendered in a child process: they are programs from strangers, and minijinja bounds
//! neither their time nor their memory.

mod limits;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use engine::{TemplateError, TemplateSandbox};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::child::{Call, Child, ChildFault, STARTED};

/// The hidden subcommand that renders.
pub const SUBCOMMAND: &str = "render-template";

/// How long one rendering may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long the process may take to start, in which no template can have a part.
const STARTUP: Duration = Duration::from_secs(20);
/// Bytes that it may print, as JSON.
const OUTPUT_LIMIT: usize = 4 << 20;

/// Has templates rendered by child processes, one for each rendering.
#[derive(Debug)]
pub struct ChildSandbox {
    child: Child,
    /// What was asked last, and the prompt: a message is counted before it is answered.
    last: Mutex<Option<(Vec<u8>, String)>>,
}

/// What a child reads.
#[derive(Serialize)]
struct Request<'a> {
    source: &'a str,
    context: &'a serde_json::Value,
    /// As YYYY-MM-DD.
    today: String,
}

/// The same, by whoever reads it.
#[derive(Deserialize)]
struct OwnRequest {
    source: String,
    context: serde_json::Value,
    today: String,
}

/// The sandbox of this program.
pub fn of_this_program() -> io::Result<Arc<dyn TemplateSandbox>> {
    let child = Child {
        program: std::env::current_exe()?,
        leading: vec![SUBCOMMAND.into()],
        startup: Some(STARTUP),
        timeout: TIMEOUT,
        output_limit: OUTPUT_LIMIT,
    };
    Ok(Arc::new(ChildSandbox::new(child)))
}

impl ChildSandbox {
    fn new(child: Child) -> Self {
        Self {
            child,
            last: Mutex::default(),
        }
    }

    fn run(&self, request: Vec<u8>) -> Result<String, TemplateError> {
        let call = Call {
            input: Some(request),
            ..Call::default()
        };
        let output = self.child.run(call).map_err(|error| {
            // Its stderr may quote what was said, so it is not logged.
            tracing::warn!(fault = ?error.fault, "a chat template was stopped");
            stopped(match error.fault {
                ChildFault::TimedOut => {
                    format!("it took longer than {} s", self.child.timeout.as_secs())
                }
                ChildFault::TooMuchOutput => {
                    format!("it wrote more than {} MB", self.child.output_limit >> 20)
                }
                ChildFault::Crashed(_) => "it crashed, or took too much memory".to_owned(),
                ChildFault::Interrupted => "its process was ended".to_owned(),
                ChildFault::NotRun(error) => format!("its process could not be started ({error})"),
            })
        })?;
        let rendered: Result<Result<String, TemplateError>, _> = serde_json::from_slice(&output);
        rendered.unwrap_or_else(|error| Err(stopped(format!("its process failed ({error})"))))
    }
}

fn stopped(reason: String) -> TemplateError {
    TemplateError::Stopped { reason }
}

impl TemplateSandbox for ChildSandbox {
    fn render(
        &self,
        source: &str,
        context: &serde_json::Value,
        today: Date,
    ) -> Result<String, TemplateError> {
        let request = Request {
            source,
            context,
            today: today.to_string(),
        };
        let request = serde_json::to_vec(&request).map_err(|error| stopped(error.to_string()))?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((asked, prompt)) = &*last
            && *asked == request
        {
            return Ok(prompt.clone());
        }
        let prompt = self.run(request.clone())?;
        *last = Some((request, prompt.clone()));
        Ok(prompt)
    }
}

/// Renders what stands on stdin, and prints the prompt or what is wrong as JSON: the child's part.
pub fn render_from_stdin() -> io::Result<()> {
    /// Of the thread that renders, whatever the system gives to the first one.
    const STACK: usize = 8 << 20;
    limits::set()?;
    let mut out = io::stdout().lock();
    out.write_all(&[STARTED])?;
    out.flush()?;
    let mut request = Vec::new();
    io::stdin().read_to_end(&mut request)?;
    let OwnRequest {
        source,
        context,
        today,
    } = serde_json::from_slice(&request)?;
    let today: Date = today.parse().map_err(io::Error::other)?;
    drop(request);
    let rendering = thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || engine::render_template(&source, &context, today))?;
    let rendered = rendering
        .join()
        .map_err(|_| io::Error::other("the template panicked"))?;
    serde_json::to_writer(&mut out, &rendered)?;
    out.flush()
}
