//! Rounds of an answer: the model writes, calls tools, and is given their results.

use inference::{Part, Parts, ToolOutcome};
use tools::MadeCall;

/// Separator of the rounds in the ids of an answer. No vocabulary is so large.
pub(crate) const ROUND_END: u32 = u32::MAX;

/// Result of a call that an answer was stopped before, in the prompts of later ones.
const NOT_RUN: &str = "This call was not run.";

/// A round of an answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Round {
    /// Thinking, text and calls.
    pub written: Parts,
    pub results: Vec<String>,
}

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallPart<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
}

impl<'a> CallPart<'a> {
    pub fn made(self) -> MadeCall<'a> {
        let CallPart {
            name, arguments, ..
        } = self;
        MadeCall { name, arguments }
    }
}

/// Divides an answer into rounds. Only the last one may have no results.
pub(crate) fn rounds(parts: &Parts) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::new();
    for part in &parts.0 {
        if let Part::ToolResult { text, .. } = part {
            if rounds.is_empty() {
                rounds.push(Round::default());
            }
            if let Some(round) = rounds.last_mut() {
                round.results.push(text.clone());
            }
        } else {
            if rounds.last().is_none_or(|round| !round.results.is_empty()) {
                rounds.push(Round::default());
            }
            if let Some(round) = rounds.last_mut() {
                round.written.0.push(part.clone());
            }
        }
    }
    rounds
}

/// Like [`rounds`], with a result for each call.
pub(crate) fn whole_rounds(parts: &Parts) -> Vec<Round> {
    let mut rounds = rounds(parts);
    let open = unanswered(parts).count();
    if let Some(last) = rounds.last_mut() {
        last.results
            .extend(std::iter::repeat_n(NOT_RUN.to_owned(), open));
    }
    rounds
}

/// Returns the number of rounds that are over.
pub(crate) fn completed(parts: &Parts) -> usize {
    let rounds = rounds(parts).into_iter();
    rounds.filter(|round| !round.results.is_empty()).count()
}

/// Returns all calls.
pub(crate) fn calls(parts: &Parts) -> impl Iterator<Item = CallPart<'_>> {
    calls_of(&parts.0)
}

fn calls_of(parts: &[Part]) -> impl Iterator<Item = CallPart<'_>> {
    parts.iter().filter_map(|part| match part {
        Part::ToolCall {
            id,
            name,
            arguments,
        } => Some(CallPart {
            id,
            name,
            arguments,
        }),
        _ => None,
    })
}

/// Returns the calls at the end of an answer that have no result yet.
pub(crate) fn open_calls(parts: &Parts) -> impl Iterator<Item = CallPart<'_>> {
    let is_written = |part: &Part| matches!(part, Part::Text { .. } | Part::Thinking { .. });
    let begin = parts.0.iter().rposition(is_written).map_or(0, |at| at + 1);
    let before = calls_of(&parts.0[..begin]).count();
    unanswered(parts).filter(move |call| calls(parts).skip(before).any(|it| it == *call))
}

fn unanswered(parts: &Parts) -> impl Iterator<Item = CallPart<'_>> {
    calls(parts).filter(|call| result(parts, call.id).is_none())
}

/// Returns the result of a call, and its end.
pub(crate) fn result<'a>(parts: &'a Parts, of: &str) -> Option<(&'a str, ToolOutcome)> {
    parts.0.iter().find_map(|part| match part {
        Part::ToolResult {
            id, text, outcome, ..
        } if id == of => Some((&**text, *outcome)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Part {
        Part::ToolCall {
            id: id.to_owned(),
            name: "calculator".to_owned(),
            arguments: "{}".to_owned(),
        }
    }

    fn result_of(id: &str) -> Part {
        Part::ToolResult {
            id: id.to_owned(),
            text: format!("result {id}"),
            outcome: ToolOutcome::Done,
            server: None,
        }
    }

    fn text(text: &str) -> Part {
        Part::Text {
            text: text.to_owned(),
        }
    }

    #[test]
    fn results_divide_an_answer() {
        let answer = Parts(vec![
            text("I look."),
            call("1"),
            call("2"),
            result_of("1"),
            result_of("2"),
            call("3"),
            result_of("3"),
            text("Six."),
        ]);
        let rounds = rounds(&answer);
        let shape: Vec<_> = rounds
            .iter()
            .map(|round| (round.written.0.len(), round.results.len()))
            .collect();
        assert_eq!(shape, [(3, 2), (1, 1), (1, 0)]);
        assert_eq!(completed(&answer), 2);
        assert_eq!(open_calls(&answer).count(), 0);
    }

    #[test]
    fn a_call_without_a_result_is_open_and_gets_one_in_later_prompts() {
        let answer = Parts(vec![call("1"), call("2"), result_of("1")]);
        let open: Vec<_> = open_calls(&answer).map(|call| call.id).collect();
        assert_eq!(open, ["2"]);
        assert_eq!(whole_rounds(&answer)[0].results, ["result 1", NOT_RUN]);
        let written = Parts(vec![call("1"), text("So:")]);
        assert_eq!(open_calls(&written).count(), 0, "it went on without");
        assert_eq!(whole_rounds(&written)[0].results, [NOT_RUN]);
        let stopped = Parts(vec![text("I look."), call("1")]);
        assert_eq!(whole_rounds(&stopped)[0].results, [NOT_RUN]);
        assert_eq!(completed(&stopped), 0);
        assert!(whole_rounds(&Parts::default()).is_empty());
    }
}
