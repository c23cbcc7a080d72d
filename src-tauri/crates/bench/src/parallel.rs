//! Speed of several answers at once, and of an answer beside which a prompt is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use engine::run::answer::rate;
use engine::{Engine, GenerateError, NoBlocks, StepOptions};
use inference::{
    Event, GenerateParams, ModelRequest, Priority, Prompt, RequestId, Sampling, Signals,
};
use serde::Serialize;

use crate::BenchParams;
use crate::instrument::{Instrument, median_of};

/// Answers that are written at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParallelReport {
    /// Number of answers.
    pub answers: usize,
    /// Tokens per second of all of them together.
    pub tok_s: f64,
}

/// An answer, and a prompt that is read beside it. Rates in tokens per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BesideReport {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Rate of the answer by itself.
    pub alone_tok_s: f64,
    /// Rate of the answer while the prompt is read.
    pub beside_tok_s: f64,
    /// Rate at which the prompt is read.
    pub read_tok_s: f64,
}

/// Measures numbers of answers at once, each after `params.depth` tokens, and a prompt of `params.prompt` tokens beside
/// one. The medians count.
///
/// # Errors
/// Fails if the tokens do not fit into the context, or the device fails.
pub fn parallel(
    engine: &mut Engine,
    params: &BenchParams,
    answers: &[usize],
) -> Result<(Vec<ParallelReport>, BesideReport), GenerateError> {
    let mut instrument = Instrument::new(engine);
    let mut seconds = vec![Vec::new(); answers.len()];
    for _ in 0..params.repeats.max(1) {
        for (&answers, seconds) in answers.iter().zip(&mut seconds) {
            seconds.push(instrument.seconds_per_token(params, answers)?);
        }
    }
    let reports = answers.iter().zip(seconds);
    let reports = reports.map(|(&answers, seconds)| ParallelReport {
        answers,
        tok_s: rate(1, median_of(seconds)),
    });
    Ok((reports.collect(), instrument.beside(params)?))
}

