//! `goldcrest ask`: one question, one answer.

mod rounds;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{
    ActiveDevice, Constraint, CpuLevel, Engine, Finished, GenerateParams, ModelFile, Role,
    StopReason, ThinkingCut, Turn, check_schema, machine,
};
use guide::{Guide, Topic};
use host::environment;
use serde::Serialize;
use serde_json::Value;

use self::rounds::ToolRounds;
use super::answer::{Answer, Stream, generate};
use super::args::{AskArgs, DeviceArg, ModelArgs};
use super::interrupt::Interrupt;
use super::load;
use super::output::{self, CliError};
use super::progress::ProgressLine;
use super::text;
use crate::reference_process::ReferenceProcess;

/// Output of `--json`. Figures are those of the last round of calls, texts and ids of all. Rates are in tokens per second, times in seconds.
#[derive(Serialize)]
struct AnswerReport<'a> {
    text: &'a str,
    thinking: &'a str,
    ids: &'a [u32],
    prompt_tokens: usize,
    cached_tokens: usize,
    tokens: usize,
    thinking_tokens: usize,
    /// Reason for ending the thinking before the model did.
    thinking_cut: Option<ThinkingCut>,
    prefill_tok_s: f64,
    decode_tok_s: f64,
    first_token_s: f64,
    drafted_tokens: usize,
    accepted_tokens: usize,
    seed: u64,
    stop_reason: &'static str,
    model: &'a str,
    quantisation: &'a str,
    device: &'static str,
    device_name: &'a str,
    device_reason: String,
    cpu_level: &'static str,
    threads: usize,
    context_tokens: usize,
}

pub fn run(mut args: AskArgs) -> Result<(), CliError> {
    args.answer = args.answer.over_preset()?;
    let question = question(&args.prompt)?;
    let schema = args.schema.as_deref().map(read_schema).transpose()?;
    if let Some(topic) = guide_topic(&args, &question) {
        return write_guide_answer(topic, args.json);
    }
    let interrupt = Interrupt::listen();
    let (interrupted, no_answer) = if args.model.place.device == Some(DeviceArg::Reference) {
        let mut engine = open_candle(&args.model)?;
        let (answered, interrupted) =
            interrupt.during(|cancel| answer(&mut engine, &args, schema, question, cancel));
        let (answer, finished) = answered?;
        if args.json {
            let reason = "The reference was chosen".to_owned();
            output::json(&AnswerReport {
                device: REFERENCE,
                ..report(&engine, reason, &answer, &finished)
            })?;
        }
        (interrupted, answer.is_thinking_alone(&finished))
    } else {
        let mut model = load::open(&args.model)?;
        let (answered, interrupted) = interrupt
            .during(|cancel| model.run(|engine| answer(engine, &args, schema, question, cancel)));
        let (answer, finished) = answered?;
        if args.json {
            let reason = model.device_reason();
            output::json(&report(model.engine(), reason, &answer, &finished))?;
        }
        (interrupted, answer.is_thinking_alone(&finished))
    };
    if interrupted {
        Err(CliError::Interrupted)
    } else if no_answer {
        Err(CliError::NoAnswer)
    } else {
        Ok(())
    }
}

/// Returns the topic of the guide that answers the question, if the model would be the one that comes with the app.
fn guide_topic(args: &AskArgs, question: &str) -> Option<&'static Topic> {
    let is_chosen = args.model.model.is_some()
        || environment::model().is_some()
        || args.model.place.device == Some(DeviceArg::Reference);
    if args.no_guide || args.schema.is_some() || !args.tools.is_empty() || is_chosen {
        return None;
    }
    Guide::shared().answer(question).sure()
}

/// Output of `--json` for an answer from the guide.
#[derive(Serialize)]
struct GuideReport<'a> {
    text: &'a str,
    /// Id of the topic.
    guide: &'a str,
}

fn write_guide_answer(topic: &Topic, json: bool) -> Result<(), CliError> {
    let text = &topic.shown_answer();
    if json {
        let guide = &topic.id;
        return output::json(&GuideReport { text, guide });
    }
    let mut out = output::stdout();
    writeln!(out, "{}", super::guide::plain(text))?;
    out.flush()?;
    // A terminal that is gone is no failure.
    let _ = writeln!(
        output::stderr(),
        "From the guide (`goldcrest guide {}`); --no-guide asks the model.",
        topic.id
    );
    Ok(())
}

