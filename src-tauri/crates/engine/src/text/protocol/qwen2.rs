//! ChatML as Qwen 2.5 writes it. Sampling: its generation_config.json.

use inference::Sampling;

use super::format::{Protocol, TAGGED_CALLS, TOOLS};

pub(super) static QWEN_2: Protocol = Protocol {
    name: "Qwen 2.5",
    template: include_str!("qwen2.jinja"),
    tokens: &["<|im_start|>", "<|im_end|>"],
    ends: &["<|im_end|>", "<|endoftext|>"],
    mark: "<|im_start|>",
    thinking: None,
    calls: TAGGED_CALLS,
    tools: Some(TOOLS),
    sampling: |_, _| Sampling {
        temperature: 0.7,
        top_p: 0.8,
        top_k: 20,
        repeat_penalty: 1.05,
        ..Sampling::default()
    },
};