impl Instrument<'_> {
    /// Prompts of this many tokens that have nothing in common.
    fn prompts(&self, count: usize, tokens: usize) -> Vec<Prompt> {
        let all = self.arbitrary_tokens(count * tokens.max(1));
        let prompts = all.chunks(tokens.max(1));
        prompts.map(|ids| Prompt::of_ids(ids.to_vec())).collect()
    }

    /// Measures answers at once, from the first token of the last one until each has `params.generate` tokens.
    /// Infinite if no two come then.
    fn seconds_per_token(
        &mut self,
        params: &BenchParams,
        answers: usize,
    ) -> Result<f64, GenerateError> {
        let prompts = self.prompts(answers, params.depth);
        let endless = greedy(usize::MAX);
        let mut times = vec![Vec::new(); answers];
        let is_over = Arc::default();
        let requests = prompts.iter().map(|prompt| (prompt, &endless));
        self.together_until(requests, &is_over, &mut |at| {
            times[at].push(Instant::now());
            let is_last = times.iter().all(|times| times.len() >= params.generate);
            is_over.fetch_or(is_last, Ordering::Relaxed);
        })?;
        let all_began = times.iter().filter_map(|times| times.first()).max();
        let mut together: Vec<_> = times.iter().flatten().copied().collect();
        together.retain(|time| Some(time) >= all_began);
        together.sort_unstable();
        Ok(seconds_per_event(&together))
    }

    /// Measures an answer by itself, and while a prompt is read.
    fn beside(&mut self, params: &BenchParams) -> Result<BesideReport, GenerateError> {
        let length = greedy(params.generate);
        let prompts = [
            self.prompts(1, params.depth),
            self.prompts(2, params.prompt).split_off(1),
        ]
        .concat();
        let mut alone = Vec::new();
        self.together([(&prompts[0], &length)], &mut |_| {
            alone.push(Instant::now())
        })?;
        let one = greedy(1);
        let endless = greedy(usize::MAX);
        let (mut times, mut read_after) = (Vec::new(), f64::INFINITY);
        let (started, is_read) = (Instant::now(), Arc::default());
        let requests = [(&prompts[0], &endless), (&prompts[1], &one)];
        self.together_until(requests, &is_read, &mut |at| match at {
            0 => times.push(Instant::now()),
            _ => {
                read_after = started.elapsed().as_secs_f64();
                is_read.store(true, Ordering::Relaxed);
            }
        })?;
        Ok(BesideReport {
            prompt: params.prompt,
            alone_tok_s: rate(1, seconds_per_event(&alone)),
            beside_tok_s: rate(1, seconds_per_event(&times)),
            read_tok_s: rate(params.prompt, read_after),
        })
    }

    /// Generates answers at once; `on_token` is called with the index of the answer.
    fn together<'a>(
        &mut self,
        requests: impl IntoIterator<Item = (&'a Prompt, &'a GenerateParams)>,
        on_token: &mut dyn FnMut(usize),
    ) -> Result<(), GenerateError> {
        self.together_until(requests, &Arc::default(), on_token)
    }

    /// [`Instrument::together`], with a flag that cancels.
    fn together_until<'a>(
        &mut self,
        requests: impl IntoIterator<Item = (&'a Prompt, &'a GenerateParams)>,
        cancel: &Arc<AtomicBool>,
        on_token: &mut dyn FnMut(usize),
    ) -> Result<(), GenerateError> {
        let mut result = Ok(());
        for (id, (prompt, params)) in (0..).zip(requests) {
            let submitted = self.engine.submit(ModelRequest {
                id: RequestId(id),
                priority: Priority::Answer,
                conversation: id,
                prompt: prompt.clone(),
                params: params.clone(),
                signals: Signals::cancelled_by(cancel),
            });
            result = result.and(submitted);
        }
        while self.engine.is_busy() {
            let mut step = StepOptions {
                preempt: &AtomicBool::new(false),
                blocks: &mut NoBlocks,
            };
            let ended = self.engine.step(&mut step, &mut |RequestId(id), event| {
                if matches!(event, Event::Token { .. }) {
                    on_token(id as usize);
                }
            });
            for (_, end) in ended {
                result = result.and(end.map(drop));
            }
        }
        result
    }
}

/// Answers of this many tokens, without drafts.
fn greedy(tokens: usize) -> GenerateParams {
    GenerateParams {
        sampling: Sampling {
            temperature: 0.0,
            ..Sampling::default()
        },
        max_tokens: Some(tokens),
        lookup: false,
        stops_repetition: false,
        ..GenerateParams::default()
    }
}

/// Mean time between events.
fn seconds_per_event(times: &[Instant]) -> f64 {
    match times {
        [first, .., last] => (*last - *first).as_secs_f64() / (times.len() - 1) as f64,
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use engine::LoadOptions;

    use super::*;
    use crate::synthetic;

    #[test]
    fn answers_at_once_and_a_prompt_beside_one_are_measured() {
        let file = synthetic("tiny-q4_k_m", 7).expect("a small model");
        let options = LoadOptions {
            threads: Some(2),
            ..LoadOptions::default()
        };
        let mut engine = Engine::load(&file, &options, &mut |_| {}).expect("it loads");
        let params = BenchParams {
            prompt: 300,
            generate: 8,
            depth: 4,
            repeats: 1,
            ..BenchParams::default()
        };
        let (reports, beside) = parallel(&mut engine, &params, &[1, 3]).expect("measured");
        let answers: Vec<_> = reports.iter().map(|report| report.answers).collect();
        assert_eq!((answers, beside.prompt), (vec![1, 3], 300));
        let rates = reports.iter().map(|report| report.tok_s);
        let beside = [beside.alone_tok_s, beside.beside_tok_s, beside.read_tok_s];
        for rate in rates.chain(beside) {
            assert!(rate.is_finite() && rate > 0.0, "{rate}");
        }
    }
}