/// Lets an engine answer the question.
fn answer(
    engine: &mut Engine,
    args: &AskArgs,
    schema: Option<Value>,
    question: String,
    cancel: &Arc<AtomicBool>,
) -> Result<(Answer, Finished), CliError> {
    let mut conversation = args.answer.conversation();
    conversation.messages.push(Turn::new(Role::User, question));
    let summary = engine.summary();
    let thinking = conversation.thinking && summary.can_think;
    let params = args.answer.params(summary.sampling.of(thinking));
    let mut rounds = ToolRounds::of(&super::tools::registry()?, &args.tools)?;
    if !args.tools.is_empty() && !summary.can_call_tools {
        return Err(CliError::message(
            "This model was not trained to call tools. Leave --tools out, or choose another model.",
        ));
    }
    conversation.tools = rounds.definitions();
    let schema = schema.map(|schema| Constraint::Json(Arc::new(schema)));
    let mut whole = Answer::default();
    loop {
        let params = GenerateParams {
            constraint: schema.clone().or_else(|| rounds.constraint()),
            ..params.clone()
        };
        let prompt = engine
            .prompt(&conversation)
            .map_err(|error| CliError::message(error.to_string()))?;
        let mut stream = Stream::new(args.json);
        let (answer, finished) = generate(engine, &prompt, &params, cancel, &mut stream)?;
        whole.extend(&answer);
        if answer.calls.is_empty() || finished.reason != StopReason::EndOfTurn {
            return Ok((whole, finished));
        }
        conversation.messages.extend(rounds.run(&answer, cancel));
        if cancel.load(Ordering::Relaxed) {
            let reason = StopReason::Cancelled;
            return Ok((whole, Finished { reason, ..finished }));
        }
    }
}

/// Name of candle in the report.
const REFERENCE: &str = "reference";

/// Opens a model that candle runs in a child process; the engine provides everything but the logits.
fn open_candle(args: &ModelArgs) -> Result<Engine, CliError> {
    let path = load::file(args.model.as_deref())?;
    let file = ModelFile::open(&path).map_err(|error| CliError::file(&path, error))?;
    let threads = load::threads(args.place.threads)?;
    let mut bar = ProgressLine::new();
    bar.begin("Loading the model with candle");
    let never = AtomicBool::new(false);
    let opened = ReferenceProcess::open(&path, threads, &never);
    bar.clear();
    let opened = opened.map_err(|error| CliError::file(&path, error))?;
    let candle = opened.ok_or(CliError::Interrupted)?;
    let asked = load::context(args.place.context)?;
    let context = asked.unwrap_or(usize::MAX).min(candle.context());
    let device = ActiveDevice {
        on_gpu: false,
        name: "candle, on the CPU".to_owned(),
        fit: None,
        failure: None,
        cpu_level: CpuLevel::best(),
        threads: machine::threads(threads),
    };
    load::tell_of_format(&file);
    Ok(Engine::with_source(
        &file,
        Box::new(candle),
        context,
        device,
    ))
}

/// Reads and checks the schema of the answer. Parts that are not enforced are said on stderr.
fn read_schema(path: &Path) -> Result<Value, CliError> {
    let file = File::open(path).map_err(|error| CliError::file(path, error))?;
    let text = text::read_all(file, &path.display().to_string())?;
    let schema = serde_json::from_str(&text)
        .map_err(|error| CliError::file(path, format!("it is not JSON: {error}")))?;
    let left_out = check_schema(&schema).map_err(|error| CliError::file(path, error))?;
    for sentence in left_out {
        // A terminal that is gone is no failure.
        let _ = writeln!(output::stderr(), "{sentence}");
    }
    Ok(schema)
}

fn question(prompt: &str) -> Result<String, CliError> {
    let (question, place) = match prompt {
        "-" => (text::read_all(io::stdin().lock(), "stdin")?, " on stdin"),
        prompt => (prompt.to_owned(), ""),
    };
    if question.trim().is_empty() {
        return Err(CliError::message(format!("there is no question{place}")));
    }
    Ok(question)
}

