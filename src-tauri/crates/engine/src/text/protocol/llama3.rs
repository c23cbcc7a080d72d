//! Llama 3's chat format. Source: llama.com, "Model Cards & Prompt formats"; sampling: generation_config.json.

use inference::Sampling;

use super::format::{CallFormat, CodeFormat, Protocol, ToolVariables};

pub(super) static LLAMA_3: Protocol = Protocol {
    name: "Llama 3",
    template: include_str!("llama3.jinja"),
    tokens: &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    ends: &["<|eot_id|>", "<|end_of_text|>"],
    mark: "<|start_header_id|>",
    thinking: None,
    calls: CallFormat {
        tags: None,
        arguments: "parameters",
        code: Some(CodeFormat {
            open: "<|python_tag|>",
            close: None,
        }),
    },
    tools: Some(ToolVariables {
        tools: "tools",
        signatures: None,
        unset: Some("tools_in_user_message"),
    }),
    sampling: |_, _| Sampling {
        temperature: 0.6,
        top_p: 0.9,
        ..Sampling::default()
    },
};
