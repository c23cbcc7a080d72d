//! The forms of calls, in the tags and keys of a model's chat format.

use std::fmt::Write;
use std::sync::Arc;

use inference::ToolDefinition;
use llguidance::Matcher;
use serde_json::Value;

use super::compiler::Grammars;
use super::rules::{AnswerRules, CallOpening, CallRules, Form, OpeningTag, ToolKey};
use super::schema::{UsableSchema, usable};
use crate::run::error::GenerateError;
use crate::text::protocol::CallFormat;

/// Calls in an answer, at most.
pub(crate) const MAX_CALLS: usize = 8;

/// The parts of a grammar for calls.
struct CallGrammar {
    /// Rules that the starts below use.
    rules: String,
    /// Behind the opening of a call in JSON.
    json_rest: String,
    /// Behind the opening of a program.
    code_rest: String,
    /// Whole calls, as alternatives.
    whole: Vec<&'static str>,
}

impl Grammars {
    /// Calls of these tools. A tool whose schema cannot be used has any object as its arguments. `or_json`: the schema of
    /// an answer in place of required calls.
    pub(super) fn calls(
        &mut self,
        tools: &Arc<[ToolDefinition]>,
        required: bool,
        or_json: Option<&Value>,
    ) -> Result<AnswerRules, GenerateError> {
        let Some((format, runs_code)) = self.calls.filter(|_| !tools.is_empty()) else {
            return if required {
                let reason = "the model cannot call tools, or there are none";
                Err(GenerateError::Form(reason.to_owned()))
            } else {
                Ok(AnswerRules::free())
            };
        };
        if or_json.is_some() && format.tags.is_none() {
            let reason = "this model cannot choose between a call and a format, as both are JSON";
            return Err(GenerateError::Form(reason.to_owned()));
        }
        let schemas = |tool: &ToolDefinition| {
            usable(&tool.parameters)
                .inspect_err(|error| note_any_arguments(error))
                .unwrap_or_else(|_| UsableSchema::any_object())
        };
        let code = tools.iter().find(|tool| tool.code.is_some());
        let code = code.filter(|_| format.code.is_some() && (runs_code || !format.has_close()));
        // Where programs have a list of their own, they have no calls in JSON.
        let listed = tools
            .iter()
            .filter(|tool| !(runs_code && tool.code.is_some()));
        let listed: Vec<&ToolDefinition> = listed.collect();
        let of = |schemas: Vec<UsableSchema>| {
            let schemas = schemas.into_iter().map(|it| it.schema);
            self.grammar(format, &listed, schemas, code.is_some())
        };
        let mut grammar = of(listed.iter().map(|tool| schemas(tool)).collect());
        let loose = of(listed.iter().map(|_| UsableSchema::any_object()).collect());
        let mut openings = Vec::new();
        if !listed.is_empty() {
            let rest = match self.start(&grammar.json_rest, &grammar) {
                Ok(rest) => rest,
                // Together the schemas are too large.
                Err(error) => {
                    note_any_arguments(&error);
                    grammar = loose;
                    self.start(&grammar.json_rest, &grammar)?
                }
            };
            openings.push((format.opening(), rest));
        }
        if let (Some(_), Some(code)) = (code, &format.code) {
            openings.push((code.open, self.start(&grammar.code_rest, &grammar)?));
        }
        let whole = grammar.whole.join(" | ");
        let newlines = "(\"\\n\" \"\\n\"?)?";
        let required = match (required, format.tags) {
            (false, _) => None,
            (true, Some(_)) => {
                let or_json = or_json.map(|schema| format!("| %json {schema}"));
                let or_json = or_json.unwrap_or_default();
                let start = format!("{newlines} ({whole} {or_json})");
                Some(self.start(&start, &grammar)?)
            }
            (true, None) => Some(self.start(&whole, &grammar)?),
        };
        let next = match format.tags {
            Some(_) => Some(self.start(&format!("(\"\\n\" ({whole}))?"), &grammar)?),
            None => None,
        };
        let openings = openings.into_iter().map(|(text, rest)| CallOpening {
            tag: self.tag(text),
            text,
            rest,
        });
        let keys = listed.iter().map(|tool| ToolKey {
            name: tool.name.clone(),
            key: format!("{}, \"{}\": ", Value::from(&*tool.name), format.arguments),
        });
        let code = code.and_then(|tool| Some((tool.name.clone(), tool.code.clone()?)));
        let form = Form::Calls(Box::new(CallRules {
            required,
            or_json: or_json.is_some(),
            next,
            format,
            keys: keys.collect(),
            code,
        }));
        Ok(AnswerRules::new(&self.tokenizer, openings.collect(), form))
    }