fn report<'a>(
    engine: &'a Engine,
    device_reason: String,
    answer: &'a Answer,
    finished: &Finished,
) -> AnswerReport<'a> {
    let (summary, device, stats) = (engine.summary(), engine.device(), &finished.stats);
    AnswerReport {
        text: answer.text.trim(),
        thinking: answer.thinking.trim(),
        ids: &answer.ids,
        prompt_tokens: stats.prompt_tokens,
        cached_tokens: stats.cached_tokens,
        tokens: stats.tokens,
        thinking_tokens: stats.thinking_tokens,
        thinking_cut: stats.thinking_cut,
        prefill_tok_s: stats.read_per_second,
        decode_tok_s: stats.tokens_per_second,
        first_token_s: stats.first_token_ms / 1000.0,
        drafted_tokens: stats.drafted_tokens,
        accepted_tokens: stats.accepted_tokens,
        seed: stats.seed,
        stop_reason: match finished.reason {
            StopReason::EndOfTurn => "end_of_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::ContextFull => "context_full",
            StopReason::Repetition => "repetition",
            StopReason::Cancelled => "cancelled",
        },
        model: &summary.name,
        quantisation: &summary.quantisation,
        device: if device.on_gpu { "gpu" } else { "cpu" },
        device_name: &device.name,
        device_reason,
        cpu_level: device.cpu_level.name(),
        threads: device.threads,
        context_tokens: summary.context_length,
    }
}

#[cfg(test)]
mod tests {
    use ::devices::DeviceRequest;
    use engine::{LoadOptions, Stats};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_cannot_be_used_is_an_error_that_says_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schema.json");
        for (text, reason) in [
            ("{", "it is not JSON"),
            (r#"{"type": "birds"}"#, "the JSON schema cannot be used"),
        ] {
            std::fs::write(&path, text).expect("a file");
            let error = read_schema(&path).expect_err(text).sentence();
            assert!(
                error.contains("schema.json") && error.contains(reason),
                "{error}"
            );
        }
        std::fs::write(&path, r#"{"type": "object", "not": {}}"#).expect("a file");
        let schema = read_schema(&path).expect("the rest is enforced");
        assert_eq!(schema, json!({"type": "object", "not": {}}));
    }

    #[test]
    fn every_figure_is_reported_under_its_name() {
        let file = testing::tiny_model();
        let options = LoadOptions {
            threads: Some(1),
            ..LoadOptions::default()
        };
        let file = ModelFile::open(&file).expect("a model");
        let model = load::open_unchecked(&file, &DeviceRequest::Cpu, false, &options);
        let model = model.expect("it opens");
        let answer = Answer {
            text: "\nYes.".to_owned(),
            thinking: "Hm.\n".to_owned(),
            ids: vec![4, 5],
            calls: Vec::new(),
        };
        let stats = Stats {
            prompt_tokens: 101,
            cached_tokens: 40,
            tokens: 23,
            thinking_tokens: 7,
            thinking_cut: Some(ThinkingCut::Budget),
            repeated: false,
            shared: false,
            first_token_ms: 1250.0,
            tokens_per_second: 16.25,
            read_per_second: 84.5,
            drafted_tokens: 6,
            accepted_tokens: 5,
            seed: 77,
        };
        for (reason, name) in [
            (StopReason::EndOfTurn, "end_of_turn"),
            (StopReason::MaxTokens, "max_tokens"),
            (StopReason::ContextFull, "context_full"),
            (StopReason::Repetition, "repetition"),
            (StopReason::Cancelled, "cancelled"),
        ] {
            let stats = stats.clone();
            let finished = Finished { reason, stats };
            let report = report(model.engine(), model.device_reason(), &answer, &finished);
            let report = serde_json::to_value(report).expect("plain data");
            let device = model.engine().device();
            let expected = json!({
                "text": "Yes.",
                "thinking": "Hm.",
                "ids": [4, 5],
                "prompt_tokens": 101,
                "cached_tokens": 40,
                "tokens": 23,
                "thinking_tokens": 7,
                "thinking_cut": "budget",
                "prefill_tok_s": 84.5,
                "decode_tok_s": 16.25,
                "first_token_s": 1.25,
                "drafted_tokens": 6,
                "accepted_tokens": 5,
                "seed": 77,
                "stop_reason": name,
                "model": "Tiny model",
                "quantisation": "Q4_K_M",
                "device": "cpu",
                "device_name": device.name,
                "device_reason": "The CPU was chosen",
                "cpu_level": device.cpu_level.name(),
                "threads": 1,
                "context_tokens": 2048,
            });
            assert_eq!(report, expected);
        }
    }
}
