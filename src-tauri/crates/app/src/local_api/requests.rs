//! Requests of programs, as the chat takes them.

use std::sync::Arc;

use api::{AnswerForm, ApiMessage, ApiSampling, ApiTool, Generation, GenerationPrompt};
use chat::{ApiPrompt, ApiRequest, SamplingSettings};
use engine::{Constraint, Conversation, Role, Signals, ToolCall, ToolDefinition, Turn};

/// Converts a request.
pub fn of(request: Generation, signals: Signals) -> ApiRequest {
    let (prompt, tools) = match request.prompt {
        GenerationPrompt::Text { text } => (ApiPrompt::Text(text), Arc::default()),
        GenerationPrompt::Conversation {
            messages,
            tools,
            thinking,
        } => {
            let tools = definitions(tools);
            let conversation = conversation(messages, Arc::clone(&tools), thinking);
            (ApiPrompt::Conversation(conversation), tools)
        }
    };
    let ApiSampling {
        temperature,
        top_p,
        top_k,
        min_p,
        seed,
    } = request.sampling;
    ApiRequest {
        prompt,
        sampling: SamplingSettings {
            temperature,
            top_p,
            top_k,
            min_p,
            seed,
            repeat_penalty: None,
        },
        max_tokens: request.max_tokens,
        thinking_budget: request.thinking_budget,
        constraint: constraint(request.form, &tools),
        logprobs: request.logprobs,
        signals,
    }
}

fn definitions(tools: Vec<ApiTool>) -> Arc<[ToolDefinition]> {
    let tools = tools.into_iter().map(|tool| ToolDefinition {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
        code: None,
    });
    tools.collect()
}

fn constraint(form: AnswerForm, tools: &Arc<[ToolDefinition]>) -> Option<Constraint> {
    match form {
        AnswerForm::Json { schema } => Some(Constraint::Json(Arc::new(schema))),
        AnswerForm::Free => (!tools.is_empty()).then_some(Constraint::NoCalls),
        AnswerForm::Calls { required, only, .. } => {
            let tools = match only {
                Some(only) => tools.iter().filter(|it| it.name == only).cloned().collect(),
                None => Arc::clone(tools),
            };
            Some(Constraint::Calls { tools, required })
        }
        AnswerForm::CallsOrJson { schema, .. } => Some(Constraint::CallsOrJson {
            tools: Arc::clone(tools),
            schema: Arc::new(schema),
        }),
    }
}

/// Flags in instructions that switch thinking off and on, for clients that have no field for it.
const FLAGS: [(&str, bool); 2] = [("/no_think", false), ("/think", true)];

/// Returns whether a flag switches thinking on; `None` for another word, such as a path that a flag is part of.
fn flag(word: &str) -> Option<bool> {
    let found = FLAGS.iter().find(|(flag, _)| *flag == word);
    found.map(|(_, thinks)| *thinks)
}

/// Takes flags out of instructions. Returns the rest, unchanged without flags, and whether they switch thinking on: of
/// both flags, the one for off has precedence.
fn without_flags(text: String) -> (String, Option<bool>) {
    let Some(thinks) = text.split_whitespace().filter_map(flag).min() else {
        return (text, None);
    };
    let words = text.split_inclusive(char::is_whitespace);
    let rest = words.map(|word| match flag(word.trim_end()) {
        Some(_) => word.trim_start_matches(|it: char| !it.is_whitespace()),
        None => word,
    });
    let mut rest: String = rest.collect();
    // A flag at an end leaves no blank line there.
    let mut words = text.split_whitespace();
    if words.next().and_then(flag).is_some() {
        rest = rest.trim_start().to_owned();
    }
    if words.next_back().and_then(flag).is_some() {
        rest.truncate(rest.trim_end().len());
    }
    (rest, Some(thinks))
}

