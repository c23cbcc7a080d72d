//! A compiled form of an answer.

use std::sync::Arc;

use llguidance::Matcher;
use serde_json::Value;

use crate::text::protocol::CallFormat;
use crate::text::tokenizer::Tokenizer;

/// Rules of an answer.
pub(crate) struct AnswerRules {
    /// Openings of calls, and the forms behind them.
    pub openings: Vec<CallOpening>,
    /// Openings that no answer has.
    pub forbidden: Vec<OpeningTag>,
    /// Ordinary tokens that have a whole forbidden opening.
    pub forbidden_tokens: Vec<u32>,
    /// Special tokens of calls, which the sampler does not suppress for good.
    pub tags: Vec<u32>,
    pub form: Form,
}

/// The form of an answer.
pub(crate) enum Form {
    /// None, or text without calls.
    Text,
    /// Text, and calls at its end.
    Calls(Box<CallRules>),
    /// JSON alone.
    Json(Box<Matcher>),
}

/// Rules of calls.
pub(crate) struct CallRules {
    /// The form of the whole answer, if it is to be a call.
    pub required: Option<Matcher>,
    /// True if that form has JSON in place of a call, which never begins like a tag.
    pub or_json: bool,
    /// The form behind a call; `None` if nothing may follow.
    pub next: Option<Matcher>,
    pub format: &'static CallFormat,
    pub keys: Vec<ToolKey>,
    /// The code tool and its argument, if its calls are programs.
    pub code: Option<(String, String)>,
}

/// The text in a call from the name of a tool to its arguments.
pub(crate) struct ToolKey {
    pub name: String,
    pub key: String,
}

/// An opening of calls.
pub(crate) struct CallOpening {
    pub tag: OpeningTag,
    pub text: &'static str,
    /// The form behind it.
    pub rest: Matcher,
}

/// An opening as it is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpeningTag {
    /// A special token.
    Token(u32),
    /// Ordinary text.
    Text(&'static str),
}

impl OpeningTag {
    /// The text, if it is ordinary.
    pub fn text(self) -> Option<&'static str> {
        match self {
            OpeningTag::Token(_) => None,
            OpeningTag::Text(text) => Some(text),
        }
    }

    /// The token, if it is one.
    pub fn token(self) -> Option<u32> {
        match self {
            OpeningTag::Token(id) => Some(id),
            OpeningTag::Text(_) => None,
        }
    }

    /// Returns true if it counts at the beginning of an answer alone: it is no tag, but JSON.
    pub fn is_at_start(self) -> bool {
        self.text().is_some_and(|text| text.starts_with('{'))
    }
}

impl AnswerRules {
    /// Rules that forbid nothing.
    pub fn free() -> AnswerRules {
        AnswerRules {
            openings: Vec::new(),
            forbidden: Vec::new(),
            forbidden_tokens: Vec::new(),
            tags: Vec::new(),
            form: Form::Text,
        }
    }

    pub fn json(form: Matcher) -> AnswerRules {
        AnswerRules {
            form: Form::Json(Box::new(form)),
            ..AnswerRules::free()
        }
    }

    pub fn no_calls(tokenizer: &Arc<Tokenizer>, forbidden: Vec<OpeningTag>) -> AnswerRules {
        let has_whole = |id: &u32| {
            let piece = tokenizer.piece(*id);
            let texts = forbidden.iter().filter(|it| !it.is_at_start());
            let mut texts = texts.filter_map(|it| it.text());
            texts.any(|text| {
                piece
                    .windows(text.len())
                    .any(|part| part == text.as_bytes())
            })
        };
        let ids = 0..u32::try_from(tokenizer.vocabulary_size()).unwrap_or(u32::MAX);
        AnswerRules {
            forbidden_tokens: ids.filter(has_whole).collect(),
            forbidden,
            ..AnswerRules::free()
        }
    }

    pub fn new(tokenizer: &Tokenizer, openings: Vec<CallOpening>, form: Form) -> AnswerRules {
        let tags = match &form {
            Form::Calls(calls) => {
                let tags = calls.format.all_tags();
                let has_code = calls.code.is_some();
                let is_code = |tag: &str| {
                    let code = calls.format.code.as_ref();
                    code.is_some_and(|it| it.open == tag || it.close == Some(tag))
                };
                let tags = tags.filter(|tag| has_code || !is_code(tag));
                tags.filter_map(|tag| tokenizer.special(tag)).collect()
            }
            Form::Text | Form::Json(_) => Vec::new(),
        };
        AnswerRules {
            openings,
            tags,
            form,
            ..AnswerRules::free()
        }
    }
}

impl CallRules {
    /// Reads a call from its text, tags included: the name of the tool and its arguments.
    pub fn read(&self, text: &str) -> Option<(String, String)> {
        let text = text.trim();
        if let Some((name, argument)) = &self.code
            && let Some(code) = &self.format.code
            && let Some(program) = text.strip_prefix(code.open)
        {
            let program = match code.close {
                Some(close) => program.strip_suffix(close)?,
                None => program,
            };
            let mut arguments = serde_json::Map::new();
            arguments.insert(argument.clone(), program.trim_matches('\n').into());
            return Some((name.clone(), Value::Object(arguments).to_string()));
        }
        let json = match self.format.tags {
            Some([open, close]) => text.strip_prefix(open)?.strip_suffix(close)?.trim(),
            None => text,
        };
        let rest = json.strip_prefix("{\"name\": ")?.strip_suffix('}')?;
        self.keys.iter().find_map(|tool| {
            let arguments = rest.strip_prefix(&*tool.key)?;
            Some((tool.name.clone(), arguments.to_owned()))
        })
    }
}
