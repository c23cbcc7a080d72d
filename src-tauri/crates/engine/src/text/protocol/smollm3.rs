//! SmolLM3's chat format. Source: its model card and its generation_config.json.

use inference::Sampling;

use super::format::{CALL_TAGS, CallFormat, CodeFormat, Protocol, Thinking, ToolVariables};

/// The format of SmolLM3.
pub static SMOLLM3_CHAT: Protocol = Protocol {
    name: "SmolLM3",
    template: include_str!("smollm3.jinja"),
    tokens: &["<|im_start|>", "<|im_end|>"],
    ends: &["<|im_end|>", "<|end_of_text|>"],
    mark: "Reasoning Mode",
    thinking: Some(Thinking {
        kept: true,
        after: "\n",
    }),
    calls: CallFormat {
        tags: Some(CALL_TAGS),
        arguments: "arguments",
        code: Some(CodeFormat {
            open: "<code>",
            close: Some("</code>"),
        }),
    },
    tools: Some(ToolVariables {
        tools: "xml_tools",
        signatures: Some("python_tools"),
        unset: None,
    }),
    sampling: |_, _| Sampling::default(),
};
