//! Parameters that several routes share.

use api::ApiSampling;
use serde_json::Value;

use crate::error::HttpError;
use crate::fields::JsonFields;

/// Answers to one request, at most.
pub const MOST_CHOICES: u64 = 8;
/// Likeliest tokens that are reported, at most.
pub const MOST_LOGPROBS: u64 = 20;
/// Tokens of an answer, at most.
pub const MOST_TOKENS: u64 = 1 << 20;
/// Stop texts, at most, and the bytes of one.
const MOST_STOPS: usize = 16;
const LONGEST_STOP: usize = 1000;

/// Reads the overrides of a model's sampling.
pub fn sampling(fields: &JsonFields<'_>) -> Result<ApiSampling, HttpError> {
    let real = |field, range| -> Result<Option<f32>, HttpError> {
        Ok(fields.number(field, range)?.map(|it| it as f32))
    };
    Ok(ApiSampling {
        temperature: real("temperature", 0.0..=2.0)?,
        top_p: real("top_p", 0.0..=1.0)?,
        min_p: real("min_p", 0.0..=1.0)?,
        top_k: fields
            .count("top_k", 0..=1_000_000)?
            .and_then(|it| u32::try_from(it).ok()),
        seed: seed(fields)?,
    })
}

/// Reads the seed, which may be negative.
fn seed(fields: &JsonFields<'_>) -> Result<Option<u64>, HttpError> {
    let seed = fields.get("seed").map(|it| {
        let signed = it.as_i64().map(i64::cast_unsigned);
        let seed = it.as_u64().or(signed);
        seed.ok_or_else(|| fields.wrong("seed", "This has to be a whole number."))
    });
    seed.transpose()
}

/// Returns the sampling of an answer of several, each of which has another seed.
pub fn of_choice(sampling: ApiSampling, choice: usize) -> ApiSampling {
    ApiSampling {
        seed: sampling.seed.map(|it| it.wrapping_add(choice as u64)),
        ..sampling
    }
}

/// Reads the texts before which an answer ends.
pub fn stops(fields: &JsonFields<'_>) -> Result<Vec<String>, HttpError> {
    let problem = || {
        let problem = format!("This has to be a text, or a list of at most {MOST_STOPS} texts.");
        fields.wrong("stop", &problem)
    };
    let stops: Vec<&str> = match fields.get("stop") {
        None => Vec::new(),
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(list)) => {
            let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            texts.ok_or_else(problem)?
        }
        Some(_) => return Err(problem()),
    };
    if stops.len() > MOST_STOPS {
        return Err(problem());
    }
    if stops
        .iter()
        .any(|it| it.is_empty() || it.len() > LONGEST_STOP)
    {
        let problem = format!("A stop text has 1 to {LONGEST_STOP} bytes.");
        return Err(fields.wrong("stop", &problem));
    }
    Ok(stops.into_iter().map(str::to_owned).collect())
}

/// Reads whether a stream ends with the usage of tokens.
pub fn sends_usage(fields: &JsonFields<'_>) -> Result<bool, HttpError> {
    let options = fields.object("stream_options")?;
    let wanted = options.map(|it| it.flag("include_usage")).transpose()?;
    Ok(wanted.flatten().unwrap_or(false))
}

/// Reads a number of tokens.
pub fn tokens(fields: &JsonFields<'_>, name: &str) -> Result<Option<usize>, HttpError> {
    let tokens = fields.count(name, 1..=MOST_TOKENS)?;
    Ok(tokens.and_then(|it| usize::try_from(it).ok()))
}

/// Reads whether the model thinks, and for how many tokens at most.
pub fn thinking(effort: Option<&str>) -> Option<(Option<bool>, Option<usize>)> {
    Some(match effort {
        None => (None, None),
        Some("none" | "minimal") => (Some(false), None),
        Some("low") => (Some(true), Some(1024)),
        Some("medium") => (Some(true), Some(4096)),
        Some("high" | "xhigh" | "max") => (Some(true), None),
        Some(_) => return None,
    })
}
