//! Unknown chat templates, rendered in a child process: they are untrusted programs, and minijinja bounds neither their
//! time nor their memory.

pub mod limits;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use engine::{TemplateError, TemplateSandbox};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use system::child::{Call, Child, ChildFault, STARTED};

/// The hidden subcommand that renders.
pub const SUBCOMMAND: &str = "render-template";

/// Time limit of one child's rendering.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for the start of the process, before any template runs.
const STARTUP: Duration = Duration::from_secs(20);
/// Maximum bytes of its output, as JSON.
const OUTPUT_LIMIT: usize = 4 << 20;

/// Renders templates in child processes, a new one each time.
#[derive(Debug)]
pub struct ChildSandbox {
    child: Child,
    /// Last request and its prompt: a message is counted before it is answered.
    last: Mutex<Option<(Vec<u8>, String)>>,
}

/// Request to a child. It renders the source in each context, and prints one result per context.
#[derive(Serialize)]
struct RenderRequest<'a> {
    source: &'a str,
    contexts: &'a [serde_json::Value],
    /// Date as YYYY-MM-DD.
    today: String,
}

/// The same request, on the child's side.
#[derive(Deserialize)]
struct OwnRequest {
    source: String,
    contexts: Vec<serde_json::Value>,
    today: String,
}

/// Result of one context, as a child prints it.
type Rendered = Result<String, TemplateError>;

/// Returns the sandbox of this program.
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

    /// Runs a child on a request with this number of contexts, and returns its results.
    fn run(&self, request: Vec<u8>, contexts: usize) -> Result<Vec<Rendered>, TemplateError> {
        let call = Call {
            input: Some(request),
            ..Call::default()
        };
        let output = self.child.run(call).map_err(|error| {
            // Its stderr may quote the chat, so it is not logged.
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
        let rendered: Vec<Rendered> = serde_json::from_slice(&output)
            .map_err(|error| stopped(format!("its process failed ({error})")))?;
        if rendered.len() != contexts {
            return Err(stopped("its process failed (a result is missing)".into()));
        }
        Ok(rendered)
    }
}

fn request(
    source: &str,
    contexts: &[serde_json::Value],
    today: Date,
) -> Result<Vec<u8>, TemplateError> {
    let request = RenderRequest {
        source,
        contexts,
        today: today.to_string(),
    };
    serde_json::to_vec(&request).map_err(|error| stopped(error.to_string()))
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
        let request = request(source, slice::from_ref(context), today)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((asked, prompt)) = &*last
            && *asked == request
        {
            return Ok(prompt.clone());
        }
        let prompt = self.run(request.clone(), 1)?.swap_remove(0)?;
        *last = Some((request, prompt.clone()));
        Ok(prompt)
    }

    /// Renders all in one child, whose limits are for all of them together.
    fn render_each(
        &self,
        source: &str,
        contexts: &[serde_json::Value],
        today: Date,
    ) -> Vec<Rendered> {
        let rendered =
            request(source, contexts, today).and_then(|request| self.run(request, contexts.len()));
        rendered.unwrap_or_else(|error| vec![Err(error); contexts.len()])
    }
}

/// The child's part: renders the request on stdin, and prints the prompts or the error as JSON.
pub fn render_from_stdin() -> io::Result<()> {
    /// Stack of the rendering thread, which does not depend on the system's default for the main thread.
    const STACK: usize = 8 << 20;
    limits::set()?;
    let mut out = io::stdout().lock();
    out.write_all(&[STARTED])?;
    out.flush()?;
    let mut request = Vec::new();
    io::stdin().read_to_end(&mut request)?;
    let OwnRequest {
        source,
        contexts,
        today,
    } = serde_json::from_slice(&request)?;
    let today: Date = today.parse().map_err(io::Error::other)?;
    drop(request);
    let rendering = thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || -> Vec<Rendered> {
            let render = |context| engine::render_template(&source, context, today);
            contexts.iter().map(render).collect()
        })?;
    let rendered = rendering
        .join()
        .map_err(|_| io::Error::other("the template panicked"))?;
    serde_json::to_writer(&mut out, &rendered)?;
    out.flush()
}