    /// No call can be begun.
    pub(super) fn no_calls(&self) -> AnswerRules {
        let format = self.calls.map(|(format, _)| format);
        let code = format.and_then(|it| it.code.as_ref());
        let texts = format.map(|it| it.opening()).into_iter();
        let texts = texts.chain(code.map(|it| it.open));
        AnswerRules::no_calls(&self.tokenizer, texts.map(|text| self.tag(text)).collect())
    }

    fn start(&mut self, start: &str, grammar: &CallGrammar) -> Result<Matcher, GenerateError> {
        self.matcher(&format!("start: {start}\n{}", grammar.rules))
    }

    fn grammar(
        &self,
        format: &CallFormat,
        tools: &[&ToolDefinition],
        schemas: impl Iterator<Item = Value>,
        has_code: bool,
    ) -> CallGrammar {
        let tag = |text: &str| match self.tokenizer.special(text) {
            Some(id) => format!("<[{id}]>"),
            None => literal(text),
        };
        let mut rules = String::new();
        // Writing to a string cannot fail.
        for (at, (tool, schema)) in tools.iter().zip(schemas).enumerate() {
            let key = format!("{}, \"{}\": ", Value::from(&*tool.name), format.arguments);
            let _ = writeln!(rules, "choice_{at}: {} arguments_{at}", literal(&key));
            let _ = writeln!(rules, "arguments_{at}: %json {schema}");
        }
        let choices = (0..tools.len()).map(|at| format!("choice_{at}"));
        let choices = choices.collect::<Vec<_>>().join(" | ");
        let mut whole = Vec::new();
        let mut json_rest = String::new();
        if !tools.is_empty() {
            let _ = writeln!(rules, "object: {} object_rest", literal("{\"name\""));
            let _ = writeln!(
                rules,
                "object_rest: {} ({choices}) {}",
                literal(": "),
                literal("}")
            );
            whole.push("json_call");
            match format.tags {
                Some([open, close]) => {
                    json_rest = format!("\"\\n\"? object \"\\n\"? {}", tag(close));
                    let _ = writeln!(rules, "json_call: {} {json_rest}", tag(open));
                }
                None => {
                    "object_rest".clone_into(&mut json_rest);
                    rules.push_str("json_call: object\n");
                }
            }
        }
        let mut code_rest = String::new();
        if let Some(code) = format.code.as_ref().filter(|_| has_code) {
            code_rest = match code.close {
                Some(close) if self.tokenizer.special(close).is_none() => {
                    let close = literal(close);
                    let _ = writeln!(rules, "program[suffix={close}]: /(?s:.+)/");
                    "program".to_owned()
                }
                close => {
                    rules.push_str("PROGRAM: /(?s:.+)/\n");
                    format!("PROGRAM {}", close.map(tag).unwrap_or_default())
                }
            };
            let _ = writeln!(rules, "code_call: {} {code_rest}", tag(code.open));
            whole.push("code_call");
        }
        CallGrammar {
            rules,
            json_rest,
            code_rest,
            whole,
        }
    }

    fn tag(&self, text: &'static str) -> OpeningTag {
        match self.tokenizer.special(text) {
            Some(id) => OpeningTag::Token(id),
            None => OpeningTag::Text(text),
        }
    }
}

/// Logs that a tool may have any arguments. The error may quote what another program sent.
fn note_any_arguments(error: &dyn std::error::Error) {
    tracing::warn!("a tool may have any arguments");
    tracing::debug!(%error, "its schema cannot be used");
}

/// A text as a literal of a grammar, which is a string of JSON.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}
