//! SmolLM3's chat format. Source: its model card and its generation_config.json.

use inference::Sampling;

use super::format::{Protocol, TAGGED_CALLS, Thinking};

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
    calls: TAGGED_CALLS,
    sampling: |_, _| Sampling::default(),
};
