//! The rounds of `goldcrest ask --tools`: the model calls, and is given the results.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use engine::{Constraint, Role, ToolCall, ToolDefinition, Turn};
use figures::without_controls;
use host::test_hooks;
use tools::{CallAnswer, MadeCall, Registry, Tool, ToolOutcome, ToolRun, answer_to, given};

use crate::cli::answer::Answer;
use crate::cli::output::{self, CliError};
use crate::visible::on_one_line;

/// Time limit of a call.
const LIMIT: Duration = Duration::from_secs(60);
/// Rounds after which the model has to answer.
const MOST_ROUNDS: usize = 8;
/// Characters of a result that the model is given.
const LONGEST_RESULT: usize = 6000;
/// Characters of a call or a result that are shown.
const SHOWN: usize = 200;

/// The tools that were named, which run without asking, and the calls so far.
pub struct ToolRounds {
    tools: Vec<Arc<dyn Tool>>,
    rounds: usize,
    made: Vec<(ToolCall, String)>,
}

impl ToolRounds {
    /// Takes the tools with these names.
    pub fn of(registry: &Registry, names: &[String]) -> Result<ToolRounds, CliError> {
        let tools = names.iter().map(|name| {
            registry.get(name).ok_or_else(|| {
                let there = registry.tools().into_iter();
                let there = there.map(|tool| tool.info().definition.name.clone());
                let there = there.collect::<Vec<_>>().join(", ");
                CliError::message(format!("There is no tool “{name}”. There are: {there}."))
            })
        });
        Ok(ToolRounds {
            tools: tools.collect::<Result<_, _>>()?,
            rounds: 0,
            made: Vec::new(),
        })
    }

    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        let tools = self.tools.iter();
        tools.map(|tool| tool.info().definition.clone()).collect()
    }

    /// Returns what the next answer may call.
    pub fn constraint(&self) -> Option<Constraint> {
        let tools = self.definitions();
        match () {
            () if tools.is_empty() => None,
            () if self.rounds == MOST_ROUNDS => Some(Constraint::NoCalls),
            () => Some(Constraint::Calls {
                tools,
                required: test_hooks::requires_calls(),
            }),
        }
    }

    /// Runs the calls of an answer, and returns the answer and their results as they stand in the next prompt.
    pub fn run(&mut self, answer: &Answer, cancel: &AtomicBool) -> Vec<Turn> {
        self.rounds += 1;
        let thinking = Some(answer.thinking.trim().to_owned()).filter(|text| !text.is_empty());
        let mut turns = vec![Turn {
            thinking,
            calls: answer.calls.clone(),
            ids: Some(answer.ids.clone()),
            ..Turn::new(Role::Assistant, answer.text.trim_start_matches('\n'))
        }];
        for call in &answer.calls {
            let (result, outcome) = self.result(call, cancel);
            report(call, &result, outcome);
            turns.push(Turn::new(Role::Tool, result.as_str()));
            if outcome == ToolOutcome::Done {
                self.made.push((call.clone(), result));
            }
        }
        turns
    }

    fn result(&self, call: &ToolCall, cancel: &AtomicBool) -> (String, ToolOutcome) {
        let done = self.made.iter();
        let done = done.map(|(call, result)| (made(call), &**result));
        let (tool, arguments) = match answer_to(&self.tools, made(call), done) {
            CallAnswer::Run { tool, arguments } => (tool, arguments),
            CallAnswer::Repeat { text, .. } => return (text, ToolOutcome::Done),
            CallAnswer::Refuse(sentence) => return (sentence, ToolOutcome::Failed),
        };
        let others = self.tools.iter();
        let functions: Vec<_> = others
            .filter(|other| other.info().definition.code.is_none())
            .cloned()
            .collect();
        let run = ToolRun {
            deadline: Instant::now() + LIMIT,
            cancel,
            functions: &functions,
            chat: None,
        };
        let (text, outcome) = match tool.run(&arguments, &run) {
            Ok(output) => (output.text, ToolOutcome::Done),
            Err(error) => (error.to_string(), error.outcome()),
        };
        (given(&text, LONGEST_RESULT), outcome)
    }
}

fn made(call: &ToolCall) -> MadeCall<'_> {
    MadeCall {
        name: &call.name,
        arguments: &call.arguments,
    }
}

/// Writes a call and its result to stderr.
fn report(call: &ToolCall, result: &str, outcome: ToolOutcome) {
    let shown = |text: &str| {
        let text = without_controls(text);
        let text: String = text.chars().take(SHOWN).collect();
        on_one_line(&text).into_owned()
    };
    let failed = if outcome == ToolOutcome::Done {
        ""
    } else {
        " (failed)"
    };
    // A terminal that is gone is no failure.
    let _ = writeln!(
        output::stderr(),
        "{} {} → {}{failed}",
        shown(&call.name),
        shown(&call.arguments),
        shown(result)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::built_in;
    use tools::{ChatHit, ChatSearch, REPEATED};

    struct NoChats;

    impl ChatSearch for NoChats {
        fn search(&self, _: &str, _: usize, _: Option<i64>) -> Result<Vec<ChatHit>, String> {
            Ok(Vec::new())
        }
    }

    fn named(names: &[&str]) -> Result<ToolRounds, CliError> {
        let registry = built_in(Arc::new(NoChats)).expect("tools");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        ToolRounds::of(&registry, &names)
    }

    #[test]
    fn an_unknown_tool_is_named_beside_those_that_exist() {
        let error = named(&["weigh"]).err().expect("an error").sentence();
        assert!(
            error.contains("“weigh”") && error.contains("calculator"),
            "{error}"
        );
    }

    #[test]
    fn a_round_answers_each_call_and_the_last_one_allows_none() {
        let mut rounds = named(&["search_chats"]).expect("there");
        let call = |name: &str, arguments: &str| ToolCall {
            at: 0,
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        let answer = Answer {
            calls: vec![
                call("search_chats", r#"{"query": "bread"}"#),
                call("search_chats", r#"{"query":"bread"}"#),
                call("search_chats", "{}"),
                call("weigh", "{}"),
            ],
            ..Answer::default()
        };
        let turns = rounds.run(&answer, &AtomicBool::new(false));
        assert_eq!(turns[0].calls.len(), 4);
        let results: Vec<_> = turns[1..].iter().map(|turn| &*turn.text).collect();
        assert!(results[0].starts_with("No chat"), "{results:?}");
        assert!(results[1].starts_with(REPEATED), "{results:?}");
        assert!(results[2].contains("query"), "{results:?}");
        assert!(results[3].contains("“weigh”"), "{results:?}");
        for _ in 1..MOST_ROUNDS {
            assert!(matches!(
                rounds.constraint(),
                Some(Constraint::Calls { .. })
            ));
            rounds.run(&Answer::default(), &AtomicBool::new(false));
        }
        assert_eq!(rounds.constraint(), Some(Constraint::NoCalls));
        assert_eq!(named(&[]).expect("none").constraint(), None);
    }
}