/// Returns the conversation. The system messages at its beginning are its instructions. It thinks unless a field or a flag
/// says otherwise.
fn conversation(
    messages: Vec<ApiMessage>,
    tools: Arc<[ToolDefinition]>,
    mut thinking: Option<bool>,
) -> Conversation {
    let mut instructions: Vec<String> = Vec::new();
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages {
        match message {
            ApiMessage::System { text } if turns.is_empty() => {
                let (text, thinks) = without_flags(text);
                thinking = thinking.or(thinks);
                if !text.is_empty() {
                    instructions.push(text);
                }
            }
            ApiMessage::System { text } => turns.push(Turn::new(Role::System, text)),
            ApiMessage::User { text } => turns.push(Turn::new(Role::User, text)),
            ApiMessage::Tool { text } => turns.push(Turn::new(Role::Tool, text)),
            ApiMessage::Assistant { text, calls } => {
                let at = text.len();
                let calls = calls.into_iter().map(|(name, arguments)| ToolCall {
                    at,
                    name,
                    arguments,
                });
                turns.push(Turn {
                    calls: calls.collect(),
                    ..Turn::new(Role::Assistant, text)
                });
            }
        }
    }
    Conversation {
        messages: turns,
        instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        tools,
        thinking: thinking.unwrap_or(true),
        today: chat::now().date(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_has_its_instructions_calls_and_results() {
        let text = |text: &str| text.to_owned();
        let made = conversation(
            vec![
                ApiMessage::System { text: text("a") },
                ApiMessage::System { text: text("b") },
                ApiMessage::User { text: text("c") },
                ApiMessage::Assistant {
                    text: text("dd"),
                    calls: vec![(text("add"), text("{}"))],
                },
                ApiMessage::Tool { text: text("3") },
                ApiMessage::System { text: text("e") },
            ],
            Arc::default(),
            Some(false),
        );
        assert_eq!(made.instructions.as_deref(), Some("a\n\nb"));
        let roles: Vec<Role> = made.messages.iter().map(|it| it.role).collect();
        assert_eq!(
            roles,
            [Role::User, Role::Assistant, Role::Tool, Role::System]
        );
        assert_eq!(made.messages[1].calls[0].at, 2);
    }

    #[test]
    fn a_flag_in_the_instructions_switches_thinking() {
        let of = |text: &str, thinking| {
            let text = text.to_owned();
            let made = conversation(vec![ApiMessage::System { text }], Arc::default(), thinking);
            (made.instructions, made.thinking)
        };
        let brief = Some("Be brief.".to_owned());
        assert_eq!(of("Be brief.", None), (brief.clone(), true));
        assert_eq!(of("Be brief. /no_think", None), (brief.clone(), false));
        assert_eq!(of("/no_think", None), (None, false));
        assert_eq!(of("/think Be brief.", Some(false)), (brief, false));
        assert!(!of("a\n/think /no_think\nb", None).1);
    }

    #[test]
    fn only_whole_words_of_the_instructions_are_flags() {
        for plain in [
            "Look at src/thinking.ts and /think/no_think.\n",
            "  See https://example.org/think, or /thinking: it is x/no_think\n\n",
        ] {
            assert_eq!(without_flags(plain.to_owned()), (plain.to_owned(), None));
        }
        let text = "  indented\n/no_think\n\tsrc/thinking.ts\n";
        let rest = "  indented\n\n\tsrc/thinking.ts\n".to_owned();
        assert_eq!(without_flags(text.to_owned()), (rest, Some(false)));
    }

    #[test]
    fn only_the_chosen_tool_may_be_called() {
        let tool = |name: &str| ApiTool {
            name: name.to_owned(),
            description: String::new(),
            parameters: serde_json::json!({ "type": "object" }),
        };
        let tools = definitions(vec![tool("add"), tool("subtract")]);
        let calls = |only: Option<&str>| AnswerForm::Calls {
            required: true,
            only: only.map(str::to_owned),
            single: false,
        };
        let names = |form| match constraint(form, &tools) {
            Some(Constraint::Calls { tools, .. }) => {
                tools.iter().map(|it| it.name.clone()).collect()
            }
            _ => Vec::new(),
        };
        assert_eq!(names(calls(None)), ["add", "subtract"]);
        assert_eq!(names(calls(Some("subtract"))), ["subtract"]);
        assert_eq!(
            constraint(AnswerForm::Free, &tools),
            Some(Constraint::NoCalls)
        );
        assert_eq!(constraint(AnswerForm::Free, &Arc::default()), None);
    }
}
