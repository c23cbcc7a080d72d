//! The child's part: runs a program, and asks the parent to run functions.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use jiff::ZonedDateTime;
use jiff::tz::{Offset, TimeZone};
use monty::{FunctionCall as Suspended, MontyRun, RunProgress};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyDate, MontyDateTime, MontyException,
    MontyObject, MontyTimeZone, OsFunctionCall, PrintWriter, PrintWriterCallback, ResourceLimits,
    ResourceTracker,
};
use serde_json::Map;
use system::frames;

use super::frame::{FunctionCall, MOST_OUTPUT, ProgramEnd, PythonFrame, Returned};
use super::values::{from_json, to_json};
use crate::clock::now;
use crate::process::MEMORY;

/// Maximum time of a program, without that of the functions that it calls.
const LIMIT: Duration = Duration::from_secs(10);
/// Name of the program in tracebacks.
const FILE: &str = "program.py";

/// Runs a program, which may call these functions.
///
/// # Errors
/// Fails if the parent is gone.
pub fn serve(
    code: String,
    functions: &[String],
    frames: &Receiver<Vec<u8>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut printed = Printed::default();
    let mut parent = Parent {
        functions,
        frames,
        out,
    };
    let value = match run(code, &mut parent, &mut printed) {
        Ok(MontyObject::None) => Ok(None),
        Ok(value) => Ok(Some(printed.cut(value.py_repr()))),
        Err(exception) => Err(printed.cut(exception.to_string())),
    };
    let Printed { text, dropped } = printed;
    let end = ProgramEnd {
        printed: text,
        dropped,
        value,
    };
    out.write_all(&frames::of(&PythonFrame::Ended(end))?)
}

fn run(
    code: String,
    parent: &mut Parent<'_>,
    printed: &mut Printed,
) -> Result<MontyObject, MontyException> {
    let program = MontyRun::new(code, FILE, Vec::new(), CompileOptions::default())?;
    // Without monty's own allocator its limit of memory applies to each allocation alone; together they are limited
    // by the process.
    let limits = ResourceLimits::default()
        .max_duration(LIMIT)
        .max_memory(MEMORY);
    let mut print = PrintWriter::Callback(printed);
    let mut progress = program.start(Vec::new(), ResourceTracker::new(limits), print.reborrow())?;
    loop {
        progress = match progress {
            RunProgress::Complete(value) => return Ok(value),
            RunProgress::NameLookup(lookup) => {
                let is_known =
                    lookup.object_id().is_none() && parent.functions.contains(&lookup.name);
                let function = is_known.then(|| MontyObject::Function {
                    name: lookup.name.clone(),
                    docstring: None,
                });
                lookup.resume(function, print.reborrow())?
            }
            RunProgress::FunctionCall(call) => {
                let result = parent.call(&call);
                call.resume(result, print.reborrow())?
            }
            RunProgress::OsCall(call) => call.resume_with(print.reborrow(), of_system)?,
            RunProgress::ResolveFutures(_) => {
                return Err(exception(
                    ExcType::RuntimeError,
                    "a coroutine waits for nothing",
                ));
            }
        };
    }
}

/// The parent, which runs the functions.
struct Parent<'p> {
    functions: &'p [String],
    frames: &'p Receiver<Vec<u8>>,
    out: &'p mut dyn Write,
}

impl Parent<'_> {
    fn call(&mut self, call: &Suspended) -> ExtFunctionResult {
        if call.object_id.is_some() || !self.functions.contains(&call.function_name) {
            return ExtFunctionResult::NotFound(call.function_name.clone());
        }
        let returned = match request(call) {
            Ok(request) => self.returned(request),
            Err(message) => return exception(ExcType::TypeError, &message).into(),
        };
        match returned {
            Ok(Ok(value)) => from_json(value).into(),
            Ok(Err(message)) => exception(ExcType::RuntimeError, &message).into(),
            Err(error) => exception(ExcType::OSError, &error.to_string()).into(),
        }
    }

    fn returned(&mut self, request: FunctionCall) -> io::Result<Returned> {
        self.out
            .write_all(&frames::of(&PythonFrame::Call(request))?)?;
        self.out.flush()?;
        let frame = self.frames.recv().map_err(io::Error::other)?;
        Ok(serde_json::from_slice(&frame)?)
    }
}

fn request(call: &Suspended) -> Result<FunctionCall, String> {
    let mut named = Map::new();
    for (key, value) in &call.kwargs {
        named.insert(key.to_string(), to_json(value)?);
    }
    Ok(FunctionCall {
        name: call.function_name.clone(),
        positional: call.args.iter().map(to_json).collect::<Result<_, _>>()?,
        named,
    })
}

/// Answers what Python asks the system: the time is known, and there is nothing else.
fn of_system(call: OsFunctionCall) -> ExtFunctionResult {
    let now = now();
    match call {
        OsFunctionCall::DateToday => {
            let today = now.date();
            MontyObject::Date(MontyDate {
                year: today.year().into(),
                month: today.month().unsigned_abs(),
                day: today.day().unsigned_abs(),
            })
            .into()
        }
        OsFunctionCall::DateTimeNow(None) => date_time(&now, None).into(),
        OsFunctionCall::DateTimeNow(Some(zone)) => {
            let offset = Offset::from_seconds(zone.offset_seconds).unwrap_or(Offset::UTC);
            let there = now.timestamp().to_zoned_datetime(TimeZone::fixed(offset));
            date_time(&there, Some(zone)).into()
        }
        OsFunctionCall::Getenv(variable) => variable.default.into(),
        OsFunctionCall::GetEnviron => MontyObject::dict(Vec::new()).into(),
        _ => exception(
            ExcType::PermissionError,
            "this program has no access to files",
        )
        .into(),
    }
}

fn date_time(at: &ZonedDateTime, zone: Option<MontyTimeZone>) -> MontyObject {
    MontyObject::DateTime(MontyDateTime {
        year: at.year().into(),
        month: at.month().unsigned_abs(),
        day: at.day().unsigned_abs(),
        hour: at.hour().unsigned_abs(),
        minute: at.minute().unsigned_abs(),
        second: at.second().unsigned_abs(),
        microsecond: at.subsec_nanosecond().unsigned_abs() / 1_000,
        offset_seconds: zone.as_ref().map(|zone| zone.offset_seconds),
        timezone_name: zone.and_then(|zone| zone.name),
    })
}

fn exception(kind: ExcType, message: &str) -> MontyException {
    MontyException::new(kind, Some(message.to_owned()))
}

/// Collector of what a program prints.
#[derive(Default)]
struct Printed {
    text: String,
    dropped: usize,
}

impl Printed {
    /// Cuts a value, and counts what is dropped.
    fn cut(&mut self, mut value: String) -> String {
        let end = value.floor_char_boundary(MOST_OUTPUT);
        self.dropped += value.len() - end;
        value.truncate(end);
        value
    }
}

impl PrintWriterCallback for Printed {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        let left = MOST_OUTPUT - self.text.len();
        let (kept, dropped) = output.split_at(output.floor_char_boundary(left));
        self.text.push_str(kept);
        self.dropped += dropped.len();
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.stdout_write(Cow::Borrowed(end.encode_utf8(&mut [0; 4])))
    }
}
